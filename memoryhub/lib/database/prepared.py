"""Statements of frequent calls, whose SQL is built once in each thread instead of for each call.

Django builds the SQL of a queryset anew each time, which takes longer than the database's work for one row.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Field, Model, QuerySet, Value
from django.db.models.expressions import RawSQL

from memoryhub.lib.database.fixed_sql import planned_cursor

M = TypeVar("M", bound=Model)
Parameter = int | str | list[int] | list[str]


@dataclass(frozen=True)
class _Place:
    """Marks where a parameter stands in a statement."""

    number: int


class PreparedRows(Generic[M]):
    """A queryset with parameters, which may be keys, texts, or lists of them (see ``among``).

    ``build`` gets an expression for each parameter: ``PreparedRows(1, lambda key: Session.objects.filter(key=key))``.
    ``is_limited``: the last value of each call is the number of rows to return at most.
    """

    def __init__(self, parameters: int, build: Callable[..., QuerySet[M]], *, is_limited: bool = False) -> None:
        self.parameters, self.build, self.is_limited = parameters, build, is_limited
        self._built = threading.local()

    def all(self, *values: Parameter) -> list[M]:
        """Return the rows for these parameters."""
        if not hasattr(self._built, "read"):
            self._built.read = self._prepare()
        rows: list[M] = self._built.read(values)
        return rows

    def first(self, *values: Parameter) -> M | None:
        """Return the first row for these parameters, None if there is none."""
        return next(iter(self.all(*values)), None)

    def _prepare(self) -> Callable[[Sequence[Parameter]], list[M]]:
        queryset = self.build(*(Value(_Place(number)) for number in range(self.parameters)))
        compiler: Any = queryset.query.get_compiler(connection=connection)
        sql, marked = compiler.as_sql()
        if self.is_limited:
            sql, marked = f"{sql} LIMIT %s", [*marked, _Place(self.parameters)]
        converters = compiler.get_converters([column[0] for column in compiler.select])
        make = _maker(compiler)

        def read(values: Sequence[Parameter]) -> list[M]:
            params = [_bound(values[one.number]) if isinstance(one, _Place) else one for one in marked]
            with planned_cursor() as cursor:
                cursor.execute(sql, params)
                found = cursor.fetchall()
            return [make(row) for row in (compiler.apply_converters(found, converters) if converters else found)]

        return read


def _maker(compiler: Any) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes what the queryset returns for a row: an object with its annotations, or values."""
    if not compiler.query.default_cols:  # values_list()
        return lambda row: row
    make_object = _object_maker(compiler.klass_info, compiler.select)
    annotations = compiler.annotation_col_map.items()

    def make(row: Sequence[Any]) -> Any:
        made = make_object(row)
        for name, place in annotations:
            setattr(made, name, row[place])
        return made

    return make


def _object_maker(info: dict[str, Any], select: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes the object of one table, and those joined to it, from a row: None if missing."""
    places = info["select_fields"]
    names = [select[place][0].target.attname for place in places]
    key = places[names.index(info["model"]._meta.pk.attname)]
    joined = [(other, _object_maker(other, select)) for other in info.get("related_klass_infos", [])]

    def make(row: Sequence[Any]) -> Any:
        if row[key] is None:
            return None
        made = info["model"].from_db("default", names, [row[place] for place in places])
        for link, make_other in joined:
            other = make_other(row)
            link["local_setter"](made, other)
            if other is not None:
                link["remote_setter"](other, made)
        return made

    return make


def among(values: Value, column: str = "bigint") -> RawSQL:
    """Return the expression for a parameter that is a list, for use with ``__in``."""
    is_sqlite = connection.vendor == "sqlite"
    sql = "SELECT value FROM json_each(%s)" if is_sqlite else f"SELECT unnest(%s::{column}[])"
    return RawSQL(sql, [values.value])  # noqa: S611  a constant


def _bound(value: Parameter) -> Any:
    return json.dumps(value) if isinstance(value, list) and connection.vendor == "sqlite" else value


def insert_row(row: Model) -> None:
    """Insert a new row with one statement, and set its primary key. Sends no signals."""
    sql, fields = _insert(type(row), returns_key=connection.vendor == "postgresql")
    with planned_cursor() as cursor:
        cursor.execute(sql, _new_values(row, fields))
        row.pk = cursor.lastrowid if connection.vendor == "sqlite" else cursor.fetchone()[0]
    row._state.adding, row._state.db = False, "default"


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert new rows of one model with one statement for each, without setting primary keys. Sends no signals."""
    if rows:
        sql, fields = _insert(type(rows[0]), returns_key=False)
        with connection.cursor() as cursor:
            cursor.executemany(sql, [_new_values(row, fields) for row in rows])


def _new_values(row: Model, fields: Sequence[Field[Any, Any]]) -> list[Any]:
    return [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]


def update_row(row: Model, names: Sequence[str]) -> None:
    """Store some fields of a row with one statement. Sends no signals."""
    sql, fields = _update(type(row), tuple(names))
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
    with planned_cursor() as cursor:
        cursor.execute(sql, [*values, row.pk])


@cache
def _insert(model: type[Model], *, returns_key: bool) -> tuple[str, list[Field[Any, Any]]]:
    fields = [field for field in model._meta.local_concrete_fields if not (field.primary_key or field.generated)]
    columns, marks = ", ".join(map(_column, fields)), ", ".join(["%s"] * len(fields))
    returning = f" RETURNING {_column(model._meta.pk)}" if returns_key else ""
    return f"INSERT INTO {_table(model)} ({columns}) VALUES ({marks}){returning}", fields  # noqa: S608  names of the model


@cache
def _update(model: type[Model], names: tuple[str, ...]) -> tuple[str, list[Field[Any, Any]]]:
    fields = [field for field in model._meta.local_concrete_fields if field.name in names]
    changes = ", ".join(f"{_column(field)} = %s" for field in fields)
    return f"UPDATE {_table(model)} SET {changes} WHERE {_column(model._meta.pk)} = %s", fields  # noqa: S608  names of the model


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(field: Field[Any, Any]) -> str:
    return connection.ops.quote_name(str(field.column))

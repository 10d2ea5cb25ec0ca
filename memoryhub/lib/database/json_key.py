"""A value inside JSON that is stored as text, for conditions."""

from __future__ import annotations

from typing import Any

from django.db.models import Func, TextField


class JSONKey(Func):
    """The text at a key of a JSON object, null if there is none: ``JSONKey("options", "values", "reason")``.

    Only for texts, and for whether there is a key: the databases show numbers and flags differently.
    """

    output_field = TextField()

    def __init__(self, column: str, *keys: str) -> None:
        super().__init__(column, path=".".join(keys), names=",".join(keys))

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="json_extract(%(expressions)s, '$.%(path)s')", **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="((%(expressions)s)::json #>> '{%(names)s}')", **context)

"""Translate a query into, for each kind of row, a filtered queryset and an index query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import RawSQL

from knowledge_app.models import MemoryDocument, MemoryRevision
from knowledge_app.services.held_rows import LINKS
from memoryhub.lib.database.fixed_sql import planned_cursor
from memoryhub.lib.database.prepared import PreparedRows, among
from memoryhub.lib.search.matching import IndexQuery, Sql, ids_sql, non_matching_ids_sql
from memoryhub.lib.search.query import Filter, Query
from memoryhub.lib.text_caches import text_cache
from memoryhub.search.kinds import ENTRY_KINDS, KINDS, Kind
from sessions_app.models import Session
from sessions_app.querysets import OWN_CHANNELS, OWN_KEY, of_own_sessions

DATES = ("before", "after", "on")
WINDOW = 10_000  # newest matches of a kind that are counted, listed and faceted
OF_SESSIONS = {"entry": "session__in", "summary": "session__in", "session": "pk__in"}  # by kind
SHOWN_OF = {"session": ("key", "title"), "workspace": ("slug", "name")}  # columns of rows that have dozens
MAX_SESSIONS = 200  # that one session name may match


@dataclass(frozen=True)
class Scope:
    """The primary keys of the workspaces to search; None is the whole hub, for its operators only.

    ``for_agent``: leave out held rows. ``own_sessions``: include those that agents' programs started themselves.
    ``own``: the agent's, if it searches several.
    """

    workspaces: tuple[int, ...] | None
    for_agent: bool = False
    own_sessions: bool = False
    own: int | None = None

    @property
    def home(self) -> int | None:
        """Return the workspace whose graph and embeddings a search uses: the agent's own, or the only one."""
        if self.own is not None or self.workspaces is None or len(self.workspaces) != 1:
            return self.own
        return self.workspaces[0]


@dataclass(frozen=True)
class FilteredKind:
    """The rows of one kind that pass a query's filters, and the index query for its words.

    ``is_narrowed``: the filters exclude rows that the index's scope includes. ``entries``: of sessions, the messages
    by which they match too, unless messages are searched themselves.
    """

    kind: Kind
    workspaces: list[int] | None
    conditions: tuple[Q, ...]
    index_query: IndexQuery
    is_narrowed: bool
    entries: FilteredKind | None = None

    @property
    def rows(self) -> QuerySet[Any]:
        """Return the rows that pass the filters. Built on demand: a search builds none for most kinds."""
        return _rows(self.kind, self.workspaces, self.conditions)

    @property
    def only(self) -> Sql | None:
        """Return the filters as an SQL condition on the row's key, for use in a ranking query."""
        if not self.is_narrowed:
            return None
        workspaces = None if self.workspaces is None else tuple(self.workspaces)
        sql, params = _exists_sql(self.kind.name, workspaces, self.conditions)
        return sql, list(params)

    @property
    def has_words(self) -> bool:
        return bool(self.index_query.groups)

    def matches(self, *, window: int | None = None) -> QuerySet[Any]:
        """Return all matching rows, or those among the newest ``window``."""
        if not self.has_words:
            return self._without_excluded(window)
        limit = None if self.is_narrowed else window
        condition = Q(pk__in=RawSQL(*ids_sql(connection, self.index_query, limit=limit)))
        if self.entries is not None:
            condition |= Q(pk__in=self.entries.matches(window=WINDOW).order_by().values("session"))
        return self.rows.filter(condition)

    def _without_excluded(self, window: int | None) -> QuerySet[Any]:
        """Return the newest ``window`` rows that contain no excluded word."""
        newest = self.rows.order_by("-pk").values("pk")
        rows = self.rows.filter(pk__in=newest[:window]) if window else self.rows
        if not self.index_query.excluded:
            return rows
        without = IndexQuery(self.index_query.table, self.index_query.excluded, scope=self.index_query.scope)
        if connection.vendor == "postgresql":  # plans NOT IN as a nested loop
            return rows.filter(pk__in=RawSQL(*non_matching_ids_sql(connection, without)))
        first = newest[window - 1 : window].first() if window else None
        return rows.exclude(pk__in=RawSQL(*ids_sql(connection, without, min_id=first["pk"] if first else 0)))

    @property
    def indexed(self) -> QuerySet[Any]:
        """Return the rows in the index's scope (of workspaces or documents), ignoring the filters."""
        if "d" in self.index_query.scope:
            return self.kind.rows(None).filter(document__in=self.index_query.scope["d"])
        keys = self.index_query.scope.get("w")
        return self.kind.rows(None if keys is None else list(keys))

    def count_rows(self) -> int:
        """Return the number of rows in the index's scope: the N of document frequencies."""
        table, number, columns = self.kind.table, "count(*)", {"w": "workspace_id", "d": "document_id"}
        if self.kind.name == "entry":
            table, number = "sessions_app_session", "coalesce(sum(entry_count), 0)"
            columns = {"w": "workspace_id", "s": "id"}
        scope = {columns[letter]: keys for letter, keys in self.index_query.scope.items() if letter in columns}
        where = [f"{column} IN ({', '.join(['%s'] * len(keys)) or 'NULL'})" for column, keys in scope.items()]
        sql = f"SELECT {number} FROM {table} WHERE {' AND '.join(where) or '1 = 1'}"
        with planned_cursor() as cursor:
            cursor.execute(sql, [key for keys in scope.values() for key in keys])
            return int(cursor.fetchone()[0])


def _rows(kind: Kind, workspaces: Sequence[int] | None, conditions: tuple[Q, ...]) -> QuerySet[Any]:
    found = kind.rows(None if workspaces is None else list(workspaces))
    for condition in conditions:
        found = found.filter(condition)
    return found


@text_cache(256)  # recall and search use the same conditions again and again
def _exists_sql(
    name: str, workspaces: tuple[int, ...] | None, conditions: tuple[Q, ...]
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL that tells whether the row with the key ``e.id`` passes the conditions."""
    rows = _rows(KINDS[name], workspaces, conditions).filter(pk=RawSQL("e.id", ())).order_by().values("pk")
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:  # no workspace
        return "1 = 0", ()
    return f"EXISTS ({sql})", tuple(params)


@dataclass
class _Narrowing:
    """Conditions on rows and an index scope under construction."""

    conditions: list[Q] = field(default_factory=list)
    scope: dict[str, list[int]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    is_narrowed: bool = False

    def add(self, condition: Q) -> None:
        self.conditions.append(condition)
        self.is_narrowed = True


def filtered_kinds(scope: Scope, query: Query, names: Iterable[str] = ()) -> list[FilteredKind]:
    """Return a FilteredKind for each kind that a query can match.

    ``names``: the kinds to search, all if empty. Kinds without a field that the query filters by are left out.
    """
    asked = [one for one in query.filters if one.field == "kind"]
    chosen = [name for name in KINDS if _may_be(name, asked) and (not names or name in set(names))]
    own = _own_sessions(scope, query) if any(name in OF_SESSIONS for name in chosen) else None
    found = (_filter_kind(KINDS[name], scope, query, own) for name in chosen)
    return [
        filtered if "entry" in chosen else _with_entries(filtered, scope, query)
        for filtered in found
        if filtered is not None
    ]


def _with_entries(filtered: FilteredKind, scope: Scope, query: Query) -> FilteredKind:
    """Let sessions match by their messages too."""
    if filtered.kind.name != "session" or not filtered.has_words:
        return filtered
    of_sessions = tuple(one for one in query.filters if one.field in ("session", "channel"))
    return replace(filtered, entries=filter_kind(KINDS["entry"], scope, replace(query, filters=of_sessions)))


def _may_be(name: str, asked: list[Filter]) -> bool:
    """Tell whether rows of a kind can pass the ``kind:`` filters; an entry kind implies entries."""
    of_entries = (*ENTRY_KINDS, "entry") if name == "entry" else (name,)
    wanted = all(set(of_entries) & set(one.values) for one in asked if not one.is_excluded)
    return wanted and not any(name in one.values for one in asked if one.is_excluded)


def filter_kind(kind: Kind, scope: Scope, query: Query) -> FilteredKind | None:
    """Return the FilteredKind of one kind, or None if it lacks a field that the query filters by."""
    return _filter_kind(kind, scope, query, _own_sessions(scope, query))


def _filter_kind(
    kind: Kind, scope: Scope, query: Query, own_sessions: QuerySet[Session] | None
) -> FilteredKind | None:
    """Return the FilteredKind of one kind. ``own_sessions``: to leave out, if any."""
    workspaces = None if scope.workspaces is None else list(scope.workspaces)
    narrowing = _Narrowing()
    if workspaces is not None and kind.name != "document":
        narrowing.scope["w"] = workspaces
    if workspaces is not None and kind.name == "document":
        narrowing.scope["d"] = list(
            MemoryDocument.objects.filter(workspace__in=workspaces).values_list("pk", flat=True)
        )
    has_withdrawn = any(one.field == "has" and "withdrawn" in one.values for one in query.filters)
    if kind.live and not has_withdrawn:
        narrowing.add(kind.live)
    if scope.for_agent and (served := _served_to_agents(kind, has_withdrawn=has_withdrawn)):
        narrowing.add(served)
    if kind.name in OF_SESSIONS and own_sessions is not None:
        narrowing.add(~Q(**{OF_SESSIONS[kind.name]: own_sessions.values("pk")}))
    for one in query.filters:
        if not _narrow(kind, narrowing, one, workspaces):
            return None
    index_query = IndexQuery(
        kind.table, query.terms, query.required, query.excluded, scope=narrowing.scope, kinds=narrowing.kinds
    )
    return FilteredKind(kind, workspaces, tuple(narrowing.conditions), index_query, narrowing.is_narrowed)


def _served_to_agents(kind: Kind, *, has_withdrawn: bool) -> Q | None:
    if kind.name == "document" and has_withdrawn:
        return ~MemoryRevision.OF_FILE
    return Q(hold=None) if kind.model in LINKS else None


def _own_sessions(scope: Scope, query: Query) -> QuerySet[Session] | None:
    """Return the agents' own sessions to leave out; None if there are none, as a search without filters is faster."""
    if scope.own_sessions or _names_session(query):
        return None
    if not _has_rows(own_sessions_sql(scope.workspaces)):
        return None
    own: QuerySet[Session] = Session.objects.filter(of_own_sessions())
    return own if scope.workspaces is None else own.filter(workspace__in=scope.workspaces)


def own_sessions_sql(workspaces: tuple[int, ...] | None) -> Sql:
    """Return the SQL that tells whether workspaces have agents' own sessions.

    Two subqueries: for one with OR, SQLite would read all sessions of a workspace.
    """
    keys = ", ".join(["%s"] * len(workspaces)) if workspaces is not None else "SELECT id FROM sessions_app_workspace"
    found = f"EXISTS (SELECT 1 FROM sessions_app_session WHERE workspace_id IN ({keys or 'NULL'}) AND"
    channels = ", ".join(["%s"] * len(OWN_CHANNELS))
    params = list(workspaces or ())
    sql = f"SELECT {found} channel IN ({channels})) OR {found} key = %s)"
    return sql, [*params, *OWN_CHANNELS, *params, OWN_KEY]


def _has_rows(question: Sql) -> bool:
    with planned_cursor() as cursor:
        cursor.execute(*question)
        return bool(cursor.fetchone()[0])


def _names_session(query: Query) -> bool:
    """Tell whether a query asks for certain sessions or channels."""
    return any(one.field in ("session", "channel") and not one.is_excluded for one in query.filters)


def _narrow(kind: Kind, narrowing: _Narrowing, one: Filter, workspaces: list[int] | None) -> bool:
    """Apply one filter; return False if no row of the kind can pass it."""
    if one.field == "kind":
        return _narrow_kind(kind, narrowing, one)
    if one.field == "session" and not one.is_excluded and "session" in kind.fields and kind.session:
        narrowing.scope["s"] = _session_keys(one.values, workspaces)
        narrowing.conditions.append(Q(session__in=narrowing.scope["s"]))
        return bool(narrowing.scope["s"])
    condition = _condition(kind, one)
    if condition is None:
        return one.is_excluded
    narrowing.add(~condition if one.is_excluded else condition)
    return True


def _narrow_kind(kind: Kind, narrowing: _Narrowing, one: Filter) -> bool:
    chosen = [value for value in one.values if value in ENTRY_KINDS]
    if kind.name != "entry" or not chosen or (not one.is_excluded and "entry" in one.values):
        return True
    kept = [value for value in ENTRY_KINDS if (value in chosen) != one.is_excluded]
    narrowing.kinds = tuple(value for value in kept if not narrowing.kinds or value in narrowing.kinds)
    narrowing.conditions.append(Q(kind__in=narrowing.kinds))
    return bool(narrowing.kinds)


def _condition(kind: Kind, one: Filter) -> Q | None:
    """Return a filter's condition on rows of a kind, or None if the kind lacks the field."""
    if one.field in DATES:
        return _between(kind, one) if kind.time else None
    if one.field == "has":
        traits = dict(kind.traits) | ({"withdrawn": kind.withdrawn} if kind.withdrawn is not None else {})
        conditions = [traits[value] for value in one.values if value in traits]
    else:
        narrow = kind.fields.get(one.field)
        conditions = [narrow(value) for value in one.values] if narrow else []
    if not conditions:
        return None
    condition = conditions[0]
    for other in conditions[1:]:
        condition |= other
    return condition


def _between(kind: Kind, one: Filter) -> Q:
    condition = Q(**{f"{kind.time}__isnull": False})
    if one.start:
        condition &= Q(**{f"{kind.time}__gte": one.start})
    if one.end:
        condition &= Q(**{f"{kind.time}__lt": one.end})
    return condition


def _session_keys(names: Iterable[str], workspaces: list[int] | None) -> list[int]:
    rows = KINDS["session"].rows(workspaces)
    condition = Q(pk__in=[])
    for name in names:
        condition |= KINDS["session"].fields["session"](name)
    return list(rows.filter(condition).order_by("-updated_at", "-pk").values_list("pk", flat=True)[:MAX_SESSIONS])


def load(kind: Kind, pks: Iterable[int]) -> dict[int, Model]:
    """Return rows of a kind by primary key, with the columns of related rows that are shown; one query."""
    return {row.pk: row for row in _rows_by_key(kind.name).all(list(pks))}


@cache
def _rows_by_key(name: str) -> PreparedRows[Model]:
    kind, columns = KINDS[name], _loaded_columns(name)
    rows = kind.model._default_manager.select_related(*kind.related).only(*columns)
    return PreparedRows(1, lambda keys: rows.filter(pk__in=among(keys)))


def _loaded_columns(name: str) -> tuple[str, ...]:
    kind = KINDS[name]
    columns = [one.name for one in kind.model._meta.concrete_fields]
    for path in kind.related:
        model: Any = kind.model
        for part in path.split("__"):
            model = model._meta.get_field(part).related_model
        shown = SHOWN_OF.get(part) or [one.name for one in model._meta.concrete_fields]
        columns += [f"{path}__{column}" for column in shown]
    return tuple(column for column in columns if column not in kind.deferred)

"""The inbox: everything that waits for a decision, as one list over all tables.

The list is a UNION of one query per table, so that a page of it and the counts of all kinds are one query each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Case, CharField, Expression, F, IntegerField, Min, QuerySet, Subquery, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from knowledge_app.models import Concern
from memoryhub.inbox import failures, sources
from memoryhub.lib.database.fixed_sql import keys_sql, planned_cursor, with_literals
from sessions_app.models import ImportReport, Run, Workspace

FIELDS = ("item_severity", "item_kind", "item_since", "item_table", "item_pk", "item_workspace")
COLUMNS = ", ".join(FIELDS)
SHOWN = "shown_workspaces"
PROBLEM, WARNING, INFO = 0, 1, 2
Items = QuerySet[Any, tuple[Any, ...]]
FINDINGS: dict[str, tuple[str, int]] = {  # kind and severity of items by the kind of a finding
    Concern.Kind.SECRET: ("secret", PROBLEM),
    Concern.Kind.ORDER: ("injection", PROBLEM),
    Concern.Kind.CONTRADICTION: ("contradiction", INFO),
    Concern.Kind.PERSONAL: ("personal", INFO),
    Concern.Kind.STALE: ("stale", INFO),
}
CLUSTER_BY = ("workspace_id", "table", "object_id")


class QueueRow(NamedTuple):
    """An item of the inbox: the row that waits. ``workspace``: its primary key, None for rows of the hub."""

    severity: int
    kind: str
    since: datetime | None
    table: str
    pk: int
    workspace: int | None

    @property
    def key(self) -> str:
        return f"{self.table}-{self.pk}"


@dataclass(frozen=True)
class QueueScope:
    """Whose items to list. ``of_hub``: also imports and jobs of no workspace."""

    workspaces: QuerySet[Workspace]
    of_hub: bool = False


def count_waiting(workspaces: QuerySet[Workspace], *, of_hub: bool = False) -> int:
    """Return the number of items that wait for a decision. One query."""
    return count_by_kind(QueueScope(workspaces, of_hub)).total()


def count_by_kind(scope: QueueScope) -> Counter[str]:
    """Return the number of items by kind. One query."""
    rows = _select(scope, "SELECT item_kind, COUNT(*) FROM items GROUP BY item_kind")
    return Counter(dict(rows))


def queue_page(scope: QueueScope, *, kind: str = "", start: int, size: int) -> list[QueueRow]:
    """Return items from a position on, the most severe first, then the oldest. One query."""
    order = "item_severity, item_since, item_table, item_pk"
    condition, params = ("WHERE item_kind = %s", [kind]) if kind else ("", [])
    sql = f"SELECT {COLUMNS} FROM items {condition} ORDER BY {order} LIMIT %s OFFSET %s"  # noqa: S608
    return [_row(*row) for row in _select(scope, sql, [*params, size, start])]


def find_in_queue(scope: QueueScope, key: str) -> QueueRow | None:
    """Return the item with this key if it still waits. One query."""
    table, _, pk = key.rpartition("-")
    if not pk.isascii() or not pk.isdigit() or len(pk) > 18:
        return None
    sql = f"SELECT {COLUMNS} FROM items WHERE item_table = %s AND item_pk = %s"  # noqa: S608
    return next((_row(*row) for row in _select(scope, sql, [table, int(pk)])), None)


def _row(severity: int, kind: str, since: datetime | str | None, table: str, pk: int, workspace: int) -> QueueRow:
    at = parse_datetime(since) if isinstance(since, str) else since  # SQLite returns text in UTC
    return QueueRow(severity, kind, at.replace(tzinfo=at.tzinfo or UTC) if at else None, table, pk, workspace)


def _select(scope: QueueScope, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    shown, shown_params = keys_sql(scope.workspaces)
    items, items_params = _items_sql(scope.of_hub, timezone.now().replace(second=0, microsecond=0))
    with planned_cursor() as cursor:
        head = f"WITH {SHOWN}(id) AS ({shown}), items AS ({items})"
        cursor.execute(f"{head} {sql}", [*shown_params, *items_params, *params])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


@lru_cache(maxsize=4)
def _items_sql(of_hub: bool, now: datetime) -> tuple[str, list[Any]]:  # noqa: FBT001
    """Return the UNION of all items of the workspaces in SHOWN.

    Every page has a count of them, and Django takes longer to build the query than to run it. So it is built once a
    minute, and the workspaces are put before it.
    """
    shown = Workspace.objects.filter(pk__in=RawSQL(f"SELECT id FROM {SHOWN}", ()))  # noqa: S608, S611
    first, *others = _sources(shown, now, of_hub=of_hub)
    return with_literals(*first.union(*others, all=True).query.sql_with_params())


def _sources(workspaces: QuerySet[Workspace], now: datetime, *, of_hub: bool) -> list[Items]:
    changes = _kind_of_change(sources.held_changes(workspaces))
    findings = sources.findings(workspaces)
    imports = failures.unfixed_imports(workspaces, now)
    failed = ImportReport.Status.FAILED
    first_note = imports.exclude(status=failed).order_by("pk").values("pk")[:1]
    finished = Coalesce("finished_at", "created_at")
    found = [
        _items("change", changes, F("created_at")),
        _plain("row", "addition", WARNING, sources.held_rows(workspaces), F("created_at")),
        _items("finding", _kind_of_finding(findings), F("found_at")),
        _grouped("duplicate", "duplicate", findings.filter(kind=Concern.Kind.DUPLICATE), "found_at", by=CLUSTER_BY),
        _plain("document", "correction", WARNING, sources.undelivered(workspaces, now), F("head__created_at")),
        _items("run", _severity_of_run(sources.stopped_runs(workspaces, now)), finished),
        _plain("job", "job", INFO, failures.unfixed_jobs(workspaces, now, of_hub=of_hub), F("finished_at")),
        _plain("import", "import", INFO, imports.filter(status=failed), finished),
        _plain("note", "import", INFO, ImportReport.objects.filter(pk=Subquery(first_note)), finished),
        _plain("webhook", "webhook", INFO, failures.unfixed_deliveries(workspaces, now), F("tried_at"), of="webhook"),
        _grouped("late", "run", sources.late_runs(workspaces, now), "not_before", by=("workspace_id",)),
        _grouped("budget", "budget", sources.over_budget(workspaces, now), "updated_at", by=("workspace_id",)),
        _folders(workspaces, now),
    ]
    if of_hub:
        found.append(_plain("import", "import", INFO, failures.unfixed_first_imports(now), finished))
    return found


def _kind_of_change(rows: QuerySet[Any]) -> QuerySet[Any]:
    kind = Case(When(sources.IS_CONFLICT, then=Value("conflict")), default=Value("change"), output_field=CharField())
    severity = Case(When(sources.IS_CONFLICT, then=PROBLEM), default=WARNING, output_field=IntegerField())
    found: QuerySet[Any] = rows.annotate(item_kind=kind, item_severity=severity)
    return found


def _kind_of_finding(rows: QuerySet[Any]) -> QuerySet[Any]:
    kinds = [When(kind=kind, then=Value(name)) for kind, (name, _) in FINDINGS.items()]
    severities = [When(kind=kind, then=severity) for kind, (_, severity) in FINDINGS.items()]
    found: QuerySet[Any] = rows.filter(kind__in=list(FINDINGS)).annotate(
        item_kind=Case(*kinds, output_field=CharField()),
        item_severity=Case(*severities, output_field=IntegerField()),
    )
    return found


def _severity_of_run(rows: QuerySet[Any]) -> QuerySet[Any]:
    severity = Case(When(status=Run.Status.FAILED, then=INFO), default=WARNING, output_field=IntegerField())
    found: QuerySet[Any] = rows.annotate(item_kind=Value("run"), item_severity=severity)
    return found


def _plain(
    table: str, kind: str, severity: int, rows: QuerySet[Any], since: Expression | F, *, of: str = ""
) -> Items:
    rows = rows.annotate(item_kind=Value(kind), item_severity=Value(severity))
    return _items(table, rows, since, of=of)


def _items(table: str, rows: QuerySet[Any], since: Expression | F, *, of: str = "") -> Items:
    """Return rows as tuples of FIELDS. ``of``: the relation that leads to their workspace."""
    workspace = F(f"{of}__workspace_id" if of else "workspace_id")
    rows = rows.order_by().annotate(
        item_since=since, item_table=Value(table), item_pk=F("pk"), item_workspace=workspace
    )
    items: Items = rows.values_list(*FIELDS)
    return items


def _grouped(table: str, kind: str, rows: QuerySet[Any], since: str, *, by: Collection[str]) -> Items:
    """Return one item for each group of rows: by its first row, or its workspace if that is the group."""
    pk = F("workspace_id") if tuple(by) == ("workspace_id",) else Min("pk")
    groups = (
        rows.order_by()
        .values(*by)
        .annotate(
            item_severity=Value(INFO),
            item_kind=Value(kind),
            item_since=Min(since),
            item_table=Value(table),
            item_pk=pk,
            item_workspace=F("workspace_id"),
        )
    )
    items: Items = groups.values_list(*FIELDS)
    return items


def _folders(workspaces: QuerySet[Workspace], now: datetime) -> Items:
    rows = (
        sources.folders(workspaces, now)
        .order_by()
        .annotate(
            item_severity=Value(PROBLEM),
            item_kind=Value("folder"),
            item_since=F("since"),
            item_table=Value("folder"),
            item_pk=F("pk"),
            item_workspace=F("pk"),
        )
    )
    items: Items = rows.values_list(*FIELDS)
    return items

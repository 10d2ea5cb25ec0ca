"""Figures by day for the charts of a workspace. A fixed number of queries, each grouped by the database."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils.translation import ngettext

from knowledge_app.models import Fact, HygieneScore, KnowledgeEntry, Observation
from memoryhub.lib.time_charts import Event, running_total
from sessions_app.models import ImportReport, Run, Session, Summary, Workspace
from sessions_app.services.access_log import reads_by_agents

Days = dict[date, float]


@dataclass(frozen=True)
class FactChanges:
    """Facts added, changed and removed by day. A revision that removes and adds facts has changed as many as both."""

    added: Days
    changed: Days
    removed: Days


@dataclass(frozen=True)
class ModelRuns:
    """Tokens, cost in dollars and average seconds of the runs that called a model, by day."""

    prompt: Days
    completion: Days
    cost: Days
    seconds: Days


class UtcDay(TruncDate):
    """The day of a moment in UTC. SQLite stores UTC as text, and Django's own function for it takes 7 µs a row."""

    def __init__(self, moment: str) -> None:
        super().__init__(moment, tzinfo=UTC)

    def as_sqlite(self, compiler: Any, connection: Any, **_extra_context: Any) -> tuple[str, tuple[str | int, ...]]:  # noqa: ARG002
        sql, params = compiler.compile(self.lhs)
        return f"substr({sql}, 1, 10)", params


def by_day(rows: QuerySet[Any, Any], moment: str) -> QuerySet[Any, Any]:
    """Group rows by the day of a moment, in UTC."""
    grouped: QuerySet[Any, Any] = rows.order_by().annotate(day=UtcDay(moment)).values("day")
    return grouped


def events_of(workspace: Workspace, session: Session | None = None) -> list[Event]:
    """Return the finished runs and imports of each day. Two queries, one for a session."""
    runs = Run.objects.filter(workspace=workspace, status=Run.Status.DONE, finished_at__isnull=False)
    runs = runs.exclude(kind__in=(Run.Kind.EDIT, Run.Kind.SCAN, Run.Kind.EMBEDDING))
    if session is not None:
        runs = runs.filter(session=session)
    found = [
        Event("run", day, ngettext("%(n)s run", "%(n)s runs", count) % {"n": f"{count:,}"})
        for day, count in by_day(runs, "finished_at").values_list("day").annotate(n=Count("pk"))
    ]
    if session is None:
        imports = ImportReport.objects.filter(workspace=workspace, finished_at__isnull=False)
        found += [
            Event("import", day, ngettext("%(n)s import", "%(n)s imports", count) % {"n": f"{count:,}"})
            for day, count in by_day(imports, "finished_at").values_list("day").annotate(n=Count("pk"))
        ]
    return found


def compression(workspace: Workspace, session: Session | None = None) -> tuple[Days, Days]:
    """Return the tokens that the hub's summaries saved, and those that they have, by day. One query.

    Imported summaries are left out, because the time at which they were made isn't known, and merges of summaries,
    because what they replace was counted before.
    """
    summaries = Summary.objects.filter(workspace=workspace, source_id="", entry_count__gt=0)
    if session is not None:
        summaries = summaries.filter(session=session)
    saved, kept = {}, {}
    sums = by_day(summaries, "created_at").annotate(kept=Sum("token_count"), original=Sum("original_token_count"))
    for row in sums:
        saved[row["day"]] = float(max(0, row["original"] - row["kept"]))
        kept[row["day"]] = float(row["kept"])
    return saved, kept


def fact_changes(workspace: Workspace) -> FactChanges:
    """Return the changes of facts by day. Two queries with a row per revision."""
    facts = Fact.objects.filter(workspace=workspace).order_by()
    days: dict[int, date] = {}
    counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for place, name in enumerate(("born", "died")):
        rows = facts.filter(**{f"{name}__isnull": False}).values_list(name, f"{name}__created_at")
        for revision, at, count in rows.annotate(n=Count("pk")):
            days[revision] = _utc_day(at)
            counts[revision][place] = count
    added, changed, removed = Days(), Days(), Days()
    for revision, (born, died) in counts.items():
        both = min(born, died)
        for found, count in ((added, born - both), (changed, both), (removed, died - both)):
            found[days[revision]] = found.get(days[revision], 0) + count
    return FactChanges(added, changed, removed)


def facts_over_time(changes: FactChanges) -> Days:
    """Return the number of facts by day."""
    days = changes.added.keys() | changes.removed.keys()
    return running_total({day: changes.added.get(day, 0) - changes.removed.get(day, 0) for day in days})


def rows_over_time(workspace: Workspace) -> tuple[Days, Days]:
    """Return the number of knowledge entries and observations by day. Two queries for each."""
    return _rows_over_time(KnowledgeEntry, workspace), _rows_over_time(Observation, workspace)


def _rows_over_time(model: Any, workspace: Workspace) -> Days:
    changes: Days = {}
    states = model.history.filter(workspace_id=workspace.pk, history_type__in="+-")
    for day, kind, count in by_day(states, "history_date").values_list("day", "history_type").annotate(n=Count("pk")):
        changes[day] = changes.get(day, 0) + (count if kind == "+" else -count)
    withdrawn = model.objects.filter(workspace=workspace, withdrawn_at__isnull=False)
    for day, count in by_day(withdrawn, "withdrawn_at").values_list("day").annotate(n=Count("pk")):
        changes[day] = changes.get(day, 0) - count
    return {day: max(0.0, total) for day, total in running_total(changes).items()}


def agent_reads(workspace: Workspace) -> Days:
    """Return how often agents read by day, from the access log. One query."""
    reads = reads_by_agents().filter(workspace=workspace)
    return dict(by_day(reads, "at").values_list("day").annotate(n=Count("pk")))


def model_runs(workspace: Workspace) -> ModelRuns:
    """Return the figures of the runs that called a model. One query."""
    runs = Run.objects.filter(workspace=workspace, finished_at__isnull=False).exclude(model="")
    seconds = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())
    found = ModelRuns({}, {}, {}, {})
    for row in by_day(runs, "finished_at").annotate(
        prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens"), cost=Sum("cost"), seconds=Avg(seconds)
    ):
        day = row["day"]
        found.prompt[day], found.completion[day] = float(row["prompt"]), float(row["completion"])
        if row["cost"] is not None:
            found.cost[day] = float(row["cost"])
        if row["seconds"] is not None:
            found.seconds[day] = row["seconds"].total_seconds()
    return found


def hygiene_scores(workspace: Workspace) -> Days:
    """Return the last score of each day. One query."""
    scores = HygieneScore.objects.filter(workspace=workspace).order_by("id").values_list("at", "score")
    return {_utc_day(at): score for at, score in scores}


def _utc_day(at: datetime) -> date:
    return at.astimezone(UTC).date()

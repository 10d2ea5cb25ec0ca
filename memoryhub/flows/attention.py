"""What needs a person, over some workspaces: one list for the home page, a workspace's overview and the command.

Each finder asks once or twice, grouped by workspace, however many there are; nothing is kept for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import CharField, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge_app.models import Concern, HeldChange
from knowledge_app.services.written import blocking
from memoryhub.flows.reach import Reach
from sessions_app.models import AuditRecord, ImportProblem, ImportReport, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES

LABELS = {  # of each kind, the most urgent first
    "secret": gettext_lazy("Secret"),
    "folder": gettext_lazy("Folder"),
    "conflict": gettext_lazy("Conflict"),
    "held": gettext_lazy("Review"),
    "parked": gettext_lazy("Run"),
    "order": gettext_lazy("Instruction-like"),
    "approval": gettext_lazy("Run"),
    "import": gettext_lazy("Import"),
    "waiting": gettext_lazy("Run"),
    "failed": gettext_lazy("Run"),
    "budget": gettext_lazy("Budget"),
    "concerns": gettext_lazy("Hygiene"),
}
ORDER = tuple(LABELS)
URGENT = ("secret", "folder", "conflict")
WAITS_FOR_A_DECISION = ("held", "parked", "order", "approval")
MOST = 200  # workspaces, and reports of imports, that are listed of each kind
RECENT = timedelta(days=7)  # what failed, was decided or left problems longer ago is let be
LAGS_AFTER = timedelta(minutes=10)  # a followed folder is looked at every half minute
WAITS_AFTER = timedelta(minutes=30)
GROWN_BEFORE = timedelta(hours=1)  # a session that is over its limits since then was passed over
SMALLER = (Concern.Kind.CONTRADICTION, Concern.Kind.PERSONAL, Concern.Kind.DUPLICATE, Concern.Kind.STALE)
STOPPED = (Run.Status.PARKED, Run.Status.HELD, Run.Status.FAILED)
FOLDER_FACTS = ("failed_at", "error", "succeeded_at", "requested_at", "unwritten")
TO_LOOK_AT = ("rejected", "repaired", "held")  # of what imports tell; the rest is as it should be
Finder = Callable[[QuerySet[Workspace], datetime], "list[Need]"]


@dataclass(frozen=True)
class Need:
    """One thing that needs a person: a sentence, since when, and the address where it is settled.

    ``kind``: see LABELS. ``slug`` and ``name``: its workspace, "" for an import that made none. ``count``: how many
    such things; ``since``: the oldest of them.
    """

    kind: str
    slug: str
    name: str
    text: str
    url: str
    count: int = 1
    since: datetime | None = None
    pk: int = 0  # of what is one of several in a workspace

    @property
    def key(self) -> str:
        return "-".join(str(part) for part in (self.kind, self.slug, self.pk) if part)

    @property
    def gravity(self) -> str:
        """One of problem, warning and info: something is wrong, a decision is due, or it is worth a look."""
        return "problem" if self.kind in URGENT else "warning" if self.kind in WAITS_FOR_A_DECISION else "info"

    @property
    def label(self) -> str:
        return str(LABELS[self.kind])


def needs_of(reach: Reach, *, now: datetime) -> list[Need]:
    """Return what needs somebody with this reach, the most urgent first, then the oldest. Twelve queries at most."""
    found: list[Need] = []
    for find in CURATED:
        found += find(reach.curated, now)
    for find in OPERATED:
        found += find(reach.operated, now)
    if reach.is_whole:
        found += _failed_before_a_workspace(now)
    return sorted(found, key=lambda need: (ORDER.index(need.kind), need.since or now, need.name, need.pk))


def need_document(need: Need) -> dict[str, Any]:
    """Return a need as JSON."""
    return {
        "kind": need.kind,
        "gravity": need.gravity,
        "workspace": need.slug or None,
        "text": need.text,
        "count": need.count,
        "since": need.since,
        "url": need.url,
    }


def _grouped(rows: QuerySet[Any], *by: str, **figures: Any) -> list[dict[str, Any]]:
    """Count some rows by workspace and more, with further figures: dictionaries that ``_need`` reads."""
    groups = rows.order_by().values("workspace__slug", "workspace__name", *by).annotate(n=Count("pk"), **figures)
    return list(groups.order_by("workspace__name", "workspace__slug", *by)[: MOST * (1 + 5 * bool(by))])


def _need(kind: str, row: dict[str, Any], text: str, url: str, *, count: int = 1, since: datetime | None) -> Need:
    return Need(kind, row["workspace__slug"], row["workspace__name"], text, url, count, since)


def _held(workspaces: QuerySet[Workspace], _now: datetime) -> list[Need]:
    """Changes of memory in the inbox: conflicts with the agent's files by themselves, since they block writing."""
    is_conflict = Q(pk__in=blocking().values("pk"))
    pending = HeldChange.objects.filter(workspace__in=workspaces.values("pk"), status=HeldChange.Status.PENDING)
    found = []
    for kind, rows in (("conflict", pending.filter(is_conflict)), ("held", pending.exclude(is_conflict))):
        figures = {"first": Min("pk"), "since": Min("created_at"), "document": Min("document__name")}
        for row in _grouped(rows, **figures):
            count, slug = row["n"], row["workspace__slug"]
            one = reverse("held-change", args=[slug, row["first"]])
            url = one if count == 1 else reverse("review", args=[slug])
            text = _words_of_held(kind, count, row["document"])
            found.append(_need(kind, row, text, url, count=count, since=row["since"]))
    return found


def _words_of_held(kind: str, count: int, document: str) -> str:
    if count == 1:
        one = {
            "conflict": _("The agent's folder has another %(document)s: decide which text counts."),
            "held": _("A change of %(document)s is held for review."),
        }
        return one[kind] % {"document": document}
    if kind == "conflict":
        words = ngettext(
            "%(count)d text in the agent's folder differs from the hub's: decide which counts.",
            "%(count)d texts in the agent's folder differ from the hub's: decide which count.",
            count,
        )
    else:
        words = ngettext("%(count)d change is held for review.", "%(count)d changes are held for review.", count)
    return words % {"count": count}


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> list[Need]:
    """Runs that stopped and wait for a person, and those of a week that failed with nothing done about it since."""
    later = Run.objects.filter(kind=OuterRef("kind"), pk__gt=OuterRef("pk"))
    is_followed = Exists(later.filter(session=OuterRef("session")))  # apart from the next: each has its index
    is_followed_by_own = Exists(later.filter(session=None, workspace=OuterRef("workspace")))
    told = AuditRecord.objects.filter(object_kind="run", object_id=Cast(OuterRef("pk"), CharField()))
    is_let_be = Exists(told.filter(action="run.dismissed"))
    in_inbox = HeldChange.objects.filter(run=OuterRef("pk"), status=HeldChange.Status.PENDING)
    waits = Q(status=Run.Status.PARKED) | Q(status=Run.Status.HELD) & Q(~Exists(in_inbox))
    is_settled = Q(is_let_be) | Q(is_followed) | Q(session=None) & Q(is_followed_by_own)
    failed = Q(status=Run.Status.FAILED, finished_at__gte=now - RECENT) & ~is_settled  # cheap conditions first
    rows = Run.objects.filter(status__in=STOPPED, workspace__in=workspaces.values("pk")).filter(waits | failed)
    since = Min(Coalesce("finished_at", "created_at"))
    found = []
    for row in _grouped(rows, "status", first=Min("pk"), since=since, kind=Min("kind")):
        count, slug, status = row["n"], row["workspace__slug"], row["status"]
        state = "failed" if status == Run.Status.FAILED else "waiting"
        several = f"{reverse('runs', args=[slug])}?state={state}"
        url = reverse("run", args=[slug, row["first"]]) if count == 1 else several
        kind = {Run.Status.PARKED: "parked", Run.Status.HELD: "approval"}.get(status, "failed")
        one = {"kind": Run.Kind(row["kind"]).label, "number": row["first"]}
        words = _words_of_run(kind) % one if count == 1 else _words_of_runs(kind, count) % {"count": count}
        found.append(_need(kind, row, words, url, count=count, since=row["since"]))
    return found


def _words_of_run(kind: str) -> str:
    words = {
        "parked": _("%(kind)s %(number)d gave up and waits for your decision."),
        "approval": _("%(kind)s %(number)d waits for your approval."),
        "failed": _("%(kind)s %(number)d failed."),
    }
    return words[kind]


def _words_of_runs(kind: str, count: int) -> str:
    if kind == "parked":
        return ngettext(
            "%(count)d run gave up and waits for your decision.",
            "%(count)d runs gave up and wait for your decision.",
            count,
        )
    if kind == "approval":
        return ngettext("%(count)d run waits for your approval.", "%(count)d runs wait for your approval.", count)
    return ngettext("%(count)d run failed in the last 7 days.", "%(count)d runs failed in the last 7 days.", count)


def _waiting(workspaces: QuerySet[Workspace], now: datetime) -> list[Need]:
    """Runs whose time came half an hour ago: as a rule no worker is there to take them."""
    rows = Run.objects.filter(workspace__in=workspaces.values("pk"), status=Run.Status.QUEUED)
    found = []
    for row in _grouped(rows.filter(not_before__lt=now - WAITS_AFTER), since=Min("not_before")):
        text = ngettext(
            "A run has not begun: is the hub's worker running?",
            "%(count)d runs have not begun: is the hub's worker running?",
            row["n"],
        )
        url = f"{reverse('runs', args=[row['workspace__slug']])}?state=live"
        found.append(_need("waiting", row, text % {"count": row["n"]}, url, count=row["n"], since=row["since"]))
    return found


def _folders(workspaces: QuerySet[Workspace], now: datetime) -> list[Need]:
    """Folders that can't be opened, fail, refuse what the hub would write, or that nobody looks at any more."""
    rows = workspaces.exclude(path="").annotate(looked_at=Coalesce("sync_state__succeeded_at", "updated_at"))
    fails = Q(unavailable_since__isnull=False) | Q(sync_state__failed_at__isnull=False)
    refuses = Q(sync_state__isnull=False) & ~Q(sync_state__unwritten={})
    limit = now - LAGS_AFTER
    lags = Q(is_followed=True, looked_at__lt=limit) | Q(sync_state__requested_at__lt=limit)
    fields = ("slug", "name", "unavailable_since", "looked_at", *(f"sync_state__{name}" for name in FOLDER_FACTS))
    found = rows.filter(fails | refuses | lags).order_by("name", "slug").values(*fields)
    return [_folder(row) for row in found[:MOST]]


def _folder(row: dict[str, Any]) -> Need:
    """Say the gravest thing about a folder."""
    refused: dict[str, str] = row["sync_state__unwritten"] or {}
    since, count = row["looked_at"], 1
    if row["unavailable_since"]:
        text, since = _("The agent's folder can't be opened."), row["unavailable_since"]
    elif row["sync_state__failed_at"]:
        text = _("The last sync with the agent's folder failed: %(error)s") % {"error": row["sync_state__error"]}
    elif refused:
        count = len(refused)
        text = ngettext(
            "A file in the agent's folder can't be written: %(why)s",
            "%(count)d files in the agent's folder can't be written, the first of them since: %(why)s",
            count,
        ) % {"count": count, "why": next(iter(refused.values()))}
    else:
        text = _("Nobody has looked into the agent's folder for a while: is the hub's worker running?")
        since = row["sync_state__requested_at"] or since
    return Need("folder", row["slug"], row["name"], text, reverse("sync", args=[row["slug"]]), count, since)


def _concerns(workspaces: QuerySet[Workspace], _now: datetime) -> list[Need]:
    """What scans of the memory found: secrets and orders by themselves, the rest of a workspace together."""
    rows = Concern.objects.filter(workspace__in=workspaces.values("pk"), status=Concern.Status.OPEN)
    groups = _grouped(rows, "kind", first=Min("pk"))
    found_at = dict(Concern.objects.filter(pk__in=[row["first"] for row in groups]).values_list("pk", "found_at"))
    smaller: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    found = []
    for row in groups:
        count, slug, kind, since = row["n"], row["workspace__slug"], row["kind"], found_at.get(row["first"])
        if kind in SMALLER:
            smaller[slug].append(row | {"since": since})
            continue
        url = f"{reverse('hygiene', args=[slug])}?kind={kind}"
        words = _words_of_concerns(kind, count) % {"count": count}
        found.append(_need(kind, row, words, url, count=count, since=since))
    return found + [_smaller(rows_of) for rows_of in smaller.values()]


def _words_of_concerns(kind: str, count: int) -> str:
    if kind == Concern.Kind.SECRET:
        return ngettext(
            "A secret seems to stand in the memory: withdraw it or forget it.",
            "%(count)d secrets seem to stand in the memory: withdraw or forget them.",
            count,
        )
    return ngettext(
        "A row of the memory reads like an order to the agent.",
        "%(count)d rows of the memory read like orders to the agent.",
        count,
    )


def _smaller(rows: list[dict[str, Any]]) -> Need:
    count = sum(row["n"] for row in rows)
    by_kind = {row["kind"]: row["n"] for row in rows}
    parts = ", ".join(f"{kind.label.lower()} {by_kind[kind]:,}" for kind in SMALLER if kind in by_kind)
    text = ngettext(
        "The last scan found something smaller: %(parts)s.",
        "The last scan found %(count)d smaller things: %(parts)s.",
        count,
    ) % {"count": count, "parts": parts}
    since = min((row["since"] for row in rows if row["since"]), default=None)
    url = reverse("hygiene", args=[rows[0]["workspace__slug"]])
    return _need("concerns", rows[0], text, url, count=count, since=since)


def _over_budget(workspaces: QuerySet[Workspace], now: datetime) -> list[Need]:
    """Sessions over their workspace's limits that nothing compresses.

    Automatic compression is off, or passed them over for an hour. Not those with a run that waits, which is a need
    of its own, nor those where somebody undid, cancelled or dismissed one within a week: they have decided.
    """
    over_tokens = Q(workspace__max_tokens__lt=F("active_tokens") + F("summary_tokens"))
    over_entries = Q(workspace__max_entries__lt=F("active_entry_count"))
    is_stuck = Q(workspace__auto_compress=False) | Q(updated_at__lt=now - GROWN_BEFORE)
    waits = Q(status__in=UNSETTLED_STATUSES)
    decided = Q(status__in=("undone", "cancelled", "failed"), finished_at__gte=now - RECENT)
    runs = Run.objects.filter(waits | decided, session=OuterRef("pk"), kind=Run.Kind.COMPRESSION)
    rows = Session.objects.filter(over_tokens | over_entries, is_stuck, workspace__in=workspaces.values("pk"))
    rows = rows.filter(~Exists(runs), archived_at=None, is_visible_to_agent=True)
    limits = {"tokens": Min("workspace__max_tokens"), "entries": Min("workspace__max_entries")}
    found = []
    for row in _grouped(rows, "workspace__auto_compress", first=Min("pk"), since=Max("updated_at"), **limits):
        count, slug = row["n"], row["workspace__slug"]
        one = reverse("compress-session", args=[slug, row["first"]])
        url = one if count == 1 else f"{reverse('sessions:list', args=[slug])}?sort=heaviest"
        text = _words_of_budget(count, is_automatic=row["workspace__auto_compress"])
        values = {"count": count, "tokens": f"{row['tokens']:,}", "entries": f"{row['entries']:,}"}
        found.append(_need("budget", row, text % values, url, count=count, since=row["since"]))
    return found


def _words_of_budget(count: int, *, is_automatic: bool) -> str:
    if is_automatic:
        return ngettext(
            "A session stays over its limit of %(tokens)s tokens or %(entries)s entries: nothing in it was folded.",
            "%(count)d sessions stay over their limit of %(tokens)s tokens or %(entries)s entries.",
            count,
        )
    return ngettext(
        "A session is over its limit of %(tokens)s tokens or %(entries)s entries, and nothing compresses it.",
        "%(count)d sessions are over %(tokens)s tokens or %(entries)s entries, and nothing compresses them.",
        count,
    )


def _imports(workspaces: QuerySet[Workspace], now: datetime) -> list[Need]:
    """The latest import of each workspace where it failed, or a week ago at most left something to look at."""
    latest = ImportReport.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("pk")[:1]
    newest = workspaces.annotate(latest_report=Subquery(latest)).values("latest_report")
    reports = ImportReport.objects.filter(pk__in=newest).filter(_wants_a_look(now))
    return _reports(reports)


def _failed_before_a_workspace(now: datetime) -> list[Need]:
    """Imports of a week that failed before there was a workspace, unless the folder was taken since."""
    later = ImportReport.objects.filter(path=OuterRef("path"), pk__gt=OuterRef("pk"))
    reports = ImportReport.objects.filter(_wants_a_look(now), workspace=None, created_at__gte=now - RECENT)
    return _reports(reports.filter(~Exists(later)))


def _wants_a_look(now: datetime) -> Q:
    has_problems = Q(status=ImportReport.Status.DONE, problem_count__gt=0, created_at__gte=now - RECENT)
    return Q(status=ImportReport.Status.FAILED) | has_problems


def _reports(wanted: QuerySet[ImportReport]) -> list[Need]:
    reports = list(wanted.select_related("workspace").order_by("-id")[:MOST])
    problems = ImportProblem.objects.filter(report__in=[report.pk for report in reports], outcome__in=TO_LOOK_AT)
    left = dict(problems.order_by().values_list("report").annotate(n=Count("pk")))
    failed = ImportReport.Status.FAILED
    return [_report(one, left.get(one.pk, 0)) for one in reports if one.status == failed or one.pk in left]


def _report(report: ImportReport, count: int) -> Need:
    workspace = report.workspace
    url = reverse("import-report", args=[report.pk])
    if report.status == ImportReport.Status.FAILED:
        text = _("The last import failed: %(error)s") % {"error": report.error}
    else:
        text = ngettext(
            "The last import left a problem to look at.",
            "The last import left %(count)d problems to look at.",
            count,
        ) % {"count": count}
        url = f"{url}#problems"
    slug, name = (workspace.slug, workspace.name) if workspace else ("", report.name or report.path)
    return Need("import", slug, name, text, url, max(1, count), report.finished_at or report.created_at, report.pk)


CURATED: tuple[Finder, ...] = (_held, _runs, _concerns, _over_budget)
OPERATED: tuple[Finder, ...] = (_folders, _waiting, _imports)

"""What needs a person, over some workspaces: one list for the home page, a workspace's overview and the command.

Each finder asks once or twice, grouped by workspace, however many there are; nothing is kept for it.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.db.models import CharField, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from knowledge_app.models import Concern, HeldChange
from knowledge_app.services.documents.pending_writes import blocking
from memoryhub.dashboard.attention_items import MOST, ORDER, RECENT, AttentionItem, Finder, attention_item, grouped
from memoryhub.dashboard.failures import failed_deliveries, failed_jobs, first_imports, latest_imports
from memoryhub.dashboard.scope import RoleScope
from memoryhub.jobs.queue import LIVE
from memoryhub.models import Job
from sessions_app.models import AuditRecord, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES

LAGS_AFTER = timedelta(minutes=10)  # a followed folder is looked at every half minute
WAITS_AFTER = timedelta(minutes=30)
GROWN_BEFORE = timedelta(hours=1)  # a session that is over its limits since then was passed over
SMALLER = (Concern.Kind.CONTRADICTION, Concern.Kind.PERSONAL, Concern.Kind.DUPLICATE, Concern.Kind.STALE)
STOPPED = (Run.Status.PARKED, Run.Status.HELD, Run.Status.FAILED)
FOLDER_FACTS = ("failed_at", "error", "succeeded_at", "unwritten")


def attention_items(reach: RoleScope, *, now: datetime) -> list[AttentionItem]:
    """Return what needs somebody with this reach, the most urgent first, then the oldest. 14 queries at most."""
    found: list[AttentionItem] = []
    for find in CURATED:
        found += find(reach.curated, now)
    for find in OPERATED:
        found += find(reach.operated, now)
    found += failed_jobs(reach.curated, now, of_hub=reach.is_whole)
    if reach.is_whole:
        found += first_imports(now)
    return sorted(found, key=lambda need: (ORDER.index(need.kind), need.since or now, need.name, need.pk))


def _held(workspaces: QuerySet[Workspace], _now: datetime) -> list[AttentionItem]:
    """Changes of memory in the inbox: conflicts with the agent's files by themselves, since they block writing."""
    is_conflict = Q(pk__in=blocking().values("pk"))
    pending = HeldChange.objects.filter(workspace__in=workspaces.values("pk"), status=HeldChange.Status.PENDING)
    found = []
    for kind, rows in (("conflict", pending.filter(is_conflict)), ("held", pending.exclude(is_conflict))):
        figures = {"first": Min("pk"), "since": Min("created_at"), "document": Min("document__name")}
        for row in grouped(rows, **figures):
            count, slug = row["n"], row["workspace__slug"]
            one = reverse("held-change", args=[slug, row["first"]])
            url = one if count == 1 else reverse("review", args=[slug])
            text = _words_of_held(kind, count, row["document"])
            found.append(attention_item(kind, row, text, url, count=count, since=row["since"]))
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


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
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
    for row in grouped(rows, "status", first=Min("pk"), since=since, kind=Min("kind")):
        count, slug, status = row["n"], row["workspace__slug"], row["status"]
        state = "failed" if status == Run.Status.FAILED else "waiting"
        several = f"{reverse('runs', args=[slug])}?state={state}"
        url = reverse("run", args=[slug, row["first"]]) if count == 1 else several
        kind = {Run.Status.PARKED: "parked", Run.Status.HELD: "approval"}.get(status, "failed")
        one = {"kind": Run.Kind(row["kind"]).label, "number": row["first"]}
        words = _words_of_run(kind) % one if count == 1 else _words_of_runs(kind, count) % {"count": count}
        found.append(attention_item(kind, row, words, url, count=count, since=row["since"]))
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


def _waiting(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Runs whose time came half an hour ago: as a rule no worker is there to take them."""
    rows = Run.objects.filter(workspace__in=workspaces.values("pk"), status=Run.Status.QUEUED)
    found = []
    for row in grouped(rows.filter(not_before__lt=now - WAITS_AFTER), since=Min("not_before")):
        text = ngettext(
            "A run has not begun: is the hub's worker running?",
            "%(count)d runs have not begun: is the hub's worker running?",
            row["n"],
        )
        url = f"{reverse('runs', args=[row['workspace__slug']])}?state=live"
        found.append(
            attention_item("waiting", row, text % {"count": row["n"]}, url, count=row["n"], since=row["since"])
        )
    return found


def _folders(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Folders that can't be opened, fail, refuse what the hub would write, or that nobody looks at any more."""
    asked = Job.objects.filter(workspace=OuterRef("pk"), kind=Job.Kind.SYNC, status__in=LIVE).order_by("id")
    rows = workspaces.exclude(path="").annotate(
        looked_at=Coalesce("sync_state__succeeded_at", "updated_at"),
        requested_at=Subquery(asked.values("created_at")[:1]),
    )
    fails = Q(unavailable_since__isnull=False) | Q(sync_state__failed_at__isnull=False)
    refuses = Q(sync_state__isnull=False) & ~Q(sync_state__unwritten={})
    limit = now - LAGS_AFTER
    lags = Q(is_followed=True, looked_at__lt=limit) | Q(requested_at__lt=limit)
    fields = (
        "slug",
        "name",
        "unavailable_since",
        "looked_at",
        "requested_at",
        *(f"sync_state__{name}" for name in FOLDER_FACTS),
    )
    found = rows.filter(fails | refuses | lags).order_by("name", "slug").values(*fields)
    return [_folder(row) for row in found[:MOST]]


def _folder(row: dict[str, Any]) -> AttentionItem:
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
        since = row["requested_at"] or since
    return AttentionItem("folder", row["slug"], row["name"], text, reverse("sync", args=[row["slug"]]), count, since)


def _concerns(workspaces: QuerySet[Workspace], _now: datetime) -> list[AttentionItem]:
    """What scans of the memory found: secrets and orders by themselves, the rest of a workspace together."""
    rows = Concern.objects.filter(workspace__in=workspaces.values("pk"), status=Concern.Status.OPEN)
    groups = grouped(rows, "kind", first=Min("pk"))
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
        found.append(attention_item(kind, row, words, url, count=count, since=since))
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


def _smaller(rows: list[dict[str, Any]]) -> AttentionItem:
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
    return attention_item("concerns", rows[0], text, url, count=count, since=since)


def _over_budget(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
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
    for row in grouped(rows, "workspace__auto_compress", first=Min("pk"), since=Max("updated_at"), **limits):
        count, slug = row["n"], row["workspace__slug"]
        one = reverse("compress-session", args=[slug, row["first"]])
        url = one if count == 1 else f"{reverse('sessions:list', args=[slug])}?sort=heaviest"
        text = _words_of_budget(count, is_automatic=row["workspace__auto_compress"])
        values = {"count": count, "tokens": f"{row['tokens']:,}", "entries": f"{row['entries']:,}"}
        found.append(attention_item("budget", row, text % values, url, count=count, since=row["since"]))
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


CURATED: tuple[Finder, ...] = (_held, _runs, _concerns, _over_budget)
OPERATED: tuple[Finder, ...] = (_folders, _waiting, latest_imports, failed_deliveries)

"""Collect what needs attention in some workspaces, for the home page, overviews and the command.

Each finder runs one or two queries, grouped by workspace. Nothing is stored.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, Min, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from knowledge_app.models import Concern
from memoryhub.inbox.attention_items import MAX_ITEMS, ORDER, AttentionItem, Finder, attention_item, grouped
from memoryhub.inbox.failures import failed_deliveries, failed_jobs, first_imports, latest_imports
from memoryhub.inbox.sources import (
    CLUSTER,
    IS_CONFLICT,
    findings,
    folders,
    held_changes,
    held_rows,
    late_runs,
    over_budget,
    stopped_runs,
    undelivered,
)
from memoryhub.role_scope import RoleScope
from sessions_app.models import Run, Workspace

SMALLER = {  # kinds of findings that share an item
    Concern.Kind.CONTRADICTION: ngettext_lazy("%(count)d contradiction", "%(count)d contradictions", "count"),
    Concern.Kind.PERSONAL: ngettext_lazy("%(count)d personal detail", "%(count)d personal details", "count"),
    Concern.Kind.DUPLICATE: ngettext_lazy("%(count)d duplicate", "%(count)d duplicates", "count"),
    Concern.Kind.STALE: ngettext_lazy("%(count)d stale fact", "%(count)d stale facts", "count"),
}
FOLDER_FACTS = ("failed_at", "error", "succeeded_at", "unwritten")


def attention_items(scope: RoleScope, *, now: datetime) -> list[AttentionItem]:
    """Return what needs attention in this scope, the most urgent kind first, then the oldest. 15 queries at most."""
    found: list[AttentionItem] = []
    for find in CURATED:
        found += find(scope.curated, now)
    for find in OPERATED:
        found += find(scope.operated, now)
    found += failed_jobs(scope.curated, now, of_hub=scope.is_whole)
    if scope.is_whole:
        found += first_imports(now)
    return sorted(found, key=lambda item: (ORDER.index(item.kind), item.since or now, item.name, item.pk))


def _inbox_url(slug: str, kind: str) -> str:
    return f"{reverse('inbox', args=[slug])}?kind={kind}"


def _held(workspaces: QuerySet[Workspace], _now: datetime) -> list[AttentionItem]:
    """Find held changes. Conflicts with the agent's files are separate items, since they block writing."""
    kind_of_change = Case(When(IS_CONFLICT, then=Value("conflict")), default=Value("held"), output_field=CharField())
    pending = held_changes(workspaces).annotate(of_kind=kind_of_change)
    figures = {"first": Min("pk"), "since": Min("created_at"), "document": Min("document__name")}
    found = []
    for row in grouped(pending, "of_kind", **figures):
        count, slug, kind = row["n"], row["workspace__slug"], row["of_kind"]
        one = reverse("held-change", args=[slug, row["first"]])
        url = one if count == 1 else _inbox_url(slug, "conflict" if kind == "conflict" else "change")
        text = _held_text(kind, count, row["document"])
        found.append(attention_item(kind, row, text, url, count=count, since=row["since"]))
    return found


def _held_text(kind: str, count: int, document: str) -> str:
    if count == 1:
        one = {
            "conflict": _("%(document)s differs in the agent's folder. Choose which version to keep."),
            "held": _("A change to %(document)s awaits review."),
        }
        return one[kind] % {"document": document}
    if kind == "conflict":
        words = ngettext(
            "%(count)d document differs in the agent's folder. Choose which version to keep.",
            "%(count)d documents differ in the agent's folder. Choose which versions to keep.",
            count,
        )
    else:
        words = ngettext("%(count)d change awaits review.", "%(count)d changes await review.", count)
    return words % {"count": count}


def _held_rows(workspaces: QuerySet[Workspace], _now: datetime) -> list[AttentionItem]:
    """Find rows of agents that the content check flagged."""
    found = []
    for row in grouped(held_rows(workspaces), since=Min("created_at")):
        text = ngettext(
            "%(count)d addition of an agent was flagged and awaits review.",
            "%(count)d additions of agents were flagged and await review.",
            row["n"],
        )
        url = _inbox_url(row["workspace__slug"], "addition")
        text = text % {"count": row["n"]}
        found.append(attention_item("flagged", row, text, url, count=row["n"], since=row["since"]))
    return found


def _undelivered(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Return documents whose text the agent doesn't have yet, unless two-way sync is about to write it."""
    found = []
    for row in grouped(undelivered(workspaces, now), since=Min("head__created_at"), document=Min("name")):
        several = ngettext(
            "The agent still reads the old text of %(count)d document.",
            "The agent still reads the old text of %(count)d documents.",
            row["n"],
        )
        words = _("The agent still reads the old text of %(document)s.") if row["n"] == 1 else several
        text = words % {"count": row["n"], "document": row["document"]}
        url = reverse("sync", args=[row["workspace__slug"]])
        found.append(attention_item("ahead", row, text, url, count=row["n"], since=row["since"]))
    return found


def _runs(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Find parked runs, runs that wait for approval, and recently failed runs without a later one or a dismissal."""
    since = Min(Coalesce("finished_at", "created_at"))
    found = []
    for row in grouped(stopped_runs(workspaces, now), "status", first=Min("pk"), since=since, kind=Min("kind")):
        count, slug, status = row["n"], row["workspace__slug"], row["status"]
        state = "failed" if status == Run.Status.FAILED else "waiting"
        several = f"{reverse('runs', args=[slug])}?state={state}"
        url = reverse("run", args=[slug, row["first"]]) if count == 1 else several
        kind = {Run.Status.PARKED: "parked", Run.Status.HELD: "approval"}.get(status, "failed")
        one = {"kind": Run.Kind(row["kind"]).label, "number": row["first"]}
        words = run_text(kind) % one if count == 1 else _runs_text(kind, count) % {"count": count}
        found.append(attention_item(kind, row, words, url, count=count, since=row["since"]))
    return found


def run_text(kind: str) -> str:
    words = {
        "parked": _("%(kind)s %(number)d failed repeatedly. Retry or dismiss it."),
        "approval": _("%(kind)s %(number)d awaits approval."),
        "failed": _("%(kind)s %(number)d failed."),
    }
    return words[kind]


def _runs_text(kind: str, count: int) -> str:
    if kind == "parked":
        return ngettext(
            "%(count)d run failed repeatedly. Retry or dismiss it.",
            "%(count)d runs failed repeatedly. Retry or dismiss them.",
            count,
        )
    if kind == "approval":
        return ngettext("%(count)d run awaits approval.", "%(count)d runs await approval.", count)
    return ngettext("%(count)d run failed in the last 7 days.", "%(count)d runs failed in the last 7 days.", count)


def late_items(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Find runs that should have started half an hour ago; usually no worker is running."""
    found = []
    for row in grouped(late_runs(workspaces, now), since=Min("not_before")):
        text = ngettext(
            "A run hasn't started. Is the worker running?",
            "%(count)d runs haven't started. Is the worker running?",
            row["n"],
        )
        url = f"{reverse('runs', args=[row['workspace__slug']])}?state=live"
        found.append(
            attention_item("waiting", row, text % {"count": row["n"]}, url, count=row["n"], since=row["since"])
        )
    return found


def folder_items(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Find folders that can't be opened, synced or written, or that haven't been checked recently."""
    fields = (
        "slug",
        "name",
        "unavailable_since",
        "since",
        "source_error",
        *(f"sync_state__{name}" for name in FOLDER_FACTS),
    )
    found = folders(workspaces, now).order_by("name", "slug").values(*fields)
    return [folder_item(row) for row in found[:MAX_ITEMS]]


def folder_item(row: dict[str, Any]) -> AttentionItem:
    """Return the most severe problem of a folder."""
    unwritten: dict[str, str] = row["sync_state__unwritten"] or {}
    count = 1
    if row["unavailable_since"]:
        text = _("The agent's folder can't be opened.")
    elif row["sync_state__failed_at"]:
        text = _("The last sync failed: %(error)s") % {"error": row["sync_state__error"]}
    elif row["source_error"]:
        text = _("Another folder can't be read: %(error)s") % {"error": row["source_error"]}
    elif unwritten:
        count = len(unwritten)
        text = ngettext(
            "A file in the agent's folder can't be written: %(reason)s",
            "%(count)d files in the agent's folder can't be written. The first: %(reason)s",
            count,
        ) % {"count": count, "reason": next(iter(unwritten.values()))}
    else:
        text = _("The agent's folder hasn't been checked recently. Is the worker running?")
    return AttentionItem(
        "folder", row["slug"], row["name"], text, reverse("sync", args=[row["slug"]]), count, row["since"]
    )


def _findings(workspaces: QuerySet[Workspace], _now: datetime) -> list[AttentionItem]:
    """Find open findings of scans: secrets and instructions as items of their own, the rest together."""
    groups = grouped(findings(workspaces), "kind", first=Min("pk"), clusters=Count(CLUSTER, distinct=True))
    found_at = dict(Concern.objects.filter(pk__in=[row["first"] for row in groups]).values_list("pk", "found_at"))
    smaller: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    found = []
    for row in groups:
        count, slug, kind, since = row["n"], row["workspace__slug"], row["kind"], found_at.get(row["first"])
        if kind in SMALLER:
            count = row["clusters"] if kind == Concern.Kind.DUPLICATE else count
            smaller[slug].append(row | {"n": count, "since": since})
            continue
        url = f"{reverse('hygiene', args=[slug])}?kind={kind}"
        words = _findings_text(kind, count) % {"count": count}
        found.append(attention_item(kind, row, words, url, count=count, since=since))
    return found + [_smaller(rows_of) for rows_of in smaller.values()]


def _findings_text(kind: str, count: int) -> str:
    if kind == Concern.Kind.SECRET:
        return ngettext(
            "%(count)d possible secret found in memory.",
            "%(count)d possible secrets found in memory.",
            count,
        )
    return ngettext(
        "%(count)d item in memory reads like an instruction to the agent.",
        "%(count)d items in memory read like instructions to the agent.",
        count,
    )


def _smaller(rows: list[dict[str, Any]]) -> AttentionItem:
    count = sum(row["n"] for row in rows)
    by_kind = {row["kind"]: row["n"] for row in rows}
    parts = [text % {"count": by_kind[kind]} for kind, text in SMALLER.items() if kind in by_kind]
    text = _("%(parts)s found.") % {"parts": ", ".join(parts)}
    since = min((row["since"] for row in rows if row["since"]), default=None)
    url = reverse("hygiene", args=[rows[0]["workspace__slug"]])
    return attention_item("concerns", rows[0], text, url, count=count, since=since)


def budget_items(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    """Find sessions over their workspace's limits that won't be compressed."""
    limits = {"tokens": Min("workspace__max_tokens"), "entries": Min("workspace__max_entries")}
    figures = limits | {"first": Min("pk"), "since": Min("updated_at")}
    found = []
    for row in grouped(over_budget(workspaces, now), "workspace__auto_compress", **figures):
        count, slug = row["n"], row["workspace__slug"]
        one = reverse("compress-session", args=[slug, row["first"]])
        url = one if count == 1 else f"{reverse('sessions:list', args=[slug])}?sort=heaviest"
        text = _budget_text(count, is_automatic=row["workspace__auto_compress"])
        values = {"count": count, "tokens": f"{row['tokens']:,}", "entries": f"{row['entries']:,}"}
        found.append(attention_item("budget", row, text % values, url, count=count, since=row["since"]))
    return found


def _budget_text(count: int, *, is_automatic: bool) -> str:
    if is_automatic:
        return ngettext(
            "%(count)d session is over this workspace's budget for a context (%(tokens)s tokens or %(entries)s "
            "messages) and couldn't be compressed. Compress it.",
            "%(count)d sessions are over this workspace's budget for a context (%(tokens)s tokens or %(entries)s "
            "messages) and couldn't be compressed. Compress them.",
            count,
        )
    return ngettext(
        "%(count)d session is over this workspace's budget for a context (%(tokens)s tokens or %(entries)s messages) "
        "and auto-compress is off. Compress it, or turn auto-compress on.",
        "%(count)d sessions are over this workspace's budget for a context (%(tokens)s tokens or %(entries)s "
        "messages) and auto-compress is off. Compress them, or turn auto-compress on.",
        count,
    )


CURATED: tuple[Finder, ...] = (_held, _held_rows, _undelivered, _runs, _findings, budget_items)
OPERATED: tuple[Finder, ...] = (folder_items, late_items, latest_imports, failed_deliveries)

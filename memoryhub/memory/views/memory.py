"""The page Memory: the documents, and everything else that the agent knows as one list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents.delivery import undelivered_documents
from memoryhub.lib.bulk_selection import check_count, submitted_rows
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.query import parse
from memoryhub.memory.filters import KINDS, MODELS, Matches, MemoryFilters, living_rows, parse_filters
from memoryhub.memory.forms import MemoryFilterForm
from memoryhub.memory.listing import count_kinds, page_of
from memoryhub.memory.views.rows import CATEGORIES, shown_item
from memoryhub.permissions import EDITOR, get_workspace, has_role, log_page_access
from memoryhub.search.actions import keep_within
from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS as SEARCHED
from memoryhub.search.shown_rows import seen_results
from memoryhub.search.views.actions import (
    apply_action,
    describe_refusal,
    edit_actions,
    export_action,
    parse_boxes,
    send_export,
    show_messages,
)
from sessions_app.models import Workspace

MAX_CATEGORIES = 40
LABELS = {"memory": gettext_lazy("document lines"), "document": gettext_lazy("prose")}


@dataclass(frozen=True)
class Chip:
    """A kind with its number of matching rows; ``url`` chooses it, or all kinds again."""

    label: str
    icon: str
    count: int
    url: str
    is_current: bool


def memory(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the documents, and one page of the rows that match the filters."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    form, filters = _filters(request)
    form.offer_categories(*_categories(workspace), labels=CATEGORIES)
    matches = Matches(workspace, filters, now)
    counts = count_kinds(matches)
    chosen = {kind: count for kind, count in counts.items() if filters.kind in ("", kind)}
    page = page_of(matches, request.GET)
    today = timezone.localdate(now)
    seen = [{"kind": item.kind.name, "id": item.row.pk} for item in page.rows]
    log_page_access(request, workspace, "memory.read", seen_results(seen))
    may_edit = has_role(request.user, workspace, EDITOR)
    query = filters.query_string()
    export = export_action(reverse("export-memory", args=[slug]) + query)
    listed = [kind for kind, count in chosen.items() if count]
    terms = [WeightedTerm(term.words, term.is_prefix) for term in parse(filters.q, now=now).ranked_terms]
    context = {
        "workspace": workspace,
        "documents": _documents(workspace),
        "undelivered": set(undelivered_documents(_only(workspace)).values_list("pk", flat=True)),
        "held": _held(workspace).first(),
        "held_count": _held(workspace).count(),
        "form": form,
        "filters": filters,
        "hidden": filters.pairs("kind", "pinned", "review", "all_kinds"),
        "chips": _chips(workspace, filters, counts),
        "toggles": _toggles(filters),
        "all_kinds_url": filters.query_string(all_kinds=not filters.all_kinds),
        "rows": [shown_item(item, slug, terms, today) for item in page.rows],
        "page": page,
        "query": query,
        "count": sum(chosen.values()),
        "counts": {kind: count for kind, count in chosen.items() if count},
        "actions": [*edit_actions(listed), export] if may_edit else [export],
        "may_edit": may_edit,
        "today": today,
    }
    fragment = "documents" if request.htmx.target == "documents" else "memory-list"  # type: ignore[attr-defined]
    return render_page(request, "memory/memory.html", context, fragment=fragment)


@require_POST
def edit_memory(request: HttpRequest, slug: str) -> HttpResponse:
    """Apply an action to the selected rows of the list, or to all that match; each edit can be undone."""
    workspace = get_workspace(request, slug, role=EDITOR)
    address = _address(request, slug)
    keys: dict[str, list[int]] = {}
    try:
        keys = _selected(request, workspace)
        done = apply_action(request, workspace, keys)
    except MemoryHubError as error:
        messages.error(request, describe_refusal(error, keys))
        return redirect(address)
    show_messages(request, done)
    live = next((run for run in done.runs if run.is_live), None)
    return redirect("run", slug, live.pk) if live else redirect(address)


@require_POST
def export_memory(request: HttpRequest, slug: str) -> HttpResponse:
    """Download the selected rows of the list, or all that match, without the values of secrets."""
    workspace = get_workspace(request, slug)
    try:
        keys = _selected(request, workspace)
        if not keys:
            raise Invalid(_("Select at least one row."), code="nothing_chosen")
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(_address(request, slug))
    return send_export(request, keys, f"memory-{slug}")


def _filters(request: HttpRequest) -> tuple[MemoryFilterForm, MemoryFilters]:
    """Return the form of the page's query string and its filters; invalid values filter nothing."""
    form = MemoryFilterForm(request.GET)
    form.is_valid()
    return form, parse_filters(form.cleaned_data)


def _address(request: HttpRequest, slug: str) -> str:
    """Return the URL of the first page of the list with the request's filters."""
    return reverse("memory", args=[slug]) + _filters(request)[1].query_string().removesuffix("?")


def _selected(request: HttpRequest, workspace: Workspace) -> dict[str, list[int]]:
    """Return the selected rows by kind. Raises Conflict if all are selected and their number has changed."""
    if not request.POST.get("all"):
        boxes = parse_boxes(submitted_rows(request))
        return keep_within(Scope((workspace.pk,)), {kind: pks for kind, pks in boxes.items() if kind in KINDS})
    keys = Matches(workspace, _filters(request)[1], timezone.now()).keys()
    check_count(sum(map(len, keys.values())), parse_int(request.POST.get("expected")))
    return keys


def _only(workspace: Workspace) -> Any:
    return Workspace.objects.filter(pk=workspace.pk)


def _held(workspace: Workspace) -> Any:
    changes = HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING)
    return changes.select_related("document").defer("proposed", "raw").order_by("-id")


def _documents(workspace: Workspace) -> list[tuple[MemoryDocument, int]]:
    """Return the documents without their texts, each with its size and number of facts."""
    rows = MemoryDocument.objects.filter(workspace=workspace, head__isnull=False)
    rows = rows.select_related("head__proposal").order_by("name").annotate(size=Length("head__content"))
    rows = rows.defer("head__content", "head__raw", "head__proposal__proposed", "head__proposal__raw")
    facts = Fact.objects.filter(workspace=workspace, died=None).order_by()
    counts = dict(facts.values_list("document").annotate(n=Count("pk")))
    return [(document, counts.get(document.pk, 0)) for document in rows]


def _categories(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Return the categories and the sections of a workspace, those with most rows first."""
    counted: dict[str, int] = {}
    facts = Fact.objects.filter(workspace=workspace, died=None).order_by()
    sources = [facts, *(MODELS[kind].objects.filter(workspace=workspace) for kind in ("knowledge", "observation"))]
    for rows in sources:
        for name, count in rows.exclude(category="").order_by().values_list("category").annotate(n=Count("pk")):
            counted[name] = counted.get(name, 0) + count
    sections = facts.exclude(section="").values_list("section").annotate(n=Count("pk")).order_by("-n", "section")
    categories = sorted(counted, key=lambda name: (-counted[name], name))
    return categories[:MAX_CATEGORIES], [section for section, _n in sections[:MAX_CATEGORIES]]


def _chips(workspace: Workspace, filters: MemoryFilters, counts: dict[str, int]) -> list[Chip]:
    """Return a chip for all kinds, and one for each kind that the agent has, or for every kind."""
    shown = [kind for kind in KINDS if _is_offered(workspace, kind, filters, counts.get(kind, 0))]
    chips = [Chip(_("All"), "", sum(counts.values()), filters.query_string(kind=""), not filters.kind)]
    for kind in shown:
        label = str(LABELS.get(kind, SEARCHED[kind].many))
        label = label[:1].upper() + label[1:]
        url = filters.query_string(kind=kind)
        chips.append(Chip(label, SEARCHED[kind].icon, counts.get(kind, 0), url, filters.kind == kind))
    return chips


def _is_offered(workspace: Workspace, kind: str, filters: MemoryFilters, count: int) -> bool:
    if count or filters.all_kinds or filters.kind == kind:
        return True
    return filters.is_set and living_rows(kind, workspace).exists()


def _toggles(filters: MemoryFilters) -> list[tuple[str, bool, str]]:
    """Return the filters that are on or off: (label, is_on, URL of the other state)."""
    return [
        (_("Pinned"), filters.pinned, filters.query_string(pinned=not filters.pinned)),
        (_("Needs review"), filters.review, filters.query_string(review=not filters.review)),
    ]

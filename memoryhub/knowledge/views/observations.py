from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.models import Confirmation, Observation
from knowledge_app.services.rows.additions import record_addition
from knowledge_app.services.rows.edits import edit_rows
from knowledge_app.services.rows.exporting import observations_file
from knowledge_app.services.rows.observations import BadObservation, Said, decide, store
from knowledge_app.services.rows.restoring import restore_row
from memoryhub.access import by_person, get_workspace, has_role, log_page_access
from memoryhub.bulk_edits import (
    EXPORT,
    RETURN,
    VERIFY,
    WITHDRAW,
    after_edit,
    answer_chosen,
    answer_edit,
    list_address,
    moves,
)
from memoryhub.knowledge.forms import ObservationFilterForm, ObservationForm
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.downloads import download
from memoryhub.lib.extra_fields import Fields, extra_fields, with_extra_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page, parse_int
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows

SHOWN_EACH = 25
SHOWN_STATES = 50
EDITOR = Membership.Role.EDITOR


def observations(request: HttpRequest, slug: str) -> HttpResponse:
    """Findings, insights and lessons in three columns; one kind alone pages by key."""
    workspace = get_workspace(request, slug)
    form = ObservationFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = _fitting(workspace, request)
    chosen = wishes.get("category")
    totals = dict(rows.order_by().values_list("category").annotate(Count("id")))
    page = keyset_page(rows, order=("-id",), params=request.GET) if chosen else None
    waiting = Confirmation.objects.filter(workspace=workspace, status=Confirmation.Status.OFFERED)
    columns = [] if chosen else _columns(rows, totals)
    shown = page.rows if page else [row for _, _, several in columns for row, _ in several]
    log_page_access(request, workspace, "observations.read", seen_rows("observations", [row.pk for row in shown]))
    context = {
        "workspace": workspace,
        "form": form,
        "is_filtered": any(wishes.values()),
        "count": sum(totals.values()),
        "page": page,
        "rows": with_extra_fields(page.rows) if page else [],
        "columns": columns,
        "chosen_label": Observation.Category(chosen).label if chosen else "",
        "actions": _actions(with_withdrawn=bool(wishes.get("withdrawn"))),
        "offered_count": waiting.count(),
        "may_edit": has_role(request.user, workspace, EDITOR),
        "today": timezone.localdate(),
    }
    return render_page(request, "knowledge/observations.html", context, fragment="observation-list")


def _actions(*, with_withdrawn: bool) -> tuple[Action, ...]:
    shown = (moves(Observation.Category.choices), VERIFY, WITHDRAW, EXPORT)
    return (*shown[:3], RETURN, EXPORT) if with_withdrawn else shown


def _fitting(workspace: Workspace, request: HttpRequest) -> QuerySet[Observation]:
    """Return the observations that a page's filters leave: its rows, and what "all that fit" means."""
    form = ObservationFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = Observation.objects.filter(workspace=workspace)
    if not wishes.get("withdrawn"):
        rows = rows.filter(withdrawn_at=None)
    if chosen := wishes.get("category"):
        rows = rows.filter(category=chosen)
    if text := wishes.get("q"):
        rows = rows.filter(Q(content__icontains=text) | Q(source__icontains=text))
    return rows


def _columns(
    rows: QuerySet[Observation], totals: dict[str, int]
) -> list[tuple[Observation.Category, int, list[tuple[Observation, Fields]]]]:
    return [
        (
            category,
            totals.get(category.value, 0),
            with_extra_fields(rows.filter(category=category).order_by("-id")[:SHOWN_EACH]),
        )
        for category in Observation.Category
    ]


@require_POST
def edit_many(request: HttpRequest, slug: str) -> HttpResponse:
    """Do one thing with the observations chosen on the list, or with all that fit its filters."""
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = _fitting(workspace, request)
    address = list_address(request, slug, "knowledge:observations")
    return answer_chosen(
        request,
        workspace,
        "observations",
        address,
        noted_as="observations.exported",
        chosen=lambda: selected_keys(request, rows),
        edit=lambda pks: (_edit(request, workspace, pks), ""),
    )


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Run:
    action, _colon, category = request.POST.get("action", "").partition(":")
    values: dict[str, Any] = {"reason": action_value(request, action)}
    reason = ""
    if action == "move" and category in Observation.Category.values:
        reason = f"{values['reason']} (moved)" if values["reason"] else ""
        action, values = "assign", {"category": category}
    elif action not in ("withdraw", "return", "verify"):
        raise BadObservation(_("Choose an action."))
    return edit_rows(workspace, "observations", action, pks, values=values, reason=reason, by=by_person(request))


def new_observation(request: HttpRequest, slug: str) -> HttpResponse:
    """Add an observation; one that is much like a known one is shown beside it first."""
    workspace = get_workspace(request, slug, role=EDITOR)
    form = ObservationForm(request.POST or None)
    if form.is_bound and form.is_valid():
        by = by_person(request)
        stored = store(workspace, [Said(**form.cleaned_data)], by=by)
        if stored.added:
            added = record_addition(workspace, "observations", [stored.added[0].pk], by=by)
            messages.success(request, _("Added."), extra_tags=str(added.pk))
            return redirect("knowledge:observation", slug, stored.added[0].pk)
        messages.info(request, _("Something much like it is known already: say whether it is the same."))
        return redirect("knowledge:offered", slug)
    context = {"workspace": workspace, "form": form}
    return render_page(request, "knowledge/observation_new.html", context, status=422 if form.errors else 200)


def observation(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One observation with every state that it had; an editor changes it in place."""
    is_change = request.method == "POST"
    workspace = get_workspace(request, slug, role=EDITOR if is_change else Membership.Role.VIEWER)
    row = get_object_or_404(Observation.objects.select_related("run"), workspace=workspace, pk=pk)
    initial = {"content": row.content, "category": row.category, "source": row.source}
    form = ObservationForm(request.POST if is_change else None, initial=initial)
    changes = form.changes(initial) if is_change and form.is_valid() else {}
    if is_change and form.is_valid():
        run = _assign(request, workspace, row, changes)
        return after_edit(request, run, slug, reverse("knowledge:observation", args=[slug, pk]))
    log_page_access(request, workspace, "observations.read", seen_rows("observations", [row.pk]))
    context = {
        "workspace": workspace,
        "row": row,
        "form": form,
        "fields": extra_fields(row),
        "states": list(row.history.order_by("-history_id")[:SHOWN_STATES]),
        "confirmations": list(row.confirmations.exclude(status="offered").order_by("-id")[:20]),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/observation.html", context, status=422 if form.errors else 200)


def _assign(request: HttpRequest, workspace: Workspace, row: Observation, values: dict[str, Any]) -> Run:
    return edit_rows(workspace, "observations", "assign", [row.pk], values=values, by=by_person(request))


@require_POST
def edit_one(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Withdraw an observation, take it back in, verify it, or restore an earlier state."""
    workspace = get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(Observation, workspace=workspace, pk=pk)
    state = parse_int(request.POST.get("state"))

    def edit() -> tuple[Run, str]:
        if state is None:
            return _edit(request, workspace, [pk]), ""
        known = parse_int(request.POST.get("known"))
        return restore_row(row, state, known=known, by=by_person(request)), ""

    return answer_edit(request, slug, reverse("knowledge:observation", args=[slug, pk]), edit)


def offered(request: HttpRequest, slug: str) -> HttpResponse:
    """What was extracted and is much like a known observation: the same, or another thing?"""
    workspace = get_workspace(request, slug)
    rows = Confirmation.objects.filter(workspace=workspace, status=Confirmation.Status.OFFERED)
    context = {
        "workspace": workspace,
        "page": keyset_page(rows.select_related("observation", "run"), order=("-id",), params=request.GET),
        "count": rows.count(),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/offered.html", context, fragment="offered-list")


@require_POST
def decide_offered(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = Confirmation.objects.select_related("workspace", "observation")
    found = get_object_or_404(rows, workspace=workspace, pk=pk)
    is_same = request.POST.get("is_same") == "1"
    done = decide(found, is_same=is_same, by=by_person(request))
    if isinstance(done, Run):
        messages.success(request, _("It counts as a confirmation."), extra_tags=str(done.pk))
    else:
        messages.success(request, _("It is an observation of its own now."))
        return redirect("knowledge:observation", slug, done.pk)
    return redirect("knowledge:offered", slug)


@require_GET
def download_observations(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    pks = Observation.objects.filter(workspace=workspace, withdrawn_at=None).values_list("pk", flat=True)
    log_page_access(request, workspace, "observations.exported", seen_rows("observations", pks))
    return download(observations_file(workspace), "observations-export.json")

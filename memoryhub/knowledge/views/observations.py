from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import Confirmation, Observation
from knowledge_app.models.held_rows import REASONS
from knowledge_app.services.rows.additions import record_addition
from knowledge_app.services.rows.exporting import observations_file
from knowledge_app.services.rows.observations import NewObservation, decide, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.edit_responses import EXPORT, RETURN, VERIFY, WITHDRAW, edit_chosen, move_action
from memoryhub.knowledge.forms import ObservationFilterForm, ObservationForm
from memoryhub.knowledge.kinds import EditableKind, Filters, Outcome
from memoryhub.lib.bulk_selection import Action, action_value
from memoryhub.lib.content_check.precheck import findings_in
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role
from sessions_app.models import Run, Workspace

SHOWN_CONFIRMATIONS = 20


def _matching(workspace: Workspace, filters: Filters) -> QuerySet[Observation]:
    rows = Observation.objects.filter(workspace=workspace)
    if not filters.get("withdrawn"):
        rows = rows.filter(withdrawn_at=None)
    if category := filters.get("category"):
        rows = rows.filter(category=category)
    if text := filters.get("q"):
        rows = rows.filter(any_case("content__icontains", text) | any_case("source__icontains", text))
    return rows.select_related("hold")


def _actions(filters: Filters) -> tuple[Action, ...]:
    usual = (move_action(Observation.Category.choices), VERIFY, WITHDRAW)
    return (*usual, RETURN, EXPORT) if filters.get("withdrawn") else (*usual, EXPORT)


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Outcome:
    action, _colon, category = request.POST.get("action", "").partition(":")
    if action != "move" or category not in Observation.Category.values:
        return edit_chosen(request, workspace, "observations", pks, allowed=("withdraw", "return", "verify"))
    text = action_value(request, action)
    reason = f"{text} (moved)" if text else ""
    values, by = {"category": category}, by_person(request)
    return edit_rows(workspace, "observations", "assign", pks, values=values, reason=reason, by=by), ""


def _offered(workspace: Workspace) -> QuerySet[Confirmation]:
    return Confirmation.objects.filter(workspace=workspace, status=Confirmation.Status.OFFERED)


def _add(request: HttpRequest, workspace: Workspace, values: dict[str, Any]) -> HttpResponse:
    """Add an observation, unless it is similar to a known one: a person decides about that first."""
    by = by_person(request)
    stored = store(workspace, [NewObservation(**values)], by=by)
    if not stored.added:
        messages.info(request, _("A similar observation exists. Is it the same?"))
        return redirect("knowledge:offered", workspace.slug)
    pk = stored.added[0].pk
    run = record_addition(workspace, "observations", [pk], by=by)
    messages.success(request, _("Added."), extra_tags=str(run.pk))
    return redirect("knowledge:observation", workspace.slug, pk)


def _row_context(row: Observation) -> dict[str, Any]:
    decided = row.confirmations.exclude(status=Confirmation.Status.OFFERED).order_by("-id")
    return {"confirmations": list(decided[:SHOWN_CONFIRMATIONS])}


OBSERVATIONS = EditableKind(
    table="observations",
    access="observations",
    title=gettext_lazy("Observations"),
    list_id="observation-list",
    list_template="knowledge/observations.html",
    list_url="knowledge:observations",
    row_url="knowledge:observation",
    edit_url="knowledge:edit-observations",
    filter_form=lambda data, _workspace: ObservationFilterForm(data),
    matching=_matching,
    actions=_actions,
    edit=_edit,
    file=observations_file,
    file_name="observations-export.json",
    categories=Observation.Category,
    list_context=lambda workspace, _count: {"offered_count": _offered(workspace).count()},
    notice_template="knowledge/repeated_notice.html",
    search_kind="observation",
    live="observations",
    new_title=gettext_lazy("New observation"),
    new_text=gettext_lazy(
        "One self-contained sentence. If a similar one exists, you'll be asked whether they are the same."
    ),
    new_button=gettext_lazy("Add"),
    form=ObservationForm,
    add=_add,
    row_template="knowledge/observation.html",
    edit_row_url="knowledge:edit-observation",
    withdrawn_text=gettext_lazy("It isn't recalled or exported."),
    row_context=_row_context,
)


def offered(request: HttpRequest, slug: str) -> HttpResponse:
    """Observations that are similar to a known one: a person decides whether they are the same."""
    workspace = get_workspace(request, slug)
    rows = _offered(workspace)
    page = keyset_page(rows.select_related("observation", "run"), order=("-id",), params=request.GET)
    context = {
        "workspace": workspace,
        "page": page,
        "rows": [(row, _reasons(row)) for row in page.rows],
        "count": rows.count(),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/repeated_observations.html", context, fragment="offered-list")


def _reasons(row: Confirmation) -> list[str]:
    """Return why the content check flags an offered text, each reason once."""
    codes = [finding.code for text in (row.content, row.source) for finding in findings_in(text)]
    return list(dict.fromkeys(str(REASONS[code]) for code in codes))


@require_POST
def decide_offered(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = Confirmation.objects.select_related("workspace", "observation")
    found = get_object_or_404(rows, workspace=workspace, pk=pk)
    done = decide(found, is_same=request.POST.get("is_same") == "1", by=by_person(request))
    if isinstance(done, Run):
        messages.success(request, _("Counted as a confirmation."), extra_tags=str(done.pk))
        return redirect("knowledge:offered", slug)
    messages.success(request, _("Added as a new observation."))
    return redirect("knowledge:observation", slug, done.pk)

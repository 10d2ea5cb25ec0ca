"""Retry, dismiss or cancel several runs."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.edit_responses import answer_edit, list_address
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.errors import Invalid
from memoryhub.permissions import EDITOR, by_person, get_workspace
from sessions_app.models import Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES

STATES = {
    "live": Q(status__in=LIVE_STATUSES),
    "waiting": Q(status__in=("held", "parked")),
    "failed": Q(status="failed"),
}
TABS = {  # by the "state" parameter of the list
    "": gettext_lazy("All"),
    "live": gettext_lazy("Live"),
    "waiting": gettext_lazy("Waiting"),
    "failed": gettext_lazy("Failed"),
    "edits": gettext_lazy("Edits"),
}
RETRY = Action("retry", gettext_lazy("Try again"))
DISMISS = Action("dismiss", gettext_lazy("Dismiss"), asks="text", label=gettext_lazy("Why (optional)"))
CANCEL = Action("cancel", gettext_lazy("Cancel them"))
ACTIONS = {"": (RETRY, DISMISS, CANCEL), "live": (CANCEL,), "waiting": (RETRY, DISMISS, CANCEL), "failed": (RETRY,)}


def matching_runs(workspace: Workspace, state: str) -> QuerySet[Run]:
    """Return the runs of a tab. Edits have their own tab."""
    runs = Run.objects.filter(workspace=workspace)
    if state == "edits":
        return runs.filter(kind=Run.Kind.EDIT)
    return runs.filter(STATES[state]) if state in STATES else runs.exclude(kind=Run.Kind.EDIT)


@require_POST
def edit_runs(request: HttpRequest, slug: str) -> HttpResponse:
    """Apply an action to the selected runs, or to all runs of the tab."""
    workspace = get_workspace(request, slug, role=EDITOR)

    def edit() -> tuple[Run, str]:
        action = request.POST.get("action", "")
        if action not in ("retry", "dismiss", "cancel"):
            raise Invalid(_("Choose an action."), code="nothing_chosen")
        pks = selected_keys(request, matching_runs(workspace, request.GET.get("state", "")))
        values = {"reason": action_value(request, action)}
        run = edit_rows(workspace, "runs", action, pks, values=values, by=by_person(request))
        return run, _skipped_text(run)

    return answer_edit(request, slug, list_address(request, slug, "runs"), edit)


def _skipped_text(run: Run) -> str:
    """Return how many runs were skipped and why, "" if none."""
    count = 0 if run.is_live else run.proposal.get("passed_over", 0)
    if not count:
        return ""
    texts = {
        "retry": _("%(count)s skipped. Only failed, parked and cancelled runs can be retried."),
        "dismiss": _("%(count)s skipped. Only parked runs can be dismissed."),
        "cancel": _("%(count)s skipped. They have already ended."),
    }
    return texts[run.options["action"]] % {"count": f"{count:,}"}

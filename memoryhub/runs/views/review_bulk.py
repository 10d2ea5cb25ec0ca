"""Several held changes approved or rejected at once, each on its own: what can't be decided stays, and is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldChange
from memoryhub.access import EDITOR, by_person, get_workspace
from memoryhub.edit_responses import list_address
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.errors import LimitExceeded, MemoryHubError
from memoryhub.runs.review import approve, reject
from sessions_app.models import Workspace

MAX_AT_ONCE = 200  # each is a merge and a revision of its own
SHOWN_REASONS = 3
WHY = gettext_lazy("Why (optional)")
ACTIONS = (
    Action("approve", gettext_lazy("Approve"), asks="text", label=WHY),
    Action("reject", gettext_lazy("Reject"), asks="text", label=WHY),
)


def pending_changes(workspace: Workspace) -> QuerySet[HeldChange]:
    """Return what waits for a decision: the inbox, and what "all that match" means."""
    return HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING)


@require_POST
def decide_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """Approve or reject the changes chosen in the inbox, the oldest first, or all of it."""
    workspace = get_workspace(request, slug, role=EDITOR)
    decide = {"approve": approve, "reject": reject}.get(request.POST.get("action", ""))
    address = list_address(request, slug, "review")
    try:
        keys = selected_keys(request, pending_changes(workspace))
        if len(keys) > MAX_AT_ONCE:
            raise LimitExceeded(
                _("Decide about at most %(count)s changes at once.") % {"count": MAX_AT_ONCE}, code="too_many_boxes"
            )
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    if decide is None or not keys:
        messages.error(request, _("Choose at least one row.") if decide else _("Choose an action."))
        return redirect(address)
    rows = HeldChange.objects.select_related(
        "workspace", "document", "base", "ours", "decided_by", "run", "run__session", "run__workspace"
    )
    done, reasons = _decided(request, decide, rows.filter(workspace=workspace, pk__in=keys).order_by("pk"))
    _tell(request, request.POST["action"], done, len(keys) - done, reasons)
    return redirect(address)


def _decided(
    request: HttpRequest, decide: Callable[..., Any], changes: QuerySet[HeldChange]
) -> tuple[int, list[str]]:
    """Decide about each change; return how many were, and why others were not."""
    done, reasons = 0, []
    reason = action_value(request, request.POST["action"])
    for change in changes:
        try:
            decide(change, by=by_person(request), user=request.user, reason=reason)
        except MemoryHubError as error:
            reasons.append(f"{change.document.name}: {error.message}")
        else:
            done += 1
    return done, reasons


def _tell(request: HttpRequest, action: str, done: int, left: int, reasons: list[str]) -> None:
    if done and action == "approve":
        words = ngettext("%(count)s change taken in.", "%(count)s changes taken in.", done)
        messages.success(request, words % {"count": f"{done:,}"})
    elif done:
        words = ngettext("%(count)s change rejected.", "%(count)s changes rejected.", done)
        messages.success(request, words % {"count": f"{done:,}"})
    if left:
        words = ngettext("%(count)s stays.", "%(count)s stay.", left) % {"count": f"{left:,}"}
        messages.warning(request, " ".join([words, *dict.fromkeys(reasons[:SHOWN_REASONS])]))

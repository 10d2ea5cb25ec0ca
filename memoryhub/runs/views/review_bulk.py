"""Approve or reject several held changes. Changes that can't be decided stay in the inbox and are reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldChange
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.errors import LimitExceeded, MemoryHubError
from memoryhub.permissions import EDITOR, by_person, get_workspace
from memoryhub.runs.part_decisions import undo_url
from memoryhub.runs.review import approve_unflagged, flagged_text, reject
from sessions_app.models import Workspace

MAX_AT_ONCE = 200  # each needs its own merge and revision
SHOWN_REASONS = 3
WHY = gettext_lazy("Comment (optional)")
ACTIONS = (
    Action("approve", gettext_lazy("Accept"), asks="text", label=WHY),
    Action("reject", gettext_lazy("Reject"), asks="text", label=WHY),
)


def pending_changes(workspace: Workspace) -> QuerySet[HeldChange]:
    """Return the changes that wait for a decision."""
    return HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING)


@require_POST
def decide_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """Approve or reject the selected changes, or all, oldest first. Flagged parts aren't approved."""
    workspace = get_workspace(request, slug, role=EDITOR)
    decide = {"approve": approve_unflagged, "reject": reject}.get(request.POST.get("action", ""))
    address = reverse("inbox", args=[slug])
    try:
        keys = selected_keys(request, pending_changes(workspace))
        if len(keys) > MAX_AT_ONCE:
            raise LimitExceeded(
                _("Select at most %(count)s changes at once.") % {"count": MAX_AT_ONCE}, code="too_many_boxes"
            )
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    if decide is None or not keys:
        messages.error(request, _("Select at least one change.") if decide else _("Choose an action."))
        return redirect(address)
    rows = HeldChange.objects.select_related(
        "workspace", "document", "base", "ours", "decided_by", "run", "run__session", "run__workspace"
    )
    outcome = _decide_each(request, decide, rows.filter(workspace=workspace, pk__in=keys).order_by("pk"))
    _report(request, request.POST["action"], outcome, len(keys))
    return redirect(address)


@dataclass
class _Outcome:
    """``flagged``: the number of flagged parts that still wait. ``reasons``: why changes were skipped."""

    done: list[HeldChange] = field(default_factory=list)
    waiting: int = 0
    flagged: int = 0
    reasons: list[str] = field(default_factory=list)


def _decide_each(request: HttpRequest, decide: Callable[..., Any], changes: QuerySet[HeldChange]) -> _Outcome:
    outcome = _Outcome()
    reason = action_value(request, request.POST["action"])
    for change in changes:
        try:
            flagged = decide(change, by=by_person(request), user=request.user, reason=reason) or 0
        except MemoryHubError as error:
            outcome.reasons.append(f"{change.document.name}: {error.message}")
            continue
        outcome.flagged += flagged
        if flagged and pending_changes(change.workspace).filter(pk=change.pk).exists():
            outcome.waiting += 1
        else:
            outcome.done.append(change)
    return outcome


def _report(request: HttpRequest, action: str, outcome: _Outcome, count: int) -> None:
    done, undo = len(outcome.done), undo_url(outcome.done)
    if done and action == "approve":
        text = ngettext("%(count)s change accepted.", "%(count)s changes accepted.", done)
        messages.success(request, text % {"count": f"{done:,}"}, extra_tags=undo)
    elif done:
        text = ngettext("%(count)s change rejected.", "%(count)s changes rejected.", done)
        messages.success(request, text % {"count": f"{done:,}"}, extra_tags=undo)
    if outcome.flagged:
        messages.warning(request, flagged_text(outcome.flagged))
    if skipped := count - done - outcome.waiting:
        text = ngettext("%(count)s skipped.", "%(count)s skipped.", skipped) % {"count": f"{skipped:,}"}
        messages.warning(request, " ".join([text, *dict.fromkeys(outcome.reasons[:SHOWN_REASONS])]))

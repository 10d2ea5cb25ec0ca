"""Decisions about the parts of a held change, as forms send them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.held_changes import hunks_of
from memoryhub.lib.validation import MAX_REASON
from memoryhub.permissions import by_person
from memoryhub.runs.change_parts import ACCEPT, REJECT
from memoryhub.runs.review import Decided, approve, decide_parts, reject
from sessions_app.models import AuditRecord


@dataclass(frozen=True)
class Posted:
    """What a form decided. ``message``: for the person. ``warning``: about accepted parts that weren't applied."""

    decided: Decided
    message: str
    warning: str = ""


def decide_posted(request: HttpRequest, change: HeldChange) -> Posted:
    """Decide a change by the form's ``decision-N`` of each part, its ``all``, or its ``text``.

    Raises Conflict, RunNotFitting, Invalid.
    """
    post = request.POST
    reason, by, user = post.get("reason", "")[:MAX_REASON], by_person(request), request.user
    if "text" in post:
        text = post["text"].replace("\r\n", "\n")
        approve(change, by=by, user=user, text=text, reason=reason)  # type: ignore[arg-type]
        return Posted(Decided(1, 0), _accepted(change))
    if post.get("all") == REJECT:
        reject(change, by=by, user=user, reason=reason)  # type: ignore[arg-type]
        return Posted(Decided(0, 1), gettext("Change rejected. The document is unchanged."))
    numbers = [hunk.number for hunk in hunks_of(change)]
    if not numbers or not any(name == "all" or name.startswith("decision") for name in post):
        approve(change, by=by, user=user, reason=reason)  # type: ignore[arg-type]
        return Posted(Decided(1, 0), _accepted(change))
    chosen = {number: post.get("all") or post.get(f"decision-{number}", "") for number in numbers}
    accepted = [number for number in numbers if chosen[number] == ACCEPT]
    rejected = [number for number in numbers if chosen[number] == REJECT]
    decided = decide_parts(change, accepted=accepted, rejected=rejected, by=by, user=user, reason=reason)  # type: ignore[arg-type]
    return Posted(decided, _message(change, decided, len(numbers)), _stale_text(change, decided.stale))


def report_posted(request: HttpRequest, change: HeldChange, posted: Posted) -> None:
    """Tell the person what was decided, with a link that undoes it, and what wasn't applied."""
    if posted.message:
        is_superseded = not posted.decided.accepted and not posted.decided.rejected
        messages.success(request, posted.message, extra_tags="" if is_superseded else undo_url([change]))
    if posted.warning:
        messages.warning(request, posted.warning)


def undo_url(changes: Sequence[HeldChange]) -> str:
    """Return the URL to which undoing the decisions on some changes of a workspace is posted, "" for none."""
    if not changes:
        return ""
    query = urlencode([("change", change.pk) for change in changes])
    return f"{reverse('undo-decisions', args=[changes[0].workspace.slug])}?{query}"


def undo_approval_url(approval: AuditRecord) -> str:
    """Return the URL to which undoing the approval of a held row is posted."""
    workspace = approval.workspace
    return f"{reverse('undo-decisions', args=[workspace.slug])}?approval={approval.pk}" if workspace else ""


def _accepted(change: HeldChange) -> str:
    return gettext("Change accepted into %(name)s.") % {"name": change.document.name}


def _stale_text(change: HeldChange, count: int) -> str:
    text = ngettext(
        "%(count)s part wasn't applied: someone has changed the same lines of %(name)s since. It is shown again "
        "next to the current text.",
        "%(count)s parts weren't applied: someone has changed the same lines of %(name)s since. They are shown again "
        "next to the current text.",
        count,
    )
    return text % {"count": count, "name": change.document.name} if count else ""


def _message(change: HeldChange, decided: Decided, total: int) -> str:
    accepted, rejected, waiting = decided.accepted, decided.rejected, decided.waiting - decided.stale
    if accepted == total:
        return _accepted(change)
    if not accepted and not decided.waiting:
        return gettext("Change rejected. The document is unchanged.")
    text = ""
    if accepted:
        text = gettext("%(accepted)s of %(total)s changes accepted into %(name)s.")
        text = text % {"accepted": accepted, "total": total, "name": change.document.name}
    elif rejected:
        text = ngettext("%(count)s change rejected.", "%(count)s changes rejected.", rejected) % {"count": rejected}
    if not waiting:
        return text
    left = ngettext("%(count)s part still waits.", "%(count)s parts still wait.", waiting) % {"count": waiting}
    return f"{text} {left}".strip()

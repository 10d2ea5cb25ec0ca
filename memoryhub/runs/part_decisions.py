"""Decisions about the parts of a held change, as forms send them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.held_changes import hunks_of
from memoryhub.permissions import by_person
from memoryhub.runs.change_parts import ACCEPT, REJECT
from memoryhub.runs.review import approve, decide_parts, reject
from sessions_app.models import AuditRecord

MAX_REASON = 500


def decide_posted(request: HttpRequest, change: HeldChange) -> tuple[str, int]:
    """Decide a change by the form's ``decision-N`` of each part, its ``all``, or its ``text``.

    Returns a message, and how many parts without a decision still wait. Raises Conflict, RunNotFitting, Invalid.
    """
    post = request.POST
    reason, by, user = post.get("reason", "")[:MAX_REASON], by_person(request), request.user
    if "text" in post:
        text = post["text"].replace("\r\n", "\n")
        approve(change, by=by, user=user, text=text, reason=reason)  # type: ignore[arg-type]
        return _accepted(change), 0
    if post.get("all") == REJECT:
        reject(change, by=by, user=user, reason=reason)  # type: ignore[arg-type]
        return gettext("Change rejected. The document is unchanged."), 0
    numbers = [hunk.number for hunk in hunks_of(change)]
    if not numbers or not any(name == "all" or name.startswith("decision") for name in post):
        approve(change, by=by, user=user, reason=reason)  # type: ignore[arg-type]
        return _accepted(change), 0
    chosen = {number: post.get("all") or post.get(f"decision-{number}", "") for number in numbers}
    accepted = [number for number in numbers if chosen[number] == ACCEPT]
    rejected = [number for number in numbers if chosen[number] == REJECT]
    waiting = decide_parts(change, accepted=accepted, rejected=rejected, by=by, user=user, reason=reason)  # type: ignore[arg-type]
    return _message(change, len(accepted), len(numbers), waiting), waiting


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


def _message(change: HeldChange, accepted: int, total: int, waiting: int) -> str:
    if accepted == total:
        return _accepted(change)
    if not accepted and not waiting:
        return gettext("Change rejected. The document is unchanged.")
    if accepted:
        text = gettext("%(accepted)s of %(total)s changes accepted into %(name)s.")
        text = text % {"accepted": accepted, "total": total, "name": change.document.name}
    else:
        rejected = total - waiting
        text = ngettext("%(count)s change rejected.", "%(count)s changes rejected.", rejected) % {"count": rejected}
    if not waiting:
        return text
    left = ngettext("%(count)s part still waits.", "%(count)s parts still wait.", waiting) % {"count": waiting}
    return f"{text} {left}"

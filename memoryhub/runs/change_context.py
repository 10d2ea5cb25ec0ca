"""The context of ``runs/change_parts.html``, for the page of a held change and the inbox."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.outside_edits import SYNC
from memoryhub.lib.document_size import is_oversize
from memoryhub.permissions import EDITOR, has_role, log_page_access
from memoryhub.runs.change_parts import change_parts
from sessions_app.services.access_log import seen_revision


def change_context(request: HttpRequest, change: HeldChange) -> dict[str, Any]:
    """Return a held change with its parts, and log that its texts were read."""
    texts = [revision.content for revision in (change.base, change.ours) if revision]
    is_cut = any(is_oversize(text) for text in (*texts, change.proposed))
    numbers = {revision.number for revision in (change.base, change.ours) if revision}
    seen = [seen_revision(change.document_id, number) for number in sorted(numbers)]
    log_page_access(request, change.workspace, "document.read", seen)
    is_pending = change.status == HeldChange.Status.PENDING
    parts = [] if is_cut else change_parts(change, request.POST)
    return {
        "change": change,
        "parts": parts,
        "is_cut": is_cut,
        "flags": [] if any(part.is_risky for part in parts) else change.findings,
        "is_of_file": change.author_kind == SYNC.kind,
        "has_risky": bool(change.findings) or any(part.is_risky for part in parts),
        "is_whole_run": bool(change.run and change.run.status == "held"),
        "history": change.run.proposal.get("history", "") if change.run else "",
        "may_decide": is_pending and has_role(request.user, change.workspace, EDITOR),
    }

"""The review inbox and the page of a held change."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldChange, HeldRow
from knowledge_app.services.documents.held_changes import hunks_of
from knowledge_app.services.documents.revisions import record_reveal
from memoryhub.lib.document_size import is_oversize, shown_part
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.htmx import render_page
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.lib.pagination import keyset_page, parse_ints
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role, log_page_access
from memoryhub.runs.flagged_parts import parts_with_warnings
from memoryhub.runs.review import approve, reject
from memoryhub.runs.views.held_rows import held_rows
from memoryhub.runs.views.review_bulk import ACTIONS, pending_changes
from sessions_app.services.access_log import seen_revision

MAX_REASON = 500


def inbox(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    is_decided = request.GET.get("state") == "decided"
    changes = HeldChange.objects.filter(workspace=workspace).select_related("document", "run", "decided_by")
    pending = pending_changes(workspace).select_related("document", "run", "decided_by")
    shown = changes.exclude(status=HeldChange.Status.PENDING) if is_decided else pending
    held_count = HeldRow.objects.filter(workspace=workspace).waiting().count()
    context = {
        "workspace": workspace,
        "page": keyset_page(shown, order=("-id",), params=request.GET),
        "is_decided": is_decided,
        "pending_count": pending.count(),
        "held_rows": held_rows(request, workspace) if held_count and not is_decided else [],
        "held_count": held_count,
        "actions": ACTIONS,
        "may_edit": has_role(request.user, workspace, EDITOR) and not is_decided,
        "oldest": pending.order_by("id").first(),
        "may_decide": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "runs/review.html", context, fragment="inbox")


def held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    change = _find(request, slug, pk)
    ours = change.ours.content if change.ours else ""
    texts = [
        (gettext("Base"), change.base.content if change.base else ""),
        (gettext("Current"), ours),
        (gettext("Proposed"), change.proposed),
    ]
    is_cut = any(is_oversize(text) for _label, text in texts)
    hunks = [
        (hunk, [masked(line) for line in hunk.old], [masked(line) for line in hunk.new], warnings)
        for hunk, warnings in ([] if is_cut else parts_with_warnings(change))
    ]
    numbers = {revision.number for revision in (change.base, change.ours) if revision}
    seen = [seen_revision(change.document_id, number) for number in sorted(numbers)]
    log_page_access(request, change.workspace, "document.read", seen)
    context = {
        "workspace": change.workspace,
        "change": change,
        "hunks": hunks,
        "texts": [(label, masked(shown_part(text))) for label, text in texts],
        "is_whole_run": bool(change.run and change.run.status == "held"),
        "history": change.run.proposal.get("history", "") if change.run else "",
        "may_decide": change.status == HeldChange.Status.PENDING and has_role(request.user, change.workspace, EDITOR),
    }
    if context["may_decide"] and change.ours and has_secrets(change.proposed):  # its text can be edited on the page
        record_reveal(by_person(request), change.document, change.ours)
    return render_page(request, "runs/held_change.html", context)


def _find(request: HttpRequest, slug: str, pk: int, *, role: str = "viewer") -> HeldChange:
    workspace = get_workspace(request, slug, role=role)
    rows = HeldChange.objects.select_related(
        "workspace", "document", "base", "ours", "decided_by", "run", "run__session", "run__workspace"
    )
    found: HeldChange = get_object_or_404(rows, workspace=workspace, pk=pk)
    return found


@require_POST
def approve_held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Accept the selected parts, the edited text, or, without either, the whole change."""
    change = _find(request, slug, pk, role=EDITOR)
    text = request.POST["text"].replace("\r\n", "\n") if "text" in request.POST else None
    chosen = parse_ints(request.POST.getlist("part"))
    hunks = chosen if "parts" in request.POST and text is None else None
    if hunks == []:
        messages.error(request, gettext("Select at least one part, or reject the change."))
        return redirect("held-change", slug, pk)
    part_count = len(hunks_of(change)) if hunks else 0
    try:
        approve(
            change,
            by=by_person(request),
            user=request.user,  # type: ignore[arg-type]
            hunks=hunks,
            text=text,
            reason=request.POST.get("reason", "")[:MAX_REASON],
        )
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect("held-change", slug, pk)
    messages.success(request, _accepted_text(change, hunks, part_count))
    return redirect("documents:document", slug, change.document_id)


def _accepted_text(change: HeldChange, hunks: list[int] | None, part_count: int) -> str:
    name = change.document.name
    if hunks is None or len(hunks) >= part_count:
        return gettext("Change accepted into %(name)s.") % {"name": name}
    text = gettext("%(accepted)s of %(total)s changes accepted into %(name)s.")
    return text % {"accepted": len(hunks), "total": part_count, "name": name}


@require_POST
def reject_held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    change = _find(request, slug, pk, role=EDITOR)
    try:
        reject(
            change,
            by=by_person(request),
            user=request.user,  # type: ignore[arg-type]
            reason=request.POST.get("reason", "")[:MAX_REASON],
        )
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect("held-change", slug, pk)
    messages.success(request, gettext("Change rejected. The document is unchanged."))
    return redirect("review", slug)

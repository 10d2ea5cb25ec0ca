from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldChange
from knowledge_app.services.outside import CannotDecide, decide_held_change
from knowledge_app.views.memory import show_invisible
from memoryhub.lib.diff import diff_lines
from memoryhub.lib.htmx import render_page
from sessions_app.access import get_workspace, has_role
from sessions_app.models import Membership

EDITOR = Membership.Role.EDITOR


def held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    rows = HeldChange.objects.select_related("document", "base", "ours", "decided_by")
    change = get_object_or_404(rows, workspace=workspace, pk=pk)
    ours = change.ours.content if change.ours else ""
    texts = [
        ("What the file held before", change.base.content if change.base else ""),
        ("What the hub has", ours),
        ("What the file holds now", change.proposed),
    ]
    context = {
        "workspace": workspace,
        "change": change,
        "diff": diff_lines(show_invisible(ours), show_invisible(change.proposed)),
        "texts": [(label, show_invisible(text)) for label, text in texts],
        "may_decide": change.status == HeldChange.Status.PENDING and has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge_app/held_change.html", context)


@require_POST
def approve_held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _decide(request, slug, pk, approve=True)


@require_POST
def reject_held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _decide(request, slug, pk, approve=False)


def _decide(request: HttpRequest, slug: str, pk: int, *, approve: bool) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    change = get_object_or_404(HeldChange.objects.select_related("workspace", "ours"), workspace=workspace, pk=pk)
    try:
        decide_held_change(change, approve=approve, user=request.user, now=timezone.now())  # type: ignore[arg-type]
    except CannotDecide as error:
        messages.error(request, error.message)
        return redirect("knowledge:held-change", slug, pk)
    messages.success(request, "The file's text is taken." if approve else "The document stays as it is.")
    return redirect("knowledge:document", slug, change.document_id)

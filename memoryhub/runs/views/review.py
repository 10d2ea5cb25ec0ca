"""The page of a held change, and its decisions."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.outside_edits import SYNC
from knowledge_app.services.documents.revisions import record_reveal
from knowledge_app.services.documents.undone_decisions import DECIDED, undo_decision
from knowledge_app.services.rows.held_row_decisions import undo_approval
from memoryhub.lib.document_size import shown_part
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_ints
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.lib.validation import MAX_REASON
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role
from memoryhub.runs.change_context import change_context
from memoryhub.runs.part_decisions import decide_posted, report_posted, undo_url
from memoryhub.runs.review import reject
from memoryhub.runs.views.review_bulk import MAX_AT_ONCE
from sessions_app.models import AuditRecord

SHOWN_TEXTS = 30_000  # characters of the whole texts that a page shows without being asked


def review(request: HttpRequest, slug: str) -> HttpResponse:
    """Redirect from the former list of held changes, which are in the inbox."""
    get_workspace(request, slug)
    if request.GET.get("state") == "decided":
        return redirect("decided-changes", slug)
    return redirect(f"{reverse('inbox', args=[slug])}?kind=change")


def held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _change_page(request, _find(request, slug, pk))


def _change_page(request: HttpRequest, change: HeldChange, *, status: int = 200) -> HttpResponse:
    """Return the page of a change, with the choices and the text of a form that couldn't be carried out."""
    is_of_file = change.author_kind == SYNC.kind
    texts = [
        (gettext("Last synced") if is_of_file else gettext("Base"), change.base.content if change.base else ""),
        (gettext("The hub's text") if is_of_file else gettext("Current"), change.ours.content if change.ours else ""),
        (gettext("The agent's text") if is_of_file else gettext("Proposed"), change.proposed),
    ]
    part = "texts" if "texts" in request.GET else ""
    are_shown = part or sum(len(text) for _, text in texts) <= SHOWN_TEXTS
    context = change_context(request, change)
    may_undo = change.status in DECIDED and has_role(request.user, change.workspace, EDITOR)
    context |= {
        "workspace": change.workspace,
        "undo_url": undo_url([change]) if may_undo else "",
        "texts": [(label, masked(shown_part(text))) for label, text in texts] if are_shown else [],
        "edited": request.POST.get("text"),
        "comment": request.POST.get("reason", ""),
    }
    is_page = not (part and request.htmx)  # type: ignore[attr-defined]
    if (
        is_page and context["may_decide"] and change.ours and has_secrets(change.proposed)
    ):  # its text can be edited there
        record_reveal(by_person(request), change.document, change.ours)
    return render_page(request, "runs/held_change.html", context, fragment=part, status=status)


@require_POST
def undo_decisions(request: HttpRequest, slug: str) -> HttpResponse:
    """Undo the decisions on the changes and rows of the query string, the latest first, and redirect to ``next``."""
    workspace = get_workspace(request, slug, role=EDITOR)
    pks, approvals = (parse_ints(request.GET.getlist(name))[:MAX_AT_ONCE] for name in ("change", "approval"))
    decided: list[HeldChange | AuditRecord] = [
        *HeldChange.objects.filter(workspace=workspace, pk__in=pks).order_by("-decided_at", "-pk"),
        *AuditRecord.objects.filter(workspace=workspace, pk__in=approvals, action="row.approved").order_by("-pk"),
    ]
    undone = 0
    for one in decided:
        try:
            if isinstance(one, HeldChange):
                undo_decision(one, by=by_person(request))
            else:
                undo_approval(one, by=by_person(request))
        except MemoryHubError as error:
            messages.error(request, gettext("Not undone: %(reason)s") % {"reason": error.message})
            break
        undone += 1
    if undone:
        text = ngettext(
            "Undone. The change waits in the inbox again.",
            "Undone. %(count)s changes wait in the inbox again.",
            undone,
        )
        messages.success(request, text % {"count": f"{undone:,}"})
    back = request.POST.get("next", "")
    is_own = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if is_own else reverse("inbox", args=[slug]))


def _find(request: HttpRequest, slug: str, pk: int, *, role: str = "viewer") -> HeldChange:
    workspace = get_workspace(request, slug, role=role)
    rows = HeldChange.objects.select_related(
        "workspace", "document", "base", "ours", "decided_by", "run", "run__session", "run__workspace"
    )
    found: HeldChange = get_object_or_404(rows, workspace=workspace, pk=pk)
    return found


@require_POST
def approve_held_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Accept or reject the parts of a change, accept an edited text, or, without either, the whole change."""
    change = _find(request, slug, pk, role=EDITOR)
    try:
        posted = decide_posted(request, change)
    except MemoryHubError as error:
        messages.error(request, error.message)
        change = _find(request, slug, pk)
        if change.status != HeldChange.Status.PENDING:
            return redirect("held-change", slug, pk)
        return _change_page(request, change, status=422)
    report_posted(request, change, posted)
    rest = posted.decided.rest
    if posted.decided.stale and rest:
        return redirect("held-change", slug, rest.pk)
    return redirect("inbox", slug) if rest else redirect("documents:document", slug, change.document_id)


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
    text = gettext("Change rejected. The document is unchanged.")
    messages.success(request, text, extra_tags=undo_url([change]))
    return redirect("inbox", slug)

"""One fact: where it came from, its revisions, readers and near-duplicates."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from knowledge_app.models import Fact
from knowledge_app.services.documents.fact_edits import withdraw_facts
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.documents.views.documents import delivery_context
from memoryhub.documents.views.facts import flash_revised
from memoryhub.edit_responses import answer_edit
from memoryhub.lib.document_size import shown_fact
from memoryhub.lib.errors import Invalid, MemoryHubError, NotFound
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.masked_text import masked
from memoryhub.origins.explanation import explain, find_fact, turns_of
from memoryhub.permissions import by_person, get_workspace, has_role, log_page_access
from sessions_app.models import Membership, Run
from sessions_app.services.access_log import seen_entries, seen_rows

EDITS = ("pin", "unpin", "verify")


def fact(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    try:
        found = find_fact(workspace, pk)
    except NotFound as error:
        raise Http404 from error
    explanation = explain(found)
    shown = [pk, *(other.pk for other, _ratio in explanation.duplicates)]
    log_page_access(
        request, workspace, "facts.read", seen_rows("facts", shown) + seen_entries(explanation.seen_entries)
    )
    context = {
        "workspace": workspace,
        "document": found.document,
        "fact": found,
        "text": masked(shown_fact(found.text)),
        "explanation": explanation,
        "origins": turns_of(explanation),
        "origin_entries": {origin.source.entry_id for origin in explanation.origins},
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
        "may_forget": has_role(request.user, workspace, Membership.Role.OPERATOR),
    } | delivery_context(request, found.document, found)
    return render_page(request, "documents/fact.html", context)


@require_POST
def curate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Pin, unpin, verify or withdraw a fact."""
    workspace = get_workspace(request, slug, role=Membership.Role.EDITOR)
    action = request.POST.get("action", "")
    try:
        found = find_fact(workspace, pk)
    except NotFound as error:
        raise Http404 from error

    def edit() -> tuple[Run, str]:
        if action not in EDITS:
            raise Invalid(_("Choose an action."), code="nothing_chosen")
        return edit_rows(workspace, "facts", action, [pk], by=by_person(request)), ""

    if action == "withdraw":
        return _withdraw(request, slug, found)
    return answer_edit(request, slug, reverse("documents:fact", args=[slug, pk]), edit)


def _withdraw(request: HttpRequest, slug: str, found: Fact) -> HttpResponse:
    try:
        revised = withdraw_facts(found.document, [found.pk], by=by_person(request))
        flash_revised(request, found.document, revised, "remove", found.pk)
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect("documents:fact", slug, found.pk)

"""The page of documents by person, of all workspaces."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from memoryhub.documents.by_person import documents_by_person
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.validation import clean_text
from memoryhub.permissions import is_hub_operator
from sessions_app.models import Workspace

MAX_NAME = 100


@require_GET
def people_documents(request: HttpRequest) -> HttpResponse:
    """List the memory documents about each person in the workspaces that somebody may read."""
    name = clean_text(request.GET.get("name", "")).strip()[:MAX_NAME]
    people = documents_by_person(Workspace.objects.visible_to(request.user), name)
    context = {"people": people, "name": name, "may_find": is_hub_operator(request.user)}
    return render_page(request, "documents/people.html", context)

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from knowledge_app.models import MemoryDocument
from memoryhub.lib.downloads import markdown_response
from memoryhub.lib.pagination import parse_int
from memoryhub.permissions import get_workspace, log_page_access
from sessions_app.services.access_log import seen_revision


@require_GET
def document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Send a revision of a memory document, by default the latest, as Markdown."""
    workspace = get_workspace(request, slug)
    found = get_object_or_404(MemoryDocument, workspace=workspace, pk=pk)
    number = request.GET.get("revision")
    wanted = {"number": parse_int(number, digits=9) or 0} if number else {"pk": found.head_id}
    revision = get_object_or_404(found.revisions, **wanted)
    log_page_access(request, workspace, "document.read", [seen_revision(found.pk, revision.number)])
    return markdown_response(revision.content, found.name.removesuffix(".md"), is_shown="copy" in request.GET)

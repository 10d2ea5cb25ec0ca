from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.revisions import record_reveal
from memoryhub.lib.http.downloads import markdown_response
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role, log_page_access
from sessions_app.services.access_log import seen_revision


@require_GET
def document(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """Send a revision of a document, by default the latest, as Markdown. Viewers get it with secrets masked."""
    workspace = get_workspace(request, slug)
    found = get_object_or_404(MemoryDocument, workspace=workspace, pk=pk)
    number = request.GET.get("revision")
    wanted = {"number": parse_int(number, digits=9) or 0} if number else {"pk": found.head_id}
    revision = get_object_or_404(found.revisions, **wanted)
    log_page_access(request, workspace, "document.read", [seen_revision(found.pk, revision.number)])
    text = revision.content
    if not has_role(request.user, workspace, EDITOR):
        text = masked(text)
    elif has_secrets(text):
        record_reveal(by_person(request), found, revision)
    return markdown_response(request, text, found.name.removesuffix(".md"))

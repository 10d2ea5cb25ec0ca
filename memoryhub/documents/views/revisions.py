"""The revisions of a document, and the facts that were removed from it."""

from __future__ import annotations

from django.db.models import BooleanField, ExpressionWrapper
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse

from knowledge_app.models import Fact, MemoryRevision
from memoryhub.documents.views.header import document_context, find_document
from memoryhub.lib.document_size import shown_fact
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.lib.masked_text import masked

SHOWN_REMOVED = 50


def revisions(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    document = find_document(request, slug, pk)
    rows = document.revisions.select_related("proposal").defer(
        "content", "raw", "proposal__proposed", "proposal__raw"
    )
    rows = rows.annotate(
        size=Length("content"), is_of_file=ExpressionWrapper(MemoryRevision.OF_FILE, output_field=BooleanField())
    )
    removed = Fact.objects.filter(document=document, died__isnull=False)
    latest = removed.select_related("died").defer("died__content", "died__raw").order_by("-died__number", "line")
    context = document_context(request, document, "history") | {
        "page": keyset_page(rows, order=("-number",), params=request.GET),
        "count": document.revisions.count(),
        "removed": [(fact, masked(shown_fact(fact.text))) for fact in latest[:SHOWN_REMOVED]],
        "removed_count": removed.count(),
    }
    return render_page(request, "documents/revisions.html", context, fragment="revisions")

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from knowledge_app.forms import TermFilterForm
from knowledge_app.models import SemanticGraph, Term, TermRelation
from knowledge_app.views.extra import further_fields
from memoryhub.lib import vectors
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from memoryhub.lib.rings import ring
from sessions_app.access import get_workspace

SHOWN_NEIGHBOURS = 100
PICTURED = 16


@dataclass(frozen=True)
class Neighbour:
    term: Term
    cosine: float | None
    pinned: bool


def terms(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = TermFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = Term.objects.filter(workspace=workspace)
    if begin := wishes.get("begin"):
        rows = rows.filter(text__istartswith=begin)
    living = Q(relations__is_removed=False)
    page = keyset_page(
        rows.annotate(neighbour_count=Count("relations", filter=living)),
        order=("text",),
        params=request.GET,
        size=100,
    )
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "count": rows.count(),
        "is_filtered": any(wishes.values()),
        "graph": SemanticGraph.objects.filter(workspace=workspace).first(),
    }
    return render_page(request, "knowledge_app/terms.html", context, fragment="term-list")


def term(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    found = get_object_or_404(Term, workspace=workspace, pk=pk)
    relations = found.relations.filter(is_removed=False).select_related("related").order_by("rank", "id")
    neighbours = [_neighbour(found, relation) for relation in relations[:SHOWN_NEIGHBOURS]]
    naming = found.related_from.filter(is_removed=False).select_related("term").order_by("term__text")
    shown = {neighbour.term.pk for neighbour in neighbours}
    picture = [
        (neighbour.term.text[:24], reverse("knowledge:term", args=[slug, neighbour.term.pk]), neighbour.cosine)
        for neighbour in neighbours[:PICTURED]
    ]
    context = {
        "workspace": workspace,
        "term": found,
        "dimensions": len(bytes(found.embedding)) // 4,
        "neighbours": neighbours,
        "naming": [relation.term for relation in naming[:SHOWN_NEIGHBOURS] if relation.term_id not in shown],
        "nodes": ring(picture),
        "fields": further_fields(found),
    }
    return render_page(request, "knowledge_app/term.html", context)


def _neighbour(found: Term, relation: TermRelation) -> Neighbour:
    """Compare two embeddings, where one model made both."""
    one, other = bytes(found.embedding), bytes(relation.related.embedding)
    is_same_kind = found.fingerprint and found.fingerprint == relation.related.fingerprint
    comparable = is_same_kind and len(one) == len(other) > 0
    cosine = vectors.cosine(vectors.unpack(one), vectors.unpack(other)) if comparable else relation.cosine
    return Neighbour(relation.related, cosine, relation.pinned)

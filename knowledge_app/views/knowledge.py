from __future__ import annotations

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse

from knowledge_app.forms import KnowledgeFilterForm
from knowledge_app.models import KnowledgeEntry
from knowledge_app.views.extra import Fields, with_further_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from sessions_app.access import get_workspace

ORDER = ("-access_count", "-id")
SHOWN_EACH = 20  # of a category, before it is asked for


def knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    """All categories in Grip's order of priority, the most used first; one category pages by key."""
    workspace = get_workspace(request, slug)
    form = KnowledgeFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    entries = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None)
    if text := wishes.get("q"):
        entries = entries.annotate(tag_text=Cast("tags", TextField())).filter(
            Q(content__icontains=text) | Q(tag_text__icontains=text) | Q(source__icontains=text)
        )
    chosen = wishes.get("category")
    page = keyset_page(entries.filter(category=chosen), order=ORDER, params=request.GET) if chosen else None
    totals = dict(entries.order_by().values_list("category").annotate(Count("id")))
    context = {
        "workspace": workspace,
        "form": form,
        "chosen": chosen,
        "is_filtered": any(wishes.values()),
        "count": totals.get(chosen, 0) if chosen else sum(totals.values()),
        "page": page,
        "entries": with_further_fields(page.rows) if page else [],
        "groups": [] if chosen else _groups(entries, totals),
        "chosen_label": KnowledgeEntry.Category(chosen).label if chosen else "",
    }
    return render_page(request, "knowledge_app/knowledge.html", context, fragment="knowledge-list")


def _groups(
    entries: QuerySet[KnowledgeEntry], totals: dict[str, int]
) -> list[tuple[KnowledgeEntry.Category, int, list[tuple[KnowledgeEntry, Fields]]]]:
    """Return each category with its count and its first rows: one query for each, five in all."""
    return [
        (
            category,
            totals.get(category.value, 0),
            with_further_fields(entries.filter(category=category).order_by(*ORDER)[:SHOWN_EACH]),
        )
        for category in KnowledgeEntry.Category
    ]

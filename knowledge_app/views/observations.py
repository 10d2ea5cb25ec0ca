from __future__ import annotations

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse

from knowledge_app.forms import ObservationFilterForm
from knowledge_app.models import Observation
from knowledge_app.views.extra import Fields, with_further_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from sessions_app.access import get_workspace

SHOWN_EACH = 25


def observations(request: HttpRequest, slug: str) -> HttpResponse:
    """Findings, insights and lessons in three columns; one kind alone pages by key."""
    workspace = get_workspace(request, slug)
    form = ObservationFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = Observation.objects.filter(workspace=workspace)
    if not wishes.get("withdrawn"):
        rows = rows.filter(withdrawn_at=None)
    if text := wishes.get("q"):
        rows = rows.filter(Q(content__icontains=text) | Q(source__icontains=text))
    chosen = wishes.get("category")
    totals = dict(rows.order_by().values_list("category").annotate(Count("id")))
    page = keyset_page(rows.filter(category=chosen), order=("-id",), params=request.GET) if chosen else None
    context = {
        "workspace": workspace,
        "form": form,
        "chosen": chosen,
        "chosen_label": Observation.Category(chosen).label if chosen else "",
        "is_filtered": any(wishes.values()),
        "count": totals.get(chosen, 0) if chosen else sum(totals.values()),
        "columns": [] if chosen else _columns(rows, totals),
        "page": page,
        "rows": with_further_fields(page.rows) if page else [],
    }
    return render_page(request, "knowledge_app/observations.html", context, fragment="observation-list")


def _columns(
    rows: QuerySet[Observation], totals: dict[str, int]
) -> list[tuple[Observation.Category, int, list[tuple[Observation, Fields]]]]:
    """Return each kind with its count and its newest rows: one query for each, three in all."""
    return [
        (
            category,
            totals.get(category.value, 0),
            with_further_fields(rows.filter(category=category).order_by("-id")[:SHOWN_EACH]),
        )
        for category in Observation.Category
    ]

from __future__ import annotations

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse

from knowledge_app.forms import ObservationFilterForm
from knowledge_app.models import Observation
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from sessions_app.access import get_workspace

SHOWN_EACH = 25


def observations(request: HttpRequest, slug: str) -> HttpResponse:
    """Findings, insights and lessons in three columns; one kind alone pages by key."""
    workspace = get_workspace(request, slug)
    form = ObservationFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = Observation.objects.filter(workspace=workspace, withdrawn_at=None)
    if text := wishes.get("q"):
        rows = rows.filter(Q(content__icontains=text) | Q(source__icontains=text))
    chosen = wishes.get("category")
    totals = dict(rows.order_by().values_list("category").annotate(Count("id")))
    columns = [
        (category, totals.get(category.value, 0), list(rows.filter(category=category).order_by("-id")[:SHOWN_EACH]))
        for category in Observation.Category
    ]
    context = {
        "workspace": workspace,
        "form": form,
        "chosen": chosen,
        "chosen_label": Observation.Category(chosen).label if chosen else "",
        "is_filtered": any(wishes.values()),
        "count": totals.get(chosen, 0) if chosen else sum(totals.values()),
        "columns": columns,
        "page": keyset_page(rows.filter(category=chosen), order=("-id",), params=request.GET) if chosen else None,
    }
    return render_page(request, "knowledge_app/observations.html", context, fragment="observation-list")

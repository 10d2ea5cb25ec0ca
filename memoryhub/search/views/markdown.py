from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import override
from django.views.decorators.http import require_GET

from memoryhub.lib.http.downloads import markdown_response
from memoryhub.lib.text import as_markdown
from memoryhub.search.views.access_records import log_search_results
from memoryhub.search.views.rows import ResultRow
from memoryhub.search.views.search import results_of
from memoryhub.search.views.search_params import parse_search_params, search_place


@require_GET
def search(request: HttpRequest, slug: str | None = None) -> HttpResponseBase:
    """Return a page of search results as Markdown, each with a link to its row."""
    place = search_place(request, slug)
    asked = parse_search_params(request.GET, place)
    with override("en"):  # as files are, whoever reads them
        results = results_of(place, asked, asked.query(timezone.now()), request.GET.get("after", ""))
        rows = [_passage(request, row) for row in results.rows]
    log_search_results(request, place, {"results": results})
    text = as_markdown.passages(f"Search: {asked.q or asked.kind}", rows)
    name = f"search-{place.workspace.slug if place.workspace else 'hub'}"
    return markdown_response(request, text, name)


def _passage(request: HttpRequest, row: ResultRow) -> as_markdown.Passage:
    at = [as_markdown.format_time(row.at, timezone.get_current_timezone())] if row.at else []
    about = " · ".join([str(row.label), *([f"in {row.where}"] if row.where else []), *at])
    text = f"{'… ' * row.passage.has_before}{''.join(piece for piece, _ in row.pieces)}{' …' * row.passage.has_after}"
    return as_markdown.Passage(row.title, request.build_absolute_uri(row.url), about, text)

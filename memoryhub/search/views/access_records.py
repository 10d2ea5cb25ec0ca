"""Access-log records of what a search showed or exported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest

from knowledge_app.models import MemoryDocument
from memoryhub.permissions import log_page_access
from memoryhub.search import KINDS
from memoryhub.search.grip import GripHit
from memoryhub.search.shown_rows import seen_results
from memoryhub.search.views.search_params import Place
from sessions_app.models import Workspace


def log_search_results(request: HttpRequest, place: Place, context: Mapping[str, Any]) -> None:
    """Log the rows on a page of results, including Grip's lines."""
    shown: dict[Workspace, list[dict[str, Any]]] = {}
    for row in context["results"].rows if "results" in context else []:
        seen = {"kind": row.kind.name, "id": row.pk, "message_id": row.message_pk}
        shown.setdefault(row.workspace, []).append(seen)
    if place.workspace and "grip_hits" in context:
        shown[place.workspace] = _of_grip(context["grip_hits"])
    for workspace, rows in shown.items():
        log_page_access(request, workspace, "search.read", seen_results(rows))


def _of_grip(hits: Sequence[GripHit]) -> list[dict[str, Any]]:
    """Return the rows behind Grip's lines; a line that isn't a fact counts as its document."""
    lines = {hit.id for hit in hits if hit.id and hit.kind == "memory" and not hit.is_fact}
    heads = MemoryDocument.objects.filter(pk__in=lines, head__isnull=False).values_list("head", flat=True)
    rows = [hit for hit in hits if hit.id and (hit.is_fact or hit.kind != "memory")]
    return [{"kind": hit.kind, "id": hit.id} for hit in rows] + [{"kind": "document", "id": pk} for pk in heads]


def log_export(request: HttpRequest, keys: Mapping[str, Sequence[int]]) -> None:
    """Log exported rows, by kind, in the workspace of each."""
    found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for kind, pks in keys.items():
        places = KINDS[kind].model._default_manager.filter(pk__in=pks).values_list("pk", KINDS[kind].workspace)
        for pk, workspace in places:
            found[workspace].append({"kind": kind, "id": pk})
    for workspace in Workspace.objects.filter(pk__in=found):
        log_page_access(request, workspace, "matches.exported", seen_results(found[workspace.pk]))

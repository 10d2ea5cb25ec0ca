"""Search, extraction and runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings

from memoryhub.agents.api_tokens import Caller, require
from memoryhub.agents.operations.coverage import covers_query
from memoryhub.agents.operations.reading import readable_scope, record_results
from memoryhub.agents.operations.serving import served_run
from memoryhub.agents.operations.writing import writes
from memoryhub.forgetting.additions import remembered_text
from memoryhub.lib.errors import Invalid, NotFound
from memoryhub.lib.http.pagination import rows_after
from memoryhub.lib.search.query import parse
from memoryhub.runs.extract import request_extraction
from memoryhub.search import KINDS
from memoryhub.search.listing import newest
from memoryhub.search.results import Question, answer, answer_as_grid, row_document
from sessions_app.models import Run
from sessions_app.services.audit import By

Document = dict[str, Any]
RECENT = ("memory", "knowledge", "observation", "key_value", "history", "summary", "session")


def search(
    caller: Caller,
    text: str,
    *,
    kinds: Sequence[str] = (),
    limit: int = 20,
    mode: str = "all",
    own_sessions: bool = False,
    only_covering: bool = False,
    whole: bool = False,
    as_typed: bool = False,
    now: datetime,
) -> Document:
    """Search what the token may read, best match first, as the command ``search`` does, without held rows.

    ``mode``: "all", or "grid" for key-values that contain the text. ``only_covering``: leave out rows that contain
    too little of the query (see ``coverage``). ``whole``: take longer rather than leave results out.
    ``as_typed``: correct no words. Raises Invalid.
    """
    require(caller, "read")
    _check_kinds(kinds)
    if mode == "grid":
        found = answer_as_grid(caller.workspace, text, limit=limit)
    else:
        question = Question(text, kinds=tuple(kinds), limit=limit, whole=whole, as_typed=as_typed)
        found = answer(readable_scope(caller, own_sessions=own_sessions), question, now=now, explain=only_covering)
        if only_covering:
            found["results"] = [
                one for one in found["results"] if "explanation" not in one or covers_query(one["explanation"])
            ]
    record_results(caller, "search.read", found["results"], now)
    return found


def recent(
    caller: Caller, since: str, *, kinds: Sequence[str] = (), limit: int = 50, now: datetime
) -> list[Document]:
    """Return what was added or changed since a day, newest first. Raises Invalid.

    ``since``: as in the search box: today, yesterday, monday, 7d or 2026-01-31, in the hub's time zone. ``kinds``: by
    default RECENT.
    """
    require(caller, "read")
    _check_kinds(kinds)
    query = parse(f"after:{''.join(since.split())}", now=now, zone=ZoneInfo(settings.TIME_ZONE))
    if query.terms or not query.filters:
        raise Invalid("since must be a day such as today, yesterday, monday, 7d or 2026-01-31.", code="bad_since")
    found, _ = newest(readable_scope(caller), query, kinds=kinds or RECENT, limit=limit)
    rows = [row_document(one.kind, one.row, for_agent=True) for one in found]
    record_results(caller, "search.read", rows, now)
    return rows


def _check_kinds(kinds: Sequence[str]) -> None:
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise Invalid(f"Unknown kind {unknown[0]}: use {', '.join(KINDS)}.", code="unknown_kind")


@writes
def extract(caller: Caller, text: str, *, source: str = "", now: datetime) -> Document:
    """Request the extraction of observations from a text; a worker calls the model. Raises Invalid."""
    require(caller, "consolidate")
    if not text.strip():
        raise Invalid("The text is empty.", code="nothing_to_extract")
    text, source = (remembered_text(caller.workspace, one) for one in (text, source))
    run = request_extraction(caller.workspace, text, source=source, by=By(caller.actor, now))
    return _run(run)


def list_runs(
    caller: Caller, *, kind: str = "", status: str = "", cursor: str = "", limit: int = 50
) -> tuple[list[Document], str | None]:
    """Return runs, latest first, and the next cursor."""
    require(caller, "read")
    rows = Run.objects.filter(workspace=caller.workspace).select_related("workspace", "session")
    rows = rows.filter(kind=kind) if kind else rows
    rows = rows.filter(status=status) if status else rows
    found, next_cursor = rows_after(rows, order=("-id",), cursor=cursor, size=limit)
    return [_run(row) for row in found], next_cursor


def show_run(caller: Caller, pk: int) -> Document:
    """Return a run. Raises NotFound."""
    require(caller, "read")
    run = Run.objects.filter(workspace=caller.workspace, pk=pk).select_related("workspace", "session").first()
    if run is None:
        raise NotFound(f"This workspace has no run {pk}.")
    return _run(run)


def _run(run: Run) -> Document:
    """Return a run as JSON, without a text that waits for a decision or was rejected."""
    return served_run(run) | ({} if run.status == Run.Status.DONE else {"text": None})

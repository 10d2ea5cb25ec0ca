"""Search, extraction and runs over REST; and who one is."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status

from memoryhub.agents.operations import queries as flow
from memoryhub.api import requests as given
from memoryhub.api import responses as out
from memoryhub.api.auth import ANY, CONSOLIDATE, READ, caller_of
from memoryhub.api.conversations import run_answer
from memoryhub.api.parameters import Cursor, Kinds, Limit, RowId
from sessions_app.models import Run

router = Router(tags=["Search and runs"])


@router.get("/me", response=out.Me, auth=ANY)
def show_me(request: HttpRequest) -> Any:
    """What this token is good for."""
    token = caller_of(request).token
    return {
        "name": token.name,
        "scopes": token.scopes,
        "workspace": {"slug": token.workspace.slug, "name": token.workspace.name},
        "expires_at": token.expires_at,
    }


@router.get("/search", response=out.SearchAnswer, auth=READ)
def search(
    request: HttpRequest,
    query: Annotated[str, Query(max_length=512)],
    kinds: Kinds = "",
    limit: Limit = 20,
) -> Any:
    """Everything the workspace keeps, best first: words, "phrases", -exclusions, field:value filters."""
    wanted = kinds.split(",") if kinds else []
    return flow.search(caller_of(request), query, kinds=wanted, limit=limit, now=timezone.now())


@router.post("/extract", response={202: out.RunAnswer}, auth=CONSOLIDATE)
def extract(request: HttpRequest, body: given.TextToExtract) -> Any:
    """Ask for the observations in an output: a worker asks a model; the first 4,000 characters are read."""
    return Status(
        202, run_answer(flow.extract(caller_of(request), body.text, source=body.source, now=timezone.now()))
    )


@router.get("/runs", response=out.Listed[out.RunAnswer], auth=READ)
def list_runs(
    request: HttpRequest,
    kind: Annotated[Run.Kind | None, Query()] = None,
    status: Annotated[Run.Status | None, Query()] = None,
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """Runs of the workspace, the latest first."""
    items, further = flow.list_runs(
        caller_of(request), kind=kind or "", status=status or "", cursor=cursor, limit=limit
    )
    return {"items": [run_answer(item) for item in items], "next": further}


@router.get("/runs/{pk}", response=out.RunAnswer, auth=READ)
def show_run(request: HttpRequest, pk: RowId) -> Any:
    """How a run stands."""
    return run_answer(flow.show_run(caller_of(request), pk))

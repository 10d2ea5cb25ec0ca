"""Search, extraction, runs and the token's own data over REST."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status

from memoryhub.agents.operations import queries as operations
from memoryhub.agents.skill import skill_text
from memoryhub.api import requests, responses
from memoryhub.api.auth import ANY, CONSOLIDATE, READ, caller_of
from memoryhub.api.conversations import run_answer
from memoryhub.api.parameters import Cursor, Kinds, Limit, RowId
from sessions_app.models import Run

router = Router(tags=["Search and runs"])


@router.get("/me", response=responses.Me, auth=ANY)
def show_me(request: HttpRequest) -> Any:
    """Show this token's name, scopes and workspace, and the workspaces that it may read too."""
    caller = caller_of(request)
    token = caller.token
    return {
        "name": token.name,
        "scopes": token.scopes,
        "workspace": {"slug": token.workspace.slug, "name": token.workspace.name},
        "reads": [{"slug": shared.slug, "name": shared.name} for shared in caller.readable[1:]],
        "expires_at": token.expires_at,
    }


@router.get("/skill", response=responses.SkillAnswer, auth=ANY)
def show_skill(request: HttpRequest) -> Any:
    """Return a skill in Markdown that tells an agent how to use this memory with its token."""
    return {"text": skill_text(caller_of(request).token.scopes)}


@router.get("/search", response=responses.SearchAnswer, auth=READ)
def search(
    request: HttpRequest,
    query: Annotated[str, Query(max_length=512)],
    kinds: Kinds = "",
    limit: Limit = 20,
    mode: Annotated[Literal["all", "grid"], Query(description="grid: keys and values that contain it.")] = "all",
    own_sessions: Annotated[  # noqa: FBT002
        bool, Query(description="Include agents' own sessions: dream, heartbeat, cron.")
    ] = False,
    whole: Annotated[  # noqa: FBT002
        bool, Query(description="Take up to 20 times longer rather than leave results out.")
    ] = False,
    as_typed: Annotated[bool, Query(description="Correct no words.")] = False,  # noqa: FBT002
) -> Any:
    """Search what the token may read, best match first. Words, "phrases", -exclusions and field:value filters."""
    names = kinds.split(",") if kinds else []
    return operations.search(
        caller_of(request),
        query,
        kinds=names,
        limit=limit,
        mode=mode,
        own_sessions=own_sessions,
        whole=whole,
        as_typed=as_typed,
        now=timezone.now(),
    )


@router.post("/extract", response={202: responses.RunAnswer}, auth=CONSOLIDATE)
def extract(request: HttpRequest, body: requests.TextToExtract) -> Any:
    """Request the extraction of observations: a worker sends the first 4,000 characters to a model."""
    return Status(
        202, run_answer(operations.extract(caller_of(request), body.text, source=body.source, now=timezone.now()))
    )


@router.get("/runs", response=responses.Listed[responses.RunAnswer], auth=READ)
def list_runs(
    request: HttpRequest,
    kind: Annotated[Run.Kind | None, Query()] = None,
    status: Annotated[Run.Status | None, Query()] = None,
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """List the workspace's runs, latest first."""
    items, next_cursor = operations.list_runs(
        caller_of(request), kind=kind or "", status=status or "", cursor=cursor, limit=limit
    )
    return {"items": [run_answer(item) for item in items], "next": next_cursor}


@router.get("/runs/{pk}", response=responses.RunAnswer, auth=READ)
def show_run(request: HttpRequest, pk: RowId) -> Any:
    """Show a run."""
    return run_answer(operations.show_run(caller_of(request), pk))

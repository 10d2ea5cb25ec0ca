"""Knowledge, observations, key-values and cached responses over REST."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status

from knowledge_app.services.rows.observations import NewObservation
from memoryhub.agents.operations import knowledge as operations
from memoryhub.api import requests, responses
from memoryhub.api.auth import APPEND, EDIT, READ, caller_of
from memoryhub.api.parameters import Cursor, Limit, RowId, Text

router = Router(tags=["Knowledge, observations, values, cache"])
ValueKey = Annotated[str, Query(min_length=1, max_length=512)]


@router.get("/knowledge", response=responses.Listed[responses.KnowledgeAnswer], auth=READ)
def list_knowledge(
    request: HttpRequest,
    text: Text = "",
    category: Literal["", requests.Category] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """List knowledge entries, latest first. text: only those whose content, tags or source contain it."""
    items, next_cursor = operations.list_knowledge(
        caller_of(request), text=text, category=category, cursor=cursor, limit=limit, now=timezone.now()
    )
    return {"items": items, "next": next_cursor}


@router.post("/knowledge", response={200: responses.KnowledgeAnswer, 201: responses.KnowledgeAnswer}, auth=APPEND)
def add_knowledge(request: HttpRequest, body: requests.NewKnowledge) -> Any:
    """Add an entry: 201 if it is new, 200 if it exists (this counts as another use)."""
    entry, is_new = operations.learn(
        caller_of(request),
        body.content,
        category=body.category,
        source=body.source,
        tags=body.tags,
        now=timezone.now(),
    )
    return Status(201 if is_new else 200, entry)


@router.get("/knowledge/prompt", response=responses.PromptAnswer, auth=READ)
def knowledge_for_prompt(request: HttpRequest, max_chars: Annotated[int, Query(ge=1, le=200_000)] = 2_000) -> Any:
    """Return the entries for a prompt, in Grip's format: by category, most used first."""
    return operations.knowledge_for_prompt(caller_of(request), max_chars=max_chars, now=timezone.now())


@router.get("/knowledge/{pk}", response=responses.KnowledgeAnswer, auth=READ)
def show_knowledge(request: HttpRequest, pk: RowId) -> Any:
    return operations.show_knowledge(caller_of(request), pk, now=timezone.now())


@router.patch(
    "/knowledge/{pk}",
    response={200: responses.KnowledgeChanged, 202: responses.KnowledgeChanged},
    auth=EDIT,
)
def correct_knowledge(request: HttpRequest, pk: RowId, body: requests.KnowledgeChange) -> Any:
    """Change an entry's fields. People can undo the change. 202: it waits until a person approves it."""
    values = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    changed = operations.correct_knowledge(caller_of(request), pk, values, now=timezone.now())
    return Status(202 if changed["run"] else 200, changed)


@router.get("/observations", response=responses.Listed[responses.ObservationAnswer], auth=READ)
def list_observations(
    request: HttpRequest,
    category: Literal["", "finding", "insight", "lesson"] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """List findings, insights and lessons, latest first."""
    items, next_cursor = operations.list_observations(
        caller_of(request), category=category, cursor=cursor, limit=limit, now=timezone.now()
    )
    return {"items": items, "next": next_cursor}


@router.post("/observations", response={201: responses.RememberedAnswer}, auth=APPEND)
def remember(request: HttpRequest, body: requests.NewObservations) -> Any:
    """Store observations. One that resembles a known one is offered to people as its confirmation instead."""
    observations = [NewObservation(one.category, one.content, one.source) for one in body.observations]
    return Status(201, operations.remember(caller_of(request), observations, now=timezone.now()))


@router.get("/recall", response=responses.RecallAnswer, auth=READ)
def recall(
    request: HttpRequest,
    query: Annotated[str, Query(min_length=1, max_length=512)],
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
) -> Any:
    """Return the observations of each category, and the other memories, that best match a query, up to limit each."""
    return operations.recall_for(caller_of(request), query, limit=limit, now=timezone.now())


@router.get("/keys", response=responses.Listed[str], auth=READ)
def list_keys(
    request: HttpRequest,
    prefix: Annotated[str, Query(max_length=512)] = "",
    cursor: Cursor = "",
    limit: Limit = 200,
) -> Any:
    """List the keys in order, without their values."""
    items, next_cursor = operations.list_keys(caller_of(request), prefix=prefix, cursor=cursor, limit=limit)
    return {"items": items, "next": next_cursor}


@router.get("/value", response=responses.ValueAnswer, auth=READ)
def read_value(request: HttpRequest, key: ValueKey) -> Any:
    """Read the value of a key."""
    return operations.read_value(caller_of(request), key, now=timezone.now())


@router.put("/value", response={200: responses.ValueWritten, 202: responses.ValueWritten}, auth=EDIT)
def write_value(request: HttpRequest, key: ValueKey, body: requests.ValueWrite) -> Any:
    """Set the value of a key. Earlier values are kept. 202: it waits until a person approves it."""
    written = operations.set_value(caller_of(request), key, body.value, now=timezone.now())
    return Status(202 if written["run"] else 200, written)


@router.post("/cache/lookup", response=responses.CacheLookup, auth=READ)
def look_up_response(request: HttpRequest, body: requests.CacheQuestion) -> Any:
    """Look up the cached response to a message."""
    return operations.cached_response(caller_of(request), body.message, body.model, now=timezone.now())


@router.put("/cache", response=responses.CacheKept, auth=APPEND, exclude_unset=True)
def keep_response(request: HttpRequest, body: requests.CacheAnswer) -> Any:
    """Cache a model's response to a message."""
    return operations.keep_response(caller_of(request), body.message, body.model, body.response, now=timezone.now())

"""Knowledge, observations, key-values and cached responses over REST."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status

from knowledge_app.services.rows.observations import NewObservation
from memoryhub.agents.operations import knowledge as flow
from memoryhub.api import requests as given
from memoryhub.api import responses as out
from memoryhub.api.auth import APPEND, EDIT, READ, caller_of
from memoryhub.api.parameters import Cursor, Limit, RowId, Text

router = Router(tags=["Knowledge, observations, values, cache"])
ValueKey = Annotated[str, Query(min_length=1, max_length=512)]


@router.get("/knowledge", response=out.Listed[out.KnowledgeAnswer], auth=READ)
def list_knowledge(
    request: HttpRequest,
    text: Text = "",
    category: Literal["", given.Category] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """Knowledge entries, the latest first; with a text, those whose content, tags or source contain it."""
    items, further = flow.list_knowledge(
        caller_of(request), text=text, category=category, cursor=cursor, limit=limit, now=timezone.now()
    )
    return {"items": items, "next": further}


@router.post("/knowledge", response={200: out.KnowledgeAnswer, 201: out.KnowledgeAnswer}, auth=APPEND)
def add_knowledge(request: HttpRequest, body: given.NewKnowledge) -> Any:
    """Add an entry: 201 where it is new; 200 where it is known and counts another use."""
    entry, is_new = flow.learn(
        caller_of(request),
        body.content,
        category=body.category,
        source=body.source,
        tags=body.tags,
        now=timezone.now(),
    )
    return Status(201 if is_new else 200, entry)


@router.get("/knowledge/prompt", response=out.PromptAnswer, auth=READ)
def knowledge_for_prompt(request: HttpRequest, max_chars: Annotated[int, Query(ge=1, le=200_000)] = 2_000) -> Any:
    """The entries that Grip would put into a prompt: by category, within one the most used first."""
    return flow.knowledge_for_prompt(caller_of(request), max_chars=max_chars, now=timezone.now())


@router.get("/knowledge/{pk}", response=out.KnowledgeAnswer, auth=READ)
def show_knowledge(request: HttpRequest, pk: RowId) -> Any:
    return flow.show_knowledge(caller_of(request), pk, now=timezone.now())


@router.patch("/knowledge/{pk}", response=out.KnowledgeAnswer, auth=EDIT)
def correct_knowledge(request: HttpRequest, pk: RowId, body: given.KnowledgeChange) -> Any:
    """Change an entry; what is left out stays, and people can undo it."""
    values = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    return flow.correct_knowledge(caller_of(request), pk, values, now=timezone.now())


@router.get("/observations", response=out.Listed[out.ObservationAnswer], auth=READ)
def list_observations(
    request: HttpRequest,
    category: Literal["", "finding", "insight", "lesson"] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Any:
    """Findings, insights and lessons, the latest first."""
    items, further = flow.list_observations(
        caller_of(request), category=category, cursor=cursor, limit=limit, now=timezone.now()
    )
    return {"items": items, "next": further}


@router.post("/observations", response={201: out.RememberedAnswer}, auth=APPEND)
def remember(request: HttpRequest, body: given.NewObservations) -> Any:
    """Store observations. What is much like a known one is offered to people as a confirmation of that."""
    said = [NewObservation(one.category, one.content, one.source) for one in body.observations]
    return Status(201, flow.remember(caller_of(request), said, now=timezone.now()))


@router.get("/recall", response=out.RecallAnswer, auth=READ)
def recall(
    request: HttpRequest,
    query: Annotated[str, Query(min_length=1, max_length=512)],
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
) -> Any:
    """What observations say on a question, best first, at most ``limit`` of each kind."""
    return flow.recall_for(caller_of(request), query, limit=limit, now=timezone.now())


@router.get("/keys", response=out.Listed[str], auth=READ)
def list_keys(
    request: HttpRequest,
    prefix: Annotated[str, Query(max_length=512)] = "",
    cursor: Cursor = "",
    limit: Limit = 200,
) -> Any:
    """The keys of values, in order, without the values."""
    items, further = flow.list_keys(caller_of(request), prefix=prefix, cursor=cursor, limit=limit)
    return {"items": items, "next": further}


@router.get("/value", response=out.ValueAnswer, auth=READ)
def read_value(request: HttpRequest, key: ValueKey) -> Any:
    """The exact value under an exact key."""
    return flow.read_value(caller_of(request), key, now=timezone.now())


@router.put("/value", response=out.ValueAnswer, auth=EDIT)
def write_value(request: HttpRequest, key: ValueKey, body: given.ValueWrite) -> Any:
    """Set the value of a key; every earlier one is kept."""
    return flow.set_value(caller_of(request), key, body.value, now=timezone.now())


@router.post("/cache/lookup", response=out.CacheLookup, auth=READ)
def look_up_response(request: HttpRequest, body: given.CacheQuestion) -> Any:
    """The response that was kept for a message to a model, while it is fresh."""
    return flow.cached_response(caller_of(request), body.message, body.model, now=timezone.now())


@router.put("/cache", response=out.CacheKept, auth=APPEND)
def keep_response(request: HttpRequest, body: given.CacheAnswer) -> Any:
    """Keep a model's response to a message."""
    return flow.keep_response(caller_of(request), body.message, body.model, body.response, now=timezone.now())

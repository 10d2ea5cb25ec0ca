"""Knowledge, observations, key-values and cached responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from knowledge_app.models import CachedResponse, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.held_rows import held_fields, unheld
from knowledge_app.services.rows import cached_responses as cache
from knowledge_app.services.rows.agent_changes import Waiting, change_entry_as_agent, write_value_as_agent
from knowledge_app.services.rows.key_values import find_key, living
from knowledge_app.services.rows.knowledge import add_knowledge, context_lines, count_access, with_text
from knowledge_app.services.rows.observations import NewObservation, store
from memoryhub.agents.api_tokens import Caller, require
from memoryhub.agents.operations.coverage import covers_query
from memoryhub.agents.operations.reading import readable_scope, record_access, record_results
from memoryhub.agents.operations.writing import writes, writes_checked
from memoryhub.as_json import knowledge_document, observation_document
from memoryhub.forgetting.additions import has_forgotten, refuse_forgotten
from memoryhub.lib.errors import Conflict, LimitExceeded, NotFound
from memoryhub.lib.http.pagination import rows_after
from memoryhub.lib.search.query import parse
from memoryhub.search import find
from memoryhub.search.correcting import correction_notes
from memoryhub.search.recall import MEMORY_KINDS, Recall, Recalled, RecalledMemory, log_recall, recall
from memoryhub.search.results import explanation, row_document
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import By

Document = dict[str, Any]
RECALLED = ("observation", *MEMORY_KINDS)
MAX_OBSERVATIONS = 100  # observations per call


def list_knowledge(
    caller: Caller, *, text: str = "", category: str = "", cursor: str = "", limit: int = 50, now: datetime
) -> tuple[list[Document], str | None]:
    """Return knowledge entries, latest first; with ``text``, those that contain any of its words. No held ones."""
    require(caller, "read")
    rows = unheld(KnowledgeEntry.objects.filter(workspace=caller.workspace, withdrawn_at=None))
    rows = with_text(rows.select_related("hold"), text)
    rows = rows.filter(category=category) if category else rows
    found, next_cursor = rows_after(rows, order=("-id",), cursor=cursor, size=limit)
    record_access(caller, "knowledge.read", seen_rows("knowledge", [row.pk for row in found]), now)
    return [knowledge_document(row) for row in found], next_cursor


def show_knowledge(caller: Caller, pk: int, *, now: datetime) -> Document:
    require(caller, "read")
    entry = _entry(caller, pk)
    count_access(entry, now)
    entry.refresh_from_db()
    record_access(caller, "knowledge.read", seen_rows("knowledge", [entry.pk]), now)
    return knowledge_document(entry)


@writes_checked
def learn(
    caller: Caller, content: str, *, category: str, source: str = "", tags: Sequence[str] = (), now: datetime
) -> tuple[Document, bool]:
    """Add a knowledge entry; return it and whether it is new. A known entry counts another use. Raises Invalid."""
    require(caller, "append")
    by = By(caller.actor, now)
    refuse_forgotten(caller.workspace, content, *tags, source=source)
    added = add_knowledge(caller.workspace, content, category=category, source=source, tags=tags, by=by)
    return knowledge_document(added.entry), added.is_new


@writes_checked
def correct_knowledge(caller: Caller, pk: int, values: dict[str, Any], *, now: datetime) -> Document:
    """Change an entry's category, content, source or tags, or propose it: then ``run`` is the proposal.

    Raises NotFound, KnowledgeExists, Invalid, Conflict.
    """
    require(caller, "edit")
    entry = _entry(caller, pk)
    texts = [values.get("content", ""), values.get("source", ""), *values.get("tags", ())]
    refuse_forgotten(caller.workspace, *texts, source=values.get("source", ""))
    waiting = change_entry_as_agent(entry, values, by=By(caller.actor, now))
    entry = _entry(caller, pk)
    record_access(
        caller, "knowledge.read", seen_rows("knowledge", [entry.pk]), now
    )  # the response shows unchanged fields
    return knowledge_document(entry) | {"run": None} | (_proposed(waiting, values) if waiting else {})


def knowledge_for_prompt(caller: Caller, *, max_chars: int = 2_000, now: datetime) -> Document:
    """Return the entries that Grip would put into a prompt, one per line."""
    require(caller, "read")
    chosen = context_lines(caller.workspace, max_chars=max_chars)
    record_access(caller, "knowledge.read", seen_rows("knowledge", [pk for pk, _ in chosen]), now)
    return {"text": "\n".join(line for _, line in chosen)}


@writes_checked
def remember(caller: Caller, observations: Sequence[NewObservation], *, now: datetime) -> Document:
    """Store observations. ``offered`` lists known ones that people may confirm with them instead.

    Raises Invalid, LimitExceeded.
    """
    require(caller, "append")
    if not 0 < len(observations) <= MAX_OBSERVATIONS:
        raise LimitExceeded(f"Send 1 to {MAX_OBSERVATIONS} observations per call.", code="too_many_at_once")
    for one in observations:
        refuse_forgotten(caller.workspace, one.content, source=one.source)
    stored = store(caller.workspace, observations, by=By(caller.actor, now))
    added = Observation.objects.filter(pk__in=[row.pk for row in stored.added]).select_related("hold").order_by("id")
    return {
        "added": [observation_document(row) for row in added],
        "offered": [{"observation": one.observation_id, "content": one.content} for one in stored.offered],
    }


def list_observations(
    caller: Caller, *, category: str = "", cursor: str = "", limit: int = 50, now: datetime
) -> tuple[list[Document], str | None]:
    require(caller, "read")
    rows = unheld(Observation.objects.filter(workspace=caller.workspace, withdrawn_at=None)).select_related("hold")
    rows = rows.filter(category=category) if category else rows
    found, next_cursor = rows_after(rows, order=("-id",), cursor=cursor, size=limit)
    record_access(caller, "observations.read", seen_rows("observations", [row.pk for row in found]), now)
    return [observation_document(row) for row in found], next_cursor


def recall_for(caller: Caller, query: str, *, limit: int = 5, now: datetime) -> Document:
    """Return the best ``findings``, ``insights``, ``lessons`` and other ``memories``, at most ``limit`` of each."""
    require(caller, "read")
    found = recall(readable_scope(caller), query, now=now, limit=limit)
    log_recall(found, now)
    record_results(caller, "observations.recalled", found.rows, now)
    return found.document


def recall_together(caller: Caller, query: str, *, limit: int = 10, now: datetime) -> Document:
    """Return the best matches among facts, knowledge, observations, values and history as ``results``.

    Each has its ``kind`` (of an observation, the category), ``id``, ``text``, ``session`` and ``occurred_at``. Rows
    that contain too little of the query are left out (see ``coverage``). ``corrected``: the words searched for
    instead of those that no row contains. ``notes``: about these, and that results may be missing.
    """
    require(caller, "read")
    asked = replace(parse(query, now=now), filters=())  # agents send plain words: no field syntax
    found = find(readable_scope(caller), asked, now=now, kinds=RECALLED, limit=limit)
    hits = [hit for hit in found.hits if covers_query(explanation(hit, found))]
    others = [RecalledMemory(hit.kind, hit.row) for hit in hits if not isinstance(hit.row, Observation)]
    learned = [Recalled(hit.row, hit.score) for hit in hits if isinstance(hit.row, Observation)]
    log_recall(Recall({"": learned}, memories=others), now)
    rows = [row_document(hit.kind, hit.row, for_agent=True) for hit in hits]
    record_results(caller, "observations.recalled", rows, now)
    results = [
        row | {"kind": hit.row.category} if isinstance(hit.row, Observation) else row
        for hit, row in zip(hits, rows, strict=True)
    ]
    notes = [*correction_notes(found.corrected), *found.notes]
    return {"results": results, "notes": notes, "corrected": found.corrected}


def list_keys(
    caller: Caller, *, prefix: str = "", cursor: str = "", limit: int = 200
) -> tuple[list[str], str | None]:
    """Return keys with a prefix, in order, without their values (grid's memory_list). No held ones."""
    require(caller, "read")
    rows = unheld(living(caller.workspace))
    rows = rows.filter(key__startswith=prefix) if prefix else rows
    found, next_cursor = rows_after(rows, order=("key", "id"), cursor=cursor, size=limit)
    return [row.key for row in found if row.key.startswith(prefix)], next_cursor  # SQLite ignores case


def read_value(caller: Caller, key: str, *, now: datetime) -> Document:
    """Return the value of a key (grid's memory_read). Raises NotFound, and Conflict if the value is held."""
    require(caller, "read")
    row = find_key(caller.workspace, key)
    if findings := held_fields(row)["findings"]:
        reasons = ", ".join(dict.fromkeys(one["message"] for one in findings))
        text = f"This value waits for a person's review: it {reasons}."
        raise Conflict(text, code="held", findings=findings)
    record_access(caller, "key_value.read", seen_rows("key_values", [row.pk]), now)
    return _value(row)


@writes_checked
def set_value(caller: Caller, key: str, value: str, *, is_json: bool = False, now: datetime) -> Document:
    """Set the value of a key (grid's memory_write), text or JSON text, or propose it: then ``run`` is the proposal.

    Earlier values are kept. Raises Invalid, Conflict.
    """
    require(caller, "edit")
    by = By(caller.actor, now)
    refuse_forgotten(caller.workspace, key, value)
    row, waiting = write_value_as_agent(caller.workspace, key, value, is_json=is_json, by=by)
    return _value(row) | {"run": None} | (_proposed(waiting, {"value": value}) if waiting else {})


def _proposed(waiting: Waiting, values: Document) -> Document:
    """Return what an answer says about a change that waits: its values, and why a person decides."""
    return {**values, "held": True, "findings": waiting.findings, "run": waiting.run.pk}


def cached_response(caller: Caller, message: str, model: str, *, now: datetime) -> Document:
    """Return the cached response to a message, or None if there is no fresh one."""
    require(caller, "read")
    response = cache.look_up(caller.workspace, message, model, now=now)
    if response is not None:
        rows = CachedResponse.objects.filter(workspace=caller.workspace, key=cache.cache_key(message, model))
        record_access(caller, "cached.read", seen_rows("cached", rows.values_list("pk", flat=True)), now)
    return {"hit": response is not None, "response": response}


@writes
def keep_response(caller: Caller, message: str, model: str, response: str, *, now: datetime) -> Document:
    """Cache a response. ``kept`` is false if the cache is off, it contains forgotten content, or it is flagged.

    ``findings``: what the content check flags.
    """
    require(caller, "append")
    if has_forgotten(caller.workspace, message, model, response):
        return {"kept": False, "findings": []}
    if findings := cache.findings_of_response(message[: cache.PREVIEW_CHARS], response):
        return {"kept": False, "findings": findings}
    return {"kept": cache.keep(caller.workspace, message, model, response, now=now) is not None}


def _entry(caller: Caller, pk: int) -> KnowledgeEntry:
    rows = KnowledgeEntry.objects.filter(workspace=caller.workspace, withdrawn_at=None)
    entry = rows.select_related("workspace", "hold").filter(pk=pk).first()
    if entry is None:
        raise NotFound(f"This workspace has no knowledge entry {pk}.")
    return entry


def _value(row: KeyValue) -> Document:
    return {"key": row.key, "value": row.value, "updated_at": row.updated_at, **held_fields(row)}

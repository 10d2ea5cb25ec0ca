"""Import rows that have ids: knowledge entries, observations, key-values and cached responses.

Corrections are kept: if the file changes a field in ``corrected``, the hub's value stays and the report lists it.
Changes of fields that people decided about, and flagged changes, are proposed (``file_changes``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from knowledge_app.models import CachedResponse, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.decisions import FROM_FILES
from knowledge_app.services.held_rows import AGENTS_FILE, LINKS, hold_imported
from knowledge_app.services.rows.cached_responses import findings_of_response, invalidated
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.file_changes import KeptOut, end_proposals, kept_out, propose_kept_out, returns
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    Problem,
)
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH
from sessions_app.services.audit import By

REASON = "the agent's file"
LATER = "the hub's value stays; proposed by a sync when others are decided"
BATCH_ROWS = 500
UID_PREFIX = 8  # characters that `agentmem list` shows
Values = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A table to import into: its model, the column of the agent's id, and its name in the report."""

    model: type[Model]
    id_field: str
    kind: str
    has_history: bool = True


KNOWLEDGE = Rows(KnowledgeEntry, "content_id", "knowledge")
OBSERVATIONS = Rows(Observation, "uid", "observations")
KEY_VALUES = Rows(KeyValue, "key", "key_values")
CACHED = Rows(CachedResponse, "key", "cached_responses", has_history=False)


def import_knowledge(
    workspace: Workspace, records: Iterable[KnowledgeRecord], *, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Create or update knowledge entries by their id; updates are kept in the entry's history.

    A new id with the category and content of an existing entry is that entry.
    """
    by_identity = _identities(workspace)
    known = set(_stored_rows(KNOWLEDGE, workspace))
    values: dict[str, Values] = {}
    problems: list[Problem] = []
    for record in records:
        name = _known_id(record, known, by_identity)
        if name in values:
            what = f"the entry {record.content_id[:40]} says the same as an earlier one"
            problems.append(Problem(path, None, what, "skipped", "rejected", record.content.encode()[:2000]))
            continue
        values[name] = {
            "category": record.category,
            "content": record.content,
            "source": record.source,
            "tags": record.tags,
            "access_count": record.access_count,
            "created_at": record.created_at,
            "accessed_at": record.accessed_at,
            "extra": record.extra,
        }
    tally = _import_rows(KNOWLEDGE, workspace, values, path=path, now=now, dry_run=dry_run)
    tally.problems += problems
    return tally


def _identities(workspace: Workspace) -> dict[str, str]:
    """Return the agent's ids of entries by identity, in the hub and in the agent's file; living entries first."""
    if workspace.pk is None:
        return {}
    rows = KnowledgeEntry.objects.filter(workspace=workspace).order_by("-id")
    living, withdrawn = rows.filter(withdrawn_at=None), rows.exclude(withdrawn_at=None)
    said = dict(withdrawn.values_list("identity", "content_id"))
    said |= {file_identity(row): row.content_id for row in rows.exclude(corrected={})}
    return said | dict(living.values_list("identity", "content_id"))


def file_identity(row: KnowledgeEntry) -> str:
    """Return the id that Grip gives to its file's version of an entry, ignoring corrections made in the hub."""
    return content_id(row.corrected.get("category", row.category), row.corrected.get("content", row.content))


def _known_id(record: KnowledgeRecord, known: Collection[str], by_identity: Mapping[str, str]) -> str:
    if record.is_by_id or record.content_id in known:
        return record.content_id
    return by_identity.get(content_id(record.category, record.content), record.content_id)


def import_key_values(
    workspace: Workspace, records: Iterable[KeyValueRecord], *, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Create or update key-values by their key; earlier values are kept in the history.

    A withdrawn key that the agent writes again is restored.
    """
    values: dict[str, Values] = {record.key: {"value": record.value, "is_json": record.is_json} for record in records}
    return _import_rows(KEY_VALUES, workspace, values, path=path, now=now, dry_run=dry_run)


def import_cached_responses(
    workspace: Workspace, records: Iterable[CachedResponseRecord], *, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Create or update cached responses by their key.

    Those that people invalidated stay so, and those that the content check flags are skipped.
    """
    read = list(records)
    removed = invalidated(workspace, read)
    records = [record for record in read if record.key not in removed]
    safe = [record for record in records if not findings_of_response(record.preview, record.response)]
    values = {
        record.key: {
            "model": record.model,
            "response": record.response,
            "preview": record.preview,
            "created_at": record.created_at,
            "accessed_at": record.accessed_at,
            "extra": record.extra,
        }
        for record in safe
    }
    tally = _import_rows(CACHED, workspace, values, path=path, now=now, dry_run=dry_run)
    tally.unchanged[CACHED.kind] += len(removed)
    if count := len(records) - len(safe):
        what = f"{count:,} cached {'response is' if count == 1 else 'responses are'} flagged by the content check"
        tally.problems.append(Problem(path, None, what, "skipped", "rejected"))
    return tally


def import_observations(
    workspace: Workspace, records: Sequence[ObservationRecord], *, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Create or update observations by their id, which `agentmem list` shortens to eight characters.

    A partial record adds nothing if an id with that prefix is stored; a full record completes a partial one.
    """
    by_prefix = {uid[:UID_PREFIX]: uid for uid in _stored_rows(OBSERVATIONS, workspace)}
    values: dict[str, Values] = {}
    for record in records:
        known_uid = by_prefix.get(record.uid[:UID_PREFIX], "")
        if record.is_partial and known_uid:
            values[known_uid] = {}
            continue
        completes = not record.is_partial and len(known_uid) == UID_PREFIX and known_uid not in values
        fields: Values = {
            "category": record.category,
            "content": record.content,
            "source": record.source,
            "occurred_at": record.occurred_at,
            "occurred_at_text": record.occurred_at_text,
            "extra": record.extra,
        }
        values[known_uid if completes else record.uid] = fields | ({"uid": record.uid} if completes else {})
    return _import_rows(OBSERVATIONS, workspace, values, path=path, now=now, dry_run=dry_run)


@transaction.atomic
def _import_rows(
    rows: Rows, workspace: Workspace, values: Mapping[str, Values], *, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Create or update rows, and hold the flagged ones. Rows that are no longer in the file stay."""
    tally = ImportCounts()
    fitting = {key: value for key, value in values.items() if len(key) <= KEY_LENGTH}
    for key in values.keys() - fitting.keys():
        what = f"the id {key[:40]}… is longer than {KEY_LENGTH} characters"
        tally.problems.append(Problem(path, None, what, "not imported", "rejected"))
    known = _stored_rows(rows, workspace, lock=not dry_run)
    new = [
        rows.model(workspace=workspace, **{rows.id_field: key}, **value)
        for key, value in fitting.items()
        if key not in known
    ]
    for row in new:
        derive(row)
    stored = [(known[key], value) for key, value in fitting.items() if key in known]
    by = By(AGENTS_FILE, now)
    kept = kept_out(rows.model, stored)
    kept = kept if dry_run else propose_kept_out(kept, by)
    changed = {
        row: names
        for row, value in stored
        if (names := _update_row(row, value, kept.get(row, KeptOut()), path, tally, now))
    }
    tally.added[rows.kind] += len(new)
    tally.updated[rows.kind] += len(changed)
    tally.unchanged[rows.kind] += len(fitting) - len(new) - len(changed)
    if not dry_run:
        _write(rows, new, list(changed), now)
    if rows.model in LINKS:
        waiting = sum(bool(one.values) and not one.is_decided for one in kept.values())
        tally.problems += hold_imported(workspace, new, changed, waiting=waiting, path=path, now=now, dry_run=dry_run)
    if rows.model in FROM_FILES and not dry_run:
        end_proposals({row: {*fields} & {*FROM_FILES[rows.model]} for row, fields in changed.items()}, by)
    if count := sum(bool(one.left) for one in kept.values()):
        tally.left += count
        what = f"{count:,} change{' is' if count == 1 else 's are'} not proposed: too many are waiting"
        tally.problems.append(Problem(path, None, what, LATER, "noted"))
    return tally


def _stored_rows(rows: Rows, workspace: Workspace, *, lock: bool = False) -> dict[str, Any]:
    """Return a workspace's rows by agent's id; ``lock``: with row locks."""
    if workspace.pk is None:
        return {}
    manager = rows.model._default_manager
    found = (manager.select_for_update() if lock else manager.all()).filter(workspace=workspace)
    return {getattr(row, rows.id_field): row for row in found}


def _update_row(
    row: Any, value: Values, kept: KeptOut, path: str, tally: ImportCounts, now: datetime
) -> Collection[str]:
    """Update a row from its file, except corrected fields and those kept out; return the names of the changed fields.

    ``corrected`` says what the file has in the others, but not what is left there to be proposed later.
    """
    corrected = {name: said for name, said in getattr(row, "corrected", {}).items() if name not in kept.taken}
    news = {name: new for name, new in value.items() if getattr(row, name) != new}
    for name in sorted(news.keys() & (corrected.keys() | kept.values.keys())):
        if name not in corrected or corrected[name] != news[name]:
            if kept.is_decided or name not in kept.values:
                what = f"{name} of {row} was changed in the hub and in the file"
                tally.problems.append(Problem(path, None, what, "the hub's value stays", "noted"))
            corrected[name] = news[name]
        del news[name]
    agreed = {name for name in corrected if name in value and getattr(row, name) == value[name]} | {*kept.left}
    corrected = {name: kept for name, kept in corrected.items() if name not in agreed}
    if corrected != getattr(row, "corrected", {}):
        news["corrected"] = corrected
    if returns(row, news):
        news |= {"withdrawn_at": None, "withdrawn_reason": ""}
    for name, new in news.items():
        setattr(row, name, new)
    derive(row)
    if news and hasattr(row, "updated_at"):
        row.updated_at = now
    return news.keys()


def _write(rows: Rows, new: list[Model], changed: list[Model], now: datetime) -> None:
    names = [
        field.name
        for field in rows.model._meta.concrete_fields
        if not field.primary_key and field.name != "workspace"
    ]
    manager = rows.model._default_manager
    if not rows.has_history:
        manager.bulk_create(new, batch_size=BATCH_ROWS)
        manager.bulk_update(changed, names, batch_size=BATCH_ROWS)
        return
    if new:
        bulk_create_with_history(
            new, rows.model, batch_size=BATCH_ROWS, default_change_reason=REASON, default_date=now
        )
    if changed:
        bulk_update_with_history(
            changed, rows.model, names, batch_size=BATCH_ROWS, default_change_reason=REASON, default_date=now
        )

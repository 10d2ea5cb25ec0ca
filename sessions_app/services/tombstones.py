"""Recognise deleted sessions in what is imported. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile

from memoryhub.lib.layouts.records import SessionRecord
from sessions_app.models import DeletedSession, Session, Workspace
from sessions_app.services.lifecycle import DIGEST_BYTES, forgotten_key, record_digest

LEAST_MESSAGES, LEAST_CHARS = 4, 300  # of messages without times or ids that are enough to recognise a copy


def tombstone_of(workspace: Workspace, record: SessionRecord) -> DeletedSession | None:
    """Return the tombstone of a session that a record would bring back, under its key or as a copy under another one.

    A session that the hub has isn't a copy: it was there when the other one was deleted.
    """
    tombstones = DeletedSession.objects.filter(workspace_id=workspace.pk)
    keys = [record.key, forgotten_key(workspace, record.key)]
    if found := tombstones.filter(key__in=keys).first():
        return found
    if workspace.pk is None or Session.objects.filter(workspace_id=workspace.pk, key=record.key).exists():
        return None
    if record.is_by_id and (found := _repeated(tombstones, record)):
        return found
    count = len(record.entries)
    sizes = {"entry_count": count} if record.is_by_id else {"entry_count__lte": count}  # a longer one may be a fork
    return _copied(tombstones.filter(**sizes).exclude(entry_count=0).exclude(content_hash=""), record)


def repeated_records(workspace: Workspace, records: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some records, by id and hash, that a fork repeats from deleted sessions.

    Forks begin with them, so that there are none if the first record isn't one. Of a session that was deleted before
    the hub kept digests of records, only all can be recognised together.
    """
    tombstones = DeletedSession.objects.filter(workspace_id=workspace.pk)
    end = _whole_sessions(tombstones.filter(digests=b""), records)
    whole, others = set(records[:end]), records[end:]
    digests = {one: record_digest(*one) for one in others if one[0]}
    first = digests.get(others[0]) if others else None
    stored = [bytes(one) for one in tombstones.values_list("digests", flat=True)] if first else []
    if first is None or not any(first in one for one in stored):
        return whole
    known = set().union(*map(_parts, stored))
    return whole | {one for one, digest in digests.items() if digest in known}


def _whole_sessions(tombstones: Iterable[DeletedSession], records: Sequence[tuple[str, str]]) -> int:
    """Return how many first records are whole deleted sessions, each recognised by its hash."""
    known = {(one.entry_count, one.content_hash) for one in tombstones}
    end = 0
    while known and end < len(records) and records[end][0]:
        starts = _chained(source_hash for _, source_hash in records[end:])
        found = next((count for count, digest in starts if (count, digest) in known), 0)
        if not found:
            break
        end += found
    return end


def _parts(digests: bytes) -> set[bytes]:
    return {digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)}


def _repeated(tombstones: Iterable[DeletedSession], record: SessionRecord) -> DeletedSession | None:
    """Return the tombstone of the session whose messages a record repeats, if it has no others."""
    wanted = {record_digest(entry.source_id, entry.source_hash) for entry in record.entries}
    some = next(iter(wanted), None)
    likely = (one for one in tombstones if some and some in bytes(one.digests))
    return next((one for one in likely if wanted <= _parts(bytes(one.digests))), None)


def _copied(tombstones: Iterable[DeletedSession], record: SessionRecord) -> DeletedSession | None:
    """Return the tombstone of the session with whose messages a record begins, if these say enough."""
    known = {(one.entry_count, one.content_hash): one for one in tombstones}
    return next((known[start] for start in _digests(record) if start in known), None) if known else None


def _digests(record: SessionRecord) -> Iterator[tuple[int, str]]:
    """Yield what ``_chained`` does, of the first entries if these have times or ids, or say enough without.

    A few short messages may also begin another session.
    """
    dated = sum(1 for _ in takewhile(lambda entry: entry.occurred_at_text or entry.source_id, record.entries))
    chained = _chained(entry.source_hash for entry in record.entries)
    chars = accumulate(len(entry.content) for entry in record.entries)
    for (count, digest), char_count in zip(chained, chars, strict=True):
        if count <= dated or (count >= LEAST_MESSAGES and char_count >= LEAST_CHARS):
            yield count, digest


def _chained(hashes: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of first entries with the hash over them (``DeletedSession.content_hash``)."""
    digest = hashlib.sha256()
    for count, one in enumerate(hashes, 1):
        digest.update(one.encode())
        yield count, digest.hexdigest()

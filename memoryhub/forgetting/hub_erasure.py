"""Erase a person in all workspaces, with one receipt.

The receipt is written first, so that imports leave the person out at once. It has only keyed hashes of the words, and
the erasure works from these: no job, row or log contains the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import Forgotten, HistoryEntry
from memoryhub.forgetting.erasure import (
    changed_since,
    erase,
    erase_unowned,
    lock_for_erasure,
    preview_rules,
    records_of,
    summed,
    with_rows,
)
from memoryhub.forgetting.forget import vacuum
from memoryhub.forgetting.import_filter import Digests, hash_key
from memoryhub.forgetting.learned import facts_only_from
from memoryhub.forgetting.matching import (
    Digest,
    Finder,
    Phrase,
    Redaction,
    composed,
    digest_of,
    find_any,
    find_digests,
    find_exactly,
    find_phrases,
    phrase_of,
)
from memoryhub.forgetting.rows import rows_of
from memoryhub.forgetting.rules import HAVE_SOURCES, Rules, texts_of
from memoryhub.forgetting.sources import is_in, names_of, row_hashes, rows_from
from memoryhub.jobs.downloads import discard_downloads
from memoryhub.jobs.progress import Step, ignore_progress
from memoryhub.jobs.queue import request_job
from memoryhub.jobs.uploads import discard_tables, discard_uploads
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.validation import MAX_REASON
from memoryhub.models import Job
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By, open_guard, record


@dataclass(frozen=True)
class Person:
    """Names, addresses, numbers and ids of a person, and the keys of sessions that are deleted with all messages."""

    words: tuple[str, ...]
    sessions: tuple[str, ...] = ()

    @property
    def phrases(self) -> list[tuple[str, ...]]:
        return [phrase for word in self.words if (phrase := phrase_of(word))]


def check_words(person: Person) -> None:
    """Raise Invalid if a person has no words, or one of them is too short."""
    short = [word for word in person.words if not phrase_of(word)]
    if short or not person.words:
        raise Invalid(gettext("Each name needs at least three letters or digits."), code="nothing_to_forget")


def person_rules(workspace: Workspace | None, person: Person) -> Rules:
    """Return the rules that erase a person in a workspace; None for the rows of no workspace."""
    sessions = Session.objects.filter(workspace=workspace, key__in=person.sessions) if workspace else []
    facts = [phrase for session in sessions for text in facts_only_from(session) if (phrase := phrase_of(text))]
    in_memory = Redaction(lines=find_phrases(facts))
    rules = _rules(Redaction(lines=find_phrases(person.phrases)), in_memory, sessions, set(person.sessions))
    return with_rows(rules, workspace) if workspace else rules


def receipt_rules(
    workspace: Workspace | None, digests: list[dict[str, Any]], phrases: dict[str, Phrase] | None = None
) -> Rules:
    """Return the rules of a receipt of the whole hub in a workspace.

    ``phrases``: all that occur, by hash; searching for them is faster than hashing every word.
    """
    key, known = hash_key(None), Digests.of(digests)

    def is_known(name: str) -> bool:
        return digest_of((name.strip(),), key).hash in known.sources

    of_workspace = Session.objects.filter(workspace=workspace).select_related("workspace") if workspace else []
    sessions = [session for session in of_workspace if is_known(session.key)] if known.sources else []
    sources = source_names(workspace) if workspace and known.sources else set()

    rules = _rules(
        Redaction(lines=finder_of(known.words, key, phrases)),
        Redaction(lines=finder_of(known.facts, key, phrases)),
        sessions,
        {name for name in sources if is_known(name)},
    )
    return with_known_rows(rules, workspace, known.sources, key) if workspace and known.sources else rules


def with_known_rows(rules: Rules, workspace: Workspace, hashes: frozenset[str], key: bytes) -> Rules:
    """Return rules with the rows of a workspace that a receipt's hashes name."""
    rows = rows_from(workspace, is_in(hashes, key))
    return replace(rules, rows=rows, names=names_of(workspace, rows))


def finder_of(digests: Sequence[Digest], key: bytes, phrases: dict[str, Phrase] | None) -> Finder:
    """Return a finder of a receipt's digests. ``phrases``: all that occur, by hash; None if they aren't known."""
    if phrases is None:
        return find_digests(digests, key)
    return find_phrases([phrases[digest.hash] for digest in digests if digest.hash in phrases])


def _rules(names: Redaction, in_memory: Redaction, sessions: Iterable[Session], sources: set[str]) -> Rules:
    sessions = tuple(sessions)
    keys = [session.key for session in sessions]
    return Rules(
        names,
        in_memory=in_memory,
        in_keys=Redaction(words=find_any([find_exactly(key) for key in keys])),
        is_person=True,
        sources=frozenset(sources.union(keys)),
        sessions=sessions,
    )


def source_names(workspace: Workspace) -> set[str]:
    """Return the sources of a workspace's knowledge, observations and history."""
    names: set[str] = set()
    for model in (*HAVE_SOURCES, HistoryEntry):
        columns = {column.name for column in model._meta.concrete_fields}
        if {"source", "workspace"} <= columns:
            rows: Any = model._base_manager.filter(workspace=workspace).exclude(source="")
            names.update(rows.values_list("source", flat=True).distinct())
    return names


def count_person(person: Person) -> int:
    """Return the number of rows that an erasure would change in the whole hub."""
    check_words(person)
    places = [*Workspace.objects.order_by("id"), None]
    return sum(preview_rules(place, person_rules(place, person)).total for place in places)


def write_receipt(person: Person, *, expected: int, reason: str, by: By) -> Forgotten:
    """Count again and return the receipt. Raises Invalid, and Conflict if the number isn't the expected one."""
    total = count_person(person)
    if not total:
        raise Invalid(gettext("Nothing in this hub contains it."), code="nothing_to_forget")
    if total != expected:
        raise Conflict(changed_since(total, expected), code="forget_changed")
    return new_receipt(person, reason=reason, by=by)


def new_receipt(person: Person, *, reason: str, by: By) -> Forgotten:
    """Return a receipt without counts, which ``erase_person`` carries out. Raises Invalid."""
    check_words(person)
    names = Redaction(lines=find_phrases(person.phrases))
    return Forgotten.objects.create(
        workspace=None,
        kind=Forgotten.Kind.PERSON,
        digests=_digests(person),
        counts={},
        reason=names.text(reason)[:MAX_REASON],
        forgotten_by=by.actor.name[:200],
        forgotten_at=by.at,
    )


def _digests(person: Person) -> list[dict[str, Any]]:
    key = hash_key(None)
    sessions = Session.objects.filter(key__in=person.sessions)
    facts = {phrase for session in sessions for text in facts_only_from(session) if (phrase := phrase_of(text))}
    words = [digest_of(phrase, key) for phrase in dict.fromkeys(person.phrases)]
    sources = [digest_of((name.strip(),), key) for name in person.sessions]
    places = Workspace.objects.order_by("id") if person.sessions else []
    rows = [one for place in places for one in row_hashes(place, person.sessions, key)]
    sources += [digest_of(one, key) for one in sorted({one for session in sessions for one in records_of(session)})]
    return [
        *({"length": digest.length, "hash": digest.hash} for digest in words),
        *({"length": 0, "hash": one} for one in (*(digest.hash for digest in sources), *dict.fromkeys(rows))),
        *({"length": len(phrase), "hash": digest_of(phrase, key).hash, "is_fact": True} for phrase in sorted(facts)),
    ]


@transaction.atomic
def request_erasure(person: Person, *, expected: int, reason: str, by: By) -> Job:
    """Write the receipt and return the job that erases. Raises Invalid.

    ``expected``: the number of rows in the preview, which the job's page compares with those erased.
    """
    receipt = new_receipt(person, reason=reason, by=by)
    return request_job(Job.Kind.ERASURE, None, {"receipt": receipt.pk, "expected": expected}, by=by)[0]


def erase_person(receipt: Forgotten, *, by: By, step: Step = ignore_progress) -> bool:
    """Erase a person in every workspace by the hashes of the receipt; return whether the database was vacuumed.

    Each workspace is one transaction. It can be repeated: workspaces that the receipt lists are searched again, and
    their counts added.
    """
    places = [*Workspace.objects.order_by("id"), None]
    phrases: dict[str, Phrase] = {}
    for number, place in enumerate(places):
        step(number, len(places), "")
        find_receipt_phrases(place, receipt, phrases)
        _erase_in(place, receipt, phrases, by)
    discard_uploads(None)
    discard_tables()
    text = f"A person was forgotten in {sum(receipt.counts.values()):,} rows of {len(receipt.places)} workspaces"
    record(
        by, "memory.forgotten", "forgotten", receipt.pk, text, detail={"kind": receipt.kind, "rows": receipt.counts}
    )
    return vacuum()


def find_receipt_phrases(workspace: Workspace | None, receipt: Forgotten, phrases: dict[str, Phrase]) -> None:
    """Find the phrases of a receipt in a workspace before its transaction, which locks the database on SQLite."""
    known = Digests.of(receipt.digests)
    missing = {digest.hash: digest for digest in (*known.words, *known.facts) if digest.hash not in phrases}
    find = find_digests(missing.values(), hash_key(receipt.workspace), phrases)
    for row in rows_of(workspace, Rules(everywhere=receipt.is_everywhere)) if missing else ():
        for text in texts_of(row):
            find(composed(text))
        if missing.keys() <= phrases.keys():
            return


@db_retry.retried
@transaction.atomic
def _erase_in(workspace: Workspace | None, receipt: Forgotten, phrases: dict[str, Phrase], by: By) -> None:
    with open_guard("forgetting"):
        if workspace and not lock_for_erasure(workspace):
            return
        rules = receipt_rules(workspace, receipt.digests, phrases)
        counts = preview_rules(workspace, rules).counts
        if not counts.total():
            return
        files = {}
        if workspace:
            files = erase(workspace, rules, by).files
            discard_downloads(workspace, by.at)
            discard_uploads(workspace)
        else:
            erase_unowned(rules, by)
        receipt.refresh_from_db()
        receipt.counts = summed(receipt.counts, counts)
        receipt.files |= files
        name = rules.redaction.text(workspace.slug) if workspace else None
        receipt.workspaces = [*receipt.workspaces, {"workspace": name, "rows": summed(counts)}]
        receipt.save(update_fields=["counts", "files", "workspaces"])
        if workspace:
            text = f"A person was forgotten in {counts.total():,} rows"
            detail = {"kind": receipt.kind, "rows": summed(counts)}
            record(by, "memory.forgotten", "forgotten", receipt.pk, text, workspace=workspace, detail=detail)


def hub_receipts() -> list[Forgotten]:
    """Return the receipts of the whole hub, latest first."""
    return list(Forgotten.objects.filter(workspace=None).order_by("-id")[:200])

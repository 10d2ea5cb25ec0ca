"""Keep imports from bringing forgotten content back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.utils.crypto import salted_hmac

from knowledge_app.models import Forgotten
from memoryhub.forgetting.matching import MARK, Digest, Redaction, digest_of, find_digests
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    FileRead,
    GraphRecord,
    HistoryLog,
    HistoryRecord,
    Item,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    Problem,
    SessionRecord,
)
from sessions_app.models import DeletedSession, Workspace
from sessions_app.services.lifecycle import forgotten_key


@dataclass(frozen=True)
class ImportRules:
    """What imports leave out, as keyed hashes; redactions apply in the order of the receipts.

    ``in_memory``: facts of forgotten sessions, removed from documents only.
    """

    redactions: tuple[Redaction, ...]
    people: tuple[Redaction, ...]
    in_memory: tuple[Redaction, ...]
    sources: frozenset[str]
    key: bytes

    def is_source(self, source: str) -> bool:
        return bool(self.sources) and digest_of((source.strip(),), self.key).hash in self.sources

    def mentions(self, value: Any) -> bool:
        return any(redaction.mentions(value) for redaction in self.redactions)

    def of_people(self, value: Any) -> bool:
        return any(redaction.mentions(value) for redaction in self.people)

    def record(self, record: Any, *, is_memory: bool = False) -> Any:
        """Return a record without erased content."""
        for redaction in (*self.redactions, *(self.in_memory if is_memory else ())):
            record = redaction.record(record)
        return record

    def value(self, value: Any) -> Any:
        for redaction in self.redactions:
            value = redaction.value(value)
        return value

    def text(self, text: str) -> str:
        for redaction in self.redactions:
            text = redaction.text(text)
        return text


def import_rules(workspace: Workspace) -> ImportRules | None:
    """Return the rules for imports into a workspace, or None if nothing was forgotten."""
    rows = Forgotten.objects.filter(workspace=workspace.pk or 0, lifted_at=None).order_by("id")
    kept = [row for row in rows if row.digests]
    if not kept:
        return None
    key = hash_key(workspace)
    found: dict[str, list[Redaction]] = {kind: [] for kind in Forgotten.Kind.values}
    sources: set[str] = set()
    in_order: list[Redaction] = []
    for row in kept:
        sources |= {digest["hash"] for digest in row.digests if not digest["length"]}
        finder = find_digests([Digest(**digest) for digest in row.digests if digest["length"]], key)
        redaction = Redaction(words=finder) if row.kind == Forgotten.Kind.PHRASE else Redaction(lines=finder)
        found[row.kind].append(redaction)
        if row.kind in (Forgotten.Kind.PHRASE, Forgotten.Kind.PERSON):
            in_order.append(redaction)
    return ImportRules(
        tuple(in_order),
        tuple(found[Forgotten.Kind.PERSON]),
        tuple(found[Forgotten.Kind.SESSION]),
        frozenset(sources),
        key,
    )


def hash_key(workspace: Workspace) -> bytes:
    """Return the HMAC key of a workspace's digests, derived from the hub's key and never stored."""
    return salted_hmac("memoryhub.forgotten", str(workspace.pk), algorithm="sha256").digest()


def without_forgotten(workspace: Workspace, read: FileRead) -> FileRead:
    """Remove forgotten content from a source file; a problem reports how many places were affected."""
    rules = import_rules(workspace)
    if rules is None:
        return read
    kept = [item for item in read.items if not _is_left_out(item, rules)]
    items = [_redacted(item, rules) for item in kept]
    touched = len(read.items) - len(items) + sum(old != new for old, new in zip(kept, items, strict=True))
    problems = [_plain(problem, rules) for problem in read.problems]
    if touched:
        what = f"contains forgotten content in {touched:,} place{'' if touched == 1 else 's'}"
        action = "left out; an operator can allow re-import on the Forget page"
        problems.append(Problem(rules.text(read.path), None, what, action, "ignored"))
    return replace(read, items=items, problems=problems, note=rules.text(read.note))


def shown_path(workspace: Workspace, read: FileRead) -> str:
    """Return a file's path with forgotten content removed: files are often named after a session or person."""
    keys = [item.key for item in read.items if isinstance(item, SessionRecord)]
    hashes = [forgotten_key(workspace, key) for key in keys]
    if DeletedSession.objects.filter(workspace=workspace.pk or 0, is_forgotten=True, key__in=hashes).exists():
        return MARK
    rules = import_rules(workspace)
    return rules.text(read.path) if rules else read.path


def _plain(problem: Problem, rules: ImportRules) -> Problem:
    redacted: Problem = rules.record(problem)
    raw = problem.raw.decode("utf-8", errors="replace")
    return replace(redacted, raw=b"" if rules.mentions(raw) else problem.raw)


def _is_left_out(item: Item, rules: ImportRules) -> bool:
    """Tell whether an item is left out entirely, as its row was deleted."""
    if isinstance(item, KeyValueRecord | CachedResponseRecord):
        return rules.mentions(list(vars(item).values()))
    if isinstance(item, KnowledgeRecord | ObservationRecord):
        return rules.is_source(item.source) or rules.of_people(list(vars(item).values()))
    return False


def _redacted(item: Item, rules: ImportRules) -> Item:
    if isinstance(item, GraphRecord):
        terms = [term for term in item.terms if not rules.mentions(term.text)]
        known = [
            replace(term, related=_unmentioned(term.related, rules), extra=rules.value(term.extra)) for term in terms
        ]
        return replace(item, terms=known) if known != item.terms else item
    redacted: Any = rules.record(item, is_memory=isinstance(item, DocumentRecord))
    if isinstance(item, DocumentRecord) and redacted.content != item.content:
        redacted = replace(redacted, name=item.name, raw=None)
    if isinstance(item, HistoryLog):
        redacted = replace(redacted, entries=[_of_source(entry, rules) for entry in redacted.entries])
    if isinstance(item, SessionRecord):
        redacted = replace(redacted, key=item.key)  # identifies it for its tombstone
    if isinstance(item, KnowledgeRecord):
        redacted = replace(redacted, content_id=item.content_id)
    new: Item = redacted
    return new


def _of_source(entry: HistoryRecord, rules: ImportRules) -> HistoryRecord:
    gone = rules.is_source(entry.file) or rules.is_source(entry.session_key)
    return replace(entry, content=MARK) if gone else entry


def _unmentioned(words: Iterable[str], rules: ImportRules) -> list[str]:
    return [word for word in words if not rules.mentions(word)]

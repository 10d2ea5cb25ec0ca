"""Keep imports from bringing forgotten content back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from django.utils.crypto import salted_hmac

from knowledge_app.models import Forgotten
from memoryhub.forgetting.matching import Digest, Redaction, digest_of, find_any, find_digests, is_programs_name
from memoryhub.forgetting.sources import UID_CHARS, row_hash
from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    EntryRecord,
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
from memoryhub.lib.text.forgotten import MARK
from sessions_app.models import DeletedSession, Workspace
from sessions_app.services.lifecycle import forgotten_key

FORGOTTEN = "contains forgotten content"  # the start of what the report says
_FORGOTTEN = PreparedRows(
    1, lambda pk: Forgotten.objects.filter(Q(workspace=pk) | Q(workspace=None), lifted_at=None).order_by("id")
)


@dataclass(frozen=True)
class ImportRules:
    """What imports leave out, as keyed hashes; redactions apply in the order of the receipts.

    ``whole``: finds what any of them finds, in one search. ``in_memory``: facts of forgotten sessions, removed from
    documents only. ``sources``: hashes of sources and of the records of forgotten sessions, and the key of each set.
    ``sessions``: hashes of the keys of sessions that no workspace imports, by the hub's key.
    """

    redactions: tuple[Redaction, ...]
    whole: Redaction
    people: tuple[Redaction, ...]
    in_memory: tuple[Redaction, ...]
    sources: tuple[tuple[bytes, frozenset[str]], ...]
    sessions: frozenset[str]

    def is_source(self, source: str) -> bool:
        return any(digest_of((source.strip(),), key).hash in hashes for key, hashes in self.sources if hashes)

    def is_row(self, table: str, own_id: str, source: str) -> bool:
        """Tell whether a row was erased with its source, although the agent's file calls the source otherwise."""
        return any(row_hash(table, own_id, source, key) in hashes for key, hashes in self.sources if hashes)

    def is_record(self, entry: EntryRecord) -> bool:
        """Tell whether a forgotten session had an entry; its forks and copies repeat it."""
        if entry.source_id:
            identity: tuple[str, ...] = (entry.source_id, entry.source_hash)
        elif entry.occurred_at:
            identity = said_at(entry.role, entry.content, entry.tool_call_id, entry.occurred_at)
        else:
            return False
        hashed = ((digest_of(identity, key).hash, hashes) for key, hashes in self.sources if hashes)
        return any(one in hashes for one, hashes in hashed)

    def is_copy(self, session: SessionRecord) -> bool:
        """Tell whether a session without ids of entries is a copy of a forgotten one, under whatever key."""
        return any(self.is_record(entry) for entry in session.entries if not entry.source_id)

    def is_session(self, key: str) -> bool:
        return bool(self.sessions) and digest_of((key.strip(),), hash_key(None)).hash in self.sessions

    def mentions(self, value: Any) -> bool:
        return self.whole.mentions(value)

    def of_people(self, value: Any) -> bool:
        return any(redaction.mentions(value) for redaction in self.people)

    def record(self, record: Any, *, is_memory: bool = False) -> Any:
        """Return a record without erased content."""
        is_plain = self.whole.record(record) is record
        for redaction in (*(() if is_plain else self.redactions), *(self.in_memory if is_memory else ())):
            record = redaction.record(record)
        return record

    def value(self, value: Any) -> Any:
        for redaction in self.redactions if self.mentions(value) else ():
            value = redaction.value(value)
        return value

    def text(self, text: str) -> str:
        for redaction in self.redactions if self.mentions(text) else ():
            text = redaction.text(text)
        return text


def said_at(role: str, content: str, tool_call_id: str, moment: datetime) -> tuple[str, ...]:
    """Return what identifies an entry without an id in a copy of its session."""
    return role, content, tool_call_id, moment.astimezone(UTC).isoformat()


def import_rules(workspace: Workspace) -> ImportRules | None:
    """Return the rules for imports into a workspace, or None if nothing was forgotten."""
    kept = [row for row in _FORGOTTEN.all(workspace.pk or 0) if row.digests]
    if not kept:
        return None
    own_key, hub_key = hash_key(workspace), hash_key(None)
    people: list[Redaction] = []
    sources: dict[bytes, set[str]] = {own_key: set(), hub_key: set()}
    in_order: list[Redaction] = []
    words: dict[bytes, set[Digest]] = {own_key: set(), hub_key: set()}
    facts: dict[bytes, set[Digest]] = {own_key: set(), hub_key: set()}
    for row in kept:
        key = hub_key if row.workspace_id is None else own_key
        digests = Digests.of(row.digests)
        sources[key] |= digests.sources
        facts[key].update(digests.facts)
        finder = find_digests(digests.words, key)
        if row.kind == Forgotten.Kind.SESSION:
            facts[key].update(digests.words)
        elif row.kind == Forgotten.Kind.PHRASE:
            in_order.append(Redaction(words=finder))
        elif row.kind == Forgotten.Kind.PERSON:
            in_order.append(Redaction(lines=finder))
            people.append(in_order[-1])
        if row.kind in (Forgotten.Kind.PHRASE, Forgotten.Kind.PERSON):
            words[key].update(digests.words)
    return ImportRules(
        tuple(in_order),
        _finding(words),
        tuple(people),
        (_finding(facts),),
        tuple((key, frozenset(hashes)) for key, hashes in sources.items()),
        frozenset(sources[hub_key]),
    )


def _finding(digests: dict[bytes, set[Digest]]) -> Redaction:
    """Return a redaction of the lines with any of some digests, which are by the keys of their hashes."""
    return Redaction(lines=find_any([find_digests(known, key) for key, known in digests.items()]))


@dataclass(frozen=True)
class Digests:
    """The digests of a receipt: of words, of whole sources, and of facts that only a person's sessions taught."""

    words: tuple[Digest, ...]
    sources: frozenset[str]
    facts: tuple[Digest, ...]

    @classmethod
    def of(cls, stored: Iterable[dict[str, Any]]) -> Digests:
        rows = list(stored)
        phrases = [(Digest(row["length"], row["hash"]), row.get("is_fact", False)) for row in rows if row["length"]]
        return cls(
            tuple(digest for digest, is_fact in phrases if not is_fact),
            frozenset(row["hash"] for row in rows if not row["length"]),
            tuple(digest for digest, is_fact in phrases if is_fact),
        )


def hash_key(workspace: Workspace | None) -> bytes:
    """Return the HMAC key of a workspace's digests (None: of the hub's), derived from the hub's key, never stored."""
    name = str(workspace.pk) if workspace else "hub"
    return salted_hmac("memoryhub.forgotten", name, algorithm="sha256").digest()


def without_forgotten(read: FileRead, rules: ImportRules | None) -> FileRead:
    """Remove forgotten content from a source file; a problem reports how many places were affected."""
    if rules is None:
        return read
    kept = [item for item in read.items if not _is_left_out(item, rules)]
    items = [_redacted(item, rules) for item in kept]
    touched = len(read.items) - len(items) + sum(old != new for old, new in zip(kept, items, strict=True))
    problems = plain_problems(read.problems, rules)
    if touched:
        what = f"{FORGOTTEN} in {touched:,} place{'' if touched == 1 else 's'}"
        action = "left out; an operator can allow re-import on the page Forget or Data about a person"
        problems.append(Problem(rules.text(read.path), None, what, action, "ignored"))
    return replace(read, items=items, problems=problems, note=rules.text(read.note))


def remembered(workspace: Workspace, read: FileRead) -> FileRead:
    """Return a file of sessions without forgotten content, also in its path. See ``lock_workspace``."""
    rules = import_rules(workspace)
    allowed, shown = without_forgotten(read, rules), shown_path(workspace, read, rules)
    problems = [replace(one, file=shown) if one.file == read.path else one for one in allowed.problems]
    return replace(allowed, path=shown, problems=problems)


def shown_path(workspace: Workspace, read: FileRead, rules: ImportRules | None) -> str:
    """Return a file's path with forgotten content removed: files are often named after a session or person."""
    sessions = [item for item in read.items if isinstance(item, SessionRecord)]
    if rules and any(rules.is_session(one.key) or rules.is_copy(one) for one in sessions):
        return MARK
    hashes = [forgotten_key(workspace, session.key) for session in sessions]
    if DeletedSession.objects.filter(workspace=workspace.pk or 0, is_forgotten=True, key__in=hashes).exists():
        return MARK
    return rules.text(read.path) if rules else read.path


def plain_problems(problems: Sequence[Problem], rules: ImportRules | None) -> list[Problem]:
    """Return problems without forgotten content."""
    return [_plain(problem, rules) for problem in problems] if rules else list(problems)


def _plain(problem: Problem, rules: ImportRules) -> Problem:
    redacted: Problem = rules.record(problem)
    raw = problem.raw.decode("utf-8", errors="replace")
    return replace(redacted, raw=b"" if rules.mentions(raw) else problem.raw)


def _is_left_out(item: Item, rules: ImportRules) -> bool:
    """Tell whether an item is left out entirely, as its row was deleted."""
    if isinstance(item, KeyValueRecord | CachedResponseRecord):
        return rules.mentions(list(vars(item).values()))
    if isinstance(item, SessionRecord):
        return rules.is_session(item.key) or rules.mentions(item.key) or rules.is_copy(item)
    if isinstance(item, DocumentRecord):
        return rules.mentions(item.name) and not is_programs_name(item.name)
    if isinstance(item, KnowledgeRecord | ObservationRecord):
        return _is_of_source(item, rules) or rules.of_people(list(vars(item).values()))
    return False


def _is_of_source(item: KnowledgeRecord | ObservationRecord, rules: ImportRules) -> bool:
    if rules.is_source(item.source):
        return True
    if isinstance(item, KnowledgeRecord):
        return rules.is_row("knowledge", item.content_id, item.source)
    return any(rules.is_row("observations", uid, item.source) for uid in (item.uid, item.uid[:UID_CHARS]))


def _redacted(item: Item, rules: ImportRules) -> Item:
    if isinstance(item, GraphRecord):
        terms = [term for term in item.terms if not rules.mentions(term.text)]
        known = [
            replace(term, related=_unmentioned(term.related, rules), extra=rules.value(term.extra)) for term in terms
        ]
        return replace(item, terms=known) if known != item.terms else item
    if isinstance(item, SessionRecord) and any(map(rules.is_record, item.entries)):
        title = "" if rules.is_record(item.entries[0]) else item.title  # else it may quote the first message
        item = replace(item, title=title, entries=[entry for entry in item.entries if not rules.is_record(entry)])
    if isinstance(item, SessionRecord):
        item = _unlinked(item, rules)
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


def _unlinked(item: SessionRecord, rules: ImportRules) -> SessionRecord:
    """Return a session without its links to forgotten ones; the title of a subagent may quote the call there."""
    if item.parent_key and rules.is_source(item.parent_key):
        item = replace(item, parent_key="", parent_call_id="", title="")
    if item.forked_from and rules.is_source(item.forked_from):
        item = replace(item, forked_from="")
    return item


def _of_source(entry: HistoryRecord, rules: ImportRules) -> HistoryRecord:
    gone = rules.is_source(entry.file) or rules.is_source(entry.session_key)
    return replace(entry, content=MARK, session_key="") if gone else entry


def _unmentioned(words: Iterable[str], rules: ImportRules) -> list[str]:
    return [word for word in words if not rules.mentions(word)]

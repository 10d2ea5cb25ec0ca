"""Erase everything that mentions a phrase or person, or came from a source or session, from every table.

One walk over all tables of a workspace finds the affected rows. The preview counts them; applying it changes them in
one transaction with the append-only guard open. New tables are included automatically. Exact and derived rows
(values, terms, cached responses) are deleted; other rows lose the words, or for a person the lines that mention them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Model, Q
from django.utils.translation import gettext, ngettext, override

from knowledge_app.models import Forgotten, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.pending_writes import write_without_forgotten
from memoryhub.forgetting.agent_files import files_of
from memoryhub.forgetting.applying import (
    apply_change,
    deleted_rows,
    drop_session,
    forget_edits,
    stop_runs,
    sync_facts,
)
from memoryhub.forgetting.import_filter import hash_key, said_at
from memoryhub.forgetting.learned import facts_only_from
from memoryhub.forgetting.matching import Phrase, Redaction, digest_of, find_exactly, find_phrases, phrase_of
from memoryhub.forgetting.occurrences import Group, Occurrence, Occurrences
from memoryhub.forgetting.rows import candidates_of, walk
from memoryhub.forgetting.rules import Affected, Rules, find_changes, texts_of
from memoryhub.forgetting.sources import names_of, row_hashes, rows_from
from memoryhub.graph.graph_cache import drop_graph
from memoryhub.graph.row_vectors import sweep_vectors
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.validation import MAX_REASON
from sessions_app.models import Entry, Session, Webhook, Workspace
from sessions_app.services.audit import By, open_guard, record
from sessions_app.services.workspaces import forbid_sharing

SHOWN_EXAMPLES = 3
KNOWN_RECORDS = 500  # at each end of a session by which its copies are recognised
SHOWN_RECEIPTS = 200


@dataclass(frozen=True)
class ErasureRequest:
    """What to erase: a phrase, a person (names in ``words``), a source, or a session.

    ``everywhere``: also in rows of no workspace; for operators of the hub only.
    """

    kind: str
    words: tuple[str, ...] = ()
    session: Session | None = None
    everywhere: bool = False


@dataclass
class Preview:
    """Affected rows by table, examples of each, and what can't be changed.

    ``occurrences``: how the words occur, as ``Occurrences.groups`` returns it.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    occurrences: list[tuple[Group, list[Occurrence], int]] = field(default_factory=list)

    def add(self, affected: Affected) -> None:
        """Count an affected row."""
        name = table_name(affected.row)
        self.counts[name] += 1
        shown = self.examples.setdefault(name, [])
        if len(shown) < SHOWN_EXAMPLES and affected.example and affected.example not in shown:
            shown.append(affected.example)

    def finish(self, workspace: Workspace, rules: Rules) -> None:
        """Count the sessions that are deleted, and check the workspace's own name, address, folder and settings."""
        if rules.sessions:
            self.counts["sessions"] += len(rules.sessions)
            self.counts["entries"] += Entry.objects.filter(session__in=rules.session_ids).count()
        own = {
            "name": workspace.name,
            "address": workspace.slug,
            "folder": [workspace.path, workspace.project, workspace.instructions_path, *_source_folders(workspace)],
            "prompt": workspace.summary_prompt,
            "webhooks": list(Webhook.objects.filter(workspace=workspace).values_list("url", flat=True)),
        }
        self.left = [name for name, text in own.items() if rules.redaction.mentions(text)]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def tables(self) -> list[tuple[str, int, list[str]]]:
        return [(name, count, self.examples.get(name, [])) for name, count in sorted(self.counts.items())]


@dataclass(frozen=True)
class Erased:
    """What was erased in a workspace, and the agents' files that contained it (``Forgotten.files``)."""

    preview: Preview
    files: dict[str, str]


def _source_folders(workspace: Workspace) -> list[str]:
    columns = ("label", "path", "project", "instructions_path", "error")
    return [text for row in workspace.source_folders.values_list(*columns) for text in row]


def plan_forget(workspace: Workspace, erasure: ErasureRequest) -> Preview:
    """Return what an erasure would change. Reads only. Raises Invalid for words that are too short."""
    rules, preview = _rules(workspace, erasure), Preview()
    occurrences = Occurrences(phrases_of(erasure))
    for row in candidates_of(workspace, rules, may_match=occurrences.may_match):
        occurrences.add(texts_of(row))
        affected = find_changes(copy(row), rules)
        if affected is not None:
            preview.add(affected)
    preview.finish(workspace, rules)
    preview.occurrences = occurrences.groups
    return preview


def preview_rules(workspace: Workspace | None, rules: Rules) -> Preview:
    """Return what rules would change in a workspace; None for the rows of no workspace."""
    return _preview(walk(workspace, rules), workspace, rules)


def _preview(found: Iterable[Affected], workspace: Workspace | None, rules: Rules) -> Preview:
    preview = Preview()
    for affected in found:
        preview.add(affected)
    if workspace:
        preview.finish(workspace, rules)
    return preview


@db_retry.retried
@transaction.atomic
def apply_forget(workspace: Workspace, erasure: ErasureRequest, *, expected: int, reason: str, by: By) -> Forgotten:
    """Erase in one transaction; return the receipt. This can't be undone.

    ``expected``: the number of rows in the preview. Raises Invalid, Conflict.
    """
    with open_guard("forgetting"):
        lock_for_erasure(workspace)
        rules = _rules(workspace, erasure)
        preview = preview_rules(workspace, rules)
        if not preview.total:
            raise Invalid(nothing_found(), code="nothing_to_forget")
        if preview.total != expected:
            raise Conflict(changed_since(preview.total, expected), code="forget_changed")
        receipt = write_receipt(workspace, erasure, reason=reason, by=by)
        erase_in_workspace(workspace, receipt, rules, by)
    return receipt


def write_receipt(workspace: Workspace, erasure: ErasureRequest, *, reason: str, by: By) -> Forgotten:
    """Write a receipt without counts. From now on, imports leave out what it is about. Raises Invalid."""
    rules = _rules(workspace, erasure)
    return Forgotten.objects.create(
        workspace=workspace,
        kind=erasure.kind,
        digests=_digests(workspace, erasure),
        counts={},
        workspaces=[{"workspace": None, "rows": {}}] if erasure.everywhere else [],
        reason=rules.redaction.text(reason)[:MAX_REASON],
        forgotten_by=by.actor.name[:200],
        forgotten_at=by.at,
    )


def erase_in_workspace(workspace: Workspace, receipt: Forgotten, rules: Rules, by: By) -> None:
    """Erase by the rules of a receipt and add the counts to it, inside the caller's transaction and guard."""
    unowned = preview_rules(None, rules).counts if rules.everywhere else Counter()
    erased = erase(workspace, rules, by)
    receipt.counts = summed(receipt.counts, erased.preview.counts)
    receipt.files |= erased.files
    if rules.everywhere:
        rows = summed(*(place["rows"] for place in receipt.workspaces), unowned)
        receipt.workspaces = [{"workspace": None, "rows": rows}]
    receipt.save(update_fields=["counts", "files", "workspaces"])
    text = f"A {receipt.kind} was forgotten in {erased.preview.total:,} rows"
    detail = {"kind": receipt.kind, "rows": erased.preview.counts}
    record(by, "memory.forgotten", "forgotten", receipt.pk, text, workspace=workspace, detail=detail)


def summed(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of counts by table, in the order of the tables."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(sorted(total.items()))


def lock_for_erasure(workspace: Workspace) -> bool:
    """Lock a workspace until the end of the transaction, so that no row is added to it; return whether it exists.

    The documents are locked before its key, which edits that have locked a document need.
    """
    forbid_sharing(workspace.pk)
    found = Workspace.objects.filter(pk=workspace.pk)
    if not found.select_for_update(no_key=True).exists():
        return False
    list(MemoryDocument.objects.select_for_update().filter(workspace=workspace).order_by("pk").values_list("pk"))
    return found.select_for_update().exists()


def erase(workspace: Workspace, rules: Rules, by: By) -> Erased:
    """Apply rules to all tables of a workspace, inside the caller's transaction and guard."""
    stop_runs(workspace, by.at)
    found = list(walk(workspace, rules))
    erased = Erased(_preview(found, workspace, rules), files_of(found, workspace, rules))
    for affected in found:
        apply_change(affected, by)
    forget_edits(workspace, deleted_rows(found), by.at)
    for session in rules.sessions:
        drop_session(session, by)
    if rules.sessions:
        for affected in list(walk(workspace, rules)):  # rows written by the deletion itself
            apply_change(affected, by)
    sync_facts(workspace)
    redacted = [
        one.row.pk for one in found if isinstance(one.row, MemoryRevision) and "content" in (one.values or {})
    ]
    write_without_forgotten(MemoryDocument.objects.filter(workspace=workspace, head__in=redacted), by=by)
    sweep_vectors(workspace.pk)
    drop_graph(workspace)
    return erased


def erase_unowned(rules: Rules, by: By) -> None:
    """Apply rules to the rows of no workspace, inside the caller's transaction and guard."""
    for affected in list(walk(None, rules)):
        apply_change(affected, by)


def nothing_found() -> str:
    return gettext("Nothing in this workspace contains it.")


def changed_since(now: int, before: int) -> str:
    """Return the message that the number of rows isn't that of the preview."""
    words = ngettext(
        "%(count)s row contains it now, not %(expected)s. Check the preview again.",
        "%(count)s rows contain it now, not %(expected)s. Check the preview again.",
        now,
    )
    return words % {"count": f"{now:,}", "expected": f"{before:,}"}


@transaction.atomic
def lift(receipt: Forgotten, *, by: By) -> None:
    """Allow imports to bring forgotten content back."""
    Forgotten.objects.filter(pk=receipt.pk, lifted_at=None).update(lifted_at=by.at)
    text = f"Re-import allowed for receipt {receipt.pk}"
    record(by, "forgotten.lifted", "forgotten", receipt.pk, text, workspace=receipt.workspace)


def session_rules(session: Session, *, everywhere: bool = False) -> Rules:
    """Return the rules that erase a session, and what was learned only from it."""
    facts = [phrase for text in facts_only_from(session) if (phrase := phrase_of(text))]
    rules = Rules(
        in_memory=Redaction(lines=find_phrases(facts)),
        in_keys=Redaction(words=find_exactly(session.key)),
        sources=frozenset({session.key.strip()}),
        sessions=(session,),
        everywhere=everywhere,
    )
    return with_rows(rules, session.workspace)


def with_rows(rules: Rules, workspace: Workspace) -> Rules:
    """Return rules with the rows of a workspace that have or had one of their sources."""
    rows = rows_from(workspace, lambda row: row.source in rules.sources) if rules.sources else frozenset()
    return replace(rules, rows=rows, names=names_of(workspace, rows))


def _rules(workspace: Workspace, erasure: ErasureRequest) -> Rules:
    if erasure.session:
        return session_rules(erasure.session, everywhere=erasure.everywhere)
    if erasure.kind == Forgotten.Kind.SOURCE:
        sources = frozenset(word.strip() for word in erasure.words if word.strip())
        if not sources:
            raise Invalid(gettext("Enter a source."), code="nothing_to_forget")
        return with_rows(Rules(sources=sources), workspace)
    phrases = phrases_of(erasure)
    if not phrases:
        words = gettext("Enter at least three letters or digits.")
        raise Invalid(words, code="nothing_to_forget")
    found = find_phrases(phrases)
    is_person = erasure.kind == Forgotten.Kind.PERSON
    redaction = Redaction(lines=found) if is_person else Redaction(words=found)
    return Rules(redaction, is_person=is_person, everywhere=erasure.everywhere)


def phrases_of(erasure: ErasureRequest) -> list[Phrase]:
    """Return the phrases of a phrase or a person."""
    if erasure.kind not in (Forgotten.Kind.PHRASE, Forgotten.Kind.PERSON):
        return []
    return [phrase for word in erasure.words if (phrase := phrase_of(word))]


def records_of(session: Session) -> set[tuple[str, ...]]:
    """Return what identifies a session's records in forks and copies of it.

    The ids and hashes that the agent's program gave to them, or else the texts and times of the oldest and newest.
    """
    entries = Entry.objects.filter(session=session).order_by("epoch", "position")
    named = set(entries.exclude(source_id="").values_list("source_id", "source_hash"))
    plain = entries.filter(source_id="").exclude(occurred_at=None)
    columns = ("role", "content", "tool_call_id", "occurred_at")
    ends = [*plain.values_list(*columns)[:KNOWN_RECORDS], *plain.reverse().values_list(*columns)[:KNOWN_RECORDS]]
    return named | {said_at(*one) for one in ends}


def table_name(row: Model) -> str:
    """Return the name of a row's table, in English, as receipts store it."""
    with override(None):
        name = str(row._meta.verbose_name_plural)
    return name if not name.startswith("historical ") else f"earlier states of {name.removeprefix('historical ')}"


def _digests(workspace: Workspace, erasure: ErasureRequest) -> list[dict[str, Any]]:
    """Return digests by which imports recognise erased content: of each phrase, or (length 0) of a whole source.

    For a session: its key as a source, its records, and the facts that came only from it. A row whose source was
    corrected has a digest of its own.
    """
    key = hash_key(workspace)
    if erasure.session:
        sources, texts = [erasure.session.key], facts_only_from(erasure.session)
    elif erasure.kind == Forgotten.Kind.SOURCE:
        sources, texts = list(erasure.words), []
    else:
        sources, texts = [], list(erasure.words)
    found = [(0, digest_of((source.strip(),), key)) for source in sources]
    rows = row_hashes(workspace, sources, key) if sources else []
    found += [(0, digest_of(record, key)) for record in records_of(erasure.session)] if erasure.session else []
    found += [(len(phrase), digest_of(phrase, key)) for text in texts if (phrase := phrase_of(text))]
    return [{"length": length, "hash": digest.hash} for length, digest in found] + [
        {"length": 0, "hash": one} for one in rows
    ]


def receipts(workspace: Workspace) -> list[Forgotten]:
    """Return the receipts of a workspace, latest first, and of people erased in the whole hub who occurred in it.

    The counts of the latter are the workspace's.
    """
    in_workspace = Q(workspace=workspace) | Q(workspace=None)
    latest = list(Forgotten.objects.filter(in_workspace).order_by("-id")[:SHOWN_RECEIPTS])
    for receipt in latest:
        if receipt.workspace_id is None:
            rows = [Counter(place["rows"]) for place in receipt.workspaces if place["workspace"] == workspace.slug]
            receipt.counts = dict(sum(rows, Counter()))
    return [receipt for receipt in latest if receipt.workspace_id or receipt.counts]

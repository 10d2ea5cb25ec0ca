"""Erase everything that mentions a phrase or person, or came from a source or session, from every table.

One walk over all tables of a workspace finds the affected rows. The preview counts them; applying it changes them in
one transaction with the append-only guard open. New tables are included automatically. Exact and derived rows
(values, terms, cached responses) are deleted; other rows lose the words, or for a person the lines that mention them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Model, Q
from django.utils.translation import gettext, ngettext, override

from knowledge_app.models import EditedRow, Fact, FactSource, Forgotten, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.pending_writes import write_without_forgotten
from knowledge_app.services.documents.revisions import update_facts
from knowledge_app.services.rows.edit_tables import TABLES
from memoryhub.forgetting.import_filter import hash_key
from memoryhub.forgetting.matching import (
    Redaction,
    digest_of,
    find_exactly,
    find_phrases,
    phrase_of,
)
from memoryhub.forgetting.rows import walk
from memoryhub.forgetting.rules import Affected, Rules
from memoryhub.graph.graph_cache import drop_graph
from memoryhub.graph.row_vectors import sweep_vectors
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.text.facts import fact_lines
from sessions_app.models import DeletedSession, Entry, Run, Session, Webhook, Workspace
from sessions_app.services.audit import By, open_guard, record
from sessions_app.services.lifecycle import delete_session, forgotten_key

SHOWN_EXAMPLES = 3
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
    """Affected rows by table, examples of each, and what can't be changed."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

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


def _source_folders(workspace: Workspace) -> list[str]:
    columns = ("label", "path", "project", "instructions_path", "error")
    return [text for row in workspace.source_folders.values_list(*columns) for text in row]


def plan_forget(workspace: Workspace, erasure: ErasureRequest) -> Preview:
    """Return what an erasure would change. Reads only. Raises Invalid for words that are too short."""
    return preview_rules(workspace, _rules(erasure))


def preview_rules(workspace: Workspace | None, rules: Rules) -> Preview:
    """Return what rules would change in a workspace; None for the rows of no workspace."""
    preview = Preview()
    for affected in walk(workspace, rules):
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
        Workspace.objects.select_for_update().get(pk=workspace.pk)
        rules = _rules(erasure)
        preview = plan_forget(workspace, erasure)
        if not preview.total:
            raise Invalid(gettext("Nothing in this workspace contains it."), code="nothing_to_forget")
        if preview.total != expected:
            raise Conflict(changed_since(preview.total, expected), code="forget_changed")
        unowned = dict(sorted(preview_rules(None, rules).counts.items())) if erasure.everywhere else {}
        digests = _digests(workspace, erasure)  # before deleting: a session's facts are known only while it exists
        erase(workspace, rules, by)
        receipt = Forgotten.objects.create(
            workspace=workspace,
            kind=erasure.kind,
            digests=digests,
            counts=dict(sorted(preview.counts.items())),
            workspaces=[{"workspace": None, "rows": unowned}] if erasure.everywhere else [],
            reason=rules.redaction.text(reason)[:500],
            forgotten_by=by.actor.name[:200],
            forgotten_at=by.at,
        )
        text = f"A {receipt.kind} was forgotten in {preview.total:,} rows"
        detail = {"kind": erasure.kind, "rows": receipt.counts}
        record(by, "memory.forgotten", "forgotten", receipt.pk, text, workspace=workspace, detail=detail)
    return receipt


def erase(workspace: Workspace, rules: Rules, by: By) -> None:
    """Apply rules to all tables of a workspace, inside the caller's transaction and guard."""
    _stop_runs(workspace, by.at)
    found = list(walk(workspace, rules))
    for affected in found:
        _apply(affected, by)
    for session in rules.sessions:
        _drop_session(session, by)
    if rules.sessions:
        for affected in list(walk(workspace, rules)):  # rows written by the deletion itself
            _apply(affected, by)
    _sync_facts(workspace)
    redacted = [
        one.row.pk for one in found if isinstance(one.row, MemoryRevision) and "content" in (one.values or {})
    ]
    write_without_forgotten(MemoryDocument.objects.filter(workspace=workspace, head__in=redacted), by=by)
    sweep_vectors(workspace.pk)
    drop_graph(workspace)


def erase_unowned(rules: Rules, by: By) -> None:
    """Apply rules to the rows of no workspace, inside the caller's transaction and guard."""
    for affected in list(walk(None, rules)):
        _apply(affected, by)


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
    return Rules(
        in_memory=Redaction(lines=find_phrases(facts)),
        in_keys=Redaction(words=find_exactly(session.key)),
        sources=frozenset({session.key}),
        sessions=(session,),
        everywhere=everywhere,
    )


def _rules(erasure: ErasureRequest) -> Rules:
    if erasure.session:
        return session_rules(erasure.session, everywhere=erasure.everywhere)
    if erasure.kind == Forgotten.Kind.SOURCE:
        sources = frozenset(word.strip() for word in erasure.words if word.strip())
        if not sources:
            raise Invalid(gettext("Enter a source."), code="nothing_to_forget")
        return Rules(sources=sources)
    phrases = [phrase for word in erasure.words if (phrase := phrase_of(word))]
    if not phrases:
        words = gettext("Enter at least three letters or digits.")
        raise Invalid(words, code="nothing_to_forget")
    found = find_phrases(phrases)
    is_person = erasure.kind == Forgotten.Kind.PERSON
    redaction = Redaction(lines=found) if is_person else Redaction(words=found)
    return Rules(redaction, is_person=is_person, everywhere=erasure.everywhere)


def facts_only_from(session: Session) -> list[str]:
    """Return the facts whose only source is a session."""
    of_session = FactSource.objects.filter(entry__session=session) | FactSource.objects.filter(run__session=session)
    mine = set(of_session.values_list("fact", flat=True))
    elsewhere = FactSource.objects.filter(fact__in=mine).exclude(pk__in=of_session.values("pk"))
    return list(
        Fact.objects.filter(pk__in=mine - set(elsewhere.values_list("fact", flat=True))).values_list(
            "text", flat=True
        )
    )


def records_of(session: Session) -> set[tuple[str, str]]:
    """Return the ids and hashes that the agent's program gave to a session's records; forks of it repeat them."""
    rows = Entry.objects.filter(session=session).exclude(source_id="")
    return set(rows.values_list("source_id", "source_hash"))


def _drop_session(session: Session, by: By) -> None:
    tombstone = delete_session(session, confirmation=session.key, reason="", by=by)
    _hide_key(tombstone)


def _hide_key(tombstone: DeletedSession) -> None:
    key = forgotten_key(tombstone.workspace, tombstone.key)
    DeletedSession.objects.filter(workspace=tombstone.workspace, key=key).exclude(pk=tombstone.pk).delete()
    DeletedSession.objects.filter(pk=tombstone.pk).update(key=key, is_forgotten=True)


def _stop_runs(workspace: Workspace, now: datetime) -> None:
    """Interrupt running runs, whose input may contain what is erased.

    Each is queued again, or cancelled if another of its kind is queued already.
    """
    for run in Run.objects.select_for_update().filter(workspace=workspace, status=Run.Status.RUNNING):
        run.fencing_number += 1
        run.status, run.not_before, run.stage = Run.Status.QUEUED, now, ""
        run.lease_owner, run.lease_expires_at = "", None
        try:
            with transaction.atomic():
                run.save()
        except IntegrityError:
            run.status, run.finished_at = Run.Status.CANCELLED, now
            run.save()


def _apply(affected: Affected, by: By) -> None:
    row, values = affected.row, affected.values
    rows = type(row)._base_manager.filter(pk=row.pk)
    if values is None:
        _forget_edits(row)
        rows.delete()
        if hasattr(row, "history"):
            row.history.all().delete()  # including the state that delete() just recorded
        return
    if isinstance(row, DeletedSession) and "key" in values:
        DeletedSession.objects.filter(workspace=row.workspace, key=values["key"]).exclude(pk=row.pk).delete()
    if isinstance(row, Session) and "key" in values:
        _leave_tombstone(row, by)
    rows.update(**values)


def _forget_edits(row: Model) -> None:
    """Remove a deleted row's content from edits: its stored states and the values to write."""
    table = next((name for name, table in TABLES.items() if table.model is type(row)), "")
    if not table:
        return
    edited = EditedRow.objects.filter(table=table, object_id=row.pk)
    for run in Run.objects.filter(pk__in=edited.values("run")):
        Run.objects.filter(pk=run.pk).update(options=run.options | {"values": {}, "reason": ""})
    edited.delete()


def _leave_tombstone(session: Session, by: By) -> None:
    """Keep a session whose key is erased from being imported again."""
    facts = {
        "is_forgotten": True,
        "entry_count": session.entry_count,
        "summary_count": 0,
        "total_tokens": session.total_tokens,
        "content_hash": "",
        "deleted_by": by.actor.name[:200],
        "deleted_at": by.at,
    }
    key = forgotten_key(session.workspace, session.key)
    DeletedSession.objects.update_or_create(workspace=session.workspace, key=key, defaults=facts)


def _sync_facts(workspace: Workspace) -> None:
    """Update current facts from the redacted text of their document, line by line."""
    for document in MemoryDocument.objects.filter(workspace=workspace, head__isnull=False).select_related("head"):
        if document.head is None:
            continue
        lines = {line.line: line for line in fact_lines(document.head.content, document.separator)}
        living = list(Fact.objects.filter(document=document, died=None))
        if lines.keys() != {fact.line for fact in living}:
            update_facts(document, document.head)
            continue
        for fact in living:
            line = lines[fact.line]
            fact.section, fact.category, fact.text = line.section, line.category, line.text
        Fact.objects.bulk_update(living, ["section", "category", "text"], batch_size=200)


def table_name(row: Model) -> str:
    """Return the name of a row's table, in English, as receipts store it."""
    with override(None):
        name = str(row._meta.verbose_name_plural)
    return name if not name.startswith("historical ") else f"earlier states of {name.removeprefix('historical ')}"


def _digests(workspace: Workspace, erasure: ErasureRequest) -> list[dict[str, Any]]:
    """Return digests by which imports recognise erased content: of each phrase, or (length 0) of a whole source.

    For a session: its key as a source, its records, and the facts that came only from it.
    """
    key = hash_key(workspace)
    if erasure.session:
        sources, texts = [erasure.session.key], facts_only_from(erasure.session)
    elif erasure.kind == Forgotten.Kind.SOURCE:
        sources, texts = list(erasure.words), []
    else:
        sources, texts = [], list(erasure.words)
    found = [(0, digest_of((source.strip(),), key)) for source in sources]
    found += [(0, digest_of(record, key)) for record in records_of(erasure.session)] if erasure.session else []
    found += [(len(phrase), digest_of(phrase, key)) for text in texts if (phrase := phrase_of(text))]
    return [{"length": length, "hash": digest.hash} for length, digest in found]


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

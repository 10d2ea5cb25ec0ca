"""Forgetting: erase rows, vacuum the database file, and keep imports from bringing anything back."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.apps import apps
from django.db import OperationalError, connection

from knowledge_app.models import Forgotten
from memoryhub.forgetting.erasure import ErasureRequest, ImportRules, apply_forget, import_rules
from memoryhub.forgetting.matching import MARK
from memoryhub.jobs.downloads import discard_downloads
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
from memoryhub.lib.search.index_maintenance import optimize
from memoryhub.lib.search.operations import indexes
from sessions_app.models import DeletedSession, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import forgotten_key

logger = logging.getLogger(__name__)
TABLES = ("sessions_app", "knowledge_app")


def forget(
    workspace: Workspace, erasure: ErasureRequest, *, expected: int, reason: str, by: By
) -> tuple[Forgotten, bool]:
    """Erase in every table and vacuum the database; return the receipt and whether the vacuum was done.

    Also deletes exports of the workspace that wait for download. Raises Invalid, Conflict.
    """
    receipt = apply_forget(workspace, erasure, expected=expected, reason=reason, by=by)
    discard_downloads(workspace, by.at)
    return receipt, vacuum()


def vacuum() -> bool:
    """Rewrite the database so that its files keep nothing of deleted rows; return whether that was done.

    Not done inside a transaction, or if the database stays locked. SQLite: the file and its write-ahead log.
    PostgreSQL: the hub's tables (VACUUM FULL).
    """
    if connection.in_atomic_block:
        return False
    try:
        _vacuum()
    except OperationalError as error:
        logger.warning("the database's file was not rewritten: %s", error)
        return False
    return True


def _vacuum() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for index in indexes(connection):  # index pages keep the words of deleted rows until merged
                optimize(connection, index)
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if cursor.fetchone()[0]:  # another connection is reading
                raise OperationalError("the log is in use")
            return
        for label in TABLES:
            for model in apps.get_app_config(label).get_models():
                cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(model._meta.db_table)}")


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

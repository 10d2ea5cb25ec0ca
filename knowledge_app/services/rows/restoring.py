"""Edits based on a state of a row that was shown: restore an earlier state, replace a value."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.decisions import FROM_FILES
from knowledge_app.services.rows.key_values import change_value, restore_value
from knowledge_app.services.rows.knowledge import restore_entry
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, NotFound
from sessions_app.models import Run
from sessions_app.services.audit import By
from sessions_app.services.workspaces import lock_workspace

Curated = KnowledgeEntry | Observation | KeyValue


@db_retry.retried
@transaction.atomic
def restore_row(row: Curated, state: int, *, known: int | None = None, by: By) -> Run:
    """Give a row the text and fields of an earlier state, to the letter, and take it back in if it is withdrawn.

    ``state``: that state's number. ``known``: the number of the latest state that was shown to whoever asks, if any
    was. Raises Conflict where the row got another since, NotFound, and KnowledgeExists.
    """
    lock_workspace(row.workspace_id)  # prevents the state from being forgotten meanwhile
    words = gettext("Someone has changed this in the meantime. Review the current version before you restore.")
    locked = _locked(row, known, words)
    old = row.history.filter(history_id=state).first()
    if old is None:
        raise NotFound(gettext("This earlier state is no longer stored."), code="no_such_state")
    return _restore(locked, old, by)


@db_retry.retried
@transaction.atomic
def replace_value(row: KeyValue, value: str, *, known: int | None = None, by: By) -> Run:
    """Change the value of a key. ``known``: as of ``restore_row``. Raises Conflict."""
    words = gettext("Someone changed this meanwhile. Save again to replace it.")
    return change_value(_locked(row, known, words), value, by=by)


def _locked(row: Any, known: int | None, words: str) -> Any:
    """Return a row, locked. Raises Conflict if its latest state isn't the known one, or it was deleted."""
    rows: Any = type(row)._default_manager.select_related("workspace").select_for_update(of=("self",))
    locked = rows.filter(pk=row.pk).first()
    latest = row.history.order_by("-history_id").values_list("history_id", flat=True).first()
    if locked is None or (known is not None and known != latest):
        raise Conflict(words, code="row_changed")
    return locked


def _restore(row: Curated, old: Any, by: By) -> Run:
    if isinstance(row, KeyValue):
        return restore_value(row, old.history_id, by=by)
    values = {name: getattr(old, name) for name in FROM_FILES[type(row)]}
    values |= {"withdrawn_at": None, "withdrawn_reason": ""}
    if isinstance(row, KnowledgeEntry):
        return restore_entry(row, values, by=by)
    return edit_rows(row.workspace, "observations", "assign", [row.pk], values=values, by=by)

"""Key-values, grid's photographic memory: exact string values under exact keys, with their history."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext
from simple_history.utils import bulk_create_with_history

from knowledge_app.models import KeyValue
from knowledge_app.services.decisions import CONFIRMED, PEOPLE, decided_fields
from knowledge_app.services.held_rows import hold_flagged
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.database import db_retry
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import Invalid, NotFound
from memoryhub.lib.validation import clean_text
from sessions_app.models import Run, Workspace
from sessions_app.models.conversations import KEY_LENGTH
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import lock_workspace

MAX_CHARS = 200_000


def living(workspace: Workspace) -> QuerySet[KeyValue]:
    return KeyValue.objects.filter(workspace=workspace, withdrawn_at=None)


def find_key(workspace: Workspace, key: str) -> KeyValue:
    """Return the row of a key. Raises NotFound where there is none, or it is withdrawn."""
    row = living(workspace).filter(key=key).first()
    if row is None:
        names = {"workspace": workspace.slug, "key": repr(key)}
        raise NotFound(gettext("%(workspace)s has no key %(key)s.") % names, code="no_such_key")
    return row


def list_keys(workspace: Workspace, prefix: str = "") -> list[str]:
    """Return the keys with a prefix, in order (grid's memory_list)."""
    rows = living(workspace).filter(key__startswith=prefix)
    return sorted(
        key for key in rows.values_list("key", flat=True) if key.startswith(prefix)
    )  # SQLite's LIKE ignores case


def with_text(rows: QuerySet[KeyValue], text: str) -> QuerySet[KeyValue]:
    """Return rows whose key or value contains a text, ignoring case. Masked values aren't searched."""
    return rows.filter(any_case("key__icontains", text) | (Q(is_secret=False) & any_case("value__icontains", text)))


@db_retry.retried
def write_value(workspace: Workspace, key: str, value: str, *, is_json: bool = False, by: By) -> KeyValue:
    """Set the value of a key (grid's memory_write); a withdrawn key is back. The same value changes nothing.

    If a person or a command writes the same value, agents can only propose to change it from then on. ``is_json``:
    the value is the JSON text of another type than a string. Raises Invalid.
    """
    key, value = checked(key, value)
    with transaction.atomic():
        lock_workspace(workspace.pk)  # serialize concurrent first writes of a key
        row = KeyValue.objects.select_for_update().filter(workspace=workspace, key=key).first()
        if row is None:
            return _create(workspace, key, value, by, is_json=is_json)
        if (row.value, row.is_json, row.withdrawn_at) != (value, is_json, None):
            change_value(row, value, is_json=is_json, by=by)
            row.refresh_from_db()
        else:
            _confirm(row, by)
        return row


def checked(key: str, value: str) -> tuple[str, str]:
    """Return key and value as they are stored. Raises Invalid."""
    key, value = clean_text(key), clean_text(value)
    if not key.strip():
        raise Invalid(gettext("Enter a key."), code="bad_key_value")
    if len(key) > KEY_LENGTH:
        words = gettext("A key can have at most %(most)s characters; this one has %(count)s.")
        raise Invalid(words % {"most": KEY_LENGTH, "count": f"{len(key):,}"}, code="bad_key_value")
    if len(value) > MAX_CHARS:
        words = gettext("A value can have at most %(most)s characters; this one has %(count)s.")
        raise Invalid(words % {"most": f"{MAX_CHARS:,}", "count": f"{len(value):,}"}, code="bad_key_value")
    return key, value


def _create(workspace: Workspace, key: str, value: str, by: By, *, is_json: bool) -> KeyValue:
    row = KeyValue(workspace=workspace, key=key, value=value, is_json=is_json, updated_at=by.at)
    derive(row)
    reason = f"{by.actor.name}: written"
    bulk_create_with_history([row], KeyValue, default_change_reason=reason, default_date=by.at)
    made = KeyValue.objects.get(workspace=workspace, key=key)
    text = f"Key-value {made.pk} written"
    record(by, "key_value.written", "key_value", made.pk, text, workspace=workspace)
    hold_flagged([made], by)
    return made


def change_value(row: KeyValue, value: str, *, is_json: bool = False, by: By) -> Run:
    """Change the value of a key as an undoable edit, or confirm it."""
    values = new_state(value, is_json=is_json)
    if all(getattr(row, name) == new for name, new in values.items()):
        _confirm(row, by)
    return edit_rows(row.workspace, "key_values", "assign", [row.pk], values=values, by=by)


def _confirm(row: KeyValue, by: By) -> None:
    """Record that a person wrote the value that a key has. One that is held still waits for its approval."""
    is_held = getattr(row, "hold", None) is not None
    if by.actor.kind in PEOPLE and not is_held and not decided_fields([row])[row.pk]:
        text = f"Key-value {row.pk} confirmed"
        record(by, CONFIRMED, "key_value", row.pk, text, workspace=row.workspace)


def new_state(value: str, *, is_json: bool) -> dict[str, Any]:
    """Return the fields of a key that has a new value: it isn't withdrawn any more."""
    return {"value": value, "is_json": is_json, "withdrawn_at": None, "withdrawn_reason": ""}


def restore_value(row: KeyValue, state: int, *, by: By) -> Run:
    """Give a key the value of an earlier state, by that state's number. Raises NotFound."""
    old = row.history.filter(history_id=state).first()
    if old is None:
        raise NotFound(
            gettext("%(key)s has no earlier state %(state)s.") % {"key": repr(row.key), "state": state},
            code="no_such_key",
        )
    return change_value(row, old.value, is_json=old.is_json, by=by)

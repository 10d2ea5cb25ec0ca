"""Create workspaces and change their settings."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.utils.text import slugify
from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid
from memoryhub.lib.validation import clean_text
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

_ERASURES = 0x6D68  # the advisory locks of workspaces: with a row's lock, an erasure and an edit could deadlock


@transaction.atomic
def create_workspace(name: str, *, by: By) -> Workspace:
    """Create a workspace without a folder, for an agent that writes to the hub. Raises Invalid."""
    name = clean_text(" ".join(name.split()))
    if not name or len(name) > 200:
        raise Invalid(gettext("A workspace needs a name of 1 to 200 characters."), code="bad_name")
    workspace = Workspace.objects.create(slug=free_slug(name), name=name, created_at=by.at, updated_at=by.at)
    record(by, "workspace.created", "workspace", workspace.pk, "Workspace created", workspace=workspace)
    return workspace


def lock_workspace(pk: int) -> Workspace:
    """Lock a workspace until the end of the transaction: who locks it too waits, as does everything that erases.

    Its key isn't locked: an edit that has locked a document can add rows that refer to the workspace, and doesn't
    wait for somebody who waits for the document.
    """
    return Workspace.objects.select_for_update(no_key=True).get(pk=pk)


def share_workspace(pk: int) -> None:
    """Keep anything in a workspace from being erased until the end of the transaction, without locking others out.

    Call before other locks. On SQLite, the transaction is the only writer anyway.
    """
    _lock_erasures("pg_advisory_xact_lock_shared", pk)


def forbid_sharing(pk: int) -> None:
    """Wait for transactions that share a workspace, and let others wait until the end of this one, which erases."""
    _lock_erasures("pg_advisory_xact_lock", pk)


def _lock_erasures(function: str, pk: int) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s, %s)", [_ERASURES, pk])


def free_slug(name: str) -> str:
    """Return an unused slug for a name."""
    wish = slugify(name.replace(".", "-"))[:50] or "workspace"
    taken = set(Workspace.objects.filter(slug__startswith=wish).values_list("slug", flat=True))
    if wish not in taken:
        return wish
    return next(slug for number in range(2, len(taken) + 3) if (slug := f"{wish}-{number}") not in taken)


@transaction.atomic
def save_settings(workspace: Workspace, values: dict[str, Any], *, by: By) -> dict[str, Any]:
    """Save validated settings; return the changes as ``{name: [before, after]}``."""
    locked = lock_workspace(workspace.pk)
    changed = {
        name: [getattr(locked, name), value] for name, value in values.items() if getattr(locked, name) != value
    }
    if not changed:
        return {}
    for name, value in values.items():
        setattr(locked, name, value)
        setattr(workspace, name, value)
    locked.updated_at = by.at
    locked.save(update_fields=[*changed, "updated_at"])
    text = f"Settings changed: {', '.join(name.replace('_', ' ') for name in changed)}"
    detail = {"changed": changed}
    record(by, "workspace.configured", "workspace", locked.pk, text, workspace=locked, detail=detail)
    return changed

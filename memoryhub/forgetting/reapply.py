"""Erase forgotten content again after an older backup was restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from knowledge_app.models import Forgotten, HistoryEntry
from memoryhub.backups.revocations import Receipt
from memoryhub.forgetting.erasure import erase
from memoryhub.forgetting.import_filter import hash_key
from memoryhub.forgetting.matching import Digest, Redaction, digest_of, find_digests, find_exactly
from memoryhub.forgetting.rules import HAVE_SOURCES, Rules
from memoryhub.lib import db_retry
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By, open_guard, record


def reapply_receipts(receipts: Sequence[Receipt], *, by: By) -> list[str]:
    """Erase again what these receipts are about, by their keyed hashes; return those that can't be re-applied.

    Receipts of workspaces that the backup doesn't contain are skipped.
    """
    unapplied = []
    for receipt in receipts:
        workspace = Workspace.objects.filter(pk=receipt.workspace_id).first()
        if workspace is None:
            continue
        if workspace.slug != receipt.workspace or not receipt.digests:
            unapplied.append(f"receipt {receipt.id} of {receipt.workspace}: {receipt.kind}")
            continue
        _reapply(workspace, receipt, by)
    return unapplied


@db_retry.retried
@transaction.atomic
def _reapply(workspace: Workspace, receipt: Receipt, by: By) -> None:
    with open_guard("forgetting again"):
        rules = _rules(workspace, receipt)
        if rules is not None:
            erase(workspace, rules, by)
        values = {name: getattr(receipt, name) for name in ("digests", "counts", "reason", "forgotten_by")}
        same = {"workspace": workspace, "kind": receipt.kind, "forgotten_at": receipt.forgotten_at}
        if not any(known.digests == receipt.digests for known in Forgotten.objects.filter(**same)):
            Forgotten.objects.create(**same, **values)
            text = f"A {receipt.kind} was forgotten again after a restore"
            record(by, "memory.forgotten", "forgotten", receipt.id, text, workspace=workspace)


def _rules(workspace: Workspace, receipt: Receipt) -> Rules | None:
    """Return the rules of a receipt; None if there is nothing to erase."""
    key = hash_key(workspace)
    finder = find_digests([Digest(**digest) for digest in receipt.digests if digest["length"]], key)
    sources = frozenset(digest["hash"] for digest in receipt.digests if not digest["length"])
    if receipt.kind == Forgotten.Kind.PHRASE:
        return Rules(Redaction(words=finder))
    if receipt.kind == Forgotten.Kind.PERSON:
        return Rules(Redaction(lines=finder), is_person=True)
    if receipt.kind == Forgotten.Kind.SOURCE:
        known = {name for name in _source_names(workspace) if digest_of((name.strip(),), key).hash in sources}
        return Rules(sources=frozenset(known)) if known else None
    own = Session.objects.filter(workspace=workspace)
    session = next((one for one in own if digest_of((one.key.strip(),), key).hash in sources), None)
    if session is None:
        return None
    return Rules(
        in_memory=Redaction(lines=finder),
        in_keys=Redaction(words=find_exactly(session.key)),
        sources=frozenset({session.key}),
        session=session,
    )


def _source_names(workspace: Workspace) -> set[str]:
    names: set[str] = set()
    for model in (*HAVE_SOURCES, HistoryEntry):
        columns = {column.name for column in model._meta.concrete_fields}
        if {"source", "workspace"} <= columns:
            rows: Any = model._base_manager.filter(workspace=workspace).exclude(source="")
            names.update(rows.values_list("source", flat=True).distinct())
    return names

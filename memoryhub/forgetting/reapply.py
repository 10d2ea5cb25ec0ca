"""Erase forgotten content again after an older backup was restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from knowledge_app.models import Forgotten
from memoryhub.backups.revocations import Receipt
from memoryhub.forgetting.erasure import erase, erase_unowned
from memoryhub.forgetting.hub_erasure import finder_of, receipt_rules, source_names, with_known_rows
from memoryhub.forgetting.import_filter import hash_key
from memoryhub.forgetting.matching import Digest, Phrase, Redaction, digest_of, find_exactly
from memoryhub.forgetting.rules import Rules
from memoryhub.lib.database import db_retry
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By, open_guard, record


def reapply_receipts(receipts: Sequence[Receipt], *, by: By) -> list[str]:
    """Erase again what these receipts are about, by their keyed hashes; return those that can't be re-applied.

    Of workspaces that the backup doesn't contain, only the rows of no workspace are searched, if they were.
    """
    unapplied = []
    for receipt in receipts:
        workspace = Workspace.objects.filter(pk=receipt.workspace_id or 0).first()
        if receipt.workspace_id is None:
            _reapply_everywhere(receipt, by)
        elif workspace is None:
            if receipt.is_of_hub:
                _reapply_unowned(receipt, by)
        elif workspace.slug != receipt.workspace or not receipt.digests:
            unapplied.append(f"receipt {receipt.id} of {receipt.workspace}: {receipt.kind}")
        else:
            _reapply(workspace, receipt, by)
    return unapplied


def count_without_workspace(receipts: Sequence[Receipt]) -> int:
    """Count the receipts of workspaces that the backup doesn't contain."""
    known = set(Workspace.objects.values_list("pk", flat=True))
    return sum(receipt.workspace_id is not None and receipt.workspace_id not in known for receipt in receipts)


@db_retry.retried
@transaction.atomic
def _reapply(workspace: Workspace, receipt: Receipt, by: By) -> None:
    with open_guard("forgetting again"):
        rules = rules_of(workspace, receipt)
        if rules is not None:
            erase(workspace, replace(rules, everywhere=receipt.is_of_hub), by)
        _keep_receipt(workspace, receipt, by)


@db_retry.retried
@transaction.atomic
def _reapply_unowned(receipt: Receipt, by: By) -> None:
    """Erase in the rows of no workspace what was forgotten in a workspace that is gone."""
    rules = rules_of(Workspace(pk=receipt.workspace_id), receipt)
    if rules is not None:
        with open_guard("forgetting again"):
            erase_unowned(rules, by)


@db_retry.retried
@transaction.atomic
def _reapply_everywhere(receipt: Receipt, by: By) -> None:
    with open_guard("forgetting again"):
        for workspace in Workspace.objects.order_by("id"):
            erase(workspace, receipt_rules(workspace, receipt.digests), by)
        erase_unowned(receipt_rules(None, receipt.digests), by)
        _keep_receipt(None, receipt, by)


def _keep_receipt(workspace: Workspace | None, receipt: Receipt, by: By) -> None:
    """Write the receipt, unless the backup has it."""
    values = {name: getattr(receipt, name) for name in ("digests", "counts", "reason", "forgotten_by", "workspaces")}
    same = {"workspace": workspace, "kind": receipt.kind, "forgotten_at": receipt.forgotten_at}
    if not any(known.digests == receipt.digests for known in Forgotten.objects.filter(**same)):
        kept = Forgotten.objects.create(**same, **values)
        text = f"A {receipt.kind} was forgotten again after a restore"
        detail = {"kind": receipt.kind, "rows": receipt.counts}
        record(by, "memory.forgotten", "forgotten", kept.pk, text, workspace=workspace, detail=detail)


def rules_of(
    workspace: Workspace, receipt: Receipt | Forgotten, phrases: dict[str, Phrase] | None = None
) -> Rules | None:
    """Return the rules of a workspace's receipt; None if there is nothing to erase.

    ``phrases``: all that occur, by hash, as for ``hub_erasure.receipt_rules``.
    """
    key = hash_key(workspace)
    finder = finder_of([Digest(**digest) for digest in receipt.digests if digest["length"]], key, phrases)
    sources = frozenset(digest["hash"] for digest in receipt.digests if not digest["length"])
    if receipt.kind == Forgotten.Kind.PHRASE:
        return Rules(Redaction(words=finder))
    if receipt.kind == Forgotten.Kind.PERSON:
        return Rules(Redaction(lines=finder), is_person=True)
    if receipt.kind == Forgotten.Kind.SOURCE:
        known = {name for name in source_names(workspace) if digest_of((name.strip(),), key).hash in sources}
        rules = with_known_rows(Rules(sources=frozenset(known)), workspace, sources, key)
        return rules if known or rules.rows else None
    own = Session.objects.filter(workspace=workspace)
    session = next((one for one in own if digest_of((one.key.strip(),), key).hash in sources), None)
    if session is None:
        return None
    rules = Rules(
        in_memory=Redaction(lines=finder),
        in_keys=Redaction(words=find_exactly(session.key)),
        sources=frozenset({session.key.strip()}),
        sessions=(session,),
    )
    return with_known_rows(rules, workspace, sources, key)

"""Erasures in one workspace, requested on its page and carried out by a job.

The receipt is written first, so that imports leave the content out at once. As for people in the whole hub, the job
works from the keyed hashes of the receipt and contains no word of it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from knowledge_app.models import Forgotten
from memoryhub.forgetting.erasure import (
    ErasureRequest,
    erase_in_workspace,
    lock_for_erasure,
    nothing_found,
    write_receipt,
)
from memoryhub.forgetting.forget import discard_copies, vacuum
from memoryhub.forgetting.hub_erasure import find_receipt_phrases
from memoryhub.forgetting.matching import Phrase
from memoryhub.forgetting.reapply import rules_of
from memoryhub.jobs.queue import request_job
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Gone, Invalid
from memoryhub.models import Job
from sessions_app.models import Workspace
from sessions_app.services.audit import By, open_guard


@transaction.atomic
def request_forgetting(workspace: Workspace, erasure: ErasureRequest, *, expected: int, reason: str, by: By) -> Job:
    """Write the receipt and return the job that erases. Raises Invalid.

    ``expected``: the number of rows in the preview, which the job's page compares with those erased.
    """
    receipt = write_receipt(workspace, erasure, reason=reason, by=by)
    return request_job(Job.Kind.ERASURE, workspace, {"receipt": receipt.pk, "expected": expected}, by=by)[0]


def carry_out_receipt(receipt: Forgotten, *, by: By) -> bool:
    """Erase in the receipt's workspace by its hashes; return whether the database was vacuumed.

    It can be repeated: the counts of each time are added. Raises Invalid, and deletes the receipt, if nothing was
    found.
    """
    phrases: dict[str, Phrase] = {}
    find_receipt_phrases(receipt.workspace, receipt, phrases)
    _erase(receipt, phrases, by)
    if not receipt.counts:
        receipt.delete()
        raise Invalid(nothing_found(), code="nothing_to_forget")
    if receipt.workspace:
        discard_copies(receipt.workspace, by.at)
    return vacuum()


def withdraw_request(job: Job, _now: datetime) -> None:
    """Delete the receipt of an erasure that was cancelled before it erased anything, here or in the whole hub."""
    if job.status == Job.Status.CANCELLED:
        Forgotten.objects.filter(pk=job.options.get("receipt", 0), workspace=job.workspace, counts={}).delete()


@db_retry.retried
@transaction.atomic
def _erase(receipt: Forgotten, phrases: dict[str, Phrase], by: By) -> None:
    with open_guard("forgetting"):
        workspace = Workspace.objects.filter(pk=receipt.workspace_id or 0).first()
        if workspace is None or not lock_for_erasure(workspace):
            raise Gone("The job's workspace was deleted.", code="job_without_workspace")
        receipt.refresh_from_db()
        rules = rules_of(workspace, receipt, phrases)
        if rules is not None:
            erase_in_workspace(workspace, receipt, replace(rules, everywhere=receipt.is_everywhere), by)

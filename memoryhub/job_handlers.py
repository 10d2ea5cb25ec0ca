"""Handlers of the job kinds. They are idempotent and can be interrupted at each step.

``options`` by kind. Export: ``layout``. Compression: ``method`` (auto, llm, heuristic), ``hold`` and ``sessions``
(keys; by default all that are due). Rebuild: ``tables`` (by default all). Import: ``report`` (id) and ``source``
(path). Backup check: ``name``. Erasure: ``receipt`` (id).
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from knowledge_app.models import Forgotten
from memoryhub import sweeps
from memoryhub.backups import folder
from memoryhub.demo.building import build_demo
from memoryhub.forgetting.hub_erasure import erase_person
from memoryhub.forgetting.requests import carry_out_receipt, withdraw_request
from memoryhub.jobs.downloads import create_file
from memoryhub.jobs.kinds import ALL, Clock, JobKind
from memoryhub.jobs.progress import Postponed, Progress, TryAgain
from memoryhub.lib.errors import Gone
from memoryhub.models import Job
from memoryhub.processes import this_home
from memoryhub.runs.compress_all import compress_sessions, due_sessions
from memoryhub.search.rebuild import rebuild_indexes
from memoryhub.sync import other_machines
from memoryhub.sync.erased_files import erasure_files
from memoryhub.sync.exporting import write_archive
from memoryhub.sync.import_requests import carry_out_import, close_report
from memoryhub.sync.sync_requests import carry_out_sync
from sessions_app.models import Run, Session, WebhookDelivery, Workspace
from sessions_app.services import webhooks
from sessions_app.services.audit import Actor, By

CANCELLED = frozenset(("cancelled",))
DISABLED_PAUSE = timedelta(hours=1)  # while a webhook is turned off


def _export(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    workspace = _workspace(job)
    with create_file(job) as out:
        report = write_archive(
            workspace, job.options.get("layout", "auto"), out, by=By(_actor(job), clock()), step=progress.step
        )
        size = out.tell()
        progress.save(stage="")  # raises if the job was cancelled
    job.file_name = f"{workspace.slug}-{report.plan.layout}.zip"
    made = {"layout": report.plan.layout, "files": report.files, "written": report.written, "bytes": size}
    return made | {"home": this_home()}


def _compress(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    workspace = _workspace(job)
    counts: Counter[str] = Counter(job.result.get("counts", {}))  # of a killed worker
    wanted = job.options.get("sessions")
    chosen = Session.objects.filter(workspace=workspace, key__in=wanted) if wanted else due_sessions(workspace)
    options = {"method": job.options.get("method", "auto"), "hold": bool(job.options.get("hold"))}

    def on_start(run: Run, total: int) -> None:
        stage = run.session.key[:200] if run.session else ""
        result = {"counts": dict(counts), "run": run.pk}
        progress.save(steps_done=counts.total(), steps_total=total, stage=stage, result=result)

    runs = compress_sessions(
        list(chosen.values_list("pk", flat=True)),
        options=options,
        counts=counts,
        actor=_actor(job),
        clock=clock,
        on_start=on_start,
        on_wait=progress.check,
    )
    for _ in runs:
        progress.save(steps_done=counts.total(), result={"counts": dict(counts)})
    return {"counts": dict(counts)}


def _rebuild(job: Job, progress: Progress, _clock: Clock) -> dict[str, Any]:
    found = rebuild_indexes(job.options.get("tables", ()), step=progress.step)
    return {"indexes": found}


def _erase(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    found = Forgotten.objects.filter(pk=job.options.get("receipt", 0), workspace=job.workspace, lifted_at=None)
    receipt, by = found.select_related("workspace").first(), By(_actor(job), clock())
    if receipt is None:
        raise Gone("The erasure's receipt is gone, or re-import was allowed.", code="job_without_receipt")
    if receipt.workspace:
        is_vacuumed = carry_out_receipt(receipt, by=by)
    else:
        is_vacuumed = erase_person(receipt, by=by, step=progress.step)
    places = 1 if receipt.workspace else len(receipt.places)
    return {"rows": sum(receipt.counts.values()), "workspaces": places, "vacuumed": is_vacuumed}


def _send(job: Job, _progress: Progress, clock: Clock) -> dict[str, Any]:
    delivery = WebhookDelivery.objects.select_related("webhook__workspace").filter(job=job).first()
    if delivery is None or delivery.status:
        return {}
    if not delivery.webhook.is_enabled:
        raise Postponed("The webhook is turned off.", until=clock() + DISABLED_PAUSE)
    if not webhooks.deliver(delivery, allowed=settings.MEMORYHUB_PRIVATE_HOSTS, now=clock()):
        raise TryAgain(delivery.error)
    return {}


def _sweep(_job: Job, _progress: Progress, clock: Clock) -> dict[str, Any]:
    sweeps.request_due(clock())
    return {}


def _prune(_job: Job, _progress: Progress, clock: Clock) -> dict[str, Any]:
    sweeps.prune(clock())
    return {}


def _build_demo(job: Job, progress: Progress, clock: Clock) -> dict[str, Any]:
    built = build_demo(by=By(_actor(job), clock()), step=progress.step)
    return {"workspaces": [one.workspace.slug for one in built if one.workspace]}


def _actor(job: Job) -> Actor:
    return Actor("person", job.requested_by)


def _workspace(job: Job) -> Workspace:
    if job.workspace is None:
        raise Gone("The job's workspace was deleted.", code="job_without_workspace")
    return job.workspace


KINDS = {
    Job.Kind.EXPORT: JobKind(_export, lane="long", label=gettext_noop("Export"), audited=ALL),
    Job.Kind.COMPRESSION: JobKind(_compress, lane="long", label=gettext_noop("Bulk compression"), audited=ALL),
    Job.Kind.REBUILD: JobKind(_rebuild, lane="long", label=gettext_noop("Search rebuild"), audited=ALL),
    Job.Kind.ERASURE: JobKind(
        _erase,
        lane="long",
        label=gettext_noop("Erasure"),
        is_cancellable=lambda _job: False,
        on_end=withdraw_request,
        audited=ALL,
        details=erasure_files,
    ),
    Job.Kind.IMPORT: JobKind(
        carry_out_import,
        lane="files",
        label=gettext_noop("Import"),
        max_takeovers=1,
        pauses=other_machines.PAUSES,
        on_end=close_report,
        noun="import",
        audited=CANCELLED,
    ),
    Job.Kind.DEMO: JobKind(_build_demo, lane="files", label=gettext_noop("Demo"), max_takeovers=1, audited=ALL),
    Job.Kind.SYNC: JobKind(
        carry_out_sync,
        lane="files",
        label=gettext_noop("Sync"),
        pauses=other_machines.PAUSES,
        is_cancellable=lambda _job: False,
    ),
    Job.Kind.BACKUP: JobKind(
        folder.carry_out_backup,
        lane="backups",
        label=gettext_noop("Backup"),
        is_cancellable=folder.is_cancellable,
        noun="backup",
        audited=CANCELLED,
    ),
    Job.Kind.BACKUP_CHECK: JobKind(
        folder.carry_out_check,
        lane="backups",
        label=gettext_noop("Backup check"),
        is_cancellable=folder.is_cancellable,
        noun="backup",
        audited=CANCELLED,
    ),
    Job.Kind.WEBHOOK: JobKind(
        _send,
        lane="webhooks",
        label="Webhook delivery",
        pauses=webhooks.PAUSES,
        is_listed=False,
        on_end=lambda job, _now: webhooks.give_up(job),
    ),
    Job.Kind.SWEEP: JobKind(_sweep, lane="sweeps", label="Sweep", every=sweeps.SWEEP_EVERY, is_listed=False),
    Job.Kind.PRUNING: JobKind(_prune, lane="sweeps", label="Pruning", every=sweeps.PRUNE_EVERY, is_listed=False),
}

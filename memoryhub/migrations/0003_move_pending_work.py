"""Move all pending work to jobs: imports, requested syncs, backups, webhook deliveries, and rows of django-tasks."""

import hashlib
import json
import socket
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import migrations
from django.db.models import F
from django.utils import timezone

TABLE = "django_tasks_database_dbtaskresult"
APP = "django_tasks_database"
LIVE = ("queued", "running")
LAST_PAUSE = timedelta(days=1)  # by which the last attempt of a delivery put the next one off
BATCH = 500
INTERRUPTED = "The hub stopped during this import. What was taken stays; import again for the rest."


def move(apps, schema_editor):
    tasks = list(pending_tasks(schema_editor.connection))
    move_jobs(apps.get_model("memoryhub", "Job"))
    move_imports(apps)
    move_syncs(apps, tasks)
    move_backups(apps, tasks)
    move_deliveries(apps)
    drop_tasks(schema_editor)


def pending_tasks(connection):
    """Yield path and arguments of tasks that wait, or were interrupted, oldest first."""
    with connection.cursor() as cursor:
        if TABLE not in connection.introspection.table_names(cursor):
            return
        cursor.execute(
            f"SELECT task_path, args_kwargs FROM {TABLE} WHERE status IN ('READY', 'RUNNING') ORDER BY enqueued_at"
        )
        for path, values in cursor.fetchall():
            values = json.loads(values) if isinstance(values, str) else values
            yield path, values["args"]


def move_jobs(job_model):
    for job in job_model.objects.filter(status__in=LIVE):
        job.takeover_count = job.options.pop("taken_up", 0)
        job.not_before = job.created_at
        if not job.cancel_asked_at:
            key = key_of(job.kind, job.workspace_id, job.options)
            job.unique_key = "" if job_model.objects.filter(unique_key=key).exists() else key
        job.save()


def move_imports(apps):
    for report in apps.get_model("sessions_app", "ImportReport").objects.filter(status__in=LIVE).order_by("id"):
        was_running, report.status = report.status == "running", ""
        if was_running and report.cancel_asked_at:
            kept = f"Cancelled after {report.files_done:,} of {report.file_count:,} files; what was read is kept"
            report.status, report.error = "cancelled", f"{kept}, import again to go on."
        elif was_running and report.requested_by_id is None:
            report.status, report.error_code, report.error = "failed", "interrupted", INTERRUPTED
        if report.status:
            report.finished_at = timezone.now()
        else:
            report.job = add_job(
                apps,
                "import",
                workspace_id=report.workspace_id,
                options={"report": report.pk, "source": report.path},
                unique_key=f"import:{hashlib.sha256(report.path.encode(errors='surrogateescape')).hexdigest()}",
                requested_by=report.requested_by.username if report.requested_by else "a command",
                home=home() if Path(report.path).is_relative_to(settings.MEMORYHUB_HOME) else "",
                takeover_count=int(was_running),
                created_at=report.created_at,
                not_before=report.created_at,
            )
            report.error_code = report.error = ""
        report.save()


def move_syncs(apps, tasks):
    requested_by = {args[0]: args[1] for path, args in tasks if path.endswith(".sync_folder")}
    states = apps.get_model("sessions_app", "SyncState").objects.exclude(requested_at=None)
    wanted = dict(states.values_list("workspace_id", "requested_at"))
    known = apps.get_model("sessions_app", "Workspace").objects.values_list("pk", flat=True)
    for pk in known.filter(pk__in={*wanted, *requested_by}):
        moment = wanted.get(pk) or timezone.now()
        key, name = key_of("sync", pk, {}), requested_by.get(pk, "")
        values = {"unique_key": key, "requested_by": name, "created_at": moment, "not_before": moment}
        add_job(apps, "sync", workspace_id=pk, **values)


def move_backups(apps, tasks):
    cancelled = cancelled_backup()
    for path, args in tasks:
        if path.endswith((".back_up", ".check_backup")) and not (cancelled and args[1:] == [cancelled]):
            values = {"unique_key": "backup"}
            if path.endswith(".back_up"):
                add_job(apps, "backup", requested_by=args[0], **values)
            else:
                add_job(apps, "backup_check", options={"name": args[0]}, home=home(), **values)


def cancelled_backup():
    """Return the time of the last backup request that was cancelled while it waited."""
    try:
        return json.loads((settings.MEMORYHUB_BACKUP_DIR / "state.json").read_text()).get("cancelled_wish", "")
    except (OSError, ValueError):
        return ""


def move_deliveries(apps):
    deliveries = apps.get_model("sessions_app", "WebhookDelivery").objects
    deliveries.filter(status="failed").update(tried_at=F("next_attempt_at") - LAST_PAUSE)
    deliveries.filter(status="sent").update(tried_at=F("sent_at"))
    job_model = apps.get_model("memoryhub", "Job")
    while rows := list(deliveries.filter(status="waiting").select_related("webhook").order_by("id")[:BATCH]):
        jobs = [
            job_model(
                kind="webhook",
                workspace_id=delivery.webhook.workspace_id,
                attempt_count=delivery.attempt_count,
                not_before=delivery.next_attempt_at,
                created_at=delivery.next_attempt_at,
            )
            for delivery in rows
        ]
        for delivery, job in zip(rows, job_model.objects.bulk_create(jobs), strict=True):
            delivery.job, delivery.status = job, ""
        deliveries.bulk_update(rows, ["job", "status"])


def add_job(apps, kind, *, unique_key, **values):
    """Add a queued job; one whose key is in use already has none."""
    jobs = apps.get_model("memoryhub", "Job").objects
    key = "" if jobs.filter(unique_key=unique_key).exists() else unique_key
    return jobs.create(kind=kind, unique_key=key, **values)


def key_of(kind, workspace_id, options):
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
    return f"{kind}:{workspace_id or ''}:{digest[:32]}"


def home():
    return f"{socket.gethostname()}:{settings.MEMORYHUB_HOME}"[:300]


def drop_tasks(schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        cursor.execute("DELETE FROM django_migrations WHERE app = %s", [APP])


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0002_one_queue"), ("sessions_app", "0003_jobs_of_results")]

    operations = [migrations.RunPython(move, migrations.RunPython.noop, elidable=True)]

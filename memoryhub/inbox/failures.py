"""Failed imports, jobs and webhook deliveries that nothing has fixed since."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memoryhub.inbox.attention_items import MAX_ITEMS, RECENT, AttentionItem
from memoryhub.jobs.uploads import FOLDER as UPLOADS
from memoryhub.models import Job
from memoryhub.sync.import_requests import PROBLEM_OUTCOMES
from sessions_app.models import ImportProblem, ImportReport, Webhook, WebhookDelivery, Workspace

JOBS: dict[str, Promise | str] = {
    Job.Kind.EXPORT: gettext_lazy("The last export failed: %(error)s"),
    Job.Kind.COMPRESSION: gettext_lazy("The last bulk compression failed: %(error)s"),
    Job.Kind.REBUILD: gettext_lazy("The last rebuild of the search index failed: %(error)s"),
}


def failed_jobs(workspaces: QuerySet[Workspace], now: datetime, *, of_hub: bool) -> list[AttentionItem]:
    rows = unfixed_jobs(workspaces, now, of_hub=of_hub)
    return [job_item(job) for job in rows.select_related("workspace").order_by("-id")[:MAX_ITEMS]]


def unfixed_jobs(workspaces: QuerySet[Workspace], now: datetime, *, of_hub: bool) -> QuerySet[Job]:
    """Return jobs that failed within a week and weren't dismissed, if no later one of their kind exists.

    Cancelled ones don't count as later. ``of_hub``: also jobs of no workspace.
    """
    mine = Q(workspace__in=workspaces.values("pk")) | (Q(workspace=None) if of_hub else Q(pk__in=[]))
    later = Job.objects.filter(kind=OuterRef("kind"), pk__gt=OuterRef("pk")).exclude(status=Job.Status.CANCELLED)
    is_followed = Exists(later.filter(workspace=OuterRef("workspace")))
    is_followed_in_hub = Q(workspace=None) & Exists(later.filter(workspace=None))
    failed = Job.objects.filter(mine, kind__in=JOBS, status=Job.Status.FAILED, finished_at__gte=now - RECENT)
    return failed.filter(dismissed_at=None).exclude(is_followed).exclude(is_followed_in_hub)


def job_item(job: Job) -> AttentionItem:
    slug, name = (job.workspace.slug, job.workspace.name) if job.workspace else ("", "")
    text = str(JOBS[job.kind]) % {"error": job.error}
    return AttentionItem("job", slug, name, text, reverse("job", args=[job.pk]), since=job.finished_at, pk=job.pk)


def failed_deliveries(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    rows = unfixed_deliveries(workspaces, now).select_related("webhook__workspace")
    return [delivery_item(delivery) for delivery in rows.order_by("-id")[:MAX_ITEMS]]


def unfixed_deliveries(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[WebhookDelivery]:
    """Return the latest finished deliveries of enabled webhooks that failed for good within a week."""
    tried = WebhookDelivery.objects.filter(webhook=OuterRef("pk")).exclude(status="")
    hooks = Webhook.objects.filter(workspace__in=workspaces.values("pk"), is_enabled=True)
    newest = hooks.annotate(latest=Subquery(tried.order_by("-id").values("pk")[:1])).values("latest")
    given_up = Q(status=WebhookDelivery.Status.FAILED, tried_at__gte=now - RECENT)
    return WebhookDelivery.objects.filter(given_up, pk__in=newest)


def delivery_item(delivery: WebhookDelivery) -> AttentionItem:
    workspace = delivery.webhook.workspace
    words = _("The last webhook message to %(host)s couldn't be delivered: %(error)s.")
    host = urlsplit(delivery.webhook.url).hostname or ""  # the rest of the address may be secret
    text = words % {"host": host, "error": delivery.error.rstrip(".")}
    url = reverse("webhooks", args=[workspace.slug])
    return AttentionItem(
        "webhook", workspace.slug, workspace.name, text, url, since=delivery.tried_at, pk=delivery.webhook_id
    )


def latest_imports(workspaces: QuerySet[Workspace], now: datetime) -> list[AttentionItem]:
    return import_items(unfixed_imports(workspaces, now).order_by("-id")[:MAX_ITEMS])


def first_imports(now: datetime) -> list[AttentionItem]:
    return import_items(unfixed_first_imports(now).order_by("-id")[:MAX_ITEMS])


def unfixed_imports(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[ImportReport]:
    """Return the latest import of each workspace if it failed, or has warnings of a week, and wasn't dismissed."""
    finished = ImportReport.objects.filter(workspace=OuterRef("pk")).exclude(status=ImportReport.Status.CANCELLED)
    newest = workspaces.annotate(latest_report=Subquery(finished.order_by("-id").values("pk")[:1]))
    reports = ImportReport.objects.filter(pk__in=newest.values("latest_report"))
    return reports.filter(_has_failed_or_problems(now))


def unfixed_first_imports(now: datetime) -> QuerySet[ImportReport]:
    """Return imports of the last week that failed before a workspace existed and weren't requested again.

    Each upload has a different path, so uploads are compared by name.
    """
    later = ImportReport.objects.filter(pk__gt=OuterRef("pk")).exclude(status=ImportReport.Status.CANCELLED)
    is_upload = Q(path__contains=f"/{UPLOADS}/")
    same_upload = is_upload & Exists(later.filter(is_upload, name=OuterRef("name")))
    reports = ImportReport.objects.filter(_has_failed_or_problems(now), workspace=None, created_at__gte=now - RECENT)
    return reports.exclude(Exists(later.filter(path=OuterRef("path"), project=OuterRef("project")))).exclude(
        same_upload
    )


def _has_failed_or_problems(now: datetime) -> Q:
    noted = ImportProblem.objects.filter(report=OuterRef("pk"), outcome__in=PROBLEM_OUTCOMES)
    has_problems = Q(status=ImportReport.Status.DONE, problem_count__gt=0, created_at__gte=now - RECENT)
    return Q(Q(status=ImportReport.Status.FAILED) | has_problems & Exists(noted), dismissed_at=None)


def import_items(selected: QuerySet[ImportReport]) -> list[AttentionItem]:
    reports = list(selected.select_related("workspace"))
    problems = ImportProblem.objects.filter(
        report__in=[report.pk for report in reports], outcome__in=PROBLEM_OUTCOMES
    )
    counts = dict(problems.order_by().values_list("report").annotate(n=Count("pk")))
    return [_report(report, counts.get(report.pk, 0)) for report in reports]


def _report(report: ImportReport, count: int) -> AttentionItem:
    workspace = report.workspace
    url = reverse("import-report", args=[report.pk])
    kind = "import" if report.status == ImportReport.Status.FAILED else "note"
    if kind == "import":
        text = _("The last import failed: %(error)s") % {"error": report.error}
    else:
        text = ngettext(
            "The last import has %(count)d warning.",
            "The last import has %(count)d warnings.",
            count,
        ) % {"count": count}
        url = f"{url}#problems"
    slug, name = (workspace.slug, workspace.name) if workspace else ("", report.name or report.path)
    return AttentionItem(
        kind, slug, name, text, url, max(1, count), report.finished_at or report.created_at, report.pk
    )

"""Pages of jobs and runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.jobs.downloads import KEPT, find_file, other_host, record_download
from memoryhub.jobs.kinds import kinds, listed_kinds
from memoryhub.jobs.labels import WorkRow, work_row
from memoryhub.jobs.listing import WorkItem, job_item, list_work
from memoryhub.jobs.queue import cancel_job, retry_job
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.layouts.snapshot import LABELS
from memoryhub.lib.search.index_names import index_names
from memoryhub.models import Job
from memoryhub.permissions import (
    EDITOR,
    OPERATOR,
    by_person,
    get_workspace,
    has_role,
    is_hub_operator,
    visible_workspaces,
)
from memoryhub.role_scope import role_scope
from sessions_app.models import Membership, Workspace

SHOWN_ON_RUNS_PAGE = 3  # a link leads to the rest


@require_GET
def work(request: HttpRequest) -> HttpResponse:
    workspaces, is_operator = visible_workspaces(request), is_hub_operator(request.user)
    items = list_work(workspaces, of_hub=is_operator, now=timezone.now())
    context = {
        "work": _rows(request, items),
        "work_url": reverse("work"),
        "is_work_live": any(item.is_live for item in items),
        "indexes": index_names() if is_operator and not request.GET.get("part") else {},
    }
    return render_page(request, "jobs/jobs.html", context, fragment="work-list")


@require_GET
def workspace_work(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the job list of the runs page; without htmx, redirect to that page."""
    workspace = get_workspace(request, slug)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("runs", slug)
    return render_page(request, "jobs/jobs.html", work_context(request, workspace), fragment="work-list")


def work_context(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    """Return template context with the latest jobs of a workspace."""
    mine = Workspace.objects.filter(pk=workspace.pk)
    items = list_work(mine, of_hub=False, now=timezone.now(), with_runs=False)[:SHOWN_ON_RUNS_PAGE]
    return {
        "work": _rows(request, items),
        "work_url": reverse("workspace-work", args=[workspace.slug]),
        "is_work_live": any(item.is_live for item in items),
        "is_part": True,
    }


def _rows(request: HttpRequest, items: list[WorkItem]) -> list[WorkRow]:
    scope = role_scope(request.user)
    shown = {item.workspace.pk for item in items if item.workspace}
    curated, operated = (
        set() if scope.is_whole else set(mine.filter(pk__in=shown).values_list("pk", flat=True))
        for mine in (scope.curated, scope.operated)
    )

    def may_decide(item: WorkItem) -> bool:
        mine = operated if _deciding_role(item.kind) == OPERATOR else curated
        return scope.is_whole or (item.workspace is not None and item.workspace.pk in mine)

    return [work_row(item, may_decide=may_decide(item)) for item in items]


def _deciding_role(kind: str) -> str:
    """Return the role that cancels and repeats work: only who may forget can cancel an erasure."""
    return OPERATOR if kind == Job.Kind.ERASURE else EDITOR


@require_GET
def job_page(request: HttpRequest, pk: int) -> HttpResponse:
    job = _get_job(request, pk)
    item = job_item(job, timezone.now())
    may_decide = job.workspace is None or has_role(request.user, job.workspace, _deciding_role(job.kind))
    file = find_file(job)
    row = work_row(item, may_decide=may_decide)
    if row.url != request.path:  # a kind with its own page
        return redirect(row.url)
    context = {
        "workspace": job.workspace,
        "job": job,
        "row": row,
        "layout": LABELS.get(job.options.get("layout", ""), ""),
        "other_host": other_host(job),
        "may_decide": may_decide,
        "file_size": default_storage.size(file) if file else None,
        "kept_until": job.finished_at + KEPT if file and job.finished_at else None,
        "indexes": _indexes(job),
    }
    context |= kinds()[job.kind].details(request, job)
    return render_page(request, "jobs/job.html", context, fragment="job")


def _indexes(job: Job) -> list[dict[str, Any]]:
    names = index_names() if job.result.get("indexes") else {}
    return [one | {"name": names.get(one["table"], one["table"])} for one in job.result.get("indexes", [])]


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    job = _get_job(request, pk, decides=True)
    try:
        cancel_job(job, by=by_person(request))
    except MemoryHubError as error:
        messages.info(request, error.message)
    return redirect("job", pk)


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    job = _get_job(request, pk, decides=True)
    if job.kind == Job.Kind.IMPORT:  # a new import needs its own report
        raise Http404
    try:
        job = retry_job(job, by=by_person(request))
    except MemoryHubError as error:
        messages.info(request, error.message)
    return redirect("job", job.pk)


@require_POST
def download(request: HttpRequest, pk: int) -> HttpResponse | FileResponse:
    """Return the file that a job created. It contains unmasked secrets, so it needs an editor."""
    job = _get_job(request, pk, decides=True)
    file = find_file(job)
    if not file:
        elsewhere = gettext("The file is on %(host)s. Download it from the hub there.") % {"host": other_host(job)}
        gone = gettext("The file was deleted after a day. Export again.")
        messages.info(request, elsewhere if other_host(job) else gone)
        return redirect("job", pk)
    record_download(job, by=by_person(request))
    return FileResponse(
        default_storage.open(file),
        as_attachment=True,
        filename=job.file_name,
        content_type="application/octet-stream",
        headers={"Content-Security-Policy": "sandbox"},
    )


def to_job(request: HttpRequest, job: Job, *, is_new: bool) -> HttpResponse:
    if not is_new:
        messages.info(request, gettext("This job was already requested."))
    return redirect("job", job.pk)


def _get_job(request: HttpRequest, pk: int, *, decides: bool = False) -> Job:
    job: Job = get_object_or_404(Job.objects.select_related("workspace"), pk=pk, kind__in=listed_kinds())
    if job.workspace is not None:
        role = _deciding_role(job.kind) if decides else Membership.Role.VIEWER
        get_workspace(request, job.workspace.slug, role=role)
    elif not is_hub_operator(request.user):
        raise Http404
    return job

"""The projects in an agent's home: choose which to import, and see how far their imports are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django_htmx.http import HttpResponseStopPolling

from memoryhub.jobs.labels import WorkRow, work_row
from memoryhub.jobs.listing import job_item
from memoryhub.jobs.queue import LIVE
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.layouts.records import Project
from memoryhub.permissions import require_hub_operator
from memoryhub.sync.forms import ImportForm
from memoryhub.sync.found_folders import other_folders
from memoryhub.sync.import_requests import request_import
from memoryhub.sync.overlaps import overlaps_in
from memoryhub.sync.projects import Home, open_home
from sessions_app.models import ImportReport, Workspace
from sessions_app.models.workspaces import program_label


@dataclass(frozen=True)
class ProjectRow:
    """A project, its workspace, its latest import, and the import's job while that is queued or running.

    ``overlaps``: other workspaces with its memory, if it has none of its own.
    """

    project: Project
    workspace: Workspace | None
    report: ImportReport | None
    work: WorkRow | None
    overlaps: list[Workspace]

    @property
    def is_selected(self) -> bool:
        return self.work is None and self.workspace is None and not self.overlaps

    @property
    def is_imported(self) -> bool:
        return self.report is not None and self.report.status == ImportReport.Status.DONE


def import_projects(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    path = request.POST.get("path") or request.GET.get("path", "")
    home = _home_at(path)
    if home is None:
        return redirect(f"{reverse('import')}?{urlencode({'path': path})}")
    if request.method == "POST":
        return _request_imports(request, home)
    rows = _rows(home, timezone.now())
    context = {
        "home": home,
        "program": program_label(home.found.layout, home.found.version),
        "rows": rows,
        "is_busy": any(row.work for row in rows),
        "selects_none": request.GET.get("selected") == "none",
        "is_all_imported": all(row.is_imported for row in rows),
    }
    if not request.GET.get("poll"):
        context["other_folders"] = other_folders(home.path)
    response = render_page(request, "sync/projects.html", context, fragment="projects")
    if request.GET.get("poll") and not context["is_busy"]:
        return HttpResponseStopPolling(response.content)
    return response


def projects_url(path: Path | str) -> str:
    return f"{reverse('import-projects')}?{urlencode({'path': str(path)})}"


def _home_at(path: str) -> Home | None:
    form = ImportForm({"path": path})
    try:
        return open_home(Path(form.cleaned_data["path"])) if form.is_valid() else None
    except MemoryHubError:
        return None


def _request_imports(request: HttpRequest, home: Home) -> HttpResponse:
    chosen = [name for name in home.names() if name in set(request.POST.getlist("project"))]
    if not chosen:
        messages.error(request, gettext("Select at least one project."))
    for name in chosen:
        request_import(
            path=str(home.path),
            user=request.user,  # type: ignore[arg-type]
            project=name,
            follow="follow" in request.POST,
        )
    return redirect(projects_url(home.path))


def _rows(home: Home, now: datetime) -> list[ProjectRow]:
    reports = ImportReport.objects.filter(path=str(home.path), project__in=home.names())
    latest = {report.project: report for report in reports.select_related("job__workspace").order_by("id")}
    overlaps, rows = overlaps_in(home), []
    for project in home.projects:
        report = latest.get(project.name)
        job = report.job if report and report.job and report.job.status in LIVE else None
        work = work_row(job_item(job, now), may_decide=True) if job else None
        workspace = home.workspaces.get(project.name)
        rows.append(ProjectRow(project, workspace, report, work, overlaps.get(project.name, [])))
    return rows

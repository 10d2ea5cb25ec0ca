from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseStopPolling

from memoryhub.jobs.labels import work_row
from memoryhub.jobs.listing import job_item
from memoryhub.jobs.uploads import store_upload
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.lib.problem_groups import group_problems, kind_of
from memoryhub.permissions import (
    EDITOR,
    RoleTooLow,
    by_person,
    get_workspace,
    has_role,
    is_hub_operator,
    require_hub_operator,
)
from memoryhub.sync.forms import ImportForm
from memoryhub.sync.found_folders import found_folders, other_folders
from memoryhub.sync.import_requests import PROBLEM_OUTCOMES, cancel_import, request_import
from memoryhub.sync.overlaps import overlaps_at
from memoryhub.sync.problem_rows import problem_rows
from memoryhub.sync.projects import open_home
from memoryhub.sync.views.projects import projects_url
from sessions_app.models import ImportReport, Membership, Workspace

MAX_LISTED = 10_000  # kinds of problems that a query selects


def new_import(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    form = _prefilled(request.GET.get("path", ""))
    if request.method == "POST":
        form = ImportForm(request.POST, request.FILES)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        path = values["path"]
        if upload := values["upload"]:
            path = str(store_upload(upload.name, upload))
        elif _has_several_projects(path, values["layout"]):
            return redirect(projects_url(path))
        elif "separate" not in request.POST and (overlaps := _overlaps(path, values["layout"])):
            context = {"form": form, "path": path, "overlaps": overlaps}
            return render_page(request, "sync/import.html", context, status=409)
        name = values["name"] or (upload.name.split(".")[0] if upload else "")
        return _request_import(request, path=path, name=name, layout=values["layout"])
    context = {"form": form, "found_folders": found_folders()}
    return render_page(request, "sync/import.html", context, status=422 if form.errors else 200)


def _prefilled(path: str) -> ImportForm:
    """Return the form for a path in the address, with the reason if it can't be imported."""
    filled = ImportForm({"path": path, "layout": "auto"})
    return filled if path and not filled.is_valid() else ImportForm(initial={"path": path})


def _overlaps(path: str, layout: str) -> list[Workspace]:
    """Return other workspaces with the memory at a path; none if the path was imported before."""
    is_known = Workspace.objects.filter(path=path).exists()
    return [] if is_known else overlaps_at(Path(path), layout or "auto")


def _has_several_projects(path: str, layout: str) -> bool:
    try:
        home = open_home(Path(path), layout or "auto")
    except MemoryHubError:  # the import reports it
        return False
    return home is not None and len(home.projects) > 1


@require_POST
def import_again(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=Membership.Role.OPERATOR)
    if not workspace.path:
        raise Http404
    return _request_import(request, path=workspace.path, project=workspace.project)


def _request_import(request: HttpRequest, *, path: str, **options: str) -> HttpResponse:
    report = request_import(path=path, user=request.user, **options)  # type: ignore[arg-type]
    return redirect("import-report", pk=report.pk)


def import_report(request: HttpRequest, pk: int) -> HttpResponse:
    report = get_object_or_404(_visible_reports(request), pk=pk)
    if report.workspace:
        request.memory_workspace = report.workspace  # type: ignore[attr-defined]
    is_over = bool(report.status) or report.job is None
    may_decide = _may_cancel(request, report)
    context = {
        "report": report,
        "row": work_row(job_item(report.job, timezone.now()), may_decide=may_decide) if report.job else None,
        "may_decide": may_decide,
        "may_import": report.workspace is not None and _may_import(request, report.workspace),
        "may_dismiss": _may_dismiss(request, report),
        "is_over": is_over,
        "counts": _counts(report),
        "has_faults": report.problems.filter(outcome__in=PROBLEM_OUTCOMES).exists(),
    }
    if is_over and is_hub_operator(request.user):
        context["other_folders"] = other_folders(Path(report.path))
    context |= _problems(request, report)
    response = render_page(request, "sync/import_report.html", context, fragment="import-report")
    if is_over and request.GET.get("poll"):
        return HttpResponseStopPolling(response.content)
    return response


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    report = get_object_or_404(_visible_reports(request), pk=pk)
    if not _may_cancel(request, report):
        raise RoleTooLow
    try:
        cancel_import(report, by=by_person(request))
    except MemoryHubError as error:
        messages.info(request, error.message)
    return redirect("import-report", pk=pk)


def _may_cancel(request: HttpRequest, report: ImportReport) -> bool:
    if report.workspace is None:
        return is_hub_operator(request.user)
    return has_role(request.user, report.workspace, EDITOR)


def _may_dismiss(request: HttpRequest, report: ImportReport) -> bool:
    if report.workspace is None:
        return is_hub_operator(request.user)
    return has_role(request.user, report.workspace, Membership.Role.OPERATOR)


def workspace_imports(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    page = keyset_page(
        workspace.import_reports.select_related("requested_by", "job"), order=("-id",), params=request.GET
    )
    context = {"workspace": workspace, "page": page, "may_import": _may_import(request, workspace)}
    return render_page(request, "sync/imports.html", context, fragment="imports")


def workspace_files(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    page = keyset_page(workspace.source_files.all(), order=("path", "id"), params=request.GET, size=100)
    context = {"workspace": workspace, "page": page, "may_import": _may_import(request, workspace)}
    return render_page(request, "sync/files.html", context, fragment="files")


def _problems(request: HttpRequest, report: ImportReport) -> dict[str, Any]:
    """Return the first problem of each kind with the number of the others, or all of the kind of ``like``."""
    like = report.problems.filter(pk=parse_int(request.GET.get("like"), digits=18) or 0).first()
    columns = report.problems.order_by("id").values_list("pk", "what", "action", "outcome")
    groups = group_problems(columns.iterator(), lambda row: kind_of(*row[1:]))
    counts = {group[0][0]: len(group) for group in groups}
    rows = report.problems.all()
    if like is not None:
        kind = kind_of(like.what, like.action, like.outcome)
        texts = {what for group in groups if kind_of(*group[0][1:]) == kind for _pk, what, _action, _outcome in group}
        rows = rows.filter(outcome=like.outcome)
        rows = rows.filter(what__in=texts) if len(texts) <= MAX_LISTED else rows.filter(action=like.action)
    elif len(counts) <= MAX_LISTED:
        rows = rows.filter(pk__in=counts)
    page = keyset_page(rows, order=("id",), params=request.GET)
    others = {} if like else {pk: count - 1 for pk, count in counts.items()}
    return {"page": page, "like": like, "problems": problem_rows(report, page.rows, others)}


def _may_import(request: HttpRequest, workspace: Workspace) -> bool:
    return bool(workspace.path) and has_role(request.user, workspace, Membership.Role.OPERATOR)


def _visible_reports(request: HttpRequest):  # type: ignore[no-untyped-def]
    reports = ImportReport.objects.select_related("workspace", "requested_by", "job__workspace")
    if is_hub_operator(request.user):
        return reports
    return reports.filter(Q(workspace__memberships__user_id=request.user.pk))


def _counts(report: ImportReport) -> list[tuple[str, int, int, int]]:
    kinds = dict.fromkeys([*report.added, *report.updated, *report.unchanged])
    return [
        (kind, report.added.get(kind, 0), report.updated.get(kind, 0), report.unchanged.get(kind, 0))
        for kind in kinds
    ]

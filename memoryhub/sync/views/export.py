"""Export a workspace: the plan, then the archive, which a job creates for a large workspace."""

from __future__ import annotations

import tempfile
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Sum
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from memoryhub.jobs.queue import request_job
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.layouts.snapshot import LABELS, LAYOUTS
from memoryhub.models import Job
from memoryhub.permissions import EDITOR, by_person, get_workspace, has_role
from memoryhub.sync.export_plan import chosen_layout, plan_export
from memoryhub.sync.exporting import write_archive
from sessions_app.models import Session, Workspace

LARGE_ENTRIES = 5_000  # above which a job creates the archive
LARGE_BYTES = 5_000_000
BYTES_PER_TOKEN = 4  # of text in most languages
SPOOLED_BYTES = 8 * 2**20  # a larger archive goes to a temporary file


@require_GET
def export_plan(request: HttpRequest, slug: str) -> HttpResponse:
    """What an export contains. Counting a large workspace takes seconds, so the page asks for that after it opens."""
    workspace = get_workspace(request, slug)
    requested = request.GET.get("layout", "")
    layout = chosen_layout(workspace, requested if requested in LAYOUTS else "auto")
    is_large = _is_large(workspace)
    context = {
        "workspace": workspace,
        "layout": layout,
        "layouts": [(name, LABELS[name]) for name in LAYOUTS],
        "plan": plan_export(workspace, layout) if requested or not is_large else None,
        "plan_url": f"{request.path}?{urlencode({'layout': layout})}",
        "program": LABELS[layout],
        "may_export": has_role(request.user, workspace, EDITOR),
        "is_large": is_large,
    }
    return render_page(request, "sync/export.html", context, fragment="export-plan")


@require_POST
def download_export(request: HttpRequest, slug: str) -> HttpResponse | FileResponse:
    """Send the archive. It contains secrets in plain text, so only editors may have it."""
    workspace = get_workspace(request, slug, role=EDITOR)
    if _is_large(workspace):
        return _request_job(request, workspace)
    archive = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115  the response closes it
    try:
        report = write_archive(workspace, request.POST.get("layout", ""), archive, by=by_person(request))
    except MemoryHubError as error:
        archive.close()
        messages.error(request, error.message)
        return redirect("export-workspace", slug)
    archive.seek(0)
    name = f"{slug}-{report.plan.layout}.zip"
    headers = {"Content-Security-Policy": "sandbox"}
    return FileResponse(
        archive, as_attachment=True, filename=name, content_type="application/octet-stream", headers=headers
    )


def _request_job(request: HttpRequest, workspace: Workspace) -> HttpResponse:
    """Let a job create the archive, or show the job that is doing so."""
    try:
        layout = chosen_layout(workspace, request.POST.get("layout", ""))
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect("export-workspace", workspace.slug)
    options = {"layout": layout}
    job, _ = request_job(Job.Kind.EXPORT, workspace, options, by=by_person(request))
    return redirect("job", job.pk)


def _is_large(workspace: Workspace) -> bool:
    """Tell whether the archive takes too long to create in a request. One query over the sessions' totals."""
    sums = Session.objects.filter(workspace=workspace).aggregate(n=Sum("entry_count"), tokens=Sum("total_tokens"))
    return (sums["n"] or 0) > LARGE_ENTRIES or (sums["tokens"] or 0) * BYTES_PER_TOKEN > LARGE_BYTES

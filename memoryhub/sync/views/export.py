"""A whole workspace out of the hub: first what would fit, then the archive, which for a large one a job makes."""

from __future__ import annotations

import tempfile

from django.contrib import messages
from django.db.models import Sum
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from memoryhub.access import EDITOR, by_person, get_workspace, has_role
from memoryhub.jobs.queue import request_job
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.htmx import render_page
from memoryhub.lib.layouts.snapshot import LABELS, LAYOUTS
from memoryhub.models import Job
from memoryhub.sync.export_plan import chosen_layout, plan_export
from memoryhub.sync.exporting import write_archive
from sessions_app.models import Session, Workspace

LARGE_ENTRIES = 5_000  # from so many on a job makes the archive, while the page shows how far it is
LARGE_BYTES = 5_000_000
BYTES_PER_TOKEN = 4  # of text in most languages
SPOOLED_BYTES = 8 * 2**20  # of an archive that stay in memory; a larger one lies in a temporary file


@require_GET
def export_plan(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    asked = request.GET.get("layout", "")
    layout = chosen_layout(workspace, asked if asked in LAYOUTS else "auto")
    context = {
        "workspace": workspace,
        "layouts": [(name, LABELS[name]) for name in LAYOUTS],
        "plan": plan_export(workspace, layout),
        "program": LABELS[layout],
        "may_export": has_role(request.user, workspace, EDITOR),
        "is_large": _is_large(workspace),
    }
    return render_page(request, "sync/export.html", context, fragment="export-plan")


@require_POST
def download_export(request: HttpRequest, slug: str) -> HttpResponse | FileResponse:
    """Hand out the archive: secrets are in it as they are, so that it takes someone who may see them."""
    workspace = get_workspace(request, slug, role=EDITOR)
    if _is_large(workspace):
        return _ask(request, workspace)
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


def _ask(request: HttpRequest, workspace: Workspace) -> HttpResponse:
    """Let a job make the archive; one that is being made already is shown."""
    try:
        layout = chosen_layout(workspace, request.POST.get("layout", ""))
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect("export-workspace", workspace.slug)
    options = {"layout": layout}
    job, _ = request_job(Job.Kind.EXPORT, workspace, options, by=by_person(request))
    return redirect("job", job.pk)


def _is_large(workspace: Workspace) -> bool:
    """Tell whether an archive takes longer than somebody waits for a page. One query over the sessions' totals."""
    sums = Session.objects.filter(workspace=workspace).aggregate(n=Sum("entry_count"), tokens=Sum("total_tokens"))
    return (sums["n"] or 0) > LARGE_ENTRIES or (sums["tokens"] or 0) * BYTES_PER_TOKEN > LARGE_BYTES

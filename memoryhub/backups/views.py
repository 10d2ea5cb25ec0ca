"""The backup pages. Only for hub operators, since a backup contains every workspace."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.db import connection
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseStopPolling

from memoryhub.backups import folder
from memoryhub.backups.in_use_lock import database_label
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import by_person, require_hub_operator
from sessions_app.services.stored_settings import hub_settings

STEPS = {
    "waiting": (_("Waiting"), _("Starts shortly.")),
    "copying": (_("Copying"), _("Copying the database. The hub stays available.")),
    "packing": (_("Packing"), _("Compressing the copy.")),
    "checking": (_("Verifying"), _("Reading the backup back and comparing it.")),
}


@require_GET
def backups(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    job = folder.current_job()
    step = (job.stage or "waiting") if job else ""
    may_cancel = job is not None and folder.is_cancellable(job)
    step_title, step_words = STEPS.get(step, (step, ""))
    state, values = folder.read_state(), hub_settings().values
    context = {
        "kept": folder.list_backups(),
        "step": step,
        "step_title": step_title,
        "step_words": step_words,
        "may_cancel": may_cancel and job is not None and not job.cancel_asked_at,
        "is_cancelling": may_cancel and job is not None and bool(job.cancel_asked_at),
        "failed_at": parse_datetime(state.failed_at) if state.failed_at else None,
        "failure": state.failure,
        "next_due": folder.next_due(timezone.now()),
        "hours": values["MEMORYHUB_BACKUP_HOURS"],
        "keep": values["MEMORYHUB_BACKUP_KEEP"],
        "folder": folder.backup_folder() or f"{settings.MEMORYHUB_FILES}/backups",
        "has_key": bool(settings.MEMORYHUB_BACKUP_KEY),
        "database": database_label(connection),
        "manage": settings.BASE_DIR / "manage.py",
    }
    response = render_page(request, "backups/list.html", context, fragment="backup-state")
    if request.GET.get("poll") and not step:
        return HttpResponseStopPolling(response.content)
    return response


@require_POST
def make(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    return _to_backups(request, is_new=folder.request_backup(by=by_person(request)))


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    try:
        folder.cancel_backup(by=by_person(request))
    except MemoryHubError as error:
        messages.info(request, error.message)
    return redirect("backups")


@require_POST
def check(request: HttpRequest, name: str) -> HttpResponse:
    _require_backup(request, name)
    is_new = folder.request_check(name, by=by_person(request))
    return _to_backups(request, is_new=is_new)


@require_POST
def download(request: HttpRequest, name: str) -> FileResponse:
    # The audit record comes first: a backup contains everything.
    _require_backup(request, name)
    folder.record_download(name, by=by_person(request))
    headers = {"Content-Security-Policy": "sandbox"}
    file = folder.storage().open(name)
    return FileResponse(
        file, as_attachment=True, filename=name, content_type="application/octet-stream", headers=headers
    )


def delete(request: HttpRequest, name: str) -> HttpResponse:
    _require_backup(request, name)
    kept = [one for one in folder.list_backups() if one.name == name]
    if request.method == "POST" and folder.remove_backup(name, by=by_person(request)):
        messages.success(request, gettext("Deleted %(name)s.") % {"name": name})
        return redirect("backups")
    return render_page(request, "backups/delete.html", {"kept": kept[0]})


def _to_backups(request: HttpRequest, *, is_new: bool) -> HttpResponse:
    if not is_new:
        messages.info(request, gettext("A backup is already being created or verified."))
    return redirect("backups")


def _require_backup(request: HttpRequest, name: str) -> None:
    require_hub_operator(request)
    if not folder.find_backup(name):
        raise Http404

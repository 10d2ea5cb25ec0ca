"""Actions on a session, one URL each."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.conversations.appending import record_entries
from memoryhub.conversations.forms import AppendForm, DeleteForm, OpenForm, RenameForm, SessionFileForm
from memoryhub.edit_responses import answer_edit
from memoryhub.forgetting.import_filter import remembered
from memoryhub.jobs.labels import added_label
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.downloads import streaming_download
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.masked_text import masked_json
from memoryhub.permissions import (
    EDITOR,
    OPERATOR,
    by_person,
    get_session,
    get_workspace,
    has_role,
    log_page_access,
    person,
)
from sessions_app.models import AuditRecord, DeletedSession, Run, Summary
from sessions_app.models.runs import LIVE_STATUSES
from sessions_app.services.access_log import seen_epoch
from sessions_app.services.audit import By
from sessions_app.services.compressing.folding import archive_and_clear, fold_to_window
from sessions_app.services.lifecycle import allow_again, clear_session, delete_session, open_session, rename_session
from sessions_app.services.parsing import read_batch
from sessions_app.services.transfer import import_session, problems_of, session_parts


def new_session(request: HttpRequest, slug: str) -> HttpResponse:
    """Open a session, or import one from a file."""
    workspace = get_workspace(request, slug, role=EDITOR)
    is_import = "import" in request.GET
    form = OpenForm(request.POST if request.method == "POST" and not is_import else None)
    file_form = SessionFileForm(
        request.POST if request.method == "POST" and is_import else None, request.FILES if is_import else None
    )
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        try:
            session, is_new = open_session(workspace, values["key"], by=by_person(request), title=values["title"])
        except MemoryHubError as error:
            form.add_error("key", error.message)
        else:
            if not is_new:
                messages.info(request, gettext("This conversation already exists."))
            return redirect("sessions:detail", slug, session.pk)
    if file_form.is_bound and file_form.is_valid():
        try:
            _import_upload(request, workspace, file_form.cleaned_data["file"])
        except MemoryHubError as error:
            file_form.add_error("file", error.message)
        else:
            return redirect("sessions:list", slug)
    status = 422 if form.errors or file_form.errors else 200
    context = {"workspace": workspace, "form": form, "file_form": file_form}
    return render_page(request, "conversations/new.html", context, status=status)


def _import_upload(request: HttpRequest, workspace, upload) -> None:  # type: ignore[no-untyped-def]
    with tempfile.TemporaryDirectory(prefix="memoryhub-session-") as folder:
        name = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in upload.name)[-100:]
        path = Path(folder) / (name.lstrip(".") or "session.json")
        with path.open("wb") as out:
            for chunk in upload.chunks():
                out.write(chunk)
        imported = import_session(workspace, path, by=by_person(request), remember=remembered)
    added = added_label(+imported.added)
    text = gettext("Imported: %(rows)s.") % {"rows": added} if added else gettext("Imported: nothing new.")
    messages.success(request, text)
    for problem in problems_of(imported)[:5]:
        messages.warning(request, problem)


@require_POST
def append_entry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    session = get_session(request, slug, pk, role=EDITOR)
    form = AppendForm(request.POST)
    if not form.is_valid():
        why = " ".join(str(error) for errors in form.errors.values() for error in errors)
        messages.error(request, gettext("Nothing was added: %(why)s") % {"why": why})
        return redirect("sessions:detail", slug, pk)
    now = timezone.now()
    records = read_batch([form.row()], now=now)
    record_entries(session.workspace, session.key, records, by=By(person(request), now))
    messages.success(request, gettext("Message added."))
    return redirect("sessions:detail", slug, pk)


@require_POST
def rename(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    session = get_session(request, slug, pk, role=EDITOR)
    form = RenameForm(request.POST)
    if form.is_valid():
        rename_session(session, form.cleaned_data["title"], by=by_person(request))
    return redirect("sessions:detail", slug, pk)


@require_POST
def clear(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Clear a session, at once or after consolidating it."""
    session = get_session(request, slug, pk, role=EDITOR)
    if request.POST.get("archive"):
        run = archive_and_clear(session, by=by_person(request))
        return redirect("run", slug, run.pk)
    clear_session(session, by=by_person(request))
    messages.success(
        request, gettext("Conversation cleared. Earlier messages are still readable in the previous part.")
    )
    return redirect("sessions:detail", slug, pk)


@require_POST
def prune(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    session = get_session(request, slug, pk, role=EDITOR)
    run = fold_to_window(session, None, by=by_person(request))
    return redirect("run", slug, run.pk)


@require_POST
def edit(request: HttpRequest, slug: str, pk: int, *, action: str) -> HttpResponse:
    """Apply an action of the list to one session and redirect to it."""
    workspace = get_session(request, slug, pk, role=EDITOR).workspace
    by = by_person(request)
    address = reverse("sessions:detail", args=[slug, pk])
    return answer_edit(request, slug, address, lambda: (edit_rows(workspace, "sessions", action, [pk], by=by), ""))


def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    session = get_session(request, slug, pk, role=OPERATOR)
    form = DeleteForm(request.POST or None, key=session.key)
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        delete_session(session, confirmation=values["confirmation"], reason=values["reason"], by=by_person(request))
        messages.success(request, gettext("%(key)s was deleted.") % {"key": session.key})
        return redirect("sessions:list", slug)
    context = {
        "workspace": session.workspace,
        "session": session,
        "form": form,
        "summary_count": Summary.objects.filter(session=session).count(),
        "run_count": Run.objects.filter(session=session).count(),
    }
    return render_page(request, "conversations/delete.html", context, status=422 if form.errors else 200)


@require_POST
def allow(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    tombstone = get_object_or_404(DeletedSession.objects.select_related("workspace"), workspace=workspace, pk=pk)
    allow_again(tombstone, by=by_person(request))
    messages.success(request, gettext("The next import may bring %(key)s back.") % {"key": tombstone.key})
    return redirect("sessions:list", slug)


@require_GET
def export(request: HttpRequest, slug: str, pk: int) -> StreamingHttpResponse:
    session = get_session(request, slug, pk)
    epoch = parse_int(request.GET.get("epoch"), digits=5)
    name, parts = session_parts(session, request.GET.get("layout", ""), epoch=epoch)
    log_page_access(request, session.workspace, "session.exported", seen_epoch(session, epoch))
    if not has_role(request.user, session.workspace, EDITOR):
        parts = map(masked_json, parts)
    return streaming_download(parts, name)


@require_GET
def live(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the notice of an open transcript about changes that it doesn't show: new pages, summaries, live runs.

    ``after`` is the newest audit record that the page knows, ``length`` its number of entries in this epoch ("" if it
    shows new entries itself).
    """
    session = get_session(request, slug, pk)
    since = parse_int(request.GET.get("after")) or 0
    length = parse_int(request.GET.get("length"))
    records = AuditRecord.objects.filter(session=session, id__gt=since)
    run = Run.objects.filter(session=session, status__in=LIVE_STATUSES).order_by("-id").first()
    context = {
        "workspace": session.workspace,
        "session": session,
        "live_url": request.get_full_path(),
        "run": run,
        "new_entries": 0 if length is None else max(0, session.next_position - length),
        "is_changed": records.exclude(action__in=("entry.added", "run.requested", "run.started")).exists(),
    }
    return render_page(request, "conversations/live.html", context)

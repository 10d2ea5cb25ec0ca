"""The sync page: switches, the state of the last syncs, and the state of each file."""

from __future__ import annotations

from pathlib import Path

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.models import Forgotten
from memoryhub.jobs.labels import added_label
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.permissions import (
    EDITOR,
    OPERATOR,
    by_person,
    get_workspace,
    has_role,
    is_hub_operator,
    require_hub_operator,
)
from memoryhub.sync.differences import differences
from memoryhub.sync.erased_files import files_context
from memoryhub.sync.forms import FolderForm
from memoryhub.sync.source_folders import add_folder, follow_folder, remove_folder
from memoryhub.sync.status import accepted_changes, read_only_reasons, written_files
from memoryhub.sync.sync_requests import is_requested, request_sync
from sessions_app.models import SourceFolder, SyncState
from sessions_app.models.workspaces import INSTRUCTED
from sessions_app.services.syncing import switch_sync

SWITCHES = ("follow", "write_back", "write_instructions")
COUNTED = (gettext_noop("Added"), gettext_noop("Updated"), gettext_noop("Written"))  # of a sync, for ``words``


def sync_page(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    files = written_files(workspace)
    may_write = {file.path for file in files}
    read_only = workspace.source_files.select_related("session").exclude(path__in=may_write)
    state = SyncState.objects.filter(workspace=workspace).first()
    page = keyset_page(read_only, order=("path", "id"), params=request.GET, size=100)
    reasons = read_only_reasons(workspace)
    context = {
        "workspace": workspace,
        "state": state,
        "changed": [(word, added_label(one)) for word, one in state.counts.items() if one] if state else [],
        "is_requested": is_requested(workspace),
        "files": files,
        "is_on": workspace.is_two_way or (workspace.is_followed and not workspace.can_be_written),
        "policy": workspace.get_agent_changes_display(),
        "waiting_count": sum(file.standing == "ahead" for file in files),
        "held": [file for file in files if file.held],
        "accepted": accepted_changes(workspace),
        "differences": differences(workspace, files),
        "page": page,
        "read_only": [(source, reasons.get(source.path, "")) for source in page.rows],
        "folders": workspace.source_folders.filter(removed_at=None).order_by("label"),
        "folder_form": FolderForm() if is_hub_operator(request.user) else None,
        "may_operate": has_role(request.user, workspace, OPERATOR),
        "can_write_back": workspace.can_be_written,
        "has_instructions": workspace.layout in INSTRUCTED,
    }
    return render_page(request, "sync/sync.html", context, fragment="sync-state")


@require_POST
def switch(request: HttpRequest, slug: str) -> HttpResponse:
    """Switch two-way sync on or off, or one of its directions, whichever the form names."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    switches = {name: request.POST[name] == "on" for name in SWITCHES if name in request.POST}
    if "two_way" in request.POST:
        is_on = request.POST["two_way"] == "on"
        can_write = workspace.can_be_written or not is_on
        switches = {"follow": is_on} | ({"write_back": is_on} if can_write else {})
    try:
        switch_sync(workspace, **switches, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect("sync", slug)


@require_POST
def sync_now(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    try:
        request_sync(workspace, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect("sync", slug)


@require_POST
def add_source_folder(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a further folder to a workspace, follow it, and request its first sync; for operators of the hub."""
    require_hub_operator(request)
    workspace = get_workspace(request, slug, role=OPERATOR)
    form = FolderForm(request.POST)
    path = form.cleaned_data["path"] if form.is_valid() else ""
    if not path:
        messages.error(request, next((str(each[0]) for each in form.errors.values()), gettext("Enter a folder.")))
        return redirect("sync", slug)
    by = by_person(request)
    try:
        add_folder(workspace, Path(path), project=form.cleaned_data["project"].strip(), follow=True, by=by)
        request_sync(workspace, by=by)
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect("sync", slug)


@require_POST
def change_source_folder(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove a further folder, or follow it or not, whichever the form names."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    folder = get_object_or_404(SourceFolder, workspace=workspace, pk=pk, removed_at=None)
    if "remove" in request.POST:
        remove_folder(folder, by=by_person(request))
    elif "follow" in request.POST:
        follow_folder(folder, is_followed=request.POST["follow"] == "on", by=by_person(request))
    return redirect("sync", slug)


@require_GET
def erased_files(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show the state of the agents' files that contained what was erased in a workspace."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    return _erased_files(request, get_object_or_404(Forgotten, workspace=workspace, pk=pk))


@require_GET
def erased_files_of_person(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the state of the agents' files that contained a person erased in the whole hub."""
    require_hub_operator(request)
    return _erased_files(request, get_object_or_404(Forgotten, workspace=None, pk=pk))


def _erased_files(request: HttpRequest, receipt: Forgotten) -> HttpResponse:
    context = {"workspace": receipt.workspace, **files_context(request, receipt)}
    return render_page(request, "sync/erased_files_page.html", context, fragment="files")


@require_POST
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """Write the hub's newer texts to the agent's files; an operator may do so even if two-way sync is off."""
    workspace = get_workspace(request, slug, role=EDITOR)
    if not workspace.write_back:
        workspace = get_workspace(request, slug, role=OPERATOR)
    try:
        request_sync(workspace, by=by_person(request), send=True)
    except MemoryHubError as error:
        messages.error(request, error.message)
    if receipt := parse_int(request.POST.get("receipt"), digits=18):
        is_of_workspace = Forgotten.objects.filter(pk=receipt, workspace=workspace).exists()
        return redirect(*(("erased-files", slug) if is_of_workspace else ("erased-files-of-person",)), receipt)
    fact = parse_int(request.POST.get("fact"), digits=18)
    if fact:
        return redirect("documents:fact", slug, fact)
    document = parse_int(request.POST.get("document"), digits=18)
    return redirect("documents:document", slug, document) if document else redirect("sync", slug)

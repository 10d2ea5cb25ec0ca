"""Views shared by all kinds of rows: list, new, one row, edits of one and many, download."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.services.held_rows import LINKS, text_hash
from knowledge_app.services.rows.restoring import restore_row
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.edit_responses import after_edit, answer_chosen, answer_edit, list_address
from memoryhub.knowledge.kinds import EditableKind, Filters, Kind, Outcome
from memoryhub.lib.bulk_selection import selected_keys
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.extra_fields import extra_fields
from memoryhub.lib.http.downloads import download
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.lib.masked_text import has_secrets, masked_json
from memoryhub.lib.stale_forms import changed_values
from memoryhub.permissions import (
    EDITOR,
    by_person,
    get_workspace,
    has_role,
    log_page_access,
    readable_text,
    record_reveal,
)
from sessions_app.models import AuditRecord, Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows

SHOWN_STATES = 50


def list_rows(request: HttpRequest, slug: str, *, kind: Kind) -> HttpResponse:
    """List the matching rows: in pages, or the first of each category."""
    workspace = get_workspace(request, slug)
    form, filters, matching = matching_rows(request, workspace, kind)
    is_paged = not kind.categories or any(filters.get(name) for name in kind.paged_by)
    totals = dict(matching.order_by().values_list("category").annotate(Count("id"))) if kind.categories else {}
    count = sum(totals.values()) if kind.categories else matching.count()
    page = keyset_page(matching, order=kind.order, params=request.GET) if is_paged else None
    by_category = {} if page else _by_category(kind, matching)
    rows = page.rows if page else [row for some in by_category.values() for row in some]
    seen = [row.pk for row in rows if kind.is_read(row)]
    log_page_access(request, workspace, f"{kind.access}.read", seen_rows(kind.table, seen))
    labels = dict(kind.categories.choices) if kind.categories else {}
    context = {
        "kind": kind,
        "workspace": workspace,
        "form": form,
        "filters": filters,
        "is_filtered": any(filters.values()),
        "count": count,
        "counted": kind.counted(count),
        "page": page,
        "rows": _with_details(kind, workspace, page.rows) if page else [],
        "groups": [
            (category, totals.get(category.value, 0), _with_details(kind, workspace, some))
            for category, some in by_category.items()
        ],
        "card_title": labels.get(filters.get("category", ""), _("Entries")),
        "actions": kind.actions(filters),
        "may_edit": has_role(request.user, workspace, EDITOR),
        "today": timezone.localdate(),
        **kind.list_context(workspace, count),
    }
    return render_page(request, "knowledge/list.html", context, fragment="row-list")


def matching_rows(
    request: HttpRequest, workspace: Workspace, kind: Kind
) -> tuple[forms.Form, Filters, QuerySet[Any]]:
    """Return a list's filter form, its values, and the matching rows."""
    form = kind.filter_form(request.GET, workspace)
    filters = form.cleaned_data if form.is_valid() else {}
    return form, filters, kind.matching(workspace, filters)


def _by_category(kind: Kind, matching: QuerySet[Any]) -> dict[Any, list[Any]]:
    """Return the first rows of each category. One query for each."""
    return {
        category: list(matching.filter(category=category).order_by(*kind.order)[: kind.shown_each])
        for category in kind.categories or ()
    }


def _with_details(kind: Kind, workspace: Workspace, rows: list[Any]) -> list[tuple[Any, Any]]:
    return [(row, kind.details(row, workspace)) for row in rows]


@require_POST
def edit_many(request: HttpRequest, slug: str, *, kind: Kind) -> HttpResponse:
    """Edit or export the selected rows, or all that match the filters."""
    workspace = get_workspace(request, slug, role=EDITOR)
    _form, _filters, matching = matching_rows(request, workspace, kind)
    return answer_chosen(
        request,
        workspace,
        kind.table,
        list_address(request, slug, kind.list_url),
        logged_as=f"{kind.access}.exported",
        chosen=lambda: selected_keys(request, matching),
        edit=lambda pks: kind.edit(request, workspace, pks),
    )


def new_row(request: HttpRequest, slug: str, *, kind: EditableKind) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    form = kind.form(request.POST or None, initial={"category": request.GET.get("category")})
    if form.is_bound and form.is_valid():
        try:
            return kind.add(request, workspace, form.cleaned_data)
        except MemoryHubError as error:
            form.add_error(None, error.message)
    context = {"kind": kind, "workspace": workspace, "form": form}
    return render_page(request, "knowledge/new.html", context, status=422 if form.errors else 200)


def show_row(request: HttpRequest, slug: str, pk: int, *, kind: EditableKind) -> HttpResponse:
    """Show a row with its earlier states, and save changes by an editor."""
    is_change = request.method == "POST"
    workspace = get_workspace(request, slug, role=EDITOR if is_change else Membership.Role.VIEWER)
    row: Any = get_object_or_404(kind.model._default_manager.select_related("workspace"), workspace=workspace, pk=pk)
    current = {name: getattr(row, name) for name in kind.form.base_fields}
    form = kind.form(request.POST if is_change else None, initial=current)
    same_as = None
    if is_change:
        try:
            if run := _save(request, kind, row, form):
                return after_edit(request, run, slug, reverse(kind.row_url, args=[slug, pk]))
        except MemoryHubError as error:
            same_as = error.details.get("id")
            form.add_error("content" if same_as else None, error.message)
    log_page_access(request, workspace, f"{kind.access}.read", seen_rows(kind.table, [pk]))
    context = row_context(request, workspace, kind, row)
    if context["may_edit"] and not is_change and any(has_secrets(str(value)) for value in current.values()):
        record_reveal(request, workspace, f"{kind.table} {pk}")  # the form shows them
    context |= {
        "form": form,
        "same_as": same_as,
        "fields": extra_fields(row),
        **kind.row_context(row),
    }
    return render_page(request, kind.row_template, context, status=422 if form.errors else 200)


@db_retry.retried
@transaction.atomic
def _save(request: HttpRequest, kind: EditableKind, row: Any, form: forms.Form) -> Run | None:
    """Save the changed fields of a form; None if it has errors, such as a field that someone changed meanwhile."""
    locked = kind.model._default_manager.select_for_update().get(pk=row.pk)
    changes = changed_values(form, {name: getattr(locked, name) for name in form.fields}) if form.is_valid() else {}
    if not form.is_valid():
        return None
    by = by_person(request)
    if kind.save:
        return kind.save(row, changes, by)
    return edit_rows(row.workspace, kind.table, "assign", [row.pk], values=changes, by=by)


def row_context(request: HttpRequest, workspace: Workspace, kind: EditableKind, row: Any) -> dict[str, Any]:
    """Return the context of ``knowledge/row.html``."""
    hold = getattr(row, "hold", None)
    return {
        "kind": kind,
        "workspace": workspace,
        "row": row,
        "hold": hold,
        "hold_seen": text_hash(row) if hold else "",
        "states": list(row.history.order_by("-history_id")[:SHOWN_STATES]),
        "may_edit": has_role(request.user, workspace, EDITOR),
        **_authors(row, is_held=hold is not None),
    }


def _authors(row: Any, *, is_held: bool) -> dict[str, AuditRecord | None]:
    """Return the records that say who added a row in the hub, and who approved it last if it was held."""
    own = AuditRecord.objects.filter(workspace=row.workspace, object_kind=LINKS[type(row)], object_id=str(row.pk))
    records = {one.action: one for one in own.filter(action__in=("knowledge.added", "row.approved")).order_by("pk")}
    return {
        "added": records.get("knowledge.added"),
        "approved": None if is_held else records.get("row.approved"),
    }


@require_POST
def edit_row(request: HttpRequest, slug: str, pk: int, *, kind: EditableKind) -> HttpResponse:
    """Edit one row, or restore an earlier state of it."""
    workspace = get_workspace(request, slug, role=EDITOR)
    row: Any = get_object_or_404(kind.model._default_manager.select_related("workspace"), workspace=workspace, pk=pk)
    state = parse_int(request.POST.get("state"))

    def edit() -> Outcome:
        if state is not None:
            known = parse_int(request.POST.get("known"))
            return restore_row(row, state, known=known, by=by_person(request)), ""
        return kind.edit(request, workspace, [pk])

    return answer_edit(request, slug, reverse(kind.row_url, args=[slug, pk]), edit)


@require_GET
def download_rows(request: HttpRequest, slug: str, *, kind: Kind) -> HttpResponse:
    return send_rows(request, get_workspace(request, slug), kind)


def send_rows(request: HttpRequest, workspace: Workspace, kind: Kind) -> HttpResponse:
    """Send the agent's file of all rows in use, and log the access."""
    pks = kind.matching(workspace, {}).values_list("pk", flat=True)
    log_page_access(request, workspace, f"{kind.access}.exported", seen_rows(kind.table, pks))
    text = readable_text(request, workspace, kind.file(workspace), kind.file_name, mask=masked_json)
    return download(text, kind.file_name)

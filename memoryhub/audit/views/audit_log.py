"""The activity pages of a workspace and of the hub, and their export."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.audit.audit_log import AuditFilter, export_lines, filter_records, record_export
from memoryhub.audit.audit_log_forms import AuditFilterForm, subject_label
from memoryhub.audit.timeline import OF_JOBS, author_label
from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.http.downloads import streaming_download
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.permissions import (
    OPERATOR,
    by_person,
    get_workspace,
    has_role,
    require_hub_operator,
    visible_workspaces,
)
from sessions_app.models import AuditRecord, Membership, Session, Workspace

VIEWER = Membership.Role.VIEWER
KINDS = ("changes", "runs")
MILLISECONDS = 2_000  # time limit of the query


@require_GET
def activity(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    workspace = _workspace(request, slug)
    form = AuditFilterForm(request.GET)
    audit_filter = _audit_filter(form, request.GET.get("kind", ""))
    try:
        with time_limit(connection, MILLISECONDS):
            page = keyset_page(filter_records(_records(workspace), audit_filter), order=("-id",), params=request.GET)
    except SearchTooSlow as error:
        message = gettext("Searching the log took too long. Choose a shorter period.")
        raise LimitExceeded(message, code="log_too_long") from error
    keys = dict(Session.objects.filter(pk__in={row.session_id for row in page.rows}).values_list("pk", "key"))
    places = Workspace.objects.only("slug", "name").in_bulk({row.workspace_id for row in page.rows} - {None})
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "rows": [
            (
                row,
                places.get(row.workspace_id or 0),
                keys.get(row.session_id or 0),
                read_time(row.detail.get("taken_at"), UTC),
                author_label(row.actor_name),
                subject_label(row.action),
                earlier,
            )
            for row, earlier in _with_earlier(page.rows)
        ],
        "kind": audit_filter.kind,
        "may_export": workspace is None or has_role(request.user, workspace, OPERATOR),
        "is_filtered": audit_filter != AuditFilter(kind=audit_filter.kind),
    }
    return render_page(request, "audit/activity.html", context, fragment="activity")


def _with_earlier(records: Sequence[AuditRecord]) -> list[tuple[AuditRecord, list[AuditRecord]]]:
    """Return the records of a page, latest first, each with the earlier ones of the same run or job."""
    found: dict[tuple[str, str], tuple[AuditRecord, list[AuditRecord]]] = {}
    for row in records:
        is_job = row.object_kind in OF_JOBS and row.object_id
        key = (row.object_kind, row.object_id) if is_job else ("", str(row.pk))
        if key in found:
            found[key][1].append(row)
        else:
            found[key] = row, []
    return list(found.values())


@require_POST
def export_activity(request: HttpRequest, slug: str | None = None) -> StreamingHttpResponse:
    workspace = _workspace(request, slug, role=OPERATOR)
    records = filter_records(
        _records(workspace), _audit_filter(AuditFilterForm(request.POST), request.POST.get("kind", ""))
    )
    newest = records.order_by("-id").values_list("id", flat=True).first() or 0
    records = records.filter(id__lte=newest)
    record_export(records.count(), workspace, by=by_person(request))
    suffix = "jsonl" if request.POST.get("format") == "jsonl" else "csv"
    name = f"{workspace.slug if workspace else 'memoryhub'}-audit.{suffix}"
    return streaming_download(export_lines(records, suffix), name)


def _workspace(request: HttpRequest, slug: str | None, *, role: str = VIEWER) -> Workspace | None:
    """Return the workspace; None for the whole hub, which needs a hub operator."""
    if slug is not None:
        return get_workspace(request, slug, role=role)
    require_hub_operator(request)
    visible_workspaces(request)
    return None


def _records(workspace: Workspace | None) -> QuerySet[AuditRecord]:
    return AuditRecord.objects.filter(workspace=workspace) if workspace else AuditRecord.objects.all()


def _audit_filter(form: AuditFilterForm, kind: str) -> AuditFilter:
    form.is_valid()  # invalid fields don't filter
    return AuditFilter(
        kind=kind if kind in KINDS else "", **{name: value for name, value in form.cleaned_data.items() if value}
    )

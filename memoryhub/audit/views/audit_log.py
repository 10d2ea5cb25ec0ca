"""The audit log as pages: of one workspace, and of the whole hub for its operators."""

from __future__ import annotations

from datetime import UTC

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.audit.audit_log import Wanted, fitting, lines_of, record_export
from memoryhub.audit.audit_log_forms import AuditFilterForm
from memoryhub.lib.downloads import streaming_download
from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.htmx import render_page
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.pagination import keyset_page
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
MILLISECONDS = 2_000  # for finding a page of records; longer, and the reader is asked to narrow it by days


@require_GET
def activity(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """What happened, latest first."""
    workspace = _workspace(request, slug)
    form = AuditFilterForm(request.GET)
    wanted = _wanted(form, request.GET.get("kind", ""))
    try:
        with time_limit(connection, MILLISECONDS):
            page = keyset_page(fitting(_records(workspace), wanted), order=("-id",), params=request.GET)
    except SearchTooSlow as error:
        words = gettext("Looking through the whole log took too long. Give the days that you mean.")
        raise LimitExceeded(words, code="log_too_long") from error
    keys = dict(Session.objects.filter(pk__in={row.session_id for row in page.rows}).values_list("pk", "key"))
    slugs = dict(Workspace.objects.filter(pk__in={row.workspace_id for row in page.rows}).values_list("pk", "slug"))
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "rows": [
            (
                row,
                slugs.get(row.workspace_id or 0, ""),
                keys.get(row.session_id or 0),
                read_time(row.detail.get("taken_at"), UTC),
            )
            for row in page.rows
        ],
        "kind": wanted.kind,
        "may_export": workspace is None or has_role(request.user, workspace, OPERATOR),
        "is_filtered": wanted != Wanted(kind=wanted.kind),
    }
    return render_page(request, "audit/activity.html", context, fragment="activity")


@require_POST
def export_activity(request: HttpRequest, slug: str | None = None) -> StreamingHttpResponse:
    """The records that the filters leave, as a file."""
    workspace = _workspace(request, slug, role=OPERATOR)
    records = fitting(_records(workspace), _wanted(AuditFilterForm(request.POST), request.POST.get("kind", "")))
    newest = records.order_by("-id").values_list("id", flat=True).first() or 0
    records = records.filter(id__lte=newest)
    record_export(records.count(), workspace, by=by_person(request))
    suffix = "jsonl" if request.POST.get("format") == "jsonl" else "csv"
    name = f"{workspace.slug if workspace else 'memoryhub'}-audit.{suffix}"
    return streaming_download(lines_of(records, suffix), name)


def _workspace(request: HttpRequest, slug: str | None, *, role: str = VIEWER) -> Workspace | None:
    """Return the workspace of an address; None for the whole hub, which is for its operators alone."""
    if slug is not None:
        return get_workspace(request, slug, role=role)
    require_hub_operator(request)
    visible_workspaces(request)
    return None


def _records(workspace: Workspace | None) -> QuerySet[AuditRecord]:
    return AuditRecord.objects.filter(workspace=workspace) if workspace else AuditRecord.objects.all()


def _wanted(form: AuditFilterForm, kind: str) -> Wanted:
    form.is_valid()  # a field that can't be read filters nothing, and says so beside itself
    return Wanted(
        kind=kind if kind in KINDS else "", **{name: value for name, value in form.cleaned_data.items() if value}
    )

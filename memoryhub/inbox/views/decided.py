from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from memoryhub.audit.audit_log import AuditFilter, filter_records
from memoryhub.audit.audit_log_forms import AuditFilterForm
from memoryhub.inbox.decided import KINDS, Decision, decision_records, load_decisions
from memoryhub.inbox.queue import QueueScope
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import get_workspace, is_hub_operator, visible_workspaces
from memoryhub.role_scope import role_scope
from sessions_app.models import AuditRecord, Workspace

PAGE_ROWS = 25
FIELDS = ("who", "since", "until")


def decided_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """List what people decided in a workspace, latest first."""
    workspace = get_workspace(request, slug)
    return _render(request, QueueScope(Workspace.objects.filter(pk=workspace.pk)), workspace)


def hub_decided(request: HttpRequest) -> HttpResponse:
    """List what people decided in all workspaces that the reader may see."""
    return _render(request, QueueScope(visible_workspaces(request), of_hub=is_hub_operator(request.user)), None)


def _render(request: HttpRequest, scope: QueueScope, workspace: Workspace | None) -> HttpResponse:
    form, kind = AuditFilterForm(request.GET), request.GET.get("kind", "")
    form.fields["who"].label = gettext("Decided by")
    form.is_valid()  # invalid fields don't filter
    wanted = AuditFilter(**{name: value for name in FIELDS if (value := form.cleaned_data.get(name))})
    records = filter_records(decision_records(scope, kind), wanted)
    page = keyset_page(records, order=("-id",), params=request.GET, size=PAGE_ROWS)
    context = {
        "workspace": workspace,
        "page": page,
        "decisions": _that_may_be_undone(request, scope, page.rows),
        "kind": kind if kind in KINDS else "",
        "kinds": KINDS.items(),
        "fields": [form[name] for name in FIELDS],
        "is_filtered": wanted != AuditFilter(),
    }
    return render_page(request, "inbox/decided.html", context, fragment="decided")


def _that_may_be_undone(request: HttpRequest, scope: QueueScope, records: list[AuditRecord]) -> list[Decision]:
    """Return the decisions of records; those that the reader may not undo have no ``undo``."""
    roles = role_scope(request.user)
    found = {record.workspace_id for record in records if record.workspace_id}
    of_hub: set[int | None] = {None} if roles.is_whole else set()
    curated, operated = (
        of_hub | set(rows.filter(pk__in=found).values_list("pk", flat=True))
        for rows in (roles.curated, roles.operated)
    )
    return [
        one if one.record.workspace_id in (operated if one.needs_operator else curated) else replace(one, undo="")
        for one in load_decisions(scope.workspaces, records)
    ]

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from memoryhub.audit.audit_log import AuditFilter, filter_records
from memoryhub.audit.audit_log_forms import AuditFilterForm
from memoryhub.inbox.decided import KINDS, decision_records, load_decisions
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import EDITOR, OPERATOR, get_workspace, has_role

PAGE_ROWS = 25
FIELDS = ("who", "since", "until")


def decided_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """List what people decided, latest first."""
    workspace = get_workspace(request, slug)
    form, kind = AuditFilterForm(request.GET), request.GET.get("kind", "")
    form.fields["who"].label = gettext("Decided by")
    form.is_valid()  # invalid fields don't filter
    wanted = AuditFilter(**{name: value for name in FIELDS if (value := form.cleaned_data.get(name))})
    records = filter_records(decision_records(workspace, kind), wanted)
    page = keyset_page(records, order=("-id",), params=request.GET, size=PAGE_ROWS)
    roles = {role: has_role(request.user, workspace, role) for role in (EDITOR, OPERATOR)}
    decisions = [
        one if roles[OPERATOR if one.needs_operator else EDITOR] else replace(one, undo="")
        for one in load_decisions(workspace, page.rows)
    ]
    context = {
        "workspace": workspace,
        "page": page,
        "decisions": decisions,
        "kind": kind if kind in KINDS else "",
        "kinds": KINDS.items(),
        "fields": [form[name] for name in FIELDS],
        "is_filtered": wanted != AuditFilter(),
    }
    return render_page(request, "inbox/decided.html", context, fragment="decided")

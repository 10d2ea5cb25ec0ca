from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext

from memoryhub.inbox.safe_changes import accept_safe_changes, changed_lines, find_safe_changes
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_ints
from memoryhub.permissions import EDITOR, by_person, get_workspace
from memoryhub.runs.part_decisions import undo_url
from memoryhub.runs.views.review_bulk import ACTIONS

SHOWN_REASONS = 3


def accept_safe(request: HttpRequest, slug: str) -> HttpResponse:
    """List the held changes without a finding; on POST, accept those that the person saw."""
    workspace = get_workspace(request, slug, role=EDITOR)
    if request.method == "POST":
        pks = parse_ints(request.POST.getlist("change"))
        if not pks:
            messages.error(request, gettext("Select at least one change."))
            return redirect("accept-safe", slug)
        accepted, reasons = accept_safe_changes(workspace, pks, by=by_person(request), user=request.user)  # type: ignore[arg-type]
        count = len(accepted)
        text = ngettext("%(count)s change accepted.", "%(count)s changes accepted.", count) % {"count": f"{count:,}"}
        if accepted:
            messages.success(request, text, extra_tags=undo_url(accepted))
        if skipped := len(reasons):
            text = ngettext("%(count)s skipped.", "%(count)s skipped.", skipped) % {"count": f"{skipped:,}"}
            messages.warning(request, " ".join([text, *dict.fromkeys(reasons[:SHOWN_REASONS])]))
        return redirect("inbox", slug)
    found = find_safe_changes(workspace)
    shown = [(change, *changed_lines(change)) for change in found.safe]
    context = {"workspace": workspace, "found": found, "shown": shown, "actions": ACTIONS}
    return render_page(request, "inbox/accept_safe.html", context)

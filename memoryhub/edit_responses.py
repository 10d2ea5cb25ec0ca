"""Responses to edits of rows: actions of lists, redirects and messages about the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import SENTENCES
from knowledge_app.services.rows.spreadsheet_columns import EXPORTS
from knowledge_app.services.rows.undoable_edits import edit_rows, is_final
from memoryhub.lib.bulk_selection import Action, action_value
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.http.downloads import download
from memoryhub.lib.tables.columns import export_rows
from memoryhub.lib.tables.files import FORMATS
from memoryhub.permissions import by_person, log_page_access
from sessions_app.models import Run, Workspace
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import record

VERIFY = Action("verify", gettext_lazy("Mark as verified"))
WITHDRAW = Action("withdraw", gettext_lazy("Withdraw"), asks="text", label=gettext_lazy("Why (optional)"))
RETURN = Action("return", gettext_lazy("Restore"))
REVIEW = Action("review", gettext_lazy("Review by"), asks="date", label=gettext_lazy("Day (empty: none)"))
FILE_FORMATS = [("csv", "CSV"), ("json", "JSON"), ("xlsx", "XLSX")]
EXPORT = Action("export", gettext_lazy("Export"), choices=FILE_FORMATS, is_file=True)


def add_edit_message(request: HttpRequest, run: Run, skipped: str = "") -> None:
    """Add a message about an edit's outcome, with a link to undo it (includes/messages.html)."""
    if run.is_live:
        messages.info(request, _("The background worker is making this change. This page shows its progress."))
        return
    changed = run.proposal["changed"]
    details = [skipped, "" if skipped else _skipped_text(run.proposal.get("passed_over", 0))]
    if not changed:
        messages.info(request, " ".join(part for part in (_("No changes."), skipped) if part))
        return
    words = str(SENTENCES[run.options["action"]]) % {"rows": TABLES[run.options["table"]].shown(changed)}
    undo = "" if is_final(run) else str(run.pk)
    messages.success(request, " ".join(part for part in (words, *details) if part), extra_tags=undo)


def _skipped_text(count: int) -> str:
    if not count:
        return ""
    words = ngettext(
        "%(count)s was skipped: it no longer exists, or was like that already.",
        "%(count)s were skipped: they no longer exist, or were like that already.",
        count,
    )
    return words % {"count": f"{count:,}"}


def list_address(request: HttpRequest, slug: str, name: str, *more: object) -> str:
    """Return the address of a list page with the current filters."""
    query = request.GET.urlencode()
    return f"{reverse(name, args=[slug, *more])}{f'?{query}' if query else ''}"


def answer_edit(request: HttpRequest, slug: str, address: str, edit: Callable[[], tuple[Run, str]]) -> HttpResponse:
    """Carry out an edit and redirect to ``address``; an expected error becomes a message.

    ``edit`` returns the run and a sentence about the rows that it left out.
    """
    try:
        run, skipped = edit()
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    return after_edit(request, run, slug, address, skipped)


def after_edit(request: HttpRequest, run: Run, slug: str, address: str, skipped: str = "") -> HttpResponse:
    """Redirect to ``address``, or to the run's page while a worker carries it out."""
    add_edit_message(request, run, skipped)
    return redirect("run", slug, run.pk) if run.is_live else redirect(address)


def export_chosen(
    request: HttpRequest, workspace: Workspace, table: str, pks: Sequence[int], *, logged_as: str
) -> HttpResponse:
    """Return selected rows as a file, without the values of secrets.

    ``logged_as``: the kind in the access log. Raises Invalid, TableTooLarge.
    """
    file_format = request.POST.get("action", "").partition(":")[2]
    if file_format not in FORMATS or table not in EXPORTS:
        raise Http404
    export = EXPORTS[table]
    table_data = export_rows(export, export.model._default_manager.filter(workspace=workspace, pk__in=pks))
    if not len(table_data):
        raise Invalid(_("Select at least one row."), code="nothing_chosen")
    count = len(table_data)
    text = f"{count:,} row{'' if count == 1 else 's'} of the table {table} exported"
    record(by_person(request), "rows.exported", "workspace", workspace.pk, text, workspace=workspace)
    log_page_access(request, workspace, logged_as, seen_rows(table, [row["id"] for row in table_data.rows]))
    return download(
        FORMATS[file_format].write(table_data), f"{table.replace('_', '-')}-{workspace.slug}.{file_format}"
    )


def answer_chosen(
    request: HttpRequest,
    workspace: Workspace,
    table: str,
    address: str,
    *,
    logged_as: str,
    chosen: Callable[[], list[int]],
    edit: Callable[[list[int]], tuple[Run, str]],
) -> HttpResponse:
    """Carry out a list form's action on the selected rows: an export or an edit."""
    if not request.POST.get("action", "").startswith("export:"):
        return answer_edit(request, workspace.slug, address, lambda: edit(chosen()))
    try:
        return export_chosen(request, workspace, table, chosen(), logged_as=logged_as)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)


def edit_chosen(
    request: HttpRequest, workspace: Workspace, table: str, pks: list[int], *, allowed: Sequence[str]
) -> tuple[Run, str]:
    """Carry out a form's action with its reason, if it is one of ``allowed``."""
    action = request.POST.get("action", "")
    if action not in allowed:
        raise Invalid(_("Choose an action."), code="nothing_chosen")
    values = {"reason": action_value(request, action)}
    return edit_rows(workspace, table, action, pks, values=values, by=by_person(request)), ""


def move_action(choices: Sequence[tuple[Any, Any]]) -> Action:
    """Return the action that moves rows to a category."""
    return Action("move", gettext_lazy("Move to"), choices=[(value, label) for value, label in choices])

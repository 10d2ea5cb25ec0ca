"""What is done with the rows chosen on a list, and telling what became of them."""

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
from memoryhub.lib.downloads import download
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.tables.columns import export_rows
from memoryhub.lib.tables.files import FORMATS
from memoryhub.permissions import by_person, log_page_access
from sessions_app.models import Run, Workspace
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import record

VERIFY = Action("verify", gettext_lazy("Mark as verified"))
WITHDRAW = Action("withdraw", gettext_lazy("Withdraw"), asks="text", label=gettext_lazy("Why (optional)"))
RETURN = Action("return", gettext_lazy("Take back in"))
REVIEW = Action("review", gettext_lazy("Review by"), asks="date", label=gettext_lazy("Day (empty: none)"))
FILE_FORMATS = [("csv", "CSV"), ("json", "JSON"), ("xlsx", "XLSX")]
EXPORT = Action("export", gettext_lazy("Export"), choices=FILE_FORMATS, is_file=True)


def tell(request: HttpRequest, run: Run, left: str = "") -> None:
    """Say what an edit came to, and what it left and why, with a way to undo it (includes/messages.html)."""
    if run.is_live:
        messages.info(request, _("A worker is at it; this page shows how far it is."))
        return
    changed = run.proposal["changed"]
    said = [left, "" if left else _passed_over(run.proposal.get("passed_over", 0))]
    if not changed:
        messages.info(request, " ".join(part for part in (_("Nothing was different."), left) if part))
        return
    words = str(SENTENCES[run.options["action"]]) % {"rows": TABLES[run.options["table"]].shown(changed)}
    undo = "" if is_final(run) else str(run.pk)
    messages.success(request, " ".join(part for part in (words, *said) if part), extra_tags=undo)


def _passed_over(count: int) -> str:
    if not count:
        return ""
    words = ngettext(
        "%(count)s was left alone: it is gone, or was so already.",
        "%(count)s were left alone: they are gone, or were so already.",
        count,
    )
    return words % {"count": f"{count:,}"}


def list_address(request: HttpRequest, slug: str, name: str, *more: object) -> str:
    """Return the address of a list page with the filters at hand."""
    query = request.GET.urlencode()
    return f"{reverse(name, args=[slug, *more])}{f'?{query}' if query else ''}"


def answer_edit(request: HttpRequest, slug: str, address: str, edit: Callable[[], tuple[Run, str]]) -> HttpResponse:
    """Carry out an edit and go back to where it was asked for; an expected error is told there.

    ``edit`` returns the run, and in words what it left out.
    """
    try:
        run, left = edit()
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    return after_edit(request, run, slug, address, left)


def after_edit(request: HttpRequest, run: Run, slug: str, address: str, left: str = "") -> HttpResponse:
    """Go back to where the edit was asked for; to the run's page while a worker is at it."""
    tell(request, run, left)
    return redirect("run", slug, run.pk) if run.is_live else redirect(address)


def export_chosen(
    request: HttpRequest, workspace: Workspace, table: str, pks: Sequence[int], *, noted_as: str
) -> HttpResponse:
    """Hand out chosen rows as a table, as the admin site does: values of secrets are left out.

    ``noted_as``: what the access log calls it. Raises Invalid, TableTooLarge.
    """
    wanted = request.POST.get("action", "").partition(":")[2]
    if wanted not in FORMATS or table not in EXPORTS:
        raise Http404
    export = EXPORTS[table]
    made = export_rows(export, export.model._default_manager.filter(workspace=workspace, pk__in=pks))
    if not len(made):
        raise Invalid(_("Choose at least one row."), code="nothing_chosen")
    count = len(made)
    text = f"{count:,} row{'' if count == 1 else 's'} of the table {table} exported"
    record(by_person(request), "rows.exported", "workspace", workspace.pk, text, workspace=workspace)
    log_page_access(request, workspace, noted_as, seen_rows(table, [row["id"] for row in made.rows]))
    return download(FORMATS[wanted].write(made), f"{table.replace('_', '-')}-{workspace.slug}.{wanted}")


def answer_chosen(
    request: HttpRequest,
    workspace: Workspace,
    table: str,
    address: str,
    *,
    noted_as: str,
    chosen: Callable[[], list[int]],
    edit: Callable[[list[int]], tuple[Run, str]],
) -> HttpResponse:
    """Do what a list's form asks for with the rows that it chose: export them, or an edit of them."""
    if not request.POST.get("action", "").startswith("export:"):
        return answer_edit(request, workspace.slug, address, lambda: edit(chosen()))
    try:
        return export_chosen(request, workspace, table, chosen(), noted_as=noted_as)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)


def edit_chosen(
    request: HttpRequest, workspace: Workspace, table: str, pks: list[int], *, allowed: Sequence[str]
) -> tuple[Run, str]:
    """Do what a form asks for, with the reason that it gives, if it is one of the allowed changes."""
    action = request.POST.get("action", "")
    if action not in allowed:
        raise Invalid(_("Choose an action."), code="nothing_chosen")
    values = {"reason": action_value(request, action)}
    return edit_rows(workspace, table, action, pks, values=values, by=by_person(request)), ""


def moves(choices: Sequence[tuple[Any, Any]]) -> Action:
    """Return the action that moves rows to one of some categories."""
    return Action("move", gettext_lazy("Move to"), choices=[(value, label) for value, label in choices])

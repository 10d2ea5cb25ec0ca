"""Admin actions that edit rows: one run for each workspace, with audit, progress and undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import SENTENCES
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.admin.bulk_selection import Chosen, chosen_rows, confirm
from memoryhub.admin.forms import EditForm
from memoryhub.lib.errors import MemoryHubError
from memoryhub.permissions import by_person
from sessions_app.models import Run, Workspace

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Action = Callable[[Any, HttpRequest, QuerySet[Any]], HttpResponse | None]
UNDO = _("You can undo it on the run's page.")
SAME = _("Merge duplicates")
SHOWN_GROUPS = 50
SHOWN_ROWS = 500
IN_BACKGROUND: dict[str, StrOrPromise] = {
    "assign": _("%(rows)s will be changed in the background."),
    "tag": _("%(rows)s will be tagged in the background."),
    "recategorise": _("%(rows)s will be re-categorised in the background."),
    "withdraw": _("%(rows)s will be withdrawn in the background."),
    "return": _("%(rows)s will be restored in the background."),
    "verify": _("%(rows)s will be marked as verified in the background."),
    "remove": _("%(rows)s will be removed in the background."),
    "merge": _("%(rows)s will be merged in the background."),
}


def edit_action(
    name: str,
    title: StrOrPromise,
    *,
    table: str,
    change: str,
    form: type[EditForm] | None = None,
    help_text: StrOrPromise = "",
) -> Action:
    """Return an admin action that makes a change of ``row_changes`` to the selected rows.

    ``form``: asked for first; without one the edit happens at once.
    """

    def act(options: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        chosen = chosen_rows(queryset)
        values: dict[str, Any] = {}
        reason = ""
        if form is not None:
            words = f"{help_text} {UNDO}".strip()
            answer = confirm(options, request, queryset, chosen, form, title=title, help_text=words)
            if isinstance(answer, HttpResponse):
                return answer
            assert isinstance(answer, EditForm)  # noqa: S101  form is one
            values, reason = answer.values, answer.cleaned_data["reason"]
        for workspace, pks in chosen.by_workspace.items():
            _edit(request, workspace, table, change, pks, values, reason)
        return None

    act.__name__ = name
    return admin.action(description=title)(act)


def _edit(
    request: HttpRequest,
    workspace: Workspace,
    table: str,
    change: str,
    units: list[int] | list[list[int]],
    values: dict[str, Any],
    reason: str,
) -> None:
    """Start the edit of one workspace and report it. If it fails, the other workspaces' edits continue."""
    try:
        run = edit_rows(workspace, table, change, units, values=values, reason=reason, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, f"{workspace.name}: {error.message}")
        return
    url = reverse("run", args=[workspace.slug, run.pk])
    if run.status == Run.Status.DONE:
        text = str(SENTENCES[change]) % {"rows": TABLES[table].shown(run.proposal["changed"])}
        messages.success(request, _linked(workspace, text, url, gettext("View or undo")))
    else:
        text = str(IN_BACKGROUND[change]) % {"rows": TABLES[table].shown(run.steps_total)}
        messages.info(request, _linked(workspace, text, url, gettext("View progress")))


def _linked(workspace: Workspace, text: str, url: str, link: str) -> str:
    return format_html('{}: {} <a href="{}">{}</a>.', workspace.name, text, url, link)


@admin.action(description=SAME)
def merge_knowledge(options: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
    """Merge the selected entries in use that have the same category and content into the oldest."""
    chosen = chosen_rows(queryset)
    groups = {workspace: _duplicate_groups(pks) for workspace, pks in chosen.by_workspace.items()}
    count = sum(map(len, groups.values()))
    if not count:
        messages.info(request, gettext("No duplicates among the selected entries in use."))
        return None
    words = gettext("The first of each group stays and receives the tags and uses of the others.")
    answer = confirm(
        options,
        request,
        queryset,
        Chosen({workspace: [pk for group in found for pk in group] for workspace, found in groups.items() if found}),
        EditForm,
        title=SAME,
        help_text=f"{words} {UNDO}",
        groups=_first_rows([group for found in groups.values() for group in found]),
    )
    if isinstance(answer, HttpResponse):
        return answer
    for workspace, found in groups.items():
        if found:
            _edit(request, workspace, "knowledge", "merge", found, {}, answer.cleaned_data["reason"])
    return None


def _duplicate_groups(pks: list[int]) -> list[list[int]]:
    """Return groups of two or more entries in use with the same identity, ordered by their first."""
    groups: dict[str, list[int]] = {}
    for start in range(0, len(pks), SHOWN_ROWS):
        some = KnowledgeEntry.objects.filter(pk__in=pks[start : start + SHOWN_ROWS], withdrawn_at=None)
        for identity, pk in some.exclude(identity="").order_by("pk").values_list("identity", "pk"):
            groups.setdefault(identity, []).append(pk)
    return [group for group in groups.values() if len(group) > 1]


def _first_rows(groups: list[list[int]]) -> list[list[KnowledgeEntry]]:
    """Return the rows of the first groups, as many as a page can show."""
    pks = [pk for group in groups[:SHOWN_GROUPS] for pk in group][:SHOWN_ROWS]
    rows = KnowledgeEntry.objects.in_bulk(pks)
    return [[rows[pk] for pk in group if pk in rows] for group in groups[:SHOWN_GROUPS]]

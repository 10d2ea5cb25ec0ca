from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from knowledge_app.models import KeyValue
from knowledge_app.services.rows import key_values as service
from knowledge_app.services.rows.additions import edit_of, record_addition
from knowledge_app.services.rows.exporting import key_values_file
from knowledge_app.services.rows.restoring import replace_value
from memoryhub.edit_responses import EXPORT, RETURN, WITHDRAW, after_edit, edit_chosen
from memoryhub.knowledge.forms import KeyValueFilterForm, KeyValueForm
from memoryhub.knowledge.kinds import EditableKind, Filters, Outcome
from memoryhub.knowledge.views.rows import edit_row, row_context, send_rows
from memoryhub.lib.errors import Conflict, Invalid, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.secrets import looks_secret
from memoryhub.lib.tokens import count_tokens
from memoryhub.permissions import EDITOR, by_person, get_workspace, log_page_access
from sessions_app.models import Run, Workspace
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import record

BRIEF_CHARS = 200
INDENTED_CHARS = 20_000  # longer JSON is not indented


def _matching(workspace: Workspace, filters: Filters) -> QuerySet[KeyValue]:
    rows = KeyValue.objects.filter(workspace=workspace, withdrawn_at__isnull=not filters.get("withdrawn"))
    if begin := filters.get("begin"):
        rows = rows.filter(key__startswith=begin)
    return (service.with_text(rows, filters["q"]) if filters.get("q") else rows).select_related("hold")


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Outcome:
    return edit_chosen(request, workspace, "key_values", pks, allowed=("withdraw", "return"))


def _add(request: HttpRequest, workspace: Workspace, values: dict[str, Any]) -> HttpResponse:
    """Set the value of a key."""
    by = by_person(request)
    row = service.write_value(workspace, **values, by=by)
    if row.history.count() == 1 and row.updated_at == by.at:
        run: Run | None = record_addition(workspace, "key_values", [row.pk], by=by)
        words = _("Saved.")
    else:
        run = edit_of(workspace, "key_values", row.pk, at=by.at)
        words = _("Saved. Earlier values are below.") if run else _("No changes.")
    messages.success(request, words, extra_tags=str(run.pk) if run else "")
    return redirect("knowledge:key-value", workspace.slug, row.pk)


def _brief(row: KeyValue, _workspace: Workspace) -> str:
    """Return the beginning of a value on one line; "" for a secret."""
    line = "" if row.is_secret else " ".join(row.value.split())
    return line if len(line) <= BRIEF_CHARS else f"{line[:BRIEF_CHARS]}…"


KEY_VALUES = EditableKind(
    table="key_values",
    access="key_value",
    title=gettext_lazy("Key-values"),
    list_id="key-value-list",
    list_template="knowledge/key_values.html",
    list_url="knowledge:key-values",
    row_url="knowledge:key-value",
    edit_url="knowledge:edit-key-values",
    filter_form=lambda data, _workspace: KeyValueFilterForm(data),
    matching=_matching,
    order=("key",),
    actions=lambda filters: (RETURN if filters.get("withdrawn") else WITHDRAW, EXPORT),
    edit=_edit,
    file=key_values_file,
    file_name="kv.json",
    details=_brief,
    is_read=lambda row: not row.is_secret,
    counted=lambda n: ngettext("%(count)s key", "%(count)s keys", n) % {"count": f"{n:,}"},
    live="key-values",
    new_title=gettext_lazy("New key-value"),
    new_text=gettext_lazy(
        "The agent reads the value exactly as saved. Saving an existing key replaces its value; "
        "earlier values are kept."
    ),
    new_button=gettext_lazy("Save"),
    form=KeyValueForm,
    add=_add,
    row_template="knowledge/key_value.html",
    edit_row_url="knowledge:edit-key-value",
    withdrawn_text=gettext_lazy("Agents can't read it. It returns if an agent writes it again."),
)


@require_POST
def edit_key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Edit a row as ``edit_row`` does, or save its value. If that has changed since the page, show both values."""
    if "value" not in request.POST:
        return edit_row(request, slug, pk, kind=KEY_VALUES)
    workspace = get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(KeyValue.objects.select_related("workspace"), workspace=workspace, pk=pk)
    value, known = request.POST["value"], parse_int(request.POST.get("known"))
    address = reverse("knowledge:key-value", args=[slug, pk])
    try:
        if row.is_secret and not value:
            raise Invalid(_("Enter the new value. The current one is masked."), code="bad_key_value")
        _key, checked = service.checked(row.key or "-", value.replace("\r\n", "\n"))
        run = replace_value(row, checked, known=known, by=by_person(request))
    except Conflict as error:
        row.refresh_from_db()
        return _page(request, workspace, row, is_revealed=False, conflict=error.message)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect(address)
    return after_edit(request, run, slug, address)


@require_GET
def download_key_values(request: HttpRequest, slug: str) -> HttpResponse:
    """Send kv.json with secrets to editors, and record it in the audit log."""
    workspace = get_workspace(request, slug, role=EDITOR)
    by = by_person(request)
    text = f"{by.actor.name} exported the key-values"
    record(by, "key_value.revealed", "workspace", workspace.pk, text, workspace=workspace)
    return send_rows(request, workspace, KEY_VALUES)


def key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    return _page(request, workspace, get_object_or_404(KeyValue, workspace=workspace, pk=pk), is_revealed=False)


@require_http_methods(["GET", "POST"])
def reveal_key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a masked value once, and record it in the audit log. Reloading redirects to the row."""
    is_get = request.method == "GET"
    workspace = get_workspace(request, slug) if is_get else get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(KeyValue, workspace=workspace, pk=pk)
    if is_get:
        return redirect("knowledge:key-value", slug, pk)
    by = by_person(request)
    text = f"{by.actor.name} revealed the value of {row.key!r}"
    record(by, "key_value.revealed", "key_value", row.pk, text, workspace=workspace)
    return _page(request, workspace, row, is_revealed=True)


def _page(
    request: HttpRequest, workspace: Workspace, row: KeyValue, *, is_revealed: bool, conflict: str = ""
) -> HttpResponse:
    context = row_context(request, workspace, KEY_VALUES, row)
    is_secret = any(state.is_secret or looks_secret(row.key, state.value) for state in [row, *context["states"]])
    if is_revealed or not is_secret:
        log_page_access(request, workspace, "key_value.read", seen_rows("key_values", [row.pk]))
    is_masked = is_secret and not is_revealed
    context |= {
        "tokens": count_tokens(row.value),
        "indented": _indented(row.value) if row.is_json else "",
        "is_masked": is_masked,
        "is_revealed": is_revealed,
        "conflict": conflict,
        "new_value": request.POST["value"] if conflict else "" if is_masked else row.value,
    }
    return render_page(request, "knowledge/key_value.html", context, status=422 if conflict else 200)


def _indented(text: str) -> str:
    """Indent short JSON; return "" if that would change numbers, repeated keys or anything else."""
    if len(text) > INDENTED_CHARS:
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    forms = [
        json.dumps(value, ensure_ascii=False, separators=separators) for separators in [(",", ":"), (", ", ": ")]
    ]
    is_structure = isinstance(value, dict | list)
    return json.dumps(value, ensure_ascii=False, indent=2) if is_structure and text in forms else ""

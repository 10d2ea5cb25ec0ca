from __future__ import annotations

import json
from dataclasses import dataclass

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from knowledge_app.models import KeyValue
from knowledge_app.services.rows import key_values as service
from knowledge_app.services.rows.additions import edit_of, record_addition
from knowledge_app.services.rows.edits import edit_rows
from knowledge_app.services.rows.exporting import key_values_file
from knowledge_app.services.rows.restoring import restore_row
from memoryhub.access import by_person, get_workspace, has_role, log_page_access
from memoryhub.bulk_edits import EXPORT, RETURN, WITHDRAW, answer_chosen, answer_edit, list_address
from memoryhub.knowledge.forms import KeyValueFilterForm, KeyValueForm
from memoryhub.lib.bulk_selection import action_value, selected_keys
from memoryhub.lib.downloads import download
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page, parse_int
from memoryhub.lib.secrets import looks_secret
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows
from sessions_app.services.audit import record

BRIEF_CHARS = 200
INDENTED_CHARS = 20_000  # JSON beyond it is shown as it is
SHOWN_STATES = 50
EDITOR = Membership.Role.EDITOR


@dataclass(frozen=True)
class Shown:
    """A key-value as a list shows it; the value of a secret is left out."""

    pk: int
    key: str
    brief: str
    is_json: bool
    is_secret: bool


def key_values(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    form = KeyValueFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = _fitting(workspace, request)
    page = keyset_page(rows, order=("key",), params=request.GET)
    shown = [(row, _shown(row)) for row in page.rows]
    seen = [row.pk for row in page.rows if not row.is_secret]
    log_page_access(request, workspace, "key_value.read", seen_rows("key_values", seen))
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "rows": shown,
        "count": rows.count(),
        "is_filtered": any(wishes.values()),
        "actions": (RETURN if wishes.get("withdrawn") else WITHDRAW, EXPORT),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "knowledge/key_values.html", context, fragment="key-value-list")


def _fitting(workspace: Workspace, request: HttpRequest) -> QuerySet[KeyValue]:
    """Return the key-values that a page's filters leave: its rows, and what "all that fit" means."""
    form = KeyValueFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = KeyValue.objects.filter(workspace=workspace, withdrawn_at__isnull=not wishes.get("withdrawn"))
    if begin := wishes.get("begin"):
        rows = rows.filter(key__startswith=begin)
    return service.with_text(rows, wishes["q"]) if wishes.get("q") else rows


@require_POST
def edit_many(request: HttpRequest, slug: str) -> HttpResponse:
    """Withdraw the key-values chosen on the list, take them back in, or hand them out."""
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = _fitting(workspace, request)
    address = list_address(request, slug, "knowledge:key-values")
    return answer_chosen(
        request,
        workspace,
        "key_values",
        address,
        noted_as="key_value.exported",
        chosen=lambda: selected_keys(request, rows),
        edit=lambda pks: (_edit(request, workspace, pks), ""),
    )


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Run:
    action = request.POST.get("action", "")
    if action not in ("withdraw", "return"):
        raise service.BadKeyValue(_("Choose an action."))
    values = {"reason": action_value(request, action)}
    return edit_rows(workspace, "key_values", action, pks, values=values, by=by_person(request))


def new_key_value(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    form = KeyValueForm(request.POST or None)
    if form.is_bound and form.is_valid():
        try:
            row = _write(request, workspace, form.cleaned_data)
        except MemoryHubError as error:
            form.add_error(None, error.message)
        else:
            return redirect("knowledge:key-value", slug, row.pk)
    context = {"workspace": workspace, "form": form}
    return render_page(request, "knowledge/key_value_new.html", context, status=422 if form.errors else 200)


def _write(request: HttpRequest, workspace: Workspace, values: dict[str, str]) -> KeyValue:
    """Set the value of a key and say so, with a way to undo it."""
    by = by_person(request)
    row = service.write_value(workspace, **values, by=by)
    if row.history.count() == 1 and row.updated_at == by.at:
        run: Run | None = record_addition(workspace, "key_values", [row.pk], by=by)
        words = _("Written.")
    else:
        run = edit_of(workspace, "key_values", row.pk, at=by.at)
        words = _("Written. What it was before stays below.") if run else _("It says that already.")
    messages.success(request, words, extra_tags=str(run.pk) if run else "")
    return row


@require_POST
def edit_one(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Give a key another value, restore an earlier one, withdraw it or take it back in."""
    workspace = get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(KeyValue.objects.select_related("workspace"), workspace=workspace, pk=pk)
    state = parse_int(request.POST.get("state"))
    by = by_person(request)

    def edit() -> tuple[Run, str]:
        if state is not None:
            known = parse_int(request.POST.get("known"))
            return restore_row(row, state, known=known, by=by), ""
        if "value" in request.POST:
            if row.is_secret and not request.POST["value"]:
                raise service.BadKeyValue(_("Give the new value: the masked one stays as it is."))
            value = service.checked(row.key or "-", request.POST["value"].replace("\r\n", "\n"))[1]
            return service.change_value(row, value, by=by), ""
        return _edit(request, workspace, [pk]), ""

    return answer_edit(request, slug, reverse("knowledge:key-value", args=[slug, pk]), edit)


@require_GET
def download_key_values(request: HttpRequest, slug: str) -> HttpResponse:
    """Hand out kv.json, secrets and all, to editors; the audit trail says so."""
    workspace = get_workspace(request, slug, role=EDITOR)
    by = by_person(request)
    text = f"{by.actor.name} exported the key-values"
    record(by, "key_value.revealed", "workspace", workspace.pk, text, workspace=workspace)
    pks = KeyValue.objects.filter(workspace=workspace, withdrawn_at=None).values_list("pk", flat=True)
    log_page_access(request, workspace, "key_value.exported", seen_rows("key_values", pks))
    return download(key_values_file(workspace), "kv.json")


def _shown(row: KeyValue) -> Shown:
    is_secret = row.is_secret
    line = "" if is_secret else " ".join(row.value.split())
    brief = line if len(line) <= BRIEF_CHARS else f"{line[:BRIEF_CHARS]}…"
    return Shown(row.pk, row.key, brief, row.is_json, is_secret)


def key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    return _detail(request, workspace, get_object_or_404(KeyValue, workspace=workspace, pk=pk), is_revealed=False)


@require_http_methods(["GET", "POST"])
def reveal_key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a masked value once; the audit trail says who looked. Its address, loaded again, leads to the row."""
    if request.method == "GET":
        workspace = get_workspace(request, slug)
        return redirect("knowledge:key-value", slug, get_object_or_404(KeyValue, workspace=workspace, pk=pk).pk)
    workspace = get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(KeyValue, workspace=workspace, pk=pk)
    by = by_person(request)
    text = f"{by.actor.name} revealed the value of {row.key!r}"
    record(by, "key_value.revealed", "key_value", row.pk, text, workspace=workspace)
    return _detail(request, workspace, row, is_revealed=True)


def _detail(request: HttpRequest, workspace: Workspace, row: KeyValue, *, is_revealed: bool) -> HttpResponse:
    states = list(row.history.order_by("-history_id")[:SHOWN_STATES])
    is_secret = any(state.is_secret or looks_secret(row.key, state.value) for state in [row, *states])
    if is_revealed or not is_secret:
        log_page_access(request, workspace, "key_value.read", seen_rows("key_values", [row.pk]))
    context = {
        "workspace": workspace,
        "row": row,
        "states": states,
        "tokens": count_tokens(row.value),
        "indented": _indented(row.value) if row.is_json else "",
        "is_masked": is_secret and not is_revealed,
        "is_revealed": is_revealed,
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render(request, "knowledge/key_value.html", context)


def _indented(text: str) -> str:
    """Set short JSON out over lines; "" where that would change a number, a repeated key or anything else in it."""
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

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from knowledge_app.forms import KeyValueFilterForm
from knowledge_app.models import KeyValue
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from memoryhub.lib.secrets import looks_secret
from memoryhub.lib.tokens import count_tokens
from sessions_app.access import get_workspace, has_role, person
from sessions_app.models import Membership, Workspace
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
    may_reveal = has_role(request.user, workspace, EDITOR)
    form = KeyValueFilterForm(request.GET, finds_values=may_reveal)
    wishes = form.cleaned_data if form.is_valid() else {}
    rows = KeyValue.objects.filter(workspace=workspace)
    if begin := wishes.get("begin"):
        rows = rows.filter(key__startswith=begin)
    if text := wishes.get("q"):
        in_value = Q(value__icontains=text) if may_reveal else Q()  # else a masked value could be guessed by letters
        rows = rows.filter(Q(key__icontains=text) | in_value)
    page = keyset_page(rows, order=("key",), params=request.GET)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "rows": [(row, _shown(row)) for row in page.rows],
        "count": rows.count(),
        "is_filtered": any(wishes.values()),
    }
    return render_page(request, "knowledge_app/key_values.html", context, fragment="key-value-list")


def _shown(row: KeyValue) -> Shown:
    is_secret = looks_secret(row.key, row.value)
    line = "" if is_secret else " ".join(row.value.split())
    brief = line if len(line) <= BRIEF_CHARS else f"{line[:BRIEF_CHARS]}…"
    return Shown(row.pk, row.key, brief, row.is_json, is_secret)


def key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    return _detail(request, workspace, get_object_or_404(KeyValue, workspace=workspace, pk=pk), is_revealed=False)


@require_POST
def reveal_key_value(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a masked value once; the audit trail says who looked."""
    workspace = get_workspace(request, slug, role=EDITOR)
    row = get_object_or_404(KeyValue, workspace=workspace, pk=pk)
    actor = person(request)
    text = f"{actor.name} revealed the value of {row.key!r}"
    record(actor, "key_value.revealed", "key_value", row.pk, text, at=timezone.now(), workspace=workspace)
    return _detail(request, workspace, row, is_revealed=True)


def _detail(request: HttpRequest, workspace: Workspace, row: KeyValue, *, is_revealed: bool) -> HttpResponse:
    states = list(row.history.order_by("-history_id")[:SHOWN_STATES])
    is_secret = any(looks_secret(row.key, state.value) for state in [row, *states])
    context = {
        "workspace": workspace,
        "row": row,
        "states": states,
        "tokens": count_tokens(row.value),
        "indented": _indented(row.value) if row.is_json else "",
        "is_masked": is_secret and not is_revealed,
        "is_revealed": is_revealed,
        "may_reveal": has_role(request.user, workspace, EDITOR),
    }
    return render(request, "knowledge_app/key_value.html", context)


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

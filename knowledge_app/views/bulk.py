"""Choosing rows on a list page, or all that fit its filters, and telling what became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from knowledge_app.services.changes import WORDS
from knowledge_app.services.edits import TABLES
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.pages import number_of, numbers_of
from sessions_app.models import Run


class SelectionChanged(MemoryHubError):
    """Rows came or went since the page was made."""

    code = "selection_changed"


def chosen_rows(request: HttpRequest, fitting: QuerySet[Any]) -> list[int]:
    """Return the primary keys that a form chose: its checkboxes, or all rows that fit the page's filters.

    Raises SelectionChanged where the number of those isn't the one that the page showed.
    """
    if not request.POST.get("all"):
        return numbers_of(request.POST.getlist("row"))
    pks = list(fitting.order_by("pk").values_list("pk", flat=True))
    expected = number_of(request.POST.get("expected"))
    if len(pks) != expected:
        raise SelectionChanged(
            f"{len(pks):,} rows fit now, not {expected or 0:,}: look again before you change them."
        )
    return pks


def tell(request: HttpRequest, run: Run, left: str = "") -> None:
    """Say what an edit came to, with a way to undo it (includes/messages.html)."""
    if run.is_live:
        messages.info(request, "A worker is at it; this page shows how far it is.")
        return
    table, changed = TABLES[run.options["table"]], run.proposal["changed"]
    if not changed:
        messages.info(request, f"Nothing was different. {left}".strip())
        return
    words = f"{table.count(changed)} {WORDS[run.options['action']]}."
    messages.success(request, f"{words} {left}".strip(), extra_tags=str(run.pk))


def list_address(request: HttpRequest, slug: str, name: str) -> str:
    """Return the address of a list page with the filters at hand."""
    return f"{reverse(name, args=[slug])}?{request.GET.urlencode()}"


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

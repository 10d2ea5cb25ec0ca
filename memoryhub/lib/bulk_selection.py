"""Rows chosen on a list: what can be done with them, and which a form chose. One door for all lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.pagination import parse_int, parse_ints
from memoryhub.lib.validation import clean_text

Words = str | Promise
MAX_BOXES = 10_000  # rows that a person may choose one by one, over several pages
MAX_TEXT = 500  # characters of a reason, or of tags


class SelectionChanged(MemoryHubError):
    """Rows came or went since the page was made."""

    code = "selection_changed"


class TooManyBoxes(MemoryHubError):
    """More rows were chosen one by one than a form may name."""

    code = "too_many_boxes"


@dataclass(frozen=True)
class Action:
    """A button of the bar under a list: the form's ``action``, and what it asks for before it is sent.

    ``asks``: "" for nothing, else "text" or "date", whose field is called ``label``. ``choices``: values and words to
    choose one of; it is sent as ``name:value``. ``is_rare``: it stands under More. ``url``: where it is sent instead.
    """

    name: str
    words: Words
    asks: str = ""
    label: Words = ""
    choices: Sequence[tuple[str, Words]] = ()
    is_danger: bool = False
    is_file: bool = False
    url: str = ""


def submitted_rows(request: HttpRequest) -> list[str]:
    """Return what the boxes of a form say: those of its page, then those kept from other pages.

    Raises TooManyBoxes.
    """
    kept = request.POST.get("kept", "")
    sent = list(dict.fromkeys([*request.POST.getlist("row"), *(kept.split(",") if kept else [])]))
    if len(sent) > MAX_BOXES:
        words = gettext("Choose at most %(most)s rows one by one, or all that match.")
        raise TooManyBoxes(words % {"most": f"{MAX_BOXES:,}"})
    return sent


def selected_keys(request: HttpRequest, matching: QuerySet[Any]) -> list[int]:
    """Return the primary keys that a form chose: its checkboxes, or all rows that match the page's filters.

    Raises SelectionChanged where the number of those isn't the one that the page showed, and TooManyBoxes.
    """
    if not request.POST.get("all"):
        return parse_ints(submitted_rows(request))
    keys = list(matching.order_by("pk").values_list("pk", flat=True))
    check_count(len(keys), parse_int(request.POST.get("expected")))
    return keys


def check_count(count: int, expected: int | None) -> None:
    """Raise SelectionChanged where another number of rows match than a page showed."""
    if count != expected:
        words = ngettext(
            "%(count)s row matches now, not %(expected)s: look again before you change them.",
            "%(count)s rows match now, not %(expected)s: look again before you change them.",
            count,
        )
        raise SelectionChanged(words % {"count": f"{count:,}", "expected": f"{expected or 0:,}"})


def action_value(request: HttpRequest, action: str) -> str:
    """Return what was typed for an action: the field of its own, or one that all actions of the form share."""
    own = request.POST.get(f"{action}-value", "")
    return clean_text(own or request.POST.get("text", "")).strip()[:MAX_TEXT]

"""Bulk actions on the rows selected in a list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext

from memoryhub.lib.errors import Conflict, LimitExceeded
from memoryhub.lib.http.pagination import parse_int, parse_ints
from memoryhub.lib.validation import clean_text

Words = str | Promise
MAX_BOXES = 10_000  # rows selected one by one, on all pages together
MAX_TEXT = 500  # characters of a reason, or of tags


@dataclass(frozen=True)
class Limit:
    """The kinds of rows that an action applies to (empty: all), with a sentence that says so."""

    kinds: Sequence[str] = ()
    reason: Words = ""


@dataclass(frozen=True)
class Action:
    """A button below a list, sent as the form's ``action``.

    ``asks``: the type of an additional input ("text", "date" or "" for none), with its ``label``. ``choices``:
    (value, label) pairs of a menu, sent as ``name:value``. ``url``: the form's target, if not the list's own.

    In a list of several kinds of rows: the ``limit`` of the action and of each choice, and the ``listed_kinds``.
    """

    name: str
    words: Words
    asks: str = ""
    label: Words = ""
    choices: Sequence[tuple[str, Words]] = ()
    is_danger: bool = False
    is_file: bool = False
    url: str = ""
    limit: Limit = Limit()
    choice_limits: Mapping[str, Limit] = field(default_factory=dict)
    listed_kinds: Collection[str] = ()

    @property
    def is_disabled(self) -> bool:
        """Tell whether the action applies to none of the listed rows."""
        return not self._is_possible(self.limit)

    @property
    def options(self) -> list[tuple[str, Words, Limit, bool]]:
        """Return (value, label, limit, is_disabled) for each choice."""
        found = [(value, label, self.choice_limits.get(value, self.limit)) for value, label in self.choices]
        return [(value, label, limit, not self._is_possible(limit)) for value, label, limit in found]

    def _is_possible(self, limit: Limit) -> bool:
        return not limit.kinds or not set(limit.kinds).isdisjoint(self.listed_kinds)


def submitted_rows(request: HttpRequest) -> list[str]:
    """Return the values of the form's checkboxes: those of its page, then those from other pages.

    Raises LimitExceeded.
    """
    kept = request.POST.get("kept", "")
    rows = list(dict.fromkeys([*request.POST.getlist("row"), *(kept.split(",") if kept else [])]))
    if len(rows) > MAX_BOXES:
        message = gettext("Select at most %(most)s rows, or all that match.")
        raise LimitExceeded(message % {"most": f"{MAX_BOXES:,}"}, code="too_many_boxes")
    return rows


def selected_keys(request: HttpRequest, matching: QuerySet[Any]) -> list[int]:
    """Return the primary keys of the selected rows: those of the checkboxes, or all of ``matching``.

    Raises LimitExceeded, and Conflict if the number of matching rows isn't the one that the page showed.
    """
    if not request.POST.get("all"):
        return parse_ints(submitted_rows(request))
    keys = list(matching.order_by("pk").values_list("pk", flat=True))
    check_count(len(keys), parse_int(request.POST.get("expected")))
    return keys


def check_count(count: int, expected: int | None) -> None:
    """Raise Conflict if the number of matching rows isn't the one that the page showed."""
    if count != expected:
        message = ngettext(
            "%(count)s row matches now instead of %(expected)s. Review the list and try again.",
            "%(count)s rows match now instead of %(expected)s. Review the list and try again.",
            count,
        )
        raise Conflict(message % {"count": f"{count:,}", "expected": f"{expected or 0:,}"}, code="selection_changed")


def action_value(request: HttpRequest, action: str) -> str:
    """Return the text entered for an action, in its own input or in the one that all actions of the form share."""
    own = request.POST.get(f"{action}-value", "")
    return clean_text(own or request.POST.get("text", "")).strip()[:MAX_TEXT]

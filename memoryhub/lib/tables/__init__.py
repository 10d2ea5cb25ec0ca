"""Tables as files, for people with a spreadsheet: CSV, JSON and XLSX, there and back without loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid, LimitExceeded

MAX_BYTES = 10 * 2**20
MAX_ROWS = 50_000
MAX_COLUMNS = 200


class TableTooLarge(LimitExceeded):
    code = "table_too_large"


class UnreadableTable(Invalid):
    """The file is no table of its format."""

    code = "unreadable_table"


@dataclass
class Table:
    """Rows by column name. A column that a row doesn't name is absent there, which isn't the same as empty.

    A cell is text, or (from JSON and XLSX) None, a bool, a number, a list, a date or a time.
    """

    headers: list[str]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is called, its suffix and type, and the way there and back."""

    name: str
    content_type: str
    write: Callable[[Table], bytes]
    read: Callable[[bytes], Table]


def check_size(size: int) -> None:
    """Raise TableTooLarge for a file of more than 10 MB."""
    if size > MAX_BYTES:
        words = gettext(
            "A table has at most %(most)s MB; this one has more. Filter it or split it, and take the parts."
        )
        raise TableTooLarge(words % {"most": MAX_BYTES // 2**20})


def check_rows(count: int) -> None:
    """Raise TableTooLarge for more than 50,000 rows."""
    if count > MAX_ROWS:
        words = gettext(
            "A table has at most %(most)s rows; this one has more. Filter it or split it, and take the parts."
        )
        raise TableTooLarge(words % {"most": f"{MAX_ROWS:,}"})


def checked_headers(cells: list[Any]) -> list[str]:
    """Return the names of a header row. Raises UnreadableTable where it has none, empty ones, or one twice."""
    names = [str(cell).strip() if cell is not None else "" for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names or len(names) > MAX_COLUMNS:
        words = gettext("The first row must name the columns, at most %(most)s.")
        raise UnreadableTable(words % {"most": MAX_COLUMNS})
    if "" in names:
        words = gettext("Column %(number)s has no name in the first row.")
        raise UnreadableTable(words % {"number": names.index("") + 1})
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise UnreadableTable(gettext("The column %(name)s is there twice.") % {"name": twice})
    return names

"""Read and write tables as CSV, JSON and XLSX files, without loss."""

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
    code = "unreadable_table"


@dataclass
class Table:
    """Rows as dicts by column name. A missing key isn't the same as an empty cell.

    A cell is text, or from JSON and XLSX also None, a bool, a number, a list, a date or a time.
    """

    headers: list[str]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Format:
    """A file format. ``name`` is also the suffix."""

    name: str
    content_type: str
    write: Callable[[Table], bytes]
    read: Callable[[bytes], Table]


def check_size(size: int) -> None:
    """Raise TableTooLarge for a file of more than 10 MB."""
    if size > MAX_BYTES:
        words = gettext("The table is larger than %(most)s MB. Filter or split it.")
        raise TableTooLarge(words % {"most": MAX_BYTES // 2**20})


def check_rows(count: int) -> None:
    """Raise TableTooLarge for more than 50,000 rows."""
    if count > MAX_ROWS:
        words = gettext("The table has more than %(most)s rows. Filter or split it.")
        raise TableTooLarge(words % {"most": f"{MAX_ROWS:,}"})


def checked_headers(cells: list[Any]) -> list[str]:
    """Return the column names of a header row. Raises UnreadableTable if they are missing, empty or repeated."""
    names = [str(cell).strip() if cell is not None else "" for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names or len(names) > MAX_COLUMNS:
        words = gettext("The first row must contain the column names, at most %(most)s.")
        raise UnreadableTable(words % {"most": MAX_COLUMNS})
    if "" in names:
        words = gettext("Column %(number)s has no name in the first row.")
        raise UnreadableTable(words % {"number": names.index("") + 1})
    repeated = next((name for name in names if names.count(name) > 1), "")
    if repeated:
        raise UnreadableTable(gettext("The column %(name)s occurs twice.") % {"name": repeated})
    return names

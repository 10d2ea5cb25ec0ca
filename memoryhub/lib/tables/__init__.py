"""Tables as files, for people with a spreadsheet: CSV, JSON and XLSX, there and back without loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memoryhub.lib.errors import MemoryHubError

MAX_BYTES = 10 * 2**20
MAX_ROWS = 50_000
MAX_COLUMNS = 200
PARTS = "Filter it or split it, and take the parts."


class TableTooLarge(MemoryHubError):
    code = "table_too_large"


class UnreadableTable(MemoryHubError):
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
        raise TableTooLarge(f"A table has at most {MAX_BYTES // 2**20} MB; this one has more. {PARTS}")


def check_rows(count: int) -> None:
    """Raise TableTooLarge for more than 50,000 rows."""
    if count > MAX_ROWS:
        raise TableTooLarge(f"A table has at most {MAX_ROWS:,} rows; this one has more. {PARTS}")


def checked_headers(cells: list[Any]) -> list[str]:
    """Return the names of a header row. Raises UnreadableTable where it has none, empty ones, or one twice."""
    names = [str(cell).strip() if cell is not None else "" for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names or len(names) > MAX_COLUMNS:
        raise UnreadableTable(f"The first row must name the columns, at most {MAX_COLUMNS}.")
    if "" in names:
        raise UnreadableTable(f"Column {names.index('') + 1} has no name in the first row.")
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise UnreadableTable(f"The column {twice} is there twice.")
    return names

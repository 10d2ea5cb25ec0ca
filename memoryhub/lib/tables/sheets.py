"""Read and write XLSX files. Characters that XML can't represent are written as ``_xNNNN_``, as Excel does.

openpyxl is imported only where it is needed, because importing it is slow.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext

from memoryhub.lib.tables import (
    MAX_COLUMNS,
    MAX_ROWS,
    Table,
    TableTooLarge,
    UnreadableTable,
    check_rows,
    check_size,
    checked_headers,
)
from memoryhub.lib.tables.formulas import guard, unguard
from memoryhub.lib.validation import clean_text

CELL_CHARS = 32_767
UNPACKED_BYTES = 200 * 2**20
_UNREPRESENTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def write_xlsx(table: Table, as_text: Callable[[Any], str]) -> bytes:
    """Return a table as a workbook with one sheet. Every cell is text, with formulas escaped.

    Raises TableTooLarge for a text of more than 32,767 characters, XLSX's limit.
    """
    from openpyxl import Workbook

    lines = [[_cell(as_text(row.get(name))) for name in table.headers] for row in table.rows]
    for number, cells in enumerate(lines, 1):
        long = next((name for name, cell in zip(table.headers, cells, strict=True) if len(cell) > CELL_CHARS), "")
        if long:
            words = gettext(
                "Row %(number)s: %(column)s is longer than XLSX's limit of %(most)s characters. Use CSV or JSON."
            )
            raise TableTooLarge(words % {"number": number, "column": long, "most": f"{CELL_CHARS:,}"})
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    for cells in [[_cell(name) for name in table.headers], *lines]:
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _cell(text: str) -> str:
    return _UNREPRESENTABLE.sub(lambda match: f"_x{ord(match.group()):04X}_", guard(text))


def read_xlsx(raw: bytes) -> Table:
    """Read the first sheet of a workbook. Raises UnreadableTable and TableTooLarge."""
    from openpyxl import load_workbook

    check_size(len(raw))
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > UNPACKED_BYTES:
            words = gettext("The workbook is larger than %(most)s MB when unpacked.")
            raise TableTooLarge(words % {"most": UNPACKED_BYTES // 2**20})
        book = load_workbook(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)
        return _read_sheet(book.worksheets[0])
    except (TableTooLarge, UnreadableTable):
        raise
    except Exception as error:  # openpyxl raises many types for a damaged workbook
        raise UnreadableTable(gettext("The file is not a readable XLSX workbook.")) from error


def _read_sheet(sheet: Any) -> Table:
    """Read a sheet. Only one column more than the header has is read, whatever width the sheet claims."""
    first = next(sheet.iter_rows(max_row=1, max_col=MAX_COLUMNS + 1, values_only=True), ())
    table = Table(checked_headers([_value(cell) for cell in first]))
    width = len(table.headers)
    blank = 0
    for cells in sheet.iter_rows(min_row=2, max_col=width + 1, values_only=True):
        values = [_value(cell) for cell in cells]
        if any(value not in ("", None) for value in values[width:]):
            words = gettext("Row %(number)s has more cells than there are columns.")
            raise UnreadableTable(words % {"number": len(table) + 1})
        if all(value in ("", None) for value in values):
            blank += 1
            check_rows(blank - MAX_ROWS)
            continue
        values += [""] * (width - len(values))
        table.rows.append(dict(zip(table.headers, values[:width], strict=True)))
        check_rows(len(table))
    return table


def _value(cell: Any) -> Any:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return cell
    return clean_text(unguard(_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), cell)))

"""Read and write CSV and JSON files, and the list of formats."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from django.utils.translation import gettext

from memoryhub.lib.tables import MAX_BYTES, Format, Table, UnreadableTable, check_rows, check_size, checked_headers
from memoryhub.lib.tables.formulas import guard, unguard
from memoryhub.lib.tables.sheets import read_xlsx, write_xlsx
from memoryhub.lib.validation import BadJSON, decode_json, decode_utf8

FIELD_CHARS = 2 * MAX_BYTES


def plain_cell(value: Any) -> str:
    """Return a value as the text of a cell: "" for None, JSON for lists and objects."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else str(value)


def write_csv(table: Table) -> bytes:
    """Return a table as CSV in UTF-8, with every cell quoted and formulas escaped."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([guard(name) for name in table.headers])
    for row in table.rows:
        writer.writerow([guard(plain_cell(row.get(name))) for name in table.headers])
    return out.getvalue().encode()


def read_csv(raw: bytes) -> Table:
    """Parse CSV separated by commas, semicolons or tabs. Raises UnreadableTable and TableTooLarge."""
    check_size(len(raw))
    text, _ = decode_utf8(raw)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    old_limit = csv.field_size_limit(FIELD_CHARS)
    try:
        return _csv_rows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UnreadableTable(gettext("The file is not valid CSV: %(error)s.") % {"error": error}) from error
    finally:
        csv.field_size_limit(old_limit)


def _csv_rows(reader: Any) -> Table:
    table = Table(checked_headers([unguard(cell) for cell in next(reader, [])]))
    for cells in reader:
        if not cells or cells == [""]:
            continue
        if len(cells) != len(table.headers):
            words = gettext("Row %(number)s has %(cells)s cells, but there are %(columns)s columns.")
            counts = {"number": len(table) + 1, "cells": len(cells), "columns": len(table.headers)}
            raise UnreadableTable(words % counts)
        table.rows.append(dict(zip(table.headers, map(unguard, cells), strict=True)))
        check_rows(len(table))
    return table


def write_json(table: Table) -> bytes:
    """Return a table as a JSON list of objects, with values unchanged."""
    rows = [{name: row.get(name) for name in table.headers} for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def read_json(raw: bytes) -> Table:
    """Parse a JSON list of objects. Raises UnreadableTable and TableTooLarge."""
    check_size(len(raw))
    text, _ = decode_utf8(raw)
    try:
        rows = decode_json(text).value
    except BadJSON as error:
        words = gettext("Line %(line)s, column %(column)s: %(error)s.")
        values = {"line": error.line, "column": error.column, "error": error.message}
        raise UnreadableTable(words % values) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableTable(gettext("The JSON must be a list of objects, one per row."))
    check_rows(len(rows))
    return Table(checked_headers(list(dict.fromkeys(name for row in rows for name in row))), rows)


FORMATS = {
    "csv": Format("csv", "text/csv; charset=utf-8", write_csv, read_csv),
    "json": Format("json", "application/json", write_json, read_json),
    "xlsx": Format(
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        lambda table: write_xlsx(table, plain_cell),
        read_xlsx,
    ),
}

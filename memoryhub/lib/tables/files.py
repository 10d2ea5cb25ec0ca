"""CSV and JSON files as tables, and which formats there are."""

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
    """Return a value as the text of a cell: nothing for None, JSON for a list or an object."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else str(value)


def write_csv(table: Table) -> bytes:
    """Return a table as CSV in UTF-8, every cell in quotes and none of them a formula."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([guard(name) for name in table.headers])
    for row in table.rows:
        writer.writerow([guard(plain_cell(row.get(name))) for name in table.headers])
    return out.getvalue().encode()


def read_csv(raw: bytes) -> Table:
    """Return CSV as a table, whatever of comma, semicolon and tab separates it.

    Raises UnreadableTable, which names the row, and TableTooLarge.
    """
    check_size(len(raw))
    text, _ = decode_utf8(raw)
    first = text.partition("\n")[0]
    mark = max(",;\t", key=first.count)
    before = csv.field_size_limit(FIELD_CHARS)
    try:
        return _csv_rows(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    except csv.Error as error:
        raise UnreadableTable(gettext("This is no CSV: %(error)s.") % {"error": error}) from error
    finally:
        csv.field_size_limit(before)


def _csv_rows(reader: Any) -> Table:
    table = Table(checked_headers([unguard(cell) for cell in next(reader, [])]))
    for cells in reader:
        if not cells or cells == [""]:
            continue
        if len(cells) != len(table.headers):
            words = gettext("Row %(number)s has %(cells)s cells, the first row names %(columns)s columns.")
            counts = {"number": len(table) + 1, "cells": len(cells), "columns": len(table.headers)}
            raise UnreadableTable(words % counts)
        table.rows.append(dict(zip(table.headers, map(unguard, cells), strict=True)))
        check_rows(len(table))
    return table


def write_json(table: Table) -> bytes:
    """Return a table as a JSON list of objects, every value exactly as it is."""
    rows = [{name: row.get(name) for name in table.headers} for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def read_json(raw: bytes) -> Table:
    """Return a JSON list of objects as a table. Raises UnreadableTable and TableTooLarge."""
    check_size(len(raw))
    text, _ = decode_utf8(raw)
    try:
        rows = decode_json(text).value
    except BadJSON as error:
        words = gettext("Line %(line)s, column %(column)s: %(error)s.")
        place = {"line": error.line, "column": error.column, "error": error.message}
        raise UnreadableTable(words % place) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableTable(gettext("This JSON is no list of objects, one for each row."))
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

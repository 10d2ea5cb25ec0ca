from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from memoryhub.lib import tables
from memoryhub.lib.tables import Table, TableTooLarge, UnreadableTable
from memoryhub.lib.tables.files import FORMATS
from memoryhub.lib.tables.formulas import guard, is_formula, unguard
from memoryhub.lib.validation import clean_text
from tests.shared import badinput_cases

STRINGS = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("'=+-@\t\r\n \u3000＝_x0A")), max_size=30
)
FORMULAS = [
    "=2+5",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\rx",
    "  =1",
    "\u3000=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "﹦1",
    "\u200b=1",
    "\ufeff=1",
    "'=1",
    "''=1",
    "'\n=1",
]
PLAIN = ["", "'", "'tis", "a=b", "1-2", "user@example.org", "  word", "*", "−1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_escaped_and_unescaped(text):
    assert guard(text) == f"'{text}"
    assert unguard(guard(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_is_unchanged(text):
    assert guard(text) == unguard(text) == text


@given(STRINGS)
def test_any_escaped_text_is_not_a_formula_and_can_be_restored(text):
    assert unguard(guard(text)) == text
    assert not is_formula(guard(text)) or guard(text).startswith("'")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@given(rows=st.lists(st.tuples(STRINGS, STRINGS), min_size=1, max_size=5))
def test_every_format_round_trips(name, rows):
    texts = [{"a": f".{clean_text(first)}", "b": clean_text(second)} for first, second in rows]

    assert FORMATS[name].read(FORMATS[name].write(Table(["a", "b"], texts))).rows == texts


@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_exported_cells_are_never_formulas(name):
    raw = FORMATS[name].write(Table(["=a", "b"], [{"=a": text, "b": "x"} for text in FORMULAS]))

    if name == "csv":
        cells = [cell for row in csv.reader(io.StringIO(raw.decode(), newline="")) for cell in row]
    else:
        found = [cell for row in load_workbook(io.BytesIO(raw)).active.iter_rows() for cell in row]
        assert {cell.data_type for cell in found} == {"s"}
        cells = [cell.value for cell in found]
    assert [cell for cell in cells if cell[0] not in "'bx"] == []


@pytest.mark.parametrize("case", badinput_cases("csv_text"), ids=lambda case: case["id"])
def test_the_hostile_inputs_are_read_or_refused_as_listed(case):
    table = Table(["content"], [{"content": case["value"]}])

    assert FORMATS["csv"].write(table).decode().splitlines()[1].startswith("\"'=")
    assert case["value"] in [row["content"] for row in FORMATS["json"].read(FORMATS["json"].write(table)).rows]


def test_json_keeps_types_and_distinguishes_missing_from_empty():
    rows = [{"a": None, "b": [1, "x"], "c": True}, {"a": "=1"}]

    assert FORMATS["json"].read(b'[{"a": null, "b": [1, "x"], "c": true}, {"a": "=1"}]').rows == rows


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv_with_other_delimiters_is_read(mark):
    raw = f'\ufeffa{mark}b\r\n"x{mark}y"{mark}2\r\n\r\n'.encode()

    assert FORMATS["csv"].read(raw).rows == [{"a": f"x{mark}y", "b": "2"}]


BROKEN = [
    ("csv", b"", "first row"),
    ("csv", b"a,,b\n", "Column 2 has no name"),
    ("csv", b"a,a\n", "twice"),
    ("csv", b"a,b\n1,2\n3\n", "Row 2 has 1 cells"),
    ("csv", b'a\n"x', "not valid CSV"),
    ("csv", b",".join(b"c%d" % n for n in range(300)), "at most 200"),
    ("json", b"{", "Line 1"),
    ("json", b'{"a": 1}', "must be a list of objects"),
    ("json", b"[1]", "must be a list of objects"),
    ("json", b"[" * 100_000, "nested"),
    ("xlsx", b"PK\x03\x04", "not a readable XLSX"),
    ("xlsx", b"a,b", "not a readable XLSX"),
]


@pytest.mark.parametrize(("name", "raw", "what"), BROKEN)
def test_an_invalid_file_is_refused_with_a_reason(name, raw, what):
    with pytest.raises(UnreadableTable, match=what):
        FORMATS[name].read(raw)


def workbook(*rows) -> bytes:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_a_workbook_of_a_spreadsheet_program_is_read():
    read = FORMATS["xlsx"].read(workbook(["a", "b", None], ["x", None, None], [None, None], ["y", 5]))

    assert read.rows == [{"a": "x", "b": ""}, {"a": "y", "b": 5}]


def test_cells_beyond_the_header_are_an_error():
    with pytest.raises(UnreadableTable, match="Row 1 has more cells"):
        FORMATS["xlsx"].read(workbook(["a"], ["x", "y"]))


@pytest.mark.parametrize("name", FORMATS)
def test_too_many_rows_are_refused(name, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    raw = FORMATS[name].write(Table(["a"], [{"a": "x"}] * 3))

    with pytest.raises(TableTooLarge, match="more than 2 rows"):
        FORMATS[name].read(raw)


@pytest.mark.parametrize("name", FORMATS)
def test_too_many_bytes_are_refused(name):
    with pytest.raises(TableTooLarge, match="10 MB"):
        FORMATS[name].read(b" " * (10 * 2**20 + 1))


def test_a_workbook_that_is_too_large_unpacked_is_refused(monkeypatch):
    monkeypatch.setattr("memoryhub.lib.tables.sheets.UNPACKED_BYTES", 1000)

    with pytest.raises(TableTooLarge, match="when unpacked"):
        FORMATS["xlsx"].read(workbook(["a"], ["x"]))


def test_a_text_too_long_for_a_cell_is_refused():
    with pytest.raises(TableTooLarge, match="Row 1: a is longer than XLSX's limit of 32,767"):
        FORMATS["xlsx"].write(Table(["a"], [{"a": "x" * 32_768}]))

"""Stores of programs are read from a private copy, whatever the program or the file does."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoryhub.lib.database.sqlite_schema import without_expressions
from memoryhub.lib.files import sqlite_source
from memoryhub.lib.files.safe_folder import Folder, UnreadableFile
from memoryhub.lib.files.sqlite_source import is_store, open_store, store_stamp


def make_store(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(parent: Path, table: str = "t", columns: tuple[str, ...] = ("a",), **options) -> list[dict]:
    with Folder(parent) as folder, open_store(folder, "s.db") as store:
        return store.rows(table, columns, **options)


def state_of(parent: Path) -> dict[str, tuple]:
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in parent.iterdir()}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_a_running_program_committed_is_read_and_its_files_stay_as_they_are(tmp_path, mode):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as program:
        program.execute(f"PRAGMA journal_mode = {mode}")
        program.execute("CREATE TABLE t (a)")
        program.execute("INSERT INTO t VALUES ('committed')")
        program.execute("BEGIN IMMEDIATE")
        program.execute("INSERT INTO t VALUES ('pending')")
        before = state_of(tmp_path)

        assert rows(tmp_path) == [{"a": "committed"}]

        assert state_of(tmp_path) == before
        program.execute("COMMIT")
        assert len(rows(tmp_path)) == 2


def test_log_of_a_program_that_crashed_is_read_too(tmp_path):
    (tmp_path / "live").mkdir()
    with closing(sqlite3.connect(tmp_path / "live" / "s.db", isolation_level=None)) as program:
        program.execute("PRAGMA journal_mode = wal")
        program.execute("CREATE TABLE t (a)")
        program.execute("INSERT INTO t VALUES (1)")
        for name in ("s.db", "s.db-wal"):
            (tmp_path / name).write_bytes((tmp_path / "live" / name).read_bytes())

    assert (tmp_path / "s.db").stat().st_size < (tmp_path / "s.db-wal").stat().st_size
    assert rows(tmp_path) == [{"a": 1}]
    assert not (tmp_path / "s.db-shm").exists()


def test_stamp_changes_with_the_log(tmp_path):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as program, Folder(tmp_path) as folder:
        program.execute("PRAGMA journal_mode = wal")
        program.execute("CREATE TABLE t (a)")
        before = store_stamp(folder, "s.db")
        assert store_stamp(folder, "s.db") == before
        program.execute("INSERT INTO t VALUES (1)")

        assert store_stamp(folder, "s.db") != before


def test_missing_columns_are_none_and_missing_tables_have_no_rows(tmp_path):
    make_store(tmp_path / "s.db", "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (2, 1), (1, 2)")

    assert rows(tmp_path, columns=("a", "new"), order="a, new") == [{"a": 1, "new": None}, {"a": 2, "new": None}]
    assert rows(tmp_path, where={"a": 2}) == [{"a": 2}]
    assert rows(tmp_path, where={"gone": 2}) == []
    assert rows(tmp_path, table="gone") == []


def test_nothing_in_the_schema_runs(tmp_path):
    make_store(
        tmp_path / "s.db",
        "CREATE TABLE real_t (a, b GENERATED ALWAYS AS (abs(a)) VIRTUAL, CHECK (json_valid('1') AND length(a) > 0))",
        "INSERT INTO real_t VALUES (1)",
        "CREATE VIEW t AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a FROM n) SELECT a FROM n",
        "CREATE TRIGGER run AFTER INSERT ON real_t BEGIN DELETE FROM real_t; END",
        "CREATE INDEX by_expression ON real_t (abs(a))",
        "CREATE VIRTUAL TABLE words USING fts5(a)",
    )

    assert rows(tmp_path) == []
    assert rows(tmp_path, table="words") == []
    assert rows(tmp_path, table="real_t", where={"a": 1}) == [{"a": 1}]


def test_checks_with_functions_of_a_newer_sqlite_do_not_matter(tmp_path):
    make_store(
        tmp_path / "s.db", "CREATE TABLE t (a TEXT CHECK (length(a) > 0) DEFAULT 'x')", "INSERT INTO t VALUES (1)"
    )
    raw = (tmp_path / "s.db").read_bytes()
    (tmp_path / "s.db").write_bytes(raw.replace(b"length(a)", b"future(a)"))

    assert rows(tmp_path) == [{"a": "1"}]


def test_checks_become_constants_and_defaults_stay():
    sql = """CREATE TABLE "check (" (a DEFAULT (1), "b)" TEXT CHECK ((b > ')') AND f(g(1))), -- CHECK (
        c AS (h(a)) STORED, CONSTRAINT k CHECK /* ( */ (octet_length(a)), PRIMARY KEY (a)) WITHOUT ROWID"""

    assert (
        without_expressions(sql)
        == """CREATE TABLE "check (" (a DEFAULT (1), "b)" TEXT CHECK (1), -- CHECK (
        c AS (NULL) STORED, CONSTRAINT k CHECK /* ( */ (1), PRIMARY KEY (a)) WITHOUT ROWID"""
    )


@pytest.mark.parametrize(
    "raw",
    [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["empty", "text", "header"],
)
def test_foreign_and_damaged_files_give_a_reason(tmp_path, raw):
    (tmp_path / "s.db").write_bytes(raw)

    if not raw:
        assert rows(tmp_path) == []
        return
    with pytest.raises(UnreadableFile, match="is not an SQLite database"):
        rows(tmp_path)


def test_every_damage_of_a_page_is_reported_or_read(tmp_path):
    make_store(
        tmp_path / "s.db", "CREATE TABLE t (a)", *[f"INSERT INTO t VALUES ('{'x' * 50}{n}')" for n in range(200)]
    )
    raw = (tmp_path / "s.db").read_bytes()
    for place in range(0, len(raw), 997):
        (tmp_path / "s.db").write_bytes(raw[:place] + b"\xff\x00\xff\x7f" + raw[place + 4 :])
        try:
            rows(tmp_path)
        except UnreadableFile:
            continue


@pytest.mark.parametrize("part", ["s.db", "s.db-wal", "s.db-shm", "s.db-journal"])
def test_links_are_not_followed(tmp_path, part):
    (tmp_path / "home").mkdir()
    make_store(tmp_path / "s.db", "CREATE TABLE t (a)")
    make_store(tmp_path / "home" / "s.db", "CREATE TABLE t (a)")
    (tmp_path / "home" / part).unlink(missing_ok=True)
    (tmp_path / "home" / part).symlink_to(tmp_path / "s.db")

    with pytest.raises(UnreadableFile, match="links are not followed"):
        rows(tmp_path / "home")


def test_special_files_and_missing_ones_are_not_read(tmp_path):
    with pytest.raises(UnreadableFile, match="does not exist"):
        rows(tmp_path)
    os.mkfifo(tmp_path / "s.db")
    with pytest.raises(UnreadableFile, match="pipe"):
        rows(tmp_path)


def test_size_and_time_are_limited(tmp_path, monkeypatch):
    make_store(tmp_path / "s.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(3000000))")
    limit = pytest.raises(UnreadableFile, match="larger than the limit")
    with Folder(tmp_path) as folder, limit, open_store(folder, "s.db", limit=2**20):
        pass
    make_store(
        tmp_path / "s.db",
        "DELETE FROM t",
        "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT 20000) INSERT INTO t SELECT a FROM n",
    )
    with Folder(tmp_path) as folder, open_store(folder, "s.db") as store:
        monkeypatch.setattr(sqlite_source, "SECONDS_PER_QUERY", -1)
        with pytest.raises(UnreadableFile, match="takes too long"):
            store.rows("t", ("a",), order="a")


def test_temporary_copy_is_removed(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    make_store(tmp_path / "s.db", "CREATE TABLE t (a)")
    rows(tmp_path)
    (tmp_path / "s.db").write_bytes(b"damaged" * 1000)
    with pytest.raises(UnreadableFile):
        rows(tmp_path)

    assert list(temporary.iterdir()) == []


def test_store_is_recognised_by_its_first_bytes(tmp_path):
    make_store(tmp_path / "s.db", "CREATE TABLE t (a)")
    (tmp_path / "text.db").write_text("text")

    with Folder(tmp_path) as folder:
        assert is_store(folder, "s.db")
        assert not is_store(folder, "text.db")
        assert not is_store(folder, "missing.db")

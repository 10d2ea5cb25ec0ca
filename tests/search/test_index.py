"""The database keeps the search indexes consistent with the rows, whatever changes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, models

from knowledge_app.models import (
    CachedResponse,
    Fact,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryRevision,
    Observation,
)
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.lib.search.index_maintenance import bulk_indexing, index_problems
from memoryhub.lib.search.indexes import is_installed
from memoryhub.lib.search.matching import IndexQuery, ids_sql
from memoryhub.lib.search.operations import indexes
from memoryhub.lib.search.postgres_index import COLUMN
from memoryhub.lib.search.query import Term
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, IndexGuard, Session, Summary
from sessions_app.services.audit import By, open_guard
from sessions_app.services.lifecycle import delete_session
from tests.admin.test_actions import act
from tests.forgetting.test_forgetting import CANARY, forget, plant
from tests.hub import NOW, PERSON, add, open_at, talk
from tests.rows import make
from tests.searches import know
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
WORDS = {  # a searched column of each indexed table
    Entry: "content",
    Summary: "content",
    Session: "note",
    Fact: "text",
    MemoryRevision: "content",
    HistoryEntry: "content",
    KnowledgeEntry: "content",
    Observation: "content",
    KeyValue: "value",
    CachedResponse: "response",
}


def disagreeing() -> dict[str, list[str]]:
    return {index.table: wrong for index in indexes(connection) if (wrong := index_problems(connection, index))}


def holding(model: type[models.Model], word: str) -> list[int]:
    """Return the ids that a table's index has for a word."""
    with connection.cursor() as cursor:
        cursor.execute(*ids_sql(connection, IndexQuery(model._meta.db_table, (Term((word,)),))))
        return sorted(row[0] for row in cursor.fetchall())


@pytest.fixture
def writable() -> Iterator[None]:
    """Allow changes to append-only rows, as forgetting does."""
    with open_guard("a test"):
        yield


def test_every_indexed_table_has_its_index_after_all_migrations():
    kept = indexes(connection)

    assert {index.table for index in kept} == {model._meta.db_table for model in WORDS}
    assert [index.table for index in kept if not is_installed(connection, index.table)] == []
    for index in kept:
        [model] = [model for model in WORDS if model._meta.db_table == index.table]
        assert set(index.columns) <= {field.column for field in model._meta.concrete_fields}


@pytest.mark.usefixtures("writable")
@pytest.mark.parametrize(("model", "column"), WORDS.items())
class TestRow:
    def test_is_found_changed_and_gone(self, model, column):
        row = make(model)
        model._base_manager.filter(pk=row.pk).update(**{column: "an orchid"})
        assert holding(model, "orchid") == [row.pk]

        row.refresh_from_db()
        setattr(row, column, "a tulip")
        row.save()
        assert (holding(model, "orchid"), holding(model, "tulip")) == ([], [row.pk])

        row.delete()
        assert holding(model, "tulip") == []
        assert disagreeing() == {}

    def test_is_found_after_bulk_changes(self, model, column):
        rows = [make(model), make(model)]
        for number, row in enumerate(rows):
            setattr(row, column, f"orchid number{number}")

        model._base_manager.bulk_update(rows, [column])

        assert holding(model, "orchid") == [row.pk for row in rows]
        assert holding(model, "number1") == [rows[1].pk]
        model._base_manager.filter(pk=rows[0].pk).delete()
        assert holding(model, "orchid") == [rows[1].pk]
        assert disagreeing() == {}


def test_flags_names_and_times_are_indexed_as_they_change(workspace):
    row = KeyValue.objects.create(workspace=workspace, key="k", value="swordfish")
    entry = know(workspace, "tea", category="learned_fact", tags=["green"])

    KeyValue.objects.filter(pk=row.pk).update(is_secret=True)
    KnowledgeEntry.objects.filter(pk=entry.pk).update(category="error_pattern", tags=["black"])

    assert holding(KeyValue, "swordfish") == []
    assert [holding(KnowledgeEntry, word) for word in ("green", "learned", "black", "pattern")] == [
        [],
        [],
        [entry.pk],
        [entry.pk],
    ]
    assert disagreeing() == {}


def test_edits_and_undos_update_the_index(workspace):
    rows = [know(workspace, "an orchid"), know(workspace, "an orchid too")]

    run = edit_rows(workspace, "knowledge", "assign", [row.pk for row in rows], values={"source": "tulip"}, by=BY)
    assert holding(KnowledgeEntry, "tulip") == [row.pk for row in rows]

    undo_edit(run, by=BY)
    assert holding(KnowledgeEntry, "tulip") == []
    assert disagreeing() == {}


def test_admin_actions_update_the_index(admin_client, workspace):
    row = know(workspace, "an orchid")

    act(admin_client, KnowledgeEntry, [row], "recategorise", category="error_pattern", add="tulip", remove="")

    assert holding(KnowledgeEntry, "tulip") == holding(KnowledgeEntry, "pattern") == [row.pk]
    assert disagreeing() == {}


def test_deleting_a_session_removes_its_rows_from_the_indexes(workspace):
    session = open_at(workspace)
    talk(session, 4)
    add(open_at(workspace, "cli:other"), [{"role": "user", "content": "please stay"}])
    assert len(holding(Entry, "please")) == 5

    delete_session(Session.objects.get(pk=session.pk), confirmation=session.key, reason="r", by=BY)

    assert len(holding(Entry, "please")) == 1
    assert disagreeing() == {}


@pytest.mark.usefixtures("writable")
def test_deleting_a_workspace_removes_its_rows_from_the_indexes():
    rows = [make(model) for model in WORDS]
    workspace = rows[0].workspace
    talk(open_at(workspace), 2)

    workspace.delete()

    assert holding(Entry, "please") == []
    assert disagreeing() == {}


@pytest.mark.slow
@pytest.mark.postgres
def test_forgotten_rows_are_removed_from_the_indexes(workspace):
    plant(workspace, CANARY)
    assert len([model for model in WORDS if holding(model, "quicksilver")]) >= 7

    forget(workspace, "phrase", CANARY)

    assert [model for model in WORDS if holding(model, "quicksilver")] == []
    assert disagreeing() == {}


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.skipif(not FIXTURES.exists(), reason="the fixtures aren't beside the clone")
@pytest.mark.parametrize("name", ["nanobot-0.1", "nanobot-current", "grip", "grid"])
def test_imports_update_the_index(name):
    for _ in range(2):
        workspace = import_workspace(FIXTURES / name, by=BY).workspace
        assert disagreeing() == {}

    assert len(holding_scope(Entry, workspace.pk)) == Entry.objects.count()
    assert not IndexGuard.objects.exists()


def holding_scope(model: type[models.Model], workspace: int) -> set[int]:
    """Return the ids that a table's index has for a workspace."""
    table = model._meta.db_table
    where, value = (f"{table}_words WHERE {table}_words MATCH %s", f'scope:"zw{workspace}"')
    if connection.vendor != "sqlite":
        where, value = f"{table} WHERE {COLUMN} @@ %s::tsquery", f"'#w{workspace}'"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {'rowid' if connection.vendor == 'sqlite' else 'id'} FROM {where}", [value])
        return {row[0] for row in cursor.fetchall()}


def entries_of(session: Session, *contents: str) -> list[Entry]:
    return [
        Entry(
            workspace=session.workspace, session=session, position=place, kind="message", role="user",
            content=content, token_count=1, source_hash="x",
        )
        for place, content in enumerate(contents)
    ]  # fmt: skip


def test_bulk_inserts_are_indexed(workspace):
    with bulk_indexing(connection, Entry._meta.db_table):
        rows = Entry.objects.bulk_create(entries_of(open_at(workspace), "an orchid", "a tulip"))

    assert holding(Entry, "orchid") == [rows[0].pk]
    assert not IndexGuard.objects.exists()
    assert disagreeing() == {}

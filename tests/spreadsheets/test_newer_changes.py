"""Tables that were exported, or previewed, before somebody changed the rows in the hub."""

from datetime import timedelta

import pytest

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.spreadsheets.exporting import EXPORTS, export_table
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.rows import make
from tests.spreadsheets.test_importing import errors, knowledge, take

pytestmark = pytest.mark.django_db


def exported(table="knowledge"):
    return export_table(table, by=By(PERSON, NOW)).rows


@pytest.mark.parametrize("has_ids", [True, False], ids=["by id", "by the agent's id"])
@pytest.mark.parametrize("table", ["knowledge", "observations", "key_values"])
def test_an_earlier_export_does_not_undo_newer_changes_and_withdrawals(workspace, table, has_ids):
    model, column = EXPORTS[table].model, "value" if table == "key_values" else "content"
    pks = [make(model).pk for _ in range(3)]
    model.objects.update(workspace=workspace, updated_at=NOW)
    rows = [row if has_ids else row | {"id": ""} for row in exported(table)]
    later = By(PERSON, NOW + timedelta(microseconds=1))
    edit_rows(workspace, table, "assign", pks[:1], values={column: "corrected"}, by=later)
    edit_rows(workspace, table, "withdraw", pks[1:2], by=later)
    rows[2] |= {column: "edited in the file"}
    before = list(model.objects.filter(pk__in=pks[:2]).order_by("pk").values())

    judged = take(rows, table)

    assert [row.outcome for row in judged.rows] == ["skipped", "skipped", "changed"]
    assert judged.rows[0].notes == [f"changed in the hub since the export: {column}"]
    assert "withdrawn_at" in judged.rows[1].notes[0]
    assert list(model.objects.filter(pk__in=pks[:2]).order_by("pk").values()) == before
    assert getattr(model.objects.get(pk=pks[2]), column) == "edited in the file"
    assert AuditRecord.objects.get(action="rows.imported").detail["changed"] == 1


def test_an_earlier_export_overwrites_newer_changes_if_a_person_chooses_so(workspace):
    row = knowledge(workspace)
    rows = exported()
    KnowledgeEntry.objects.update(content="likes coffee", updated_at=row.updated_at + timedelta(seconds=1))

    judged = take(rows, overwrite=True)

    row.refresh_from_db()
    assert (judged.counts, row.content) == ({"changed": 1}, "likes tea")


def test_rows_that_equal_the_hubs_are_unchanged_however_old_the_export(workspace):
    knowledge(workspace)
    rows = exported()
    KnowledgeEntry.objects.update(access_count=3, updated_at=NOW + timedelta(days=9999))

    assert take(rows).counts == {"unchanged": 1}


@pytest.mark.parametrize("cells", [{}, {"updated_at": ""}, {"updated_at": None}], ids=str)
def test_tables_without_the_time_of_the_change_apply_to_newer_rows(workspace, cells):
    row = knowledge(workspace, updated_at=NOW)

    assert take([{"id": row.pk, "workspace": "atlas", "content": "x", **cells}]).counts == {"changed": 1}


def test_an_unreadable_time_of_the_change_is_wrong(workspace):
    row = knowledge(workspace, updated_at=NOW)

    judged = take([{"id": row.pk, "workspace": "atlas", "content": "x", "updated_at": "last week"}])

    assert "updated_at: last week is not a time" in errors(judged)[1][0]


def test_a_table_that_would_do_anything_else_than_its_preview_showed_is_not_imported(workspace):
    row = knowledge(workspace, updated_at=NOW)
    rows = [{"id": row.pk, "workspace": "atlas", "content": "x"}]
    preview = take(rows, dry_run=True)
    KnowledgeEntry.objects.update(content="likes coffee")

    judged = take(rows, shown=preview.digest)

    assert judged.digest != preview.digest
    assert judged.rows[0].changes == [("content", "likes coffee", "x")]
    assert KnowledgeEntry.objects.get().content == "likes coffee"
    assert take(rows, shown=judged.digest).counts == {"changed": 1}
    assert KnowledgeEntry.objects.get().content == "x"


def test_a_secret_that_changed_since_the_preview_is_not_overwritten(workspace):
    row = KeyValue.objects.create(workspace=workspace, key="password", value="s3cret", is_secret=True)
    rows = [{"workspace": "atlas", "key": "password", "value": "n3w"}]
    preview = take(rows, "key_values", dry_run=True)
    edit_rows(workspace, "key_values", "assign", [row.pk], values={"value": "n3wer"}, by=By(PERSON, NOW))

    take(rows, "key_values", shown=preview.digest)

    assert KeyValue.objects.get().value == "n3wer"

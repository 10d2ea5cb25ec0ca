"""Imports of tables whose rows changed in the hub since the preview or the export."""

import io

import pytest
from django.core.management import call_command
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry
from sessions_app.models import AuditRecord
from tests.admin.test_tables import PLACES, address, command, confirm, home, knowledge, upload, waiting  # noqa: F401
from tests.markup import live_markup

pytestmark = pytest.mark.django_db


def test_a_preview_is_shown_again_if_a_row_changed_since(admin_client, workspace):
    row = knowledge(workspace)
    preview = upload(admin_client, [{"id": str(row.pk), "workspace": "atlas", "content": "likes coffee"}])
    KnowledgeEntry.objects.update(content="likes water")

    again = confirm(admin_client, preview)

    html = again.content.decode()
    assert again.status_code == 422
    assert "Rows have changed since the preview. Review it again." in html
    assert "likes water" in html
    assert live_markup(html) == []
    assert KnowledgeEntry.objects.get().content == "likes water"
    assert not AuditRecord.objects.exists()

    assert confirm(admin_client, again).status_code == 302
    assert KnowledgeEntry.objects.get().content == "likes coffee"
    assert waiting() == []


def test_a_preview_is_shown_again_if_a_new_row_was_added_meanwhile(admin_client, workspace):
    preview = upload(admin_client, [{"workspace": "atlas", "content": "new", "content_id": "mine"}])
    knowledge(workspace, "somebody's", content_id="mine")

    assert confirm(admin_client, preview).status_code == 422
    assert KnowledgeEntry.objects.get().content == "somebody's"


@pytest.mark.parametrize("values", [{}, {"overwrite": "on"}], ids=str)
def test_rows_that_changed_since_the_export_are_overwritten_only_on_request(admin_client, workspace, values):
    row, other = knowledge(workspace), knowledge(workspace, "likes cats")
    exported = admin_client.post(address(KnowledgeEntry, "export"), {"format": PLACES["csv"]}).content
    KnowledgeEntry.objects.filter(pk=row.pk).update(content="likes water", updated_at=timezone.now())

    preview = upload(admin_client, [], raw=exported.replace(b"likes cats", b"likes dogs"))

    html = preview.content.decode()
    assert "1 changed, 0 unchanged, 1 skipped" in html
    assert "1 row changed in the hub since the export" in html
    assert 'name="overwrite"' in html
    assert "likes water" in html
    assert live_markup(html) == []

    response = confirm(admin_client, preview, **values)

    assert response.status_code == 302
    told = admin_client.get(response["Location"]).content.decode()
    assert ("1 row was skipped." in told) is not bool(values)
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.content, other.content) == ("likes tea" if values else "likes water", "likes dogs")


def test_overwriting_is_offered_only_for_rows_that_changed_since_the_export(admin_client, workspace):
    html = upload(admin_client, [{"workspace": "atlas", "content": "new"}]).content.decode()

    assert 'name="overwrite"' not in html


@pytest.mark.parametrize("name", ["import_table", "import"])
def test_commands_overwrite_newer_changes_only_on_request(workspace, tmp_path, name):
    row = knowledge(workspace)
    file = tmp_path / "rows.csv"
    command("export", "knowledge", output=str(file))
    KnowledgeEntry.objects.update(content="likes coffee", updated_at=timezone.now())

    told, status = command(name, "knowledge", str(file))

    assert (told["skipped"], told["changed"], status) == (1, 0, 0)
    assert told["notes"] == [{"row": 1, "notes": ["changed in the hub since the export: content"]}]
    assert command(name, "knowledge", str(file), overwrite=True)[0]["changed"] == 1
    row.refresh_from_db()
    assert row.content == "likes tea"


def test_the_import_command_names_rows_that_changed_since_the_export(workspace, tmp_path):
    knowledge(workspace)
    file, out = tmp_path / "rows.csv", io.StringIO()
    command("export", "knowledge", output=str(file))
    KnowledgeEntry.objects.update(content="likes coffee", updated_at=timezone.now())

    call_command("import_table", "knowledge", str(file), stdout=out)

    assert out.getvalue().splitlines() == [
        "row 1: changed in the hub since the export: content",
        "Imported: 0 new, 0 changed, 0 unchanged, 1 skipped",
    ]

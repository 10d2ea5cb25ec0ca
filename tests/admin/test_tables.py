"""Export and import of tables in the admin: format, preview, confirmation."""

import io
import json

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from knowledge_app.models import Fact, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.tables import Table
from memoryhub.lib.tables.files import FORMATS
from sessions_app.models import AuditRecord, Entry, Session, Workspace
from tests.hub import client_of
from tests.markup import live_markup
from tests.rows import make

pytestmark = pytest.mark.django_db
HOSTILE = "</title><script>window.__xss=1</script><img src=x onerror=alert(1)>"
PLACES = {name: str(place) for place, name in enumerate(FORMATS)}
TABLES = {
    KnowledgeEntry: "knowledge",
    Observation: "observations",
    KeyValue: "key_values",
    HistoryEntry: "history",
    Fact: "facts",
    Session: "sessions",
    Entry: "entries",
}
TAKEN = (KnowledgeEntry, Observation, KeyValue)


def address(model, page):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}")


def knowledge(workspace, content="likes tea", **values):
    count = KnowledgeEntry.objects.count()
    values = {"content_id": f"c{count}", "category": "learned_fact"} | values
    return KnowledgeEntry.objects.create(workspace=workspace, content=content, **values)


def upload(client, rows, *, model=KnowledgeEntry, name="csv", raw=None):
    """Upload a table and return its preview."""
    raw = raw if raw is not None else FORMATS[name].write(Table(list(rows[0]), rows))
    file = SimpleUploadedFile(f"rows.{name}", raw)
    return client.post(address(model, "import"), {"import_file": file, "format": PLACES[name], "resource": "0"})


def confirm(client, preview, *, model=KnowledgeEntry, **values):
    return client.post(address(model, "process_import"), preview.context["confirm_form"].initial | values)


def waiting():
    folder = settings.MEMORYHUB_HOME / "tables"
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture(autouse=True)
def home(settings, tmp_path):
    settings.MEMORYHUB_HOME = tmp_path
    return tmp_path


@pytest.mark.parametrize("model", TABLES, ids=TABLES.get)
@pytest.mark.parametrize("name", FORMATS)
def test_every_table_is_exported_in_every_format(admin_client, model, name):
    row = make(model)

    response = admin_client.post(address(model, "export"), {"format": PLACES[name], "resource": "0"})

    assert response.status_code == 200
    assert response["Content-Type"] == FORMATS[name].content_type
    assert response["Content-Disposition"].endswith(f'.{name}"')
    assert [str(found["id"]) for found in FORMATS[name].read(response.content).rows] == [str(row.pk)]
    told = AuditRecord.objects.get(action="rows.exported")
    assert (told.actor_name, told.text) == ("admin", f"1 row of the table {TABLES[model]} exported")


def test_exports_contain_the_filtered_rows(admin_client, workspace):
    knowledge(workspace, "likes tea")
    knowledge(workspace, "likes cats", category="error_pattern")
    knowledge(workspace, "hates tea")

    url = f"{address(KnowledgeEntry, 'export')}?q=likes&category=learned_fact"
    response = admin_client.post(url, {"format": PLACES["json"], "resource": "0"})

    assert [row["content"] for row in json.loads(response.content)] == ["likes tea"]


def test_an_export_with_an_invalid_filter_redirects_to_the_list(admin_client, workspace):
    response = admin_client.get(f"{address(KnowledgeEntry, 'export')}?access_count__gt=x")

    assert (response.status_code, response["Location"]) == (302, f"{address(KnowledgeEntry, 'changelist')}?e=1")


def test_an_export_that_is_too_large_is_refused_with_a_message(admin_client, workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.lib.tables.MAX_ROWS", 1)
    knowledge(workspace)
    knowledge(workspace)

    response = admin_client.post(address(KnowledgeEntry, "export"), {"format": "0", "resource": "0"})

    assert response.status_code == 422
    assert "more than 1 rows" in response.content.decode()


def test_secret_values_are_left_out_of_every_format(admin_client, workspace):
    KeyValue.objects.create(workspace=workspace, key="password", value="s3cret", is_secret=True)

    for name in FORMATS:
        response = admin_client.post(address(KeyValue, "export"), {"format": PLACES[name], "resource": "0"})
        (row,) = FORMATS[name].read(response.content).rows
        assert (row["value"] or "", str(row["is_secret"]).lower()) == ("", "true")


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_is_previewed_then_confirmed(admin_client, workspace, name):
    row = knowledge(workspace)
    rows = [
        {"id": str(row.pk), "workspace": "atlas", "category": "user_preference", "content": "=likes tea"},
        {"id": "", "workspace": "atlas", "category": "mood", "content": "new"},
    ]

    preview = upload(admin_client, rows, name=name)

    html = preview.content.decode()
    assert preview.status_code == 200
    assert "2 rows: 1 new, 1 changed" in html
    assert "learned_fact is used" in html
    assert KnowledgeEntry.objects.get().content == "likes tea"
    assert not AuditRecord.objects.exists()
    (kept,) = waiting()
    assert kept.stat().st_mode & 0o077 == 0

    response = confirm(admin_client, preview)

    assert response.status_code == 302
    assert list(KnowledgeEntry.objects.order_by("id").values_list("content", flat=True)) == ["=likes tea", "new"]
    assert KnowledgeEntry.objects.get(pk=row.pk).history.first().history_change_reason == f"admin: rows.{name}"
    assert AuditRecord.objects.get().text == "2 knowledge entries imported from a table: 1 new, 1 changed"
    assert waiting() == []


def test_wrong_rows_are_listed_and_nothing_can_be_confirmed(admin_client, workspace):
    rows = [
        {"id": "", "workspace": "atlas", "content": "fine", "created_at": ""},
        {"id": "77", "workspace": "atlas", "content": "x", "created_at": ""},
        {"id": "", "workspace": "atlas", "content": "x", "created_at": "soon"},
    ]

    html = upload(admin_client, rows).content.decode()

    assert "2 of 3 rows" in html
    assert "atlas has no knowledge entry 77" in html
    assert "created_at: soon is not a time" in html
    assert "process_import" not in html
    assert waiting() == []
    assert not KnowledgeEntry.objects.exists()


def test_a_row_that_became_wrong_since_the_preview_stops_the_import(admin_client, workspace):
    row = knowledge(workspace)
    rows = [{"id": str(row.pk), "workspace": "atlas", "content": "changed"}]
    rows.append({"id": "", "workspace": "atlas", "content": "new"})
    preview = upload(admin_client, rows)
    row.delete()

    response = confirm(admin_client, preview)

    assert response.status_code == 422
    assert "has no knowledge entry" in response.content.decode()
    assert not KnowledgeEntry.objects.exists()


def test_a_preview_can_be_confirmed_once(admin_client, workspace):
    preview = upload(admin_client, [{"workspace": "atlas", "content": "new"}])
    confirm(admin_client, preview)

    response = confirm(admin_client, preview)

    assert response.status_code == 422
    assert "Upload it again" in response.content.decode()
    assert KnowledgeEntry.objects.count() == 1


@pytest.mark.parametrize(
    "value",
    [
        {"import_file_name": "../secret_key"},
        {"import_file_name": "../" + "0" * 32},
        {"import_file_name": ""},
        {"format": "9"},
        {"format": "x"},
        {"digest": ""},
    ],
    ids=str,
)
def test_a_forged_confirmation_reads_no_other_file(admin_client, workspace, home, value):
    for name in ("secret_key", "0" * 32):
        (home / name).write_text("workspace,content\natlas,leaked\n")
    preview = upload(admin_client, [{"workspace": "atlas", "content": "new"}])

    response = confirm(admin_client, preview, **value)

    assert "This preview has expired" in response.content.decode()
    assert not KnowledgeEntry.objects.exists()


@pytest.mark.parametrize(
    ("name", "raw", "what"),
    [
        ("csv", b"workspace,colour\natlas,red\n", "There is no column colour"),
        ("csv", b"content\nx\n", "column workspace is missing"),
        ("csv", b"workspace,content\natlas\n", "Row 1 has 1 cells"),
        ("csv", b"workspace,content\n", "No valid data"),
        ("json", b"{", "Line 1"),
        ("xlsx", b"workspace,content\n", "not a readable XLSX"),
    ],
)
def test_a_file_without_such_a_table_is_refused_with_a_message(admin_client, workspace, name, raw, what):
    html = upload(admin_client, [], name=name, raw=raw).content.decode()

    assert what in html
    assert "process_import" not in html


def test_a_file_that_is_too_large_is_refused_before_it_is_read(admin_client, workspace):
    html = upload(admin_client, [], raw=b"x" * (10 * 2**20 + 1)).content.decode()

    assert "larger than 10 MB" in html
    assert waiting() == []


def test_secrets_are_in_no_preview(admin_client, workspace):
    KeyValue.objects.create(workspace=workspace, key="password", value="s3cret", is_secret=True)
    rows = [{"workspace": "atlas", "key": "password", "value": "n3w-one"}]

    html = upload(admin_client, rows, model=KeyValue).content.decode()

    assert "(hidden)" in html
    assert "s3cret" not in html
    assert "n3w-one" not in html


def test_import_and_export_pages_have_no_inline_script_or_style(admin_client, workspace):
    knowledge(workspace, HOSTILE)
    Workspace.objects.update(name=HOSTILE)
    rows = [{"id": "", "workspace": "atlas", "category": HOSTILE, "content": HOSTILE, "tags": HOSTILE}]
    pages = [
        upload(admin_client, rows),
        upload(admin_client, [rows[0] | {"id": "7"}]),
        upload(admin_client, [], raw=b""),
    ]
    pages += [admin_client.get(address(model, "export")) for model in TABLES]
    pages += [admin_client.get(address(model, "import")) for model in TAKEN]

    for page in pages:
        assert page.status_code == 200
        assert live_markup(page.content.decode()) == []


@pytest.mark.parametrize("model", [model for model in TABLES if model not in TAKEN], ids=TABLES.get)
def test_append_only_tables_have_no_import(admin_client, model):
    assert admin_client.get(address(model, "changelist") + "import/").status_code == 302  # as any unknown row
    assert "import/" not in admin_client.get(address(model, "changelist")).content.decode()


@pytest.mark.parametrize("page", ["import", "export", "process_import"])
def test_only_hub_operators_import_and_export_tables(viewer_client, workspace, page):
    staff = client_of(User.objects.create_user("staff", is_staff=True))

    posted = [
        client.post(address(KnowledgeEntry, page), {"format": "0"}) for client in (staff, viewer_client, Client())
    ]
    assert [response.status_code for response in posted] == [403, 403, 302]
    assert "login" in posted[2]["Location"]


def command(name, *arguments, **options):
    out = io.StringIO()
    try:
        call_command(name, *arguments, stdout=out, json=True, **options)
    except SystemExit as stop:
        return json.loads(out.getvalue()), stop.code
    return json.loads(out.getvalue()), 0


@pytest.mark.parametrize("name", ["import_table", "import"])
def test_commands_export_and_import_the_same(workspace, tmp_path, name):
    row = knowledge(workspace)
    file = tmp_path / "rows.json"

    told, _ = command("export", "knowledge", workspace="atlas", output=str(file))
    assert told == {"table": "knowledge", "rows": 1, "file": str(file)}
    rows = json.loads(file.read_text())
    file.write_text(json.dumps([rows[0] | {"content": "likes coffee"}]))

    told, status = command(name, "knowledge", str(file), dry_run=True)
    assert (told["changed"], status, KnowledgeEntry.objects.get().content) == (1, 0, "likes tea")
    assert command(name, "knowledge", str(file))[0]["changed"] == 1
    row.refresh_from_db()
    assert row.content == "likes coffee"
    assert row.history.first().history_change_reason == "import: rows.json"


def test_the_import_command_lists_wrong_rows_and_fails(workspace, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("workspace,content\natlas,\n")

    told, status = command("import_table", "knowledge", str(file))

    assert (told["wrong"], status) == ([{"row": 1, "errors": ["it has no content"]}], 1)


@pytest.mark.parametrize("arguments", [("knowledge", "/nowhere.csv"), ("knowledge", "/nowhere.doc")])
def test_the_import_command_reports_unreadable_files(arguments):
    told, status = command("import_table", *arguments)

    assert (told["error"]["code"], status) == ("no_such_file", 1)


def test_the_export_command_prints_a_summary(workspace):
    knowledge(workspace, "=1")
    out = io.StringIO()

    call_command("export", "knowledge", stdout=out)

    assert '"\'=1"' in out.getvalue()

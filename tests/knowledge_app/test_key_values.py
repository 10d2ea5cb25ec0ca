import json

import pytest
from django.urls import reverse

from knowledge_app.models import KeyValue
from knowledge_app.services.rows.exporting import key_values_file
from knowledge_app.services.rows.importing import import_key_values
from knowledge_app.services.rows.key_values import find_key, list_keys, with_text, write_value
from memoryhub.lib.layouts.records import KeyValueRecord
from memoryhub.sync.importing import import_workspace
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


def url(name, *args):
    return reverse(f"knowledge:{name}", args=["atlas", *args])


def write(workspace, key="theme", value="dark", actor=PERSON):
    return write_value(workspace, key, value, by=By(actor, NOW))


def states(row):
    return list(row.history.order_by("history_id").values_list("value", flat=True))


def test_a_written_value_is_read_back_exactly_and_every_earlier_one_is_kept(workspace):
    write(workspace, value=" dark\n")
    write(workspace, value="light")
    row = write(workspace, value="light")

    assert find_key(workspace, "theme").value == "light"
    assert states(row) == [" dark\n", "light"]
    assert AuditRecord.objects.filter(action__in=("key_value.written", "rows.edited")).count() == 2


@pytest.mark.parametrize(("key", "value"), [("", "v"), ("  ", "v"), ("k" * 513, "v"), ("k", "v" * 200_001)])
def test_what_can_not_be_kept_is_refused(workspace, key, value):
    with raises_code("bad_key_value"):
        write(workspace, key, value)


def test_keys_are_listed_by_prefix(workspace):
    for key in ("api.url", "api.key", "theme"):
        write(workspace, key)

    assert list_keys(workspace, "api.") == ["api.key", "api.url"]
    assert len(list_keys(workspace)) == 3
    assert list_keys(workspace, "%") == []


def test_search_looks_into_keys_and_values_but_not_into_secrets(workspace):
    write(workspace, "endpoint", "https://api.acme.example/v2")
    write(workspace, "acme", "x")
    write(workspace, "acme_password", "acme-hunter")
    write(workspace, "db_password", "acme-hunter")

    found = with_text(KeyValue.objects.filter(workspace=workspace), "ACME").order_by("key")

    assert [row.key for row in found] == ["acme", "acme_password", "endpoint"]


def test_a_withdrawn_key_is_gone_until_it_is_written_again(workspace, editor):
    row = write(workspace)
    editor.post(url("edit-key-value", row.pk), {"action": "withdraw", "text": "old"})

    with raises_code("no_such_key"):
        find_key(workspace, "theme")
    assert list_keys(workspace) == []
    assert key_values_file(workspace) == "{}"
    write(workspace, actor=AGENT)
    assert find_key(workspace, "theme").value == "dark"


def test_a_file_that_did_not_change_leaves_a_correction_and_a_withdrawal_alone(workspace):
    def take(value):
        record = KeyValueRecord("theme", value)
        return import_key_values(workspace, [record], path="kv.json", now=NOW, dry_run=False)

    take("dark")
    write(workspace, value="light")
    assert +take("dark").unchanged == {"key_values": 1}
    assert find_key(workspace, "theme").value == "light"

    take("blue")
    assert find_key(workspace, "theme").value == "light"
    assert KeyValue.objects.get().corrected["value"] == "blue"


@pytest.mark.parametrize(
    "text",
    [
        '{"flag": false, "none": null, "deep": {"a": [1, 2]}, "long": 90071992547409931}',
        '{"": "empty key", "../x": "path", "<b>": "<i>&amp;</i>", "u": "\\u2028"}',
        '{"n": 1.5, "s": "1.5", "list": [], "quote": "\\"", "é": "ü"}',
        "{}",
    ],
)
def test_a_file_of_any_types_comes_out_as_it_went_in(tmp_path, text, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    (tmp_path / "kv.json").write_text(text)

    result = import_workspace(tmp_path, by=By(PERSON, NOW), layout="grid")

    assert json.loads(key_values_file(result.workspace)) == json.loads(text)


def test_pages_write_change_and_restore(workspace, editor):
    response = editor.post(url("new-key-value"), {"key": "port", "value": "80"})
    row = KeyValue.objects.get()
    assert response["Location"] == url("key-value", row.pk)

    editor.post(url("edit-key-value", row.pk), {"value": "8080\r\n9090"})
    row.refresh_from_db()
    assert row.value == "8080\n9090"
    first = row.history.order_by("history_id")[0]
    response = editor.post(url("edit-key-value", row.pk), {"state": first.history_id}, follow=True)

    row.refresh_from_db()
    assert row.value == "80"
    assert "Undo" in response.content.decode()
    assert states(row) == ["80", "8080\n9090", "80"]


def test_a_secret_is_masked_in_its_form_too(workspace, editor):
    row = write(workspace, "db_password", "acme-hunter")

    assert row.is_secret
    assert "acme-hunter" not in editor.get(url("key-value", row.pk)).content.decode()
    assert "acme-hunter" not in editor.get(url("key-values")).content.decode()


def test_a_value_that_was_a_secret_stays_masked_in_its_history(workspace, editor):
    row = write(workspace, "note", "ghp_" + "a1B2" * 9)
    write(workspace, "note", "none any more")

    assert "a1B2a1B2" not in editor.get(url("key-value", row.pk)).content.decode()


def test_exporting_secrets_is_for_editors_and_noted(workspace, editor, viewer_client):
    write(workspace, "db_password", "acme-hunter")

    assert viewer_client.get(url("download-key-values")).status_code == 404
    assert json.loads(editor.get(url("download-key-values")).content) == {"db_password": "acme-hunter"}
    assert AuditRecord.objects.get(action="key_value.revealed").actor_name == "edda"


def test_many_are_withdrawn_and_taken_back(workspace, editor):
    rows = [write(workspace, key) for key in ("a", "b", "c")]
    editor.post(url("edit-key-values"), {"row": [row.pk for row in rows[:2]], "action": "withdraw"})
    assert list_keys(workspace) == ["c"]

    editor.post(url("edit-key-values") + "?withdrawn=on", {"all": 1, "expected": 2, "action": "return"})

    assert list_keys(workspace) == ["a", "b", "c"]
    response = editor.post(url("edit-key-values"), {"row": [1], "action": "explode"}, follow=True)
    assert "Choose an action" in response.content.decode()


def test_a_viewer_changes_nothing_and_foreign_keys_are_not_there(workspace, viewer_client, editor):
    row = write(workspace)
    foreign = write(Workspace.objects.create(slug="other", name="Other"))

    assert viewer_client.post(url("edit-key-value", row.pk), {"value": "x"}).status_code == 404
    assert viewer_client.get(url("new-key-value")).status_code == 404
    assert editor.post(url("edit-key-value", foreign.pk), {"value": "x"}).status_code == 404


def test_the_command_reads_writes_lists_searches_and_restores(workspace, command):
    command("key_values", "set", "atlas", "api.url", "https://a.example")
    command("key_values", "set", "atlas", "api.url", "https://b.example")
    assert command("key_values", "get", "atlas", "api.url")["value"] == "https://b.example"
    assert command("key_values", "list", "atlas", "api")["keys"] == ["api.url"]
    assert command("key_values", "search", "atlas", "B.EX")["found"][0]["key"] == "api.url"
    states = command("key_values", "history", "atlas", "api.url")["states"]
    assert [state["value"] for state in states] == ["https://b.example", "https://a.example"]
    command("key_values", "restore", "atlas", "api.url", "--state", str(states[1]["state"]))
    assert command("key_values", "get", "atlas", "api.url")["value"] == "https://a.example"
    assert json.loads(command("key_values", "export", "atlas")["text"]) == {"api.url": "https://a.example"}
    command("key_values", "withdraw", "atlas", "api.url")
    assert command("key_values", "get", "atlas", "api.url", status=1)["error"]["code"] == "no_such_key"


def test_the_command_masks_secrets_and_notes_who_read_one(workspace, command):
    write(workspace, "db_password", "acme-hunter")

    assert command("key_values", "search", "atlas", "password")["found"][0]["value"] == "••••••••"
    assert command("key_values", "history", "atlas", "db_password")["states"][0]["value"] == "••••••••"
    assert not AuditRecord.objects.filter(action="key_value.revealed").exists()
    assert command("key_values", "get", "atlas", "db_password")["value"] == "acme-hunter"
    assert AuditRecord.objects.filter(action="key_value.revealed").count() == 1


def test_saving_a_masked_value_without_a_new_one_changes_nothing(workspace, editor):
    row = write(workspace, "db_password", "acme-hunter")

    response = editor.post(url("edit-key-value", row.pk), {"value": ""}, follow=True)

    assert "The current one is masked" in response.content.decode()
    assert find_key(workspace, "db_password").value == "acme-hunter"

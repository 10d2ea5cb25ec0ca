"""Settings of the hub that operators change on its settings page."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_httpserver import HTTPServer

from memoryhub.lib.database.encrypted_text import decrypt_text, encrypt_text
from memoryhub.models import AccessRecord, StoredSetting
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.access_log import forget_old_accesses
from sessions_app.services.audit import By
from sessions_app.services.compressing.model_choice import embedding_settings_for, model_for
from sessions_app.services.stored_settings import host_and_port, hub_settings, save_hub_settings
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import NOW, PERSON, client_of

pytestmark = pytest.mark.django_db
KEY = "sk-live-4f9Qz81LmX0aB7"
BY = By(PERSON, NOW)
URL, NAME, SECRET = "MEMORYHUB_LLM_BASE_URL", "MEMORYHUB_LLM_MODEL", "MEMORYHUB_LLM_API_KEY"


@pytest.fixture
def operator() -> Client:
    return client_of(User.objects.create_superuser("olga"))


def save_model(operator: Client, **values: str):
    data = {"address": "https://models.example/v1", "model": "small", "key": KEY} | values
    return operator.post("/settings/model/", data, follow=True)


def test_a_text_is_decrypted_only_in_its_context_and_with_the_same_key(settings):
    sealed = encrypt_text(KEY, context="a")

    assert decrypt_text(sealed, context="a") == KEY
    assert decrypt_text(sealed, context="b") is None
    assert decrypt_text("no base64!", context="a") is None
    settings.SECRET_KEY = "another"
    assert decrypt_text(sealed, context="a") is None


def test_a_page_that_was_open_keeps_what_someone_else_saved(operator):
    seen = {"initial-hours": "24.0", "initial-keep": "14", "hours": "24.0", "keep": "14"}
    save_hub_settings({"MEMORYHUB_BACKUP_HOURS": 24.0, "MEMORYHUB_BACKUP_KEEP": 14}, by=BY)
    operator.post("/settings/backups/", seen | {"hours": "6"})

    operator.post("/settings/backups/", seen | {"keep": "3"})
    answer = operator.post("/settings/backups/", seen | {"hours": "12"})

    values = hub_settings().values
    assert (values["MEMORYHUB_BACKUP_HOURS"], values["MEMORYHUB_BACKUP_KEEP"]) == (6, 3)
    assert answer.status_code == 422
    assert "Someone changed this meanwhile." in answer.content.decode()


def test_saved_settings_are_used_without_a_restart(operator, workspace):
    assert model_for(workspace) is None

    page = save_model(operator).content.decode()
    operator.post("/settings/embeddings/", {"provider": "openai", "embedding_key": "e" + KEY})
    operator.post("/settings/backups/", {"hours": "6", "keep": "3"})

    model, embeddings = model_for(workspace), embedding_settings_for(workspace)
    assert (model.base_url, model.model, model.api_key) == ("https://models.example/v1", "small", KEY)
    assert (embeddings.model, embeddings.api_key) == ("text-embedding-3-small", "e" + KEY)
    assert [hub_settings().values[f"MEMORYHUB_BACKUP_{name}"] for name in ("HOURS", "KEEP")] == [6.0, 3]
    assert KEY not in page
    assert "A key is stored" in page
    assert "this page" in page


def test_retention_takes_effect_at_the_next_pruning(operator, workspace):
    now = timezone.now()
    values = {"workspace": workspace, "actor_kind": "person", "actor_name": "a", "via": "page", "row_count": 1}
    AccessRecord.objects.create(**values, action="x.read", at=now - timedelta(days=8))
    forget_old_accesses(now)
    assert AccessRecord.objects.count() == 1

    operator.post("/settings/retention/", {"access_days": "7"})
    forget_old_accesses(now)

    assert not AccessRecord.objects.exists()


def test_the_key_is_in_no_table_no_audit_record_and_no_backup_in_clear_text(operator, tmp_path):
    save_model(operator)

    stored = StoredSetting.objects.get(name=SECRET).value
    [record] = AuditRecord.objects.filter(action="hub.configured")
    assert KEY not in stored
    assert record.detail["changed"][SECRET] == ["", "set"]
    assert record.detail["changed"][NAME] == ["", "small"]
    assert KEY not in str([record.text, record.detail])
    if not ON_POSTGRES:
        back_up(tmp_path)
        assert not any(KEY.encode() in path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file())


@pytest.mark.parametrize("address", ["openai", "openai/", "https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_every_spelling_of_an_address_means_the_same(workspace, settings, address):
    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = address, "small"

    assert model_for(workspace).base_url == "https://api.openai.com/v1"
    workspace.model_base_url = address
    assert model_for(workspace).base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize("address", ["http://models.example:443/v1", "https://models.example:444/v1"])
def test_the_key_is_only_sent_to_the_origin_of_its_address(operator, workspace, address):
    save_model(operator)
    workspace.model_base_url = "https://models.example/other"
    assert model_for(workspace).api_key == KEY

    workspace.model_base_url = address

    assert model_for(workspace).api_key == ""


def test_the_key_stays_until_it_is_replaced_removed_or_its_address_changes(operator, workspace):
    save_model(operator)

    save_model(operator, key="", model="large")
    assert model_for(workspace).api_key == KEY
    save_model(operator, key="", address="https://models.example/v2")
    assert model_for(workspace).api_key == KEY
    page = save_model(operator, key="", address="https://elsewhere.example/v1").content.decode()
    assert model_for(workspace).api_key == ""
    assert "The API key was removed" in page
    save_model(operator, address="https://elsewhere.example/v1")
    assert model_for(workspace).api_key == KEY
    save_model(operator, address="https://third.example/v1")
    assert model_for(workspace).api_key == KEY
    save_model(operator, address="https://third.example/v1", key="", remove_key="on")
    assert model_for(workspace).api_key == ""
    assert not StoredSetting.objects.filter(name=SECRET).exists()


def test_a_key_that_cannot_be_decrypted_is_reported_and_kept(operator, workspace, settings):
    save_model(operator)
    settings.SECRET_KEY = "another"
    operator.force_login(User.objects.get(username="olga"))

    operator.post("/settings/backups/", {"hours": "6", "keep": "3"})

    assert model_for(workspace).api_key == ""
    assert SECRET not in hub_settings().stored
    assert "The stored key can&#x27;t be used" in operator.get("/settings/").content.decode()
    settings.SECRET_KEY = "another again"
    assert StoredSetting.objects.filter(name=SECRET).exists()


def test_the_environment_takes_precedence_and_the_page_says_so(operator, workspace, settings):
    save_model(operator)
    settings.GIVEN_SETTINGS = frozenset({NAME})
    settings.MEMORYHUB_LLM_MODEL = "from-outside"

    page = save_model(operator, model="forged").content.decode()

    assert model_for(workspace).model == "from-outside"
    assert StoredSetting.objects.get(name=NAME).value == "small"
    assert f"Set in the environment by {NAME}." in page


def test_a_key_of_the_environment_is_never_sent_to_an_address_of_the_page(operator, workspace, settings):
    save_hub_settings({URL: "https://elsewhere.example/v1", NAME: "small"}, by=BY)
    settings.GIVEN_SETTINGS = frozenset({SECRET})
    settings.MEMORYHUB_LLM_API_KEY = KEY

    save_model(operator, address="https://third.example/v1", key="")

    assert model_for(workspace).base_url == "https://api.openai.com/v1"
    assert "is only sent to the address in" in operator.get("/settings/").content.decode()


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("http://127.0.0.1:5432/v1", "a private address"),
        ("http://169.254.169.254/latest", "never connects to"),
        ("https://olga:secret@models.example/v1", "must not contain a user name"),
        ("https://models.example/v1?key=secret", "no query"),
        ("models.example", "must start with http"),
    ],
)
def test_addresses_follow_the_rules_for_outgoing_requests(operator, address, error):
    for path in ("/settings/model/", "/settings/model/test/"):
        response = operator.post(path, {"address": address, "model": "small", "key": KEY})
        assert error in response.content.decode()
        assert KEY not in response.content.decode()
    assert not StoredSetting.objects.exists()


def test_a_local_preset_needs_no_permission_but_other_private_addresses_do(operator, workspace):
    save_model(operator, address="ollama", key="")
    assert model_for(workspace).allowed == frozenset({"127.0.0.1:11434"})

    save_hub_settings({URL: "http://127.0.0.1:9/v1"}, by=BY)
    assert model_for(workspace).allowed == frozenset()


def test_the_connection_is_tested_with_unsaved_values(operator, settings, httpserver: HTTPServer):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({host_and_port(httpserver.url_for("/v1"))})
    message = {"choices": [{"finish_reason": "stop", "message": {"content": "OK"}}]}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(message)
    httpserver.expect_request("/v1/embeddings").respond_with_json({"data": [{"embedding": [0.6, 0.8] * 768}]})
    address = httpserver.url_for("/v1")

    model = operator.post("/settings/model/test/", {"address": address, "model": "small", "key": KEY})
    values = {"provider": "openai", "embedding_address": address, "embedding_key": KEY}
    embeddings = operator.post("/settings/embeddings/test/", values, headers={"HX-Request": "true"})

    assert "Connected: small replied" in model.content.decode()
    assert "an embedding of 1536 numbers" in embeddings.content.decode()
    assert "<form" not in embeddings.content.decode()
    assert [request.headers["Authorization"] for request, _ in httpserver.log] == [f"Bearer {KEY}"] * 2
    assert not StoredSetting.objects.exists()


def test_a_failed_test_says_why_without_the_key(operator, settings, httpserver: HTTPServer):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({host_and_port(httpserver.url_for("/v1"))})
    httpserver.expect_request("/v1/chat/completions").respond_with_data(f"bad key {KEY}", status=401)

    values = {"address": httpserver.url_for("/v1"), "model": "small", "key": KEY}
    page = operator.post("/settings/model/test/", values).content.decode()
    nothing = operator.post("/settings/model/test/", {"address": "", "model": "", "key": ""}).content.decode()

    assert "Not connected. The model&#x27;s server returned 401" in page
    assert "Check the API key." in page
    assert KEY not in page
    assert "Enter a model" in nothing


def test_a_workspaces_own_address_gets_no_key(operator, workspace):
    save_model(operator)
    Workspace.objects.update(model_base_url="https://elsewhere.example/v1")
    workspace.refresh_from_db()

    assert model_for(workspace).api_key == ""


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("model", {"address": "openai", "model": "small", "key": "with blank"}),
        ("embeddings", {"provider": "groq"}),
        ("backups", {"hours": "-1", "keep": "3"}),
        ("retention", {"access_days": "many"}),
    ],
)
def test_invalid_values_are_refused(operator, section, values):
    assert operator.post(f"/settings/{section}/", values).status_code == 422
    assert not StoredSetting.objects.exists()


@pytest.mark.parametrize("path", ["/settings/model/", "/settings/model/test/"])
def test_only_hub_operators_change_settings(viewer_client, path):
    assert viewer_client.post(path, {}).status_code == 403


@pytest.mark.parametrize("path", ["/settings/nothing/", "/settings/nothing/test/", "/settings/backups/test/"])
def test_other_sections_do_not_exist(operator, path):
    assert operator.post(path, {}).status_code == 404


def test_the_command_shows_where_a_value_is_from(operator, command):
    save_model(operator)

    found = {setting["name"]: setting for setting in command("settings")["settings"]}

    assert (found[NAME]["value"], found[NAME]["source"]) == ("small", "page")
    assert (found[SECRET]["value"], found[SECRET]["source"]) == ("set (hidden)", "page")

"""Workspace settings, webhooks, and new workspaces."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import AuditRecord, Run, Webhook, Workspace
from sessions_app.services import workspaces
from sessions_app.services.audit import By
from tests.conversations.test_actions import text_of, url
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["workspace-settings", "webhooks"])
def test_settings_need_an_operator(name, workspace, editor, operator):
    assert editor.get(url(name)).status_code == 404
    assert operator.get(url(name)).status_code == 200


def settings_data(**changes: object) -> dict[str, object]:
    data = {
        "name": "Atlas", "persist_memory": "on", "auto_compress": "on", "max_tokens": 50000, "max_entries": 100,
        "recent_window": 10, "min_entries_to_compress": 5, "compression_ratio": 0.3, "auto_consolidate": "on",
        "memory_window": 100, "consolidation_style": "nanobot", "agent_changes": "hold_risky",
        "recency_decay": 0, "cache_enabled": "on",
        "cache_ttl_seconds": 3600, "cache_max_entries": 500, "stale_days": 180,
    }  # fmt: skip
    return data | changes


def test_settings_are_saved_with_a_record_of_what_changed(workspace, operator):
    operator.post(url("workspace-settings"), settings_data(max_tokens=9000))

    workspace.refresh_from_db()
    assert workspace.max_tokens == 9000
    assert AuditRecord.objects.get(action="workspace.configured").detail == {"changed": {"max_tokens": [50000, 9000]}}


def data_of(page) -> dict[str, object]:
    """Return what the page's form sends if nothing is changed."""
    data: dict[str, object] = {}
    for field in page.context["form"]:
        assert f'name="{field.html_initial_name}"' in page.content.decode()
        shown = "" if field.value() is None else field.value()
        data |= {field.html_initial_name: str(shown)} | ({} if shown is False else {field.html_name: shown})
    return data


def test_a_page_that_was_open_keeps_what_someone_else_saved(workspace, operator):
    page = url("workspace-settings")
    seen = data_of(operator.get(page))
    operator.post(page, seen | {"agent_changes": "hold_all", "persist_memory": False})

    operator.post(page, seen | {"summary_prompt": "Be brief."})

    workspace.refresh_from_db()
    kept = (workspace.agent_changes, workspace.persist_memory, workspace.summary_prompt)
    assert kept == ("hold_all", False, "Be brief.")


def test_a_setting_that_both_changed_is_shown_before_it_is_replaced(workspace, operator):
    page = url("workspace-settings")
    seen = data_of(operator.get(page))
    operator.post(page, seen | {"max_tokens": 9000})

    answer = operator.post(page, seen | {"max_tokens": 7000})

    workspace.refresh_from_db()
    assert (answer.status_code, workspace.max_tokens) == (422, 9000)
    assert "Someone changed this meanwhile. Save again to replace it. Current value: 9000" in text_of(answer)
    operator.post(page, seen | {"max_tokens": 7000, "initial-max_tokens": 9000})
    workspace.refresh_from_db()
    assert workspace.max_tokens == 7000


def test_settings_are_checked_together_with_what_someone_else_saved(workspace, operator):
    page = url("workspace-settings")
    seen = data_of(operator.get(page))
    operator.post(page, seen | {"max_entries": 20})

    answer = operator.post(page, seen | {"recent_window": 40})

    assert answer.status_code == 422
    assert "The recent window (40) is larger than the message limit (20)." in text_of(answer)


@pytest.mark.parametrize(
    ("model", "tokens", "words"),
    [
        ("", 0, "No model is connected. Summaries are created by rule.</p>"),
        ("", 1948, "created by rule. Earlier today, a model used 1,948 tokens.</p>"),
        ("gpt", 1948, "Summaries are created by gpt. Models used 1,948 tokens today.</p>"),
    ],
)
def test_what_models_used_today_does_not_contradict_that_none_is_connected(
    workspace, operator, settings, model, tokens, words
):
    settings.MEMORYHUB_LLM_MODEL, settings.MEMORYHUB_LLM_BASE_URL = model, model and "http://localhost:1/v1"
    now = timezone.now()
    Run.objects.create(workspace=workspace, kind="compression", prompt_tokens=tokens, started_at=now, finished_at=now)

    assert words in " ".join(text_of(operator.get(url("workspace-settings"))).split())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recent_window": 200}, "The recent window (200) is larger than the message limit (100)."),
        ({"recent_window": 98}, "the message limit must be 103 or more"),
        ({"max_entries": 0, "recent_window": 0}, "1 or more"),
        ({"max_tokens": 10}, "500 or more"),
        ({"compression_ratio": 1.5}, "above 0 and below 1"),
        ({"recency_decay": -1}, "0 or more"),
        ({"memory_window": 1}, "2 or more"),
        ({"daily_token_budget": -5}, "greater than or equal to 0"),
        ({"model_base_url": "http://169.254.169.254/v1"}, "reserved address that the hub never connects to"),
        ({"model_base_url": "http://127.0.0.1:11434/v1"}, "MEMORYHUB_PRIVATE_HOSTS"),
        ({"model_base_url": "ftp://x"}, "http:// or https://"),
        ({"model_base_url": "https://1.1.1.1/v1?key=1"}, "no query"),
        ({"embedding_base_url": "https://1.1.1.1/v1#one"}, "no fragment"),
        ({"embedding_provider": "anthropic"}, "Use voyage"),
        ({"embedding_provider": "groq"}, "groq doesn't offer embeddings"),
        ({"embedding_provider": "nobody"}, "There is no embedding provider"),
        ({"embedding_base_url": "http://169.254.169.254/v1"}, "reserved address that the hub never connects to"),
        ({"embedding_base_url": "http://127.0.0.1:11434/v1"}, "MEMORYHUB_PRIVATE_HOSTS"),
    ],
)
def test_inconsistent_settings_are_refused(workspace, operator, changes, words):
    response = operator.post(url("workspace-settings"), settings_data(**changes))

    before = Workspace.objects.values().get(pk=workspace.pk)
    assert response.status_code == 422
    assert words in text_of(response).replace("&#x27;", "'")
    assert before == Workspace.objects.values().get(pk=workspace.pk)
    assert not AuditRecord.objects.filter(action="workspace.configured").exists()


@pytest.mark.parametrize("given", ["openai/", "https://1.1.1.1/v1/"])
def test_an_address_is_stored_without_its_last_slash(workspace, operator, given):
    operator.post(url("workspace-settings"), settings_data(model_base_url=given))

    workspace.refresh_from_db()
    assert workspace.model_base_url == given.rstrip("/")


def test_a_webhook_is_added_with_its_secret_and_removed(workspace, operator, settings):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({"127.0.0.1:9999"})
    operator.post(url("webhooks"), {"url": "http://127.0.0.1:9999/hook", "actions": ["entry.added"]})

    hook = Webhook.objects.get()
    assert hook.actions == ["entry.added"]
    assert "secret-" in text_of(operator.get(url("webhooks")))
    operator.post(url("delete-webhook", hook.pk))
    assert not Webhook.objects.exists()


def test_internal_webhook_address_is_refused(workspace, operator):
    response = operator.post(url("webhooks"), {"url": "http://169.254.169.254/latest"})

    assert response.status_code == 422
    assert not Webhook.objects.exists()


def test_workspace_is_created_for_an_agent_that_uses_the_api(admin_client):
    admin_client.post(reverse("new-workspace"), {"name": "Nova"})

    assert Workspace.objects.get().slug == "nova"
    assert AuditRecord.objects.get().action == "workspace.created"


def test_a_workspace_is_not_created_without_its_audit_record(admin_user, monkeypatch):
    def fail(*_args: object, **_values: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(workspaces, "record", fail)

    with pytest.raises(OSError, match="disk full"):
        workspaces.create_workspace("Atlas", by=By(PERSON, NOW))

    assert not Workspace.objects.exists()


def test_only_hub_operators_create_workspaces(workspace, operator):
    assert operator.post(reverse("new-workspace"), {"name": "Nova"}).status_code == 403

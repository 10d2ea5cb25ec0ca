"""The settings page: every setting with its source, and no secrets."""

import re

import pytest
from django.conf import settings as hub_settings
from django.urls import reverse

from memoryhub.dashboard.hub_settings import EFFECTS, SECRETS, list_settings, without_secrets

pytestmark = pytest.mark.django_db


def test_every_setting_is_there_and_no_secret(settings, admin_client, command):
    for name in SECRETS - {"MEMORYHUB_SECRET_KEY"}:
        setattr(settings, name, "s3cret-value")
    settings.MEMORYHUB_LLM_BASE_URL = "https://olga:s3cret-value@models.example/v1"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = "https://words.example/v1?key=s3cret-value"
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({"olga:s3cret-value@192.0.2.7:8080"})

    text = admin_client.get(reverse("hub-settings")).content.decode()

    names = set(
        re.findall(r'"(MEMORYHUB_\w+|DATABASE_URL)"', (hub_settings.BASE_DIR / "memoryhub/settings.py").read_text())
    )
    assert {name for name in names if f'id="{name}"' not in text} == set()
    assert "s3cret-value" not in text
    assert "s3cret-value" not in str(command("settings"))
    assert hub_settings.SECRET_KEY not in text
    assert "https://…@models.example/v1<" in text
    assert "https://words.example/v1?…<" in text


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://models.example/v1", "https://models.example/v1"),
        ("ollama", "ollama"),
        ("https://olga@models.example/v1", "https://…@models.example/v1"),
        ("https://olga:se/cret@models.example/v1", "https://…@models.example/v1"),
        ("https://olga:se/cr?et#@models.example/v1", "https://…"),
        ("https://models.example/v1?key=secret&to=a@b", "https://…"),
        ("models.example/v1#a@secret", "…"),
        ("models.example/v1?key=secret", "models.example/v1?…"),
        ("https://models.example/v1#secret", "https://models.example/v1#…"),
        ("olga:secret@models.example", "…@models.example"),
        ("https://[::1/v1?key=secret", "https://[::1/v1?…"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, shown):
    assert without_secrets(address) == shown


def test_the_list_of_all_settings_is_closed_and_says_how_many_there_are(admin_client):
    page = admin_client.get(reverse("hub-settings")).content.decode()

    closed, listed = page.split('<details class="fold" id="all-settings"><summary>')[1].split("</summary>")
    assert re.search(r'All settings <span class="count">\d+</span>', closed)
    assert "MEMORYHUB_LLM_BASE_URL" in listed


def test_the_password_of_redis_is_hidden(settings):
    settings.CACHE_URL = "redis://:confidential@10.0.0.7:6379/0"

    shown = {setting.name: setting.value for setting in list_settings()}

    assert shown["CACHE_URL"] == "redis://…@10.0.0.7:6379/0"


def test_each_setting_states_its_source(settings):
    settings.GIVEN_SETTINGS = frozenset({"MEMORYHUB_ADMIN"})
    settings.MEMORYHUB_ADMIN = True

    found = {setting.name: (setting.value, setting.source) for setting in list_settings()}

    assert found["MEMORYHUB_ADMIN"] == ("on", "environment")
    assert found["MEMORYHUB_SECRET_KEY"] == ("set (hidden)", "file")
    assert found["MEMORYHUB_BACKUP_KEEP"] == ("7", "default")


def test_each_effect_equals_the_documentation():
    page = (hub_settings.BASE_DIR / "docs" / "settings.md").read_text()
    parts = re.split(r"^## (\w+)\n", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", page), flags=re.MULTILINE)[1:]

    documented = {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}

    assert {name: str(effect) for name, effect in EFFECTS.items()} == documented
    assert list(EFFECTS) == list(documented)


def test_deployment_warnings_are_shown(settings, admin_client):
    settings.SILENCED_SYSTEM_CHECKS = []

    assert "SECURE_SSL_REDIRECT" in admin_client.get(reverse("hub-settings")).content.decode()

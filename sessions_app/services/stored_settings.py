"""Settings of the hub that operators change on its settings page. The environment takes precedence.

Every use reads them from the database, so that a change takes effect in all processes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from memoryhub.lib.database import db_retry
from memoryhub.lib.database.encrypted_text import decrypt_text, encrypt_text
from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.embeddings import PROVIDERS
from memoryhub.lib.http.safe_http import AddressRefused, split_url
from memoryhub.lib.llm import PRESETS, address_of
from memoryhub.models import StoredSetting
from sessions_app.services.audit import By, record

TYPES: dict[str, type[str] | type[int] | type[float]] = {
    "MEMORYHUB_LLM_BASE_URL": str,
    "MEMORYHUB_LLM_API_KEY": str,
    "MEMORYHUB_LLM_MODEL": str,
    "MEMORYHUB_EMBEDDING_PROVIDER": str,
    "MEMORYHUB_EMBEDDING_MODEL": str,
    "MEMORYHUB_EMBEDDING_BASE_URL": str,
    "MEMORYHUB_EMBEDDING_API_KEY": str,
    "MEMORYHUB_BACKUP_HOURS": float,
    "MEMORYHUB_BACKUP_KEEP": int,
    "MEMORYHUB_ACCESS_DAYS": int,
    "MEMORYHUB_RECORD_DAYS": int,
}
MODEL_KEY, EMBEDDING_KEY = "MEMORYHUB_LLM_API_KEY", "MEMORYHUB_EMBEDDING_API_KEY"
KEYS = {  # API keys, and the settings that say where they are sent
    MODEL_KEY: ("MEMORYHUB_LLM_BASE_URL",),
    EMBEDDING_KEY: ("MEMORYHUB_EMBEDDING_PROVIDER", "MEMORYHUB_EMBEDDING_BASE_URL"),
}


_STORED = PreparedRows(0, lambda: StoredSetting.objects.filter(name__in=TYPES))


@dataclass(frozen=True)
class HubSettings:
    """The values in effect, by the name of the environment variable, and where each is from.

    ``stored``: names whose value is from the settings page. ``unusable_keys``: stored API keys that can't be
    decrypted, because the address or the hub's secret key is another one now.
    """

    values: Mapping[str, Any] = field(repr=False)
    stored: frozenset[str] = frozenset()
    unusable_keys: frozenset[str] = frozenset()

    @property
    def model_url(self) -> str:
        """The model's address; OpenAI's if only a key is set, otherwise ""."""
        default = "openai" if self.values[MODEL_KEY] else ""
        return address_of(str(self.values["MEMORYHUB_LLM_BASE_URL"]) or default)

    @property
    def embedding_url(self) -> str:
        return _embedding_url(self.values)

    @property
    def trusted_model_host(self) -> str:
        """The "host:port" that may be private: one from the environment or of a preset, "" if there is none."""
        address = self.values["MEMORYHUB_LLM_BASE_URL"]
        is_trusted = "MEMORYHUB_LLM_BASE_URL" not in self.stored or not address or address in PRESETS
        return host_and_port(self.model_url) if is_trusted else ""

    @property
    def trusted_embedding_host(self) -> str:
        is_typed = "MEMORYHUB_EMBEDDING_BASE_URL" in self.stored and self.values["MEMORYHUB_EMBEDDING_BASE_URL"]
        return "" if is_typed else host_and_port(self.embedding_url)


def hub_settings() -> HubSettings:
    """Return the settings in effect. One query."""
    rows = {row.name: row.value for row in _STORED.all()}
    stored = {name: value for name, value in rows.items() if is_editable(name)}
    values = {name: getattr(settings, name) for name in TYPES}
    values |= {name: TYPES[name](value) for name, value in stored.items() if name not in KEYS}
    unusable = set()
    for key in stored.keys() & KEYS.keys():
        values[key] = decrypt_text(stored[key], context=_context(key, values)) or ""
        if not values[key]:
            unusable.add(key)
    return HubSettings(values, frozenset(stored) - unusable, frozenset(unusable))


def is_editable(name: str) -> bool:
    """Return whether the page may change a setting: not one that the environment sets.

    A key of the environment is sent to the addresses of the environment only.
    """
    given = settings.GIVEN_SETTINGS
    key = next((key for key, addresses in KEYS.items() if name in addresses), "")
    return name in TYPES and name not in given and key not in given


def with_changes(before: HubSettings, changes: Mapping[str, Any]) -> HubSettings:
    """Return the settings as they would be after saving.

    An API key of None is kept, unless its address changes: it is never sent to another one.
    """
    values = dict(before.values)
    values |= {name: value for name, value in changes.items() if is_editable(name) and value is not None}
    for key in filter(is_editable, KEYS):
        if changes.get(key) is None and _key_origin(key, values) != _key_origin(key, before.values):
            values[key] = ""
    changed = {name for name in TYPES if values[name] != before.values[name]}
    return HubSettings(values, before.stored | changed)


@db_retry.retried
@transaction.atomic
def save_hub_settings(changes: Mapping[str, Any], *, by: By) -> list[str]:
    """Store settings, and return the names of those that changed. Empty values restore the default."""
    before = hub_settings()
    after = with_changes(before, changes).values
    names = [name for name in TYPES if after[name] != before.values[name]]
    names += [key for key in KEYS if key not in names and is_editable(key) and _is_rewritten(key, changes, before)]
    for name in names:
        _store(name, after, by)
    if names:
        changed = {name: _audited(name, before.values[name], after[name]) for name in names}
        text = f"Settings of the hub changed: {', '.join(names)}"
        record(by, "hub.configured", "hub", "", text, detail={"changed": changed})
    return names


def _is_rewritten(key: str, changes: Mapping[str, Any], before: HubSettings) -> bool:
    """Return whether an unchanged API key is for another address now, or an unusable one is removed."""
    after = with_changes(before, changes).values
    has_moved = _key_origin(key, after) != _key_origin(key, before.values)
    if after[key]:
        return has_moved
    return key in before.unusable_keys and (has_moved or changes.get(key) == "")


def _store(name: str, values: Mapping[str, Any], by: By) -> None:
    if values[name] == "":
        StoredSetting.objects.filter(name=name).delete()
        return
    text = str(values[name])
    value = encrypt_text(text, context=_context(name, values)) if name in KEYS else text
    defaults = {"value": value, "updated_by": by.actor.name[:200], "updated_at": by.at}
    StoredSetting.objects.update_or_create(name=name, defaults=defaults)


def _audited(name: str, before: Any, after: Any) -> list[Any]:
    if name in KEYS:
        return ["set" if value else "" for value in (before, after)]
    return [before, after]


def _context(key: str, values: Mapping[str, Any]) -> str:
    return f"{key} {_key_origin(key, values)}"


def _key_origin(key: str, values: Mapping[str, Any]) -> str:
    """Return the origin to which a key is sent."""
    if key == EMBEDDING_KEY:
        return origin(_embedding_url(values))
    return origin(address_of(values["MEMORYHUB_LLM_BASE_URL"] or "openai"))


def _embedding_url(values: Mapping[str, Any]) -> str:
    provider = PROVIDERS.get(values["MEMORYHUB_EMBEDDING_PROVIDER"])
    return str(values["MEMORYHUB_EMBEDDING_BASE_URL"]) or (provider.base_url if provider else "")


def origin(url: str) -> str:
    """Return "scheme://host:port" of a URL, or "" if it is invalid. A key isn't sent to the same host without TLS."""
    place = host_and_port(url)
    return f"{urlsplit(url).scheme}://{place}" if place else ""


def host_and_port(url: str) -> str:
    """Return "host:port" of a URL, or "" if it is invalid."""
    try:
        host, port = split_url(url)
    except AddressRefused:
        return ""
    return f"{host}:{port}"

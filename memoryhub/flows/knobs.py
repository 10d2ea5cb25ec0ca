"""Every setting of the hub with its value, where that came from and what it does: for its operators."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import django
from django.conf import settings
from django.core.checks import CheckMessage, Tags, run_checks
from django.db import connection

from memoryhub.flows.backups.making import hub_version
from memoryhub.flows.backups.running import database_words

ATTRIBUTES = {"MEMORYHUB_TIME_ZONE": "TIME_ZONE", "MEMORYHUB_DEBUG": "DEBUG", "MEMORYHUB_SECRET_KEY": "SECRET_KEY"}
SECRETS = frozenset(
    {
        "MEMORYHUB_TOKEN",
        "MEMORYHUB_BACKUP_KEY",
        "MEMORYHUB_LLM_API_KEY",
        "MEMORYHUB_EMBEDDING_API_KEY",
        "MEMORYHUB_SECRET_KEY",
    }
)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Knob:
    """One setting. ``value`` is for people, "" where there is none; of a secret it only says that there is one.

    ``source``: "environment", "file" (one that the hub made in its folder) or "default".
    """

    name: str
    value: str
    source: str
    effect: str
    is_secret: bool


@dataclass(frozen=True)
class Hub:
    """What runs here, in words and bytes."""

    version: str
    python: str
    django: str
    database: str
    database_bytes: int
    home: str


def knobs() -> list[Knob]:
    """Return all settings in the order of docs/settings.md, whose text is what they do."""
    return [_knob(name, effect) for name, effect in _documented(settings.BASE_DIR / "docs" / "settings.md")]


def hub() -> Hub:
    """Return what runs here. One query."""
    return Hub(
        version=hub_version(),
        python=platform.python_version(),
        django=django.get_version(),
        database=database_words(connection),
        database_bytes=_database_bytes(),
        home=str(settings.MEMORYHUB_HOME),
    )


def complaints() -> list[CheckMessage]:
    """Return what the checks for a hub that others reach find wrong with its settings."""
    messages = run_checks(tags=[Tags.security], include_deployment_checks=True)
    return [message for message in messages if not message.is_silenced()]


@lru_cache
def _documented(page: Path) -> list[tuple[str, str]]:
    """Return each setting with what the documentation says of it: Markdown without links, which lead elsewhere."""
    parts = re.split(r"^## (\w+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(name, _of_one_line(text)) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _of_one_line(text: str) -> str:
    """Return each paragraph as one line, since memory's Markdown shows a line break as one."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", _LINK.sub(r"\1", text).strip())


def _knob(name: str, effect: str) -> Knob:
    is_given = name in settings.GIVEN_SETTINGS
    source = "environment" if is_given else "file" if name == "MEMORYHUB_SECRET_KEY" else "default"
    return Knob(name, _shown(name), source, effect, name in SECRETS)


def _shown(name: str) -> str:
    if name == "DATABASE_URL":
        return database_words(connection)
    value = getattr(settings, ATTRIBUTES.get(name, name))
    if name in SECRETS:
        return "set, and not shown" if value else ""
    return ", ".join(_words(value))


def _words(value: Any) -> Iterator[str]:
    """Yield a value's parts for people."""
    if isinstance(value, bool):
        yield "on" if value else "off"
    elif isinstance(value, list | frozenset):
        yield from sorted(map(str, value))
    elif isinstance(value, float):
        yield f"{value:g}"
    else:
        yield _without_password(str(value))


def _without_password(text: str) -> str:
    """Return an address without the name and password in it; any other text as it is."""
    try:
        parts = urlsplit(text)
    except ValueError:  # the hub says elsewhere that it is no address; what is in it may be secret
        return "unreadable"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else text


def _database_bytes() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])

"""Every setting of the hub with its value, where that came from and what it does: for its operators."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import django
from django.conf import settings
from django.core.checks import CheckMessage, Tags, run_checks
from django.db import connection
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.backups.create import hub_version
from memoryhub.backups.in_use_lock import database_words

ATTRIBUTES = {"MEMORYHUB_TIME_ZONE": "TIME_ZONE", "MEMORYHUB_DEBUG": "DEBUG", "MEMORYHUB_SECRET_KEY": "SECRET_KEY"}
ADDRESSES = frozenset(
    {"MEMORYHUB_URL", "MEMORYHUB_LLM_BASE_URL", "MEMORYHUB_EMBEDDING_BASE_URL", "MEMORYHUB_PRIVATE_HOSTS"}
)
_CREDENTIALS = re.compile(r"^([^:/?#]*://)?.*@", re.DOTALL)
_EITHER = re.compile(r"^([^:/?#]*://)?.*[?#].*@.*$", re.DOTALL)
_QUERY = re.compile(r"([?#]).+", re.DOTALL)
SECRETS = frozenset(
    {
        "MEMORYHUB_TOKEN",
        "MEMORYHUB_BACKUP_KEY",
        "MEMORYHUB_LLM_API_KEY",
        "MEMORYHUB_EMBEDDING_API_KEY",
        "MEMORYHUB_SECRET_KEY",
    }
)
EFFECTS: dict[str, str | Promise] = {  # what each does, as Markdown: docs/settings.md without its links
    "MEMORYHUB_HOME": _(
        "The one folder that holds all the hub owns: database, key, uploads, locks. Default: the platform's user "
        "data folder, for example `~/.local/share/memoryhub`."
    ),
    "MEMORYHUB_URL": _(
        "The address that people open. Default: `http://127.0.0.1:8765`. With `https`, cookies are sent over TLS "
        "only, HTTP is redirected and the host is admitted."
    ),
    "MEMORYHUB_ROOTS": _(
        "Folders, separated as in `PATH`, below which a page may import. Default: your home folder, and the folder "
        "that holds the clone. The command `import_workspace` is not bound by it."
    ),
    "MEMORYHUB_QUIET_SECONDS": _(
        "A file that changed more recently than this many seconds is waited for before it is read, by imports and "
        "by syncs. Default: 1."
    ),
    "MEMORYHUB_SETUP_MINUTES": _("How long the one-time setup link holds, in minutes. Default: 30."),
    "MEMORYHUB_TOKEN": _(
        "The token by which the command `mcp_server` reads and writes (mcp.md); `--token-file` is the other way to "
        "give it one. Default: none."
    ),
    "MEMORYHUB_SIGN_IN_DAYS": _(
        "How long somebody stays signed in, in days, counted from when they signed in (people.md). Default: 14."
    ),
    "MEMORYHUB_ACCESS_DAYS": _("How long the access log is kept, in days; `0` keeps it for ever. Default: 90."),
    "MEMORYHUB_ADMIN": _(
        "`1` serves the admin site at `/admin/`, to operators of the hub only: for workspace settings, for looking "
        "at raw rows, and for changing many at once (admin.md). Default: off."
    ),
    "MEMORYHUB_BACKUP_DIR": _(
        "Where the hub keeps the backups that it makes by itself, and those that the page and the command make "
        "without another place. Default: the folder `backups` in `MEMORYHUB_HOME`."
    ),
    "MEMORYHUB_BACKUP_HOURS": _("How often the worker makes a backup, in hours; `0` is never. Default: 24."),
    "MEMORYHUB_BACKUP_KEEP": _("How many backups stay in that folder, the newest ones; `0` keeps all. Default: 7."),
    "MEMORYHUB_BACKUP_KEY": _(
        "A passphrase of 12 characters or more that encrypts backups, and opens them again. Keep a copy elsewhere: "
        "without it an encrypted backup is lost. Default: none; backups aren't encrypted, and hold no secret key."
    ),
    "MEMORYHUB_TIME_ZONE": _(
        "The zone in which agents' times without a zone are read, and in which pages show times to people whose "
        "preferences and whose browser name none. Default: `UTC`."
    ),
    "MEMORYHUB_LLM_BASE_URL": _(
        "Where the model is asked: any address that speaks OpenAI's protocol, or one of the names `openai`, "
        "`google`, `mistral`, `anthropic`, `openrouter`, `ollama`, `lmstudio`, `llamacpp`, `vllm` (the last four "
        "are their usual ports on this machine). Default: none; with a key and a model it is OpenAI's. Without a "
        "model, summaries are made by rule: counts, the first and the last request, the tools and the errors."
    ),
    "MEMORYHUB_LLM_API_KEY": _(
        "The key for that address. It is sent to no other: a workspace with an address of its own gets no key. "
        "Default: none."
    ),
    "MEMORYHUB_LLM_MODEL": _(
        "The model that folds and consolidates. A workspace may name its own in its settings. Default: none."
    ),
    "MEMORYHUB_LLM_TIMEOUT_SECONDS": _(
        "How long one reply may take, in seconds, however slowly it drips. Default: 120."
    ),
    "MEMORYHUB_LLM_PRICES": _(
        "What models cost, as `model=in/out` separated by commas, in US dollars for a million tokens, for example "
        "`gpt-4o-mini=0.15/0.60`. Runs then show what they cost. An embedding model has an input price only: "
        "`text-embedding-3-small=0.02/0`. Default: none; costs are shown as not known."
    ),
    "MEMORYHUB_EMBEDDING_PROVIDER": _(
        "Who embeds the words of the semantic graph: `openai`, `google`, `mistral`, `cohere`, `voyage`, "
        "`ollama-cloud`, `ollama`, or `none`. `anthropic`, `openrouter` and `groq` offer no embeddings. A "
        "workspace may name its own, or `none`. Words are sent to this provider; whole texts, and the words of "
        "searches, only for workspaces whose setting **Search by meaning too** is on (graph.md). Default: `none`."
    ),
    "MEMORYHUB_EMBEDDING_MODEL": _(
        "The model that embeds. Default: the provider's first one in the table of graph.md."
    ),
    "MEMORYHUB_EMBEDDING_BASE_URL": _(
        "An address of its own for that provider, speaking OpenAI's protocol. Default: the provider's."
    ),
    "MEMORYHUB_EMBEDDING_API_KEY": _(
        "The key for that address. It is sent to no other: a workspace with another provider or address gets no "
        "key. Default: none."
    ),
    "MEMORYHUB_PRIVATE_HOSTS": _(
        "Hosts inside this machine or network, as `host:port` separated by commas, that a workspace's model "
        "address or a webhook may name. The addresses in `MEMORYHUB_LLM_BASE_URL` and "
        "`MEMORYHUB_EMBEDDING_BASE_URL` need no entry here. Link-local and metadata addresses are refused whatever "
        "stands here. Default: none."
    ),
    "MEMORYHUB_SECRET_KEY": _(
        "The key that signs logins. Default: made on first start and kept in `MEMORYHUB_HOME`, readable by its "
        "owner only."
    ),
    "MEMORYHUB_DEBUG": _("`1` shows tracebacks in the browser. Only on loopback. Default: off."),
    "DATABASE_URL": _(
        "`postgres://user:password@host/name` switches to PostgreSQL. Default: SQLite in `MEMORYHUB_HOME`."
    ),
}


@dataclass(frozen=True)
class Setting:
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


def knobs() -> list[Setting]:
    """Return all settings in the order of docs/settings.md."""
    return [_setting(name, str(effect)) for name, effect in EFFECTS.items()]


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


def _setting(name: str, effect: str) -> Setting:
    is_given = name in settings.GIVEN_SETTINGS
    source = "environment" if is_given else "file" if name == "MEMORYHUB_SECRET_KEY" else "default"
    return Setting(name, _shown(name), source, effect, name in SECRETS)


def _shown(name: str) -> str:
    if name == "DATABASE_URL":
        return database_words(connection)
    value = getattr(settings, ATTRIBUTES.get(name, name))
    if name in SECRETS:
        return gettext("set, and not shown") if value else ""
    words = _words(value)
    return ", ".join(without_secrets(word) if name in ADDRESSES or "://" in word else word for word in words)


def _words(value: Any) -> Iterator[str]:
    """Yield a value's parts for people."""
    if isinstance(value, bool):
        yield gettext("on") if value else gettext("off")
    elif isinstance(value, list | frozenset):
        yield from sorted(map(str, value))
    elif isinstance(value, float):
        yield f"{value:g}"
    else:
        yield str(value)


def without_secrets(text: str) -> str:
    """Return an address with "…" for the name and password in it, and for all after its question mark or hash.

    It may be mistyped, and the password in it have any character: all before its last @ goes, and all there is
    where a question mark or hash before that leaves open which of both it is.
    """
    if _EITHER.match(text):
        return _EITHER.sub(r"\1…", text)
    return _QUERY.sub(r"\1…", _CREDENTIALS.sub(r"\1…@", text))


def _database_bytes() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])

"""All settings of the hub with value, source and effect, for its operators."""

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
from memoryhub.backups.in_use_lock import database_label
from memoryhub.lib.database.size import database_bytes
from sessions_app.services.stored_settings import HubSettings, hub_settings

ATTRIBUTES = {"MEMORYHUB_TIME_ZONE": "TIME_ZONE", "MEMORYHUB_DEBUG": "DEBUG", "MEMORYHUB_SECRET_KEY": "SECRET_KEY"}
ADDRESSES = frozenset(
    {
        "MEMORYHUB_URL",
        "MEMORYHUB_LLM_BASE_URL",
        "MEMORYHUB_EMBEDDING_BASE_URL",
        "MEMORYHUB_PRIVATE_HOSTS",
        "CACHE_URL",
    }
)
_CREDENTIALS = re.compile(r"^([^:/?#]*://)?.*@", re.DOTALL)
_AMBIGUOUS = re.compile(r"^([^:/?#]*://)?.*[?#].*@.*$", re.DOTALL)
_QUERY = re.compile(r"([?#]).+", re.DOTALL)
SECRETS = frozenset(
    {
        "MEMORYHUB_TOKEN",
        "MEMORYHUB_METRICS_TOKEN",
        "MEMORYHUB_OIDC_CLIENT_SECRET",
        "MEMORYHUB_BACKUP_KEY",
        "MEMORYHUB_LLM_API_KEY",
        "MEMORYHUB_EMBEDDING_API_KEY",
        "MEMORYHUB_SECRET_KEY",
    }
)
EFFECTS: dict[str, str | Promise] = {  # Markdown: the texts of docs/settings.md without links
    "MEMORYHUB_HOME": _(
        "The folder that holds everything the hub owns: database, secret key, uploads, locks. Default: the "
        "platform's user data folder, for example `~/.local/share/memoryhub`."
    ),
    "MEMORYHUB_FILES": _(
        "Where uploads, exports, previews of tables and backups are stored, if several machines share them: a "
        "folder, or `s3://bucket/prefix`. Default: `MEMORYHUB_HOME`."
    ),
    "MEMORYHUB_URL": _(
        "The address that people open. With `https`, cookies are only sent over TLS, HTTP is redirected to HTTPS, "
        "and the address's host name is allowed. Default: `http://127.0.0.1:8765`."
    ),
    "MEMORYHUB_ROOTS": _(
        "Folders from which pages may import, separated as in `PATH`. The command `import` may import "
        "from any folder. If a page refuses a folder, it shows operators the value that would allow it. "
        "Default: your home folder and the folder that contains the clone."
    ),
    "MEMORYHUB_QUIET_SECONDS": _(
        "How long a file must be unchanged before an import or a sync reads it, in seconds. Default: 1."
    ),
    "MEMORYHUB_SETUP_MINUTES": _("How long the one-time setup link is valid, in minutes. Default: 30."),
    "MEMORYHUB_TOKEN": _(
        "The token for the command `mcp_server` (mcp.md), unless `--token-file` is given. Default: none."
    ),
    "MEMORYHUB_SIGN_IN_DAYS": _("How long a sign-in lasts, in days (people.md). Default: 14."),
    "MEMORYHUB_REQUIRE_SECOND_FACTOR": _(
        "`1` requires everybody to set up two-factor authentication before they can use the hub. Default: off."
    ),
    "MEMORYHUB_PROXY_HEADER": _(
        "The header in which an authenticating proxy names the person, for example `Remote-User`. Default: none."
    ),
    "MEMORYHUB_PROXY_ADDRESSES": _(
        "The addresses or networks of that proxy, separated by commas. From others the header is removed. "
        "Default: none."
    ),
    "MEMORYHUB_PROXY_CREATES_PEOPLE": _(
        "`1` gives people an account, without roles, when the proxy first names them. Default: off."
    ),
    "MEMORYHUB_OIDC_ISSUER": _(
        "The address of an OpenID Connect provider for signing in. Needs the package `authlib`. Default: none."
    ),
    "MEMORYHUB_OIDC_CLIENT_ID": _("The hub's client ID at the provider. Default: none."),
    "MEMORYHUB_OIDC_CLIENT_SECRET": _("The hub's client secret at the provider. Default: none."),
    "MEMORYHUB_OIDC_DOMAINS": _(
        "Domains, separated by commas. People with a verified e-mail address of one of them get an account at their "
        "first sign-in, without roles. Default: none; they need an invitation."
    ),
    "MEMORYHUB_ACCESS_DAYS": _("How long the access log is kept, in days; `0` keeps it forever. Default: 90."),
    "MEMORYHUB_RECORD_DAYS": _(
        "How long records of finished work are kept, in days (retention.md); `0` keeps them forever. Default: 0."
    ),
    "MEMORYHUB_ADMIN": _(
        "`0` turns the administration at `/admin/` off, which only hub operators can open. Default: on."
    ),
    "MEMORYHUB_LOG_FORMAT": _(
        "The format of the log: `line`, or `json` for one JSON object on each line. Default: `line`."
    ),
    "MEMORYHUB_METRICS": _(
        "`1` serves figures for Prometheus at `/metrics`. Needs the package `prometheus-client`. Default: off."
    ),
    "MEMORYHUB_METRICS_TOKEN": _(
        "The bearer token that `/metrics` requires. Default: none; only programs on this machine may read it."
    ),
    "MEMORYHUB_TRACES": _(
        "`1` sends traces to the OpenTelemetry collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. Needs the package "
        "`opentelemetry-exporter-otlp-proto-http`. Default: off."
    ),
    "MEMORYHUB_BACKUP_DIR": _(
        "The folder for automatic backups, and for others that name no folder. Default: `backups` in "
        "`MEMORYHUB_FILES`."
    ),
    "MEMORYHUB_BACKUP_HOURS": _(
        "How often the worker makes a backup, in hours; `0` turns automatic backups off. Default: 24."
    ),
    "MEMORYHUB_BACKUP_KEEP": _("How many of the newest backups in that folder are kept; `0` keeps all. Default: 7."),
    "MEMORYHUB_BACKUP_KEY": _(
        "A passphrase of at least 12 characters that encrypts and decrypts backups. Keep a copy elsewhere: "
        "without it an encrypted backup is lost. Default: none; backups aren't encrypted and don't contain the "
        "secret key."
    ),
    "MEMORYHUB_TIME_ZONE": _(
        "The time zone of agents' times that have none, and of pages for people whose preferences and browser "
        "name none. Default: `UTC`."
    ),
    "MEMORYHUB_LLM_BASE_URL": _(
        "The address of the model: any OpenAI-compatible API, or one of the names `openai`, `google`, `mistral`, "
        "`anthropic`, `openrouter`, `ollama`, `lmstudio`, `llamacpp`, `vllm` (the last four mean their usual "
        "ports on this machine). Without a model, summaries are built by rule: counts, the first and the last "
        "request, the tools and the errors. Default: none, or OpenAI if a key and a model are set."
    ),
    "MEMORYHUB_LLM_API_KEY": _(
        "The API key for that address. It is never sent to another one: a workspace with its own address gets no "
        "key. Default: none."
    ),
    "MEMORYHUB_LLM_MODEL": _(
        "The model for compression and consolidation. A workspace can use its own. Default: none."
    ),
    "MEMORYHUB_LLM_TIMEOUT_SECONDS": _("The time limit for a complete reply, in seconds. Default: 120."),
    "MEMORYHUB_LLM_PRICES": _(
        "Prices of models as `model=in/out`, separated by commas, in US dollars for a million tokens, for example "
        "`gpt-4o-mini=0.15/0.60`. Runs then show their cost. Embedding models have only an input price: "
        "`text-embedding-3-small=0.02/0`. Default: none; costs are shown as not known."
    ),
    "MEMORYHUB_EMBEDDING_PROVIDER": _(
        "The provider of embeddings for the semantic graph: `openai`, `google`, `mistral`, `cohere`, `voyage`, "
        "`ollama-cloud`, `ollama`, or `none`. `anthropic`, `openrouter` and `groq` offer no embeddings. A "
        "workspace can use its own, or `none`. The provider receives single words. It receives whole texts and "
        "search queries only for workspaces with **Search by meaning too** turned on. Default: `none`."
    ),
    "MEMORYHUB_EMBEDDING_MODEL": _("The embedding model. Default: the provider's first one in graph.md."),
    "MEMORYHUB_EMBEDDING_BASE_URL": _(
        "Another OpenAI-compatible address for that provider. Default: the provider's own."
    ),
    "MEMORYHUB_EMBEDDING_API_KEY": _(
        "The API key for that address. It is never sent to another one: a workspace with another provider or "
        "address gets no key. Default: none."
    ),
    "MEMORYHUB_PRIVATE_HOSTS": _(
        "Hosts on this machine or its network that a workspace's model address or a webhook may use, as "
        "`host:port` separated by commas. The addresses in `MEMORYHUB_LLM_BASE_URL` and "
        "`MEMORYHUB_EMBEDDING_BASE_URL` are always allowed; link-local and metadata addresses never. Default: "
        "none."
    ),
    "MEMORYHUB_SECRET_KEY": _(
        "The key that signs logins, tokens and webhooks. Default: created at the first start and stored in "
        "`MEMORYHUB_HOME`, readable only by its owner. A hub with another key than the database's doesn't start."
    ),
    "MEMORYHUB_DEBUG": _("`1` shows tracebacks in the browser. Only works on loopback. Default: off."),
    "DATABASE_URL": _(
        "The address of a PostgreSQL database: `postgres://user:password@host/name`. Default: SQLite in "
        "`MEMORYHUB_HOME`."
    ),
    "DATABASE_DIRECT_URL": _(
        "PostgreSQL's own address, if `DATABASE_URL` is the address of a pooler in transaction mode, such as "
        "pgbouncer. Used for migrations, backups and locks. The hub then sends no startup options and uses no "
        "server-side cursors. Default: none."
    ),
    "CACHE_URL": _(
        "A Redis in which all hubs count agents' calls, such as `redis://:password@10.0.0.7:6379/0`. Needs the "
        "package `redis`. While it can't be reached, each web process counts for itself. Only counters are in it. "
        "Default: none; on PostgreSQL, web processes reserve calls in the database, some at a time."
    ),
}


@dataclass(frozen=True)
class Setting:
    """One setting. ``value`` is for display, "" if not set; for a secret it only says whether one is set.

    ``source``: "environment", "page" (saved on the settings page), "file" (created by the hub in its folder) or
    "default".
    """

    name: str
    value: str
    source: str
    effect: str
    is_secret: bool


@dataclass(frozen=True)
class Hub:
    """Versions, database and folder of this hub."""

    version: str
    python: str
    django: str
    database: str
    database_bytes: int
    home: str


def list_settings() -> list[Setting]:
    """Return all settings in the order of docs/settings.md."""
    current = hub_settings()
    return [_setting(name, str(effect), current) for name, effect in EFFECTS.items()]


def hub() -> Hub:
    """Return versions, database and folder. One query."""
    return Hub(
        version=hub_version(),
        python=platform.python_version(),
        django=django.get_version(),
        database=database_label(connection),
        database_bytes=database_bytes(),
        home=str(settings.MEMORYHUB_HOME),
    )


def deployment_warnings() -> list[CheckMessage]:
    """Return the warnings of Django's deployment checks about the settings."""
    messages = run_checks(tags=[Tags.security], include_deployment_checks=True)
    return [message for message in messages if not message.is_silenced()]


def _setting(name: str, effect: str, current: HubSettings) -> Setting:
    source = "file" if name == "MEMORYHUB_SECRET_KEY" else "default"
    if name in settings.GIVEN_SETTINGS:
        source = "environment"
    elif name in current.stored:
        source = "page"
    return Setting(name, _shown(name, current), source, effect, name in SECRETS)


def _shown(name: str, current: HubSettings) -> str:
    if name == "DATABASE_URL":
        return database_label(connection)
    if name == "DATABASE_DIRECT_URL":
        direct = settings.DIRECT_DATABASE
        return f"{direct['HOST']}:{direct['PORT'] or 5432}/{direct['NAME']}" if direct else ""
    value = current.values[name] if name in current.values else getattr(settings, ATTRIBUTES.get(name, name))
    if name in SECRETS:
        return gettext("set (hidden)") if value else ""
    return ", ".join(
        without_secrets(word) if name in ADDRESSES or "://" in word else word for word in _value_parts(value)
    )


def _value_parts(value: Any) -> Iterator[str]:
    """Yield a value's parts for display."""
    if isinstance(value, bool):
        yield gettext("on") if value else gettext("off")
    elif isinstance(value, list | frozenset):
        yield from sorted(map(str, value))
    elif isinstance(value, float):
        yield f"{value:g}"
    else:
        yield str(value)


def without_secrets(text: str) -> str:
    """Return an address with "…" in place of credentials, query and fragment.

    The address may be mistyped, and its password may contain any character: everything before the last @ is removed,
    and everything if a question mark or hash precedes that @.
    """
    if _AMBIGUOUS.match(text):
        return _AMBIGUOUS.sub(r"\1…", text)
    return _QUERY.sub(r"\1…", _CREDENTIALS.sub(r"\1…@", text))

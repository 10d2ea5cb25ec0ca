"""All settings, with units and defaults. Only this module reads the environment."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
import re
import secrets
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
import django_stubs_ext
import platformdirs
from django.core.exceptions import ImproperlyConfigured

from memoryhub.lib.http.known_headers import has_other_meaning

django_stubs_ext.monkeypatch()  # lets classes such as ModelAdmin take their model in brackets
BASE_DIR = Path(__file__).resolve().parent.parent


def _flag(name: str, *, default: bool) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() in {"1", "true", "yes", "on"}


def _require(reason: str, package: str, *modules: str) -> None:
    if not all(map(importlib.util.find_spec, modules)):
        raise ImproperlyConfigured(f'{reason}: run `.venv/bin/uv pip install "{package}"`.')


def _networks(name: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    try:
        networks = [ipaddress.ip_network(part) for part in os.environ.get(name, "").replace(",", " ").split()]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error
    if any(network.prefixlen == 0 for network in networks):
        raise ImproperlyConfigured(f"{name} must not contain all addresses.")
    return networks


def _secret_key(home: Path) -> str:
    """Return the hub's key. It is created on first use, and readable only by its owner.

    The key is written to a draft and linked to its name, so concurrent first starts agree on one key.
    """
    file = home / "secret_key"
    if not file.exists():
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, draft = tempfile.mkstemp(dir=home, prefix="secret_key.")
            with os.fdopen(handle, "w") as out:
                out.write(secrets.token_urlsafe(64))
            with contextlib.suppress(FileExistsError):
                os.link(draft, file)
            Path(draft).unlink()
        except OSError as error:
            raise ImproperlyConfigured(
                f"MemoryHub can't write into {home}: {error.strerror}. Set MEMORYHUB_HOME to another folder."
            ) from error
    return file.read_text().strip()


# The settings that are set in the environment, for the settings page.
GIVEN_SETTINGS = frozenset(name for name, value in os.environ.items() if value)
# MEMORYHUB_HOME: the folder with everything the hub owns. Default: the platform's user data folder.
MEMORYHUB_HOME = Path(os.environ.get("MEMORYHUB_HOME") or platformdirs.user_data_dir("memoryhub")).expanduser()
# MEMORYHUB_FILES: where uploads, exports and backups are, if several machines share them: a folder, or
# s3://bucket/prefix with the package django-storages[s3]. Default: MEMORYHUB_HOME.
MEMORYHUB_FILES = os.environ.get("MEMORYHUB_FILES", "").rstrip("/")
_is_in_bucket = MEMORYHUB_FILES.startswith("s3://")
if MEMORYHUB_FILES and not _is_in_bucket:
    MEMORYHUB_FILES = str(Path(MEMORYHUB_FILES).expanduser())
# MEMORYHUB_URL: the address that people open; https makes cookies and redirects strict. Default: loopback.
MEMORYHUB_URL = os.environ.get("MEMORYHUB_URL", "http://127.0.0.1:8765").rstrip("/")
# MEMORYHUB_ROOTS: folders from which pages may import, separated like PATH. Default: home and the clone's parent.
MEMORYHUB_ROOTS = list(
    dict.fromkeys(
        Path(part).expanduser()
        for part in os.environ.get("MEMORYHUB_ROOTS", f"~{os.pathsep}{BASE_DIR.parent}").split(os.pathsep)
        if part and Path(part) != Path(part).parent
    )
)
# The homes of agents that keep several projects: where the agents' own variables say, or else the usual places.
AGENT_HOMES = (
    os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude",
    os.environ.get("CODEX_HOME") or "~/.codex",
    "~/.gemini",
    "~/.openclaw",
    os.environ.get("HERMES_HOME") or "~/.hermes",
    f"{os.environ.get('XDG_DATA_HOME') or '~/.local/share'}/opencode",
)
# MEMORYHUB_QUIET_SECONDS: how long a file must be unchanged before it is read. Default: 1 second.
MEMORYHUB_QUIET_SECONDS = float(os.environ.get("MEMORYHUB_QUIET_SECONDS", "1"))
# MEMORYHUB_SETUP_MINUTES: how long the setup link is valid. Default: 30 minutes.
MEMORYHUB_SETUP_MINUTES = int(os.environ.get("MEMORYHUB_SETUP_MINUTES", "30"))
# MEMORYHUB_SIGN_IN_DAYS: how long a sign-in lasts. Default: 14 days.
MEMORYHUB_SIGN_IN_DAYS = int(os.environ.get("MEMORYHUB_SIGN_IN_DAYS", "14"))
# MEMORYHUB_REQUIRE_SECOND_FACTOR: whether everybody has to set up two-factor authentication. Default: off.
MEMORYHUB_REQUIRE_SECOND_FACTOR = _flag("MEMORYHUB_REQUIRE_SECOND_FACTOR", default=False)
# MEMORYHUB_PROXY_HEADER: the header in which an authenticating proxy names the person. Default: none.
MEMORYHUB_PROXY_HEADER = os.environ.get("MEMORYHUB_PROXY_HEADER", "").lower()
# MEMORYHUB_PROXY_ADDRESSES: addresses or networks of that proxy, separated by commas. Default: none.
MEMORYHUB_PROXY_ADDRESSES = _networks("MEMORYHUB_PROXY_ADDRESSES")
# MEMORYHUB_PROXY_CREATES_PEOPLE: whether the proxy's unknown people get accounts. Default: off.
MEMORYHUB_PROXY_CREATES_PEOPLE = _flag("MEMORYHUB_PROXY_CREATES_PEOPLE", default=False)
if MEMORYHUB_PROXY_HEADER and not re.fullmatch("[a-z][a-z0-9-]*", MEMORYHUB_PROXY_HEADER):
    raise ImproperlyConfigured("MEMORYHUB_PROXY_HEADER is the name of a header, such as Remote-User.")
if has_other_meaning(MEMORYHUB_PROXY_HEADER):
    raise ImproperlyConfigured(f"MEMORYHUB_PROXY_HEADER can't be {MEMORYHUB_PROXY_HEADER}: it means something else.")
if MEMORYHUB_PROXY_HEADER and not MEMORYHUB_PROXY_ADDRESSES:
    raise ImproperlyConfigured("MEMORYHUB_PROXY_HEADER needs MEMORYHUB_PROXY_ADDRESSES, the proxy's addresses.")
# MEMORYHUB_OIDC_ISSUER: the address of an OpenID Connect provider for signing in. Default: none.
MEMORYHUB_OIDC_ISSUER = os.environ.get("MEMORYHUB_OIDC_ISSUER", "").rstrip("/")
# MEMORYHUB_OIDC_CLIENT_ID: the hub's name at the provider. Default: none.
MEMORYHUB_OIDC_CLIENT_ID = os.environ.get("MEMORYHUB_OIDC_CLIENT_ID", "")
# MEMORYHUB_OIDC_CLIENT_SECRET: the hub's secret at the provider. Default: none.
MEMORYHUB_OIDC_CLIENT_SECRET = os.environ.get("MEMORYHUB_OIDC_CLIENT_SECRET", "")
# MEMORYHUB_OIDC_DOMAINS: domains, separated by commas, of verified addresses whose people get an account without an
# invitation. Default: none.
MEMORYHUB_OIDC_DOMAINS = os.environ.get("MEMORYHUB_OIDC_DOMAINS", "").lower().replace(",", " ").split()
_issuer = urlsplit(MEMORYHUB_OIDC_ISSUER)
if MEMORYHUB_OIDC_ISSUER:
    if _issuer.scheme != "https" and _issuer.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ImproperlyConfigured("MEMORYHUB_OIDC_ISSUER needs an https:// address.")
    if not MEMORYHUB_OIDC_CLIENT_ID or not MEMORYHUB_OIDC_CLIENT_SECRET:
        raise ImproperlyConfigured("MEMORYHUB_OIDC_ISSUER needs MEMORYHUB_OIDC_CLIENT_ID and …_CLIENT_SECRET.")
    _require("MEMORYHUB_OIDC_ISSUER is set", "authlib>=1.9", "authlib")
# MEMORYHUB_ACCESS_DAYS: how long the access log is kept; 0 keeps it forever. Default: 90 days.
MEMORYHUB_ACCESS_DAYS = int(os.environ.get("MEMORYHUB_ACCESS_DAYS", "90"))
# MEMORYHUB_RECORD_DAYS: how long records of finished work are kept; 0 keeps them forever. Default: 0 days.
MEMORYHUB_RECORD_DAYS = int(os.environ.get("MEMORYHUB_RECORD_DAYS", "0"))
# MEMORYHUB_TOKEN: the token of the command mcp_server. Default: none.
MEMORYHUB_TOKEN = os.environ.get("MEMORYHUB_TOKEN", "")
# MEMORYHUB_ADMIN: whether the administration is served, to operators only. Default: on.
MEMORYHUB_ADMIN = _flag("MEMORYHUB_ADMIN", default=True)
# MEMORYHUB_LOG_FORMAT: "line", or "json" for one JSON object on each line. Default: line.
MEMORYHUB_LOG_FORMAT = os.environ.get("MEMORYHUB_LOG_FORMAT", "line").lower()
if MEMORYHUB_LOG_FORMAT not in ("line", "json"):
    raise ImproperlyConfigured("MEMORYHUB_LOG_FORMAT is line or json.")
# MEMORYHUB_METRICS: whether /metrics is served for Prometheus; needs the package prometheus-client. Default: off.
MEMORYHUB_METRICS = _flag("MEMORYHUB_METRICS", default=False)
# MEMORYHUB_METRICS_TOKEN: the bearer token of /metrics. Default: none; only this machine may read it.
MEMORYHUB_METRICS_TOKEN = os.environ.get("MEMORYHUB_METRICS_TOKEN", "")
METRICS_FOLDER = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")  # prometheus-client's variable
if MEMORYHUB_METRICS:
    _require("MEMORYHUB_METRICS is on", "prometheus-client>=0.22", "prometheus_client")
# MEMORYHUB_TRACES: whether traces are sent to the collector that OpenTelemetry's variables name. Default: off.
MEMORYHUB_TRACES = _flag("MEMORYHUB_TRACES", default=False)
if MEMORYHUB_TRACES:
    _package = "opentelemetry-exporter-otlp-proto-http>=1.45"
    _require("MEMORYHUB_TRACES is on", _package, "opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    for _name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"):
        if os.environ.get(_name, "http/protobuf") not in ("", "http/protobuf"):
            raise ImproperlyConfigured(f"{_name} is {os.environ[_name]}, but MemoryHub only sends http/protobuf.")

# MEMORYHUB_BACKUP_DIR: the folder of scheduled backups. Default: backups in MEMORYHUB_FILES.
_files_folder = MEMORYHUB_HOME if _is_in_bucket or not MEMORYHUB_FILES else Path(MEMORYHUB_FILES)
MEMORYHUB_BACKUP_DIR = Path(os.environ.get("MEMORYHUB_BACKUP_DIR") or _files_folder / "backups").expanduser()
# MEMORYHUB_BACKUP_HOURS: hours between scheduled backups; 0 turns them off. Default: 24.
MEMORYHUB_BACKUP_HOURS = float(os.environ.get("MEMORYHUB_BACKUP_HOURS", "24"))
# MEMORYHUB_BACKUP_KEEP: how many backups are kept in that folder; 0 keeps all. Default: 7.
MEMORYHUB_BACKUP_KEEP = int(os.environ.get("MEMORYHUB_BACKUP_KEEP", "7"))
# MEMORYHUB_BACKUP_KEY: a passphrase of at least 12 characters that encrypts backups. Default: none.
MEMORYHUB_BACKUP_KEY = os.environ.get("MEMORYHUB_BACKUP_KEY", "")

# MEMORYHUB_LLM_BASE_URL: the model's address, or a preset's name. Default: OpenAI's if a key is set.
MEMORYHUB_LLM_BASE_URL = os.environ.get("MEMORYHUB_LLM_BASE_URL", "")
# MEMORYHUB_LLM_API_KEY: sent to that address only. Default: none.
MEMORYHUB_LLM_API_KEY = os.environ.get("MEMORYHUB_LLM_API_KEY", "")
# MEMORYHUB_LLM_MODEL: the model of workspaces without their own. Default: none.
MEMORYHUB_LLM_MODEL = os.environ.get("MEMORYHUB_LLM_MODEL", "")
# MEMORYHUB_LLM_TIMEOUT_SECONDS: time limit of a reply. Default: 120 seconds.
MEMORYHUB_LLM_TIMEOUT_SECONDS = float(os.environ.get("MEMORYHUB_LLM_TIMEOUT_SECONDS", "120"))
# MEMORYHUB_LLM_PRICES: "model=in/out", separated by commas, in US dollars per million tokens. Default: none.
MEMORYHUB_LLM_PRICES = os.environ.get("MEMORYHUB_LLM_PRICES", "")
# MEMORYHUB_EMBEDDING_PROVIDER: the provider of embeddings. Default: none.
MEMORYHUB_EMBEDDING_PROVIDER = os.environ.get("MEMORYHUB_EMBEDDING_PROVIDER", "none").lower()
# MEMORYHUB_EMBEDDING_MODEL: the embedding model. Default: the provider's first one.
MEMORYHUB_EMBEDDING_MODEL = os.environ.get("MEMORYHUB_EMBEDDING_MODEL", "")
# MEMORYHUB_EMBEDDING_BASE_URL: the provider's address. Default: its own.
MEMORYHUB_EMBEDDING_BASE_URL = os.environ.get("MEMORYHUB_EMBEDDING_BASE_URL", "")
# MEMORYHUB_EMBEDDING_API_KEY: sent to that address only. Default: none.
MEMORYHUB_EMBEDDING_API_KEY = os.environ.get("MEMORYHUB_EMBEDDING_API_KEY", "")
# MEMORYHUB_PRIVATE_HOSTS: "host:port", separated by commas, of private hosts that workspaces may use for models and
# webhooks. Default: none.
MEMORYHUB_PRIVATE_HOSTS = frozenset(os.environ.get("MEMORYHUB_PRIVATE_HOSTS", "").replace(",", " ").split())

SECRET_KEY = os.environ.get("MEMORYHUB_SECRET_KEY") or _secret_key(MEMORYHUB_HOME)
DEBUG = _flag("MEMORYHUB_DEBUG", default=False)

_address = urlsplit(MEMORYHUB_URL)
_is_https = _address.scheme == "https"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *([_address.hostname] if _address.hostname else [])]
CSRF_TRUSTED_ORIGINS = [MEMORYHUB_URL] if _is_https else []

INSTALLED_APPS = [
    "memoryhub.apps.MemoryHubConfig",
    "sessions_app",
    "knowledge_app",
    "memoryhub.apps.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "simple_history",
    "template_partials",
]

MIDDLEWARE = [
    "memoryhub.middleware.identify_requests",
    "memoryhub.monitoring.middleware.count_requests",
    "memoryhub.monitoring.middleware.trace_requests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memoryhub.middleware.compress_pages",
    "memoryhub.middleware.content_security_policy",
    "memoryhub.middleware.show_control_characters",
    "memoryhub.middleware.clean_parameters",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memoryhub.accounts.proxy.SignInByProxy",
    "memoryhub.accounts.locale.follow_the_reader",
    "memoryhub.accounts.middleware.follow_sign_ins",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "memoryhub.accounts.middleware.require_second_factor",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "memoryhub.middleware.render_expected_errors",
]

ROOT_URLCONF = "memoryhub.urls"
WSGI_APPLICATION = "memoryhub.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memoryhub.dashboard.navigation.navigation",
            ],
            "builtins": [
                "memoryhub.templatetags.memoryhub",
                "template_partials.templatetags.partials",
                "django.templatetags.i18n",
            ],
        },
    },
]

# DATABASE_URL: PostgreSQL, or another SQLite file. Default: memoryhub.sqlite3 in MEMORYHUB_HOME.
GIVEN_DATABASE_URL = os.environ.get("DATABASE_URL", "")
DATABASES = {
    "default": dj_database_url.parse(
        GIVEN_DATABASE_URL or f"sqlite:///{MEMORYHUB_HOME / 'memoryhub.sqlite3'}",
        conn_max_age=60,
        conn_health_checks=True,
    )
}


_database = DATABASES["default"]
if _database["ENGINE"].endswith("sqlite3"):  # durable; writers wait for each other
    _own_options: dict[str, object] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; "
            "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-64000; PRAGMA mmap_size=0"
        ),
    }
else:
    _limits = "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=30000"
    _own_options = {"options": _limits, "prepare_threshold": 3}  # see lib.database.fixed_sql.planned_cursor
# DATABASE_DIRECT_URL: PostgreSQL's own address, if DATABASE_URL is a pooler's in transaction mode. Default: none.
DIRECT_DATABASE: dict[str, object] = {}
if _direct_url := os.environ.get("DATABASE_DIRECT_URL"):
    _direct = dj_database_url.parse(_direct_url)
    if {_database["ENGINE"], _direct["ENGINE"]} != {"django.db.backends.postgresql"}:
        raise ImproperlyConfigured("DATABASE_DIRECT_URL needs the address of PostgreSQL, here and in DATABASE_URL.")
    DIRECT_DATABASE = {name: _direct[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    DIRECT_DATABASE["OPTIONS"] = _own_options | _direct.get("OPTIONS", {})
    _own_options = {}  # a pooler refuses them
    _database["DISABLE_SERVER_SIDE_CURSORS"] = True
_database["OPTIONS"] = _own_options | _database.get("OPTIONS", {})
SIMPLE_HISTORY_HISTORY_CHANGE_REASON_USE_TEXT_FIELD = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES: dict[str, dict[str, object]] = {  # rate limits, and markers of recent writes
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 50_000}}
}
CACHES["calls"] = CACHES["default"]
# CACHE_URL: redis://host:port/0, where all hubs count agents' calls; needs the package redis. Default: none.
CACHE_URL = os.environ.get("CACHE_URL", "")
if CACHE_URL:
    _require("CACHE_URL is set", "redis>=5", "redis")
    CACHES["calls"] = {
        "BACKEND": "memoryhub.lib.redis_counters.RedisCounters",
        "LOCATION": CACHE_URL,
        "KEY_PREFIX": "memoryhub",
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},  # in seconds
    }
# Whether the web processes count agents' calls together, in the database. SQLite has one web process.
SHARED_CALL_LIMITS = _database["ENGINE"].endswith("postgresql") and not CACHE_URL

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"  # noqa: S105  its name
PROXY_BACKEND = "memoryhub.accounts.proxy.ProxyBackend"
AUTHENTICATION_BACKENDS = [PASSWORD_BACKEND, *([PROXY_BACKEND] if MEMORYHUB_PROXY_HEADER else [])]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]  # of the pages
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["memoryhub.formats"]
TIME_ZONE = os.environ.get("MEMORYHUB_TIME_ZONE", "UTC")  # the default time zone of pages
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = MEMORYHUB_HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
_FOLDER = "memoryhub.lib.files.private_files.PrivateFiles"
STORAGES: dict[str, dict[str, object]] = {
    "default": {"BACKEND": _FOLDER, "OPTIONS": {"folder_settings": ["MEMORYHUB_FILES", "MEMORYHUB_HOME"]}},
    "backups": {"BACKEND": _FOLDER, "OPTIONS": {"folder_settings": ["MEMORYHUB_BACKUP_DIR"]}},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if _is_in_bucket:
    _require("MEMORYHUB_FILES names a bucket", "django-storages[s3]", "storages")
    # boto3's variables AWS_… name the endpoint, the region and the credentials
    _bucket, _, _prefix = MEMORYHUB_FILES.removeprefix("s3://").partition("/")
    _options = {"bucket_name": _bucket, "location": _prefix, "default_acl": None, "file_overwrite": True}
    STORAGES["default"] = {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": _options}
    if "MEMORYHUB_BACKUP_DIR" not in GIVEN_SETTINGS:
        _in_backups = _options | {"location": f"{_prefix}/backups".lstrip("/")}
        STORAGES["backups"] = {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": _in_backups}
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20

SESSION_COOKIE_AGE = MEMORYHUB_SIGN_IN_DAYS * 24 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _is_https
SECURE_REDIRECT_EXEMPT = ["^metrics$"]  # Prometheus reads it on this machine, without TLS
SECURE_HSTS_SECONDS = 31_536_000 if _is_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _is_https
if _is_https:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
else:  # loopback needs no TLS; for other hosts, our own check requires it
    SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "memoryhub.log_redaction.Lines",
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s",
        },
        "json": {"()": "memoryhub.log_redaction.JsonLines"},
    },
    "filters": {
        "refusals": {"()": "memoryhub.log_redaction.shorten_refusals"},
        "ids": {"()": "memoryhub.log_redaction.add_request_id"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": MEMORYHUB_LOG_FORMAT,
            "filters": ["refusals", "ids"],
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
}

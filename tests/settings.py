"""Settings for tests: a fast password hasher and a temporary home."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_memory = "/dev/shm"  # noqa: S108  in memory, which is faster
_place = _memory if os.access(_memory, os.W_OK) else None
if "PYTEST_XDIST_WORKER" in os.environ:  # a worker process has its home beside its parent's
    _shared = str(Path(os.environ["MEMORYHUB_HOME"]).parent)
else:
    _shared = tempfile.mkdtemp(prefix="memoryhub-tests-", dir=_place)
    atexit.register(shutil.rmtree, _shared, ignore_errors=True)
    if _place and shutil.disk_usage(_memory).free > 2**30:  # the temporary folders of tests: no disk to wait for
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _memory)
os.environ["MEMORYHUB_HOME"] = tempfile.mkdtemp(prefix="home-", dir=_shared)
os.environ["MEMORYHUB_QUIET_SECONDS"] = "0"
for _name in ("DATABASE_URL", "DATABASE_DIRECT_URL", "CACHE_URL"):
    os.environ.pop(_name, None)
for _name in [name for name in os.environ if name.startswith("MEMORYHUB_") and "REQUIRE" not in name]:
    if _name not in ("MEMORYHUB_HOME", "MEMORYHUB_QUIET_SECONDS"):
        del os.environ[_name]
if os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]

from memoryhub.settings import *  # noqa: E402

SHARED_BY_PROCESSES = MEMORYHUB_HOME.parent  # noqa: F405

STATIC_ROOT.mkdir()  # noqa: F405  where whitenoise looks
MEMORYHUB_BACKUP_HOURS = 0
SHARED_CALL_LIMITS = False  # the same queries on both databases
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES |= {  # noqa: F405
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405  a file, with the same locking as in a hub
    DATABASES["default"]["TEST"] = {"NAME": f"{SHARED_BY_PROCESSES}/tests.sqlite3"}  # noqa: F405
    # Most of SQLite's time is for preparing statements, of which tests have more kinds than a hub.
    DATABASES["default"]["OPTIONS"]["cached_statements"] = 1_000  # noqa: F405
else:
    # Most tests are one transaction, in which a page may be built for as long as a busy machine takes.
    own = " -c synchronous_commit=off -c idle_in_transaction_session_timeout=0"
    DATABASES["default"]["OPTIONS"]["options"] += own  # noqa: F405
    DATABASES["default"]["OPTIONS"]["prepare_threshold"] = None  # noqa: F405  psycopg forgets the SQL, which tests read

"""The hub behind the real pgbouncer in transaction mode, with one connection to PostgreSQL that all clients share."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from django.conf import settings as project_settings
from django.db import connection

from memoryhub.backups.restore import restore_backup
from memoryhub.lib.errors import Refused
from tests.hub import NOW

psycopg = pytest.importorskip("psycopg")
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

pytestmark = pytest.mark.django_db(transaction=True)
CONFIGURATION = """
[databases]
hub = host={HOST} port={PORT} user={USER} password={PASSWORD} dbname={NAME}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
"""


@pytest.fixture
def pooler(tmp_path):
    """Return the address of a running pgbouncer."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    values = connection.settings_dict | {"PORT": connection.settings_dict["PORT"] or 5432, "own_port": port}
    file = tmp_path / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(**values))
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    with subprocess.Popen([str(PGBOUNCER), "--quiet", *user, str(file)]) as process:
        address = f"postgres://memoryhub@127.0.0.1:{port}/hub"
        for _ in range(100):
            with suppress(psycopg.OperationalError), psycopg.connect(address):
                break
            time.sleep(0.05)
        yield address
        process.terminate()


def manage(home, pooler, *arguments):
    values = connection.settings_dict
    direct = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**values)
    own = {"MEMORYHUB_HOME": str(home), "DATABASE_URL": pooler, "DATABASE_DIRECT_URL": direct}
    environment = {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
    command = [sys.executable, str(project_settings.BASE_DIR / "manage.py"), *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer isn't installed")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="pgbouncer is for PostgreSQL")
def test_a_hub_behind_pgbouncer_checks_and_backs_up_its_memory(pooler, tmp_path, workspace):
    assert manage(tmp_path, pooler, "check_memory")["broken"] == []
    assert manage(tmp_path, pooler, "backup")["rows"] > 0

    with psycopg.connect(pooler) as shared:
        assert shared.execute("SHOW search_path").fetchone() == ('"$user", public',)
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert shared.execute(locks).fetchone() == (0,)


def test_a_backup_is_not_restored_through_a_pooler(settings, tmp_path):
    settings.DIRECT_DATABASE = {"HOST": "127.0.0.1"}

    with pytest.raises(Refused, match="DATABASE_DIRECT_URL"):
        restore_backup(tmp_path / "backup", database=connection, replace=True, now=NOW)

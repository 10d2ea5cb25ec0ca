import pytest
from django.conf import settings as test_settings
from django.db import connection
from django.test import override_settings

from memoryhub.backups import encryption
from memoryhub.backups.create import create_backup
from tests.backups.databases import KEY, ON_POSTGRES, Hub
from tests.hub import NOW


@pytest.fixture
def home(settings, tmp_path, monkeypatch):
    """Return a hub's home with a secret key. Makes key derivation fast."""
    monkeypatch.setitem(encryption.SCRYPT, "n", 16)
    settings.MEMORYHUB_HOME = home = tmp_path / "home"
    settings.MEMORYHUB_BACKUP_DIR = home / "backups"
    home.mkdir()
    (home / "secret_key").write_text(test_settings.SECRET_KEY)
    return home


@pytest.fixture(scope="module")
def source(django_db_setup, django_db_blocker, tmp_path_factory):
    """Return an encrypted backup of a migrated, empty database."""
    home = tmp_path_factory.mktemp("first-hub")
    (home / "secret_key").write_text(test_settings.SECRET_KEY)
    with (
        django_db_blocker.unblock(),
        override_settings(MEMORYHUB_HOME=home, MEMORYHUB_BACKUP_KEY=KEY),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setitem(encryption.SCRYPT, "n", 16)
        made = create_backup(home, database=connection, clock=lambda: NOW)
        connection.close()
    return made


@pytest.fixture
def elsewhere(tmp_path, django_db_blocker):
    """Return a connection to another, empty database of the same kind."""
    other = connection.copy()
    if not ON_POSTGRES:
        other.settings_dict["NAME"] = str(tmp_path / "elsewhere.sqlite3")
        yield other
        other.close()
        return
    other.settings_dict["NAME"] = name = f"{connection.settings_dict['NAME']}_elsewhere"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield other
    other.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}"')


@pytest.fixture
def hub(elsewhere, home, monkeypatch):
    monkeypatch.setattr("memoryhub.backups.restore.STAMP", "%Y%m%dT%H%M%S%fZ")  # two restores in a second
    return Hub(elsewhere, home)

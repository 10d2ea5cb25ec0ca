"""Which backups can be restored, and which secrets they contain."""

import shutil
from dataclasses import replace

import pytest

from memoryhub.backups import create, postgres
from memoryhub.backups import restore as restoring
from memoryhub.backups.archive import content_of, unpack_backup, write_backup_file
from memoryhub.backups.restore import is_used
from memoryhub.lib.errors import MemoryHubError
from tests.backups.databases import KEY, ON_POSTGRES, back_up, restore, signed
from tests.hub import raises_code

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]


def changed(source, tmp_path, change):
    """Return the backup with a changed manifest."""
    work = tmp_path / "work"
    work.mkdir()
    manifest = replace(unpack_backup(source.file, KEY, work), **change)
    file = tmp_path / "changed.sealed"
    with file.open("wb") as out:
        write_backup_file(out, signed(manifest), {name: work / name for name in manifest.members}, KEY)
    return replace(source, file=file)


def test_a_backup_of_a_newer_hub_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    migrations = [*source.manifest.migrations, "memoryhub.9999_later"]

    with raises_code("restore_refused", match=r"newer MemoryHub .* Upgrade"):
        restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere)
    assert not is_used(elsewhere)


@pytest.fixture
def no_replacing(monkeypatch):
    """Skip replacing the database, which is slow."""
    for name in ("_replace_file", "_replace_schema"):
        monkeypatch.setattr(restoring, name, lambda *_args: "")


def test_restoring_an_older_backup_reports_pending_migrations(source, no_replacing, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    lacking = "sessions.0001_initial"
    migrations = [one for one in source.manifest.migrations if one != lacking]

    assert restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere).pending == [lacking]


def test_a_backup_from_before_827a92b_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    migrations = [one for one in source.manifest.migrations if one != "sessions_app.0011_sessions_in_use"]

    with raises_code("restore_refused", match=r"from before commit 827a92b.*create a new backup"):
        restore(changed(source, tmp_path, {"migrations": migrations}), elsewhere)
    assert not is_used(elsewhere)


def test_a_backup_of_the_other_kind_of_database_is_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    vendor, name = ("sqlite", "database.sqlite3") if ON_POSTGRES else ("postgresql", "database.pgdump")
    other = tmp_path / "out"
    other.mkdir()
    manifest = unpack_backup(source.file, KEY, other)
    (other / name).write_bytes(b"of another kind")
    manifest = replace(manifest, vendor=vendor, members={name: content_of(other / name)})
    with (tmp_path / "other.sealed").open("wb") as out:
        write_backup_file(out, signed(manifest), {name: other / name}, KEY)

    with raises_code("restore_refused", match="export each workspace"):
        restore(replace(source, file=tmp_path / "other.sealed"), elsewhere)


@pytest.mark.parametrize("key", ["a stormy sea at dusk", ""])
def test_an_encrypted_backup_needs_its_key(key, source, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY = key

    with pytest.raises(MemoryHubError, match=r"MEMORYHUB_BACKUP_KEY"):
        restore(source, elsewhere)
    assert not is_used(elsewhere)


def test_rows_that_do_not_match_the_manifest_are_refused(source, elsewhere, settings, tmp_path):
    settings.MEMORYHUB_BACKUP_KEY = KEY
    tables = source.manifest.tables | {"auth_user": replace(source.manifest.tables["auth_user"], size=7)}
    wrong = changed(source, tmp_path, {"tables": tables, "digest": create.digest_of(tables)})

    with pytest.raises(MemoryHubError, match=r"rows|manifest") as caught:
        restore(wrong, elsewhere)
    assert caught.value.code in ("bad_backup", "restore_refused")
    assert not is_used(elsewhere)
    if ON_POSTGRES:
        assert not postgres.has_tables(elsewhere)


def test_only_encrypted_backups_contain_the_secret_key(source, no_replacing, elsewhere, settings, home, tmp_path):
    assert back_up(tmp_path / "out").manifest.secret_key == "left out"
    assert source.manifest.secret_key == "inside"
    settings.MEMORYHUB_BACKUP_KEY = KEY
    settings.SECRET_KEY = "that of a new hub"
    (home / "secret_key").write_text("that of a new hub")

    restored = restore(source, elsewhere)

    assert restored.secret_key == "restored"
    assert (home / "secret_key").read_text() == (source.file.parent / "secret_key").read_text()
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600
    assert (home / "secret_key.before-restore-20260401T120000Z").read_text() == "that of a new hub"


def test_a_key_from_the_environment_is_kept(source, no_replacing, elsewhere, settings):
    settings.MEMORYHUB_BACKUP_KEY, settings.SECRET_KEY = KEY, "from the environment"

    assert restore(source, elsewhere).secret_key == "another"

"""The format of backup files."""

import gzip
import io
import random
import tarfile
import tracemalloc
from dataclasses import replace

import pytest

from memoryhub.backups import encryption
from memoryhub.backups.archive import (
    BadBackup,
    Content,
    Manifest,
    content_of,
    digest_of,
    summary_of,
    unpack_backup,
    write_backup_file,
)
from tests.hub import raises_code

KEY = "a calm sea at dawn"


@pytest.fixture(autouse=True)
def _quick_scrypt(monkeypatch):
    monkeypatch.setitem(encryption.SCRYPT, "n", 16)


@pytest.fixture
def database(tmp_path):
    file = tmp_path / "database.sqlite3"
    file.write_bytes(random.Random(7).randbytes(2_500_000))
    return file


@pytest.fixture
def manifest(database):
    tables = {"auth_user": Content(2, "ab"), "sessions_app_entry": Content(5, "cd")}
    return Manifest(
        format=1,
        hub="0.1.0",
        vendor="sqlite",
        database="SQLite, here",
        taken_at="2026-04-01T12:00:00+00:00",
        ended_at="2026-04-01T12:00:03+00:00",
        migrations=["auth.0001_initial"],
        tables=tables,
        digest=digest_of(tables),
        secret_key="left out",
        key_check="00000000",
        members={database.name: content_of(database)},
    )


def write(tmp_path, manifest, database, key=""):
    file = tmp_path / "backup"
    with file.open("wb") as out:
        write_backup_file(out, manifest, {database.name: database}, key)
    return file


def unpack(file, key, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return unpack_backup(file, key, folder)


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
def test_a_backup_file_round_trips(key, tmp_path, manifest, database):
    file = write(tmp_path, manifest, database, key)

    assert unpack(file, key, tmp_path) == manifest
    assert (tmp_path / "out" / database.name).read_bytes() == database.read_bytes()
    assert summary_of(file) == {
        "hub": "0.1.0",
        "vendor": "sqlite",
        "taken_at": manifest.taken_at,
        "rows": 7,
        "is_encrypted": bool(key),
    }


def test_a_plain_backup_opens_with_tar(tmp_path, manifest, database):
    with tarfile.open(write(tmp_path, manifest, database)) as archive:
        assert archive.getnames() == ["manifest.json", "database.sqlite3"]


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_a_flipped_bit_is_refused(share, key, tmp_path, manifest, database):
    file = write(tmp_path, manifest, database, key)
    raw = bytearray(file.read_bytes())
    raw[int(len(raw) * share)] ^= 4
    file.write_bytes(raw)

    with pytest.raises(BadBackup):
        unpack(file, key, tmp_path)


@pytest.mark.slow
@pytest.mark.postgres
def test_any_flipped_byte_of_an_encrypted_header_is_refused(tmp_path, manifest, database):
    raw = write(tmp_path, manifest, database, KEY).read_bytes()
    damaged = tmp_path / "damaged"
    for place in range(raw.index(b"}") + 1):
        damaged.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(BadBackup):
            unpack(damaged, KEY, tmp_path)


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("left", [0, 10, 300, -20_000, -1])
def test_a_truncated_file_is_refused(left, key, tmp_path, manifest, database):
    file = write(tmp_path, manifest, database, key)
    file.write_bytes(file.read_bytes()[:left])

    with pytest.raises(BadBackup):
        unpack(file, key, tmp_path)


def test_missing_and_moved_chunks_are_detected():
    out = io.BytesIO()
    with encryption.EncryptingWriter(out, KEY, {}) as writer:
        writer.write(b"a" * encryption.CHUNK * 3 + b"end")
    whole = out.getvalue()
    size = encryption.CHUNK + encryption.TAG
    start = len(whole) - 3 * size - len(b"end") - encryption.TAG
    head, chunks = whole[:start], [whole[start + n * size : start + (n + 1) * size] for n in range(4)]

    for wrong in ([0, 2, 3], [1, 0, 2, 3], [0, 1, 2], [0, 1, 2, 3, 3]):
        stream = io.BytesIO(head + b"".join(chunks[number] for number in wrong))
        with pytest.raises(encryption.CannotDecrypt):
            io.BufferedReader(encryption.DecryptingReader(stream, KEY)).read()


def test_a_wrong_or_missing_key_is_refused(tmp_path, manifest, database):
    file = write(tmp_path, manifest, database, KEY)

    with pytest.raises(BadBackup, match="MEMORYHUB_BACKUP_KEY is wrong"):
        unpack(file, "a stormy sea at dusk", tmp_path)
    with raises_code("backup_key_missing", match="MEMORYHUB_BACKUP_KEY"):
        unpack(file, "", tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "newer MemoryHub"),
        ({"digest": "0" * 64}, "don't match"),
        ({"members": {"database.sqlite3": Content(2_500_000, "0" * 64)}}, "doesn't have the SHA-256"),
        ({"members": {"../database.sqlite3": Content(1, "")}}, "lists no database"),
        ({"vendor": "oracle"}, "lists no database"),
        ({"tables": {"auth_user": "many"}}, "manifest is damaged"),
        ({"tables": {"auth_user": Content("2", "ab")}}, "manifest is damaged"),
    ],
)
def test_an_invalid_manifest_is_refused(change, words, tmp_path, manifest, database, monkeypatch):
    wrong = replace(manifest, **change)
    place = next(iter(wrong.members))
    monkeypatch.setattr("memoryhub.backups.archive.asdict", lambda _: vars(wrong) | as_json(wrong))
    file = tmp_path / "backup"
    with file.open("wb") as out:
        write_backup_file(out, replace(wrong, members={place: content_of(database)}), {place: database}, "")

    with pytest.raises(BadBackup, match=words):
        unpack(file, "", tmp_path)


def as_json(manifest):
    parts = {"tables": manifest.tables, "members": manifest.members}
    return {
        part: {name: vars(content) if isinstance(content, Content) else content for name, content in values.items()}
        for part, values in parts.items()
    }


@pytest.mark.parametrize("raw", [b"", b"hello", b"\x1f\x8b", b"MemoryHub sealed 1\n\xff\xff\xff\xff{}"])
def test_other_files_are_refused(raw, tmp_path):
    file = tmp_path / "backup"
    file.write_bytes(raw)

    with pytest.raises(BadBackup):
        summary_of(file)
    with pytest.raises(BadBackup):
        unpack(file, KEY, tmp_path)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_extended_headers_are_limited(kind, tmp_path):
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 64 * 2**20
    with gzip.open(tmp_path / "backup", "wb") as out:
        out.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(info.size))

    tracemalloc.start()
    for read in (summary_of, lambda file: unpack(file, "", tmp_path)):
        with pytest.raises(BadBackup):
            read(tmp_path / "backup")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 16 * 2**20


def test_data_after_the_last_member_is_refused(tmp_path, manifest, database):
    file = write(tmp_path, manifest, database)
    with file.open("ab") as out:
        out.write(gzip.compress(bytes(8 * 2**20)))

    with pytest.raises(BadBackup):
        unpack(file, "", tmp_path)

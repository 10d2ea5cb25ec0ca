from __future__ import annotations

import gzip
import io
import stat
import tarfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from memoryhub.lib.files.limited_tar import LimitedTar
from memoryhub.sync import archives
from memoryhub.sync.archives import BadArchive, extract_archive

FORMATS = ["files.zip", "files.tar.gz"]


def pack(place: Path, *files: tuple[str, bytes]) -> Path:
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files:
                packed.writestr(name, content)
        return place
    with tarfile.open(place, "w:gz") as unpacked:
        for name, content in files:
            item = tarfile.TarInfo(name)
            item.size, item.type = len(content), tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            unpacked.addfile(item, io.BytesIO(content))
    return place


def is_refused(source: Path) -> bool:
    dest = source.parent / "out"
    try:
        extract_archive(source, dest)
    except BadArchive:
        assert not dest.exists()
        return True
    return False


@pytest.mark.parametrize("name", FORMATS)
def test_archives_are_extracted_in_any_order_of_folders(tmp_path, name):
    files = [("a/b/c.md", b"text"), ("a/", b""), ("a/b/", b""), ("d/e/", b"")]

    extract_archive(pack(tmp_path / name, *files), tmp_path / "out")

    assert (tmp_path / "out/a/b/c.md").read_bytes() == b"text"
    assert (tmp_path / "out/d/e").is_dir()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("inside", ["../up", "a/../../up", "/etc/up", "a\\up", "."])
def test_names_outside_the_folder_are_refused(tmp_path, name, inside):
    assert is_refused(pack(tmp_path / name, ("fine", b"x"), (inside, b"x")))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("limit", "value", "sizes", "expected"),
    [
        ("MAX_ENTRIES", 2, [1, 1], False),
        ("MAX_ENTRIES", 2, [1, 1, 1], True),
        ("MAX_ENTRY_BYTES", 10, [10, 10], False),
        ("MAX_ENTRY_BYTES", 10, [10, 11], True),
        ("MAX_TOTAL_BYTES", 20, [10, 10], False),
        ("MAX_TOTAL_BYTES", 20, [10, 10, 1], True),
    ],
)
def test_an_archive_over_a_limit_is_refused(tmp_path, monkeypatch, name, limit, value, sizes, expected):
    monkeypatch.setattr(archives, limit, value)

    files = [(f"file {number}", b"x" * size) for number, size in enumerate(sizes)]

    assert is_refused(pack(tmp_path / name, *files)) == expected


@pytest.mark.parametrize(("limit", "value"), [("MAX_ENTRIES", 2), ("MAX_TOTAL_BYTES", 20)])
def test_a_tarball_is_not_read_beyond_a_limit(tmp_path, monkeypatch, limit, value):
    read, following = [], LimitedTar.next
    monkeypatch.setattr(archives, limit, value)
    monkeypatch.setattr(LimitedTar, "next", lambda archive: read.append(1) or following(archive))

    assert is_refused(pack(tmp_path / "files.tar.gz", *((f"file {number}", b"x" * 10) for number in range(9))))
    assert len(read) == 3


@pytest.mark.parametrize(("size", "expected"), [(2**20, False), (2**20 + 1, True)])
def test_a_large_file_with_a_suspicious_ratio_is_refused(tmp_path, size, expected):
    assert is_refused(pack(tmp_path / "files.zip", ("zeros", b"\0" * size))) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_a_large_file_of_ordinary_text_is_extracted(tmp_path, name):
    text = b"".join(b"%d is a number\n" % number for number in range(100_000))

    assert not is_refused(pack(tmp_path / name, ("large", text), ("empty", b"")))


def test_duplicate_names_are_refused(tmp_path):
    assert is_refused(pack(tmp_path / "files.tar.gz", ("a", b"first"), ("a", b"second")))


@pytest.mark.parametrize(
    ("mode", "expected"), [(stat.S_IFREG, False), (0, False), (stat.S_IFLNK, True), (stat.S_IFCHR, True)]
)
def test_links_and_devices_in_a_zip_are_refused(tmp_path, mode, expected):
    item = zipfile.ZipInfo("item")
    item.external_attr = (mode | 0o644) << 16
    with zipfile.ZipFile(tmp_path / "files.zip", "w") as packed:
        packed.writestr(item, "/etc/passwd")

    assert is_refused(tmp_path / "files.zip") == expected


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tarball_are_refused(tmp_path, kind):
    item = tarfile.TarInfo("item")
    item.type, item.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "files.tar.gz", "w:gz") as packed:
        packed.addfile(item)

    assert is_refused(tmp_path / "files.tar.gz")


@pytest.mark.parametrize("name", FORMATS)
def test_invalid_and_truncated_archives_leave_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive at all")
    assert is_refused(tmp_path / name)

    whole = pack(tmp_path / name, ("a", bytes(range(256)) * 40)).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    assert is_refused(tmp_path / name)


def test_a_zip_with_a_name_that_is_not_utf_8_is_refused(tmp_path):
    raw = pack(tmp_path / "files.zip", ("ä.md", b"text")).read_bytes()
    (tmp_path / "files.zip").write_bytes(raw.replace("ä".encode(), b"\xff\xfe"))

    assert is_refused(tmp_path / "files.zip")


def test_a_zip_with_an_empty_name_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "files.zip", "w") as packed:
        packed.writestr(zipfile.ZipInfo(""), "text")

    assert is_refused(tmp_path / "files.zip")


def headers(*parts: tuple[bytes, bytes]) -> bytes:
    """Return a tar with extended headers: the type and content of each, then an empty file."""
    raw = b""
    for kind, content in parts:
        info = tarfile.TarInfo("header")
        info.type, info.size = kind, len(content)
        raw += info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)
    return raw + tarfile.TarInfo("file").tobuf() + bytes(1024)


def pax(keyword: str, value: str) -> bytes:
    size = len(keyword) + len(value) + 3
    return f"{size + len(str(size + len(str(size))))} {keyword}={value}\n".encode()


BOMB = "x" * (64 * 2**20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        [(tarfile.XHDTYPE, pax("comment", BOMB))],
        [(tarfile.XGLTYPE, pax("comment", BOMB))],
        [(tarfile.GNUTYPE_LONGNAME, BOMB.encode())],
        [(tarfile.GNUTYPE_LONGLINK, BOMB.encode())],
        [(tarfile.XHDTYPE, pax("comment", "x" * 60_000))] * 100,
        [(tarfile.XHDTYPE, pax("path", "a"))] * 5_000,
        [(tarfile.XHDTYPE, pax("size", "-1024"))],
    ],
    ids=["PAX", "global PAX", "long name", "long link", "many PAX", "chained", "negative size"],
)
def test_extended_headers_are_limited(parts, tmp_path):
    (tmp_path / "files.tar.gz").write_bytes(gzip.compress(headers(*parts)))

    tracemalloc.start()
    started_at = time.monotonic()
    assert is_refused(tmp_path / "files.tar.gz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 32 * 2**20
    assert time.monotonic() - started_at < 20


def test_a_huge_member_is_refused_without_decompressing_it(tmp_path):
    info = tarfile.TarInfo("huge")
    info.size = 2 * 2**30
    with gzip.open(tmp_path / "files.tar.gz", "wb", compresslevel=1) as out:
        out.write(info.tobuf())
        for _ in range(200):
            out.write(bytes(2**20))

    started_at = time.process_time()
    assert is_refused(tmp_path / "files.tar.gz")
    assert time.process_time() - started_at < 0.5

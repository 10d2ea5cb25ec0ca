"""Search every table and file for a planted name, in every encoding."""

from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from django.db import connection

NAME = "quicksilver4711"
TEXT = f"Bärbel {NAME} likes tea"
KEY = f"telegram:{NAME}"
NESTED = [{"id": NAME, "type": "function", "function": {"name": "mail", "arguments": json.dumps({"to": TEXT})}}]


@cache
def forms(text: str) -> dict[str, bytes]:
    """Return the bytes of a text in each encoding, without the ends that depend on what is around it."""
    found = {"utf-8": text.encode(), "utf-16-le": text.encode("utf-16-le"), "utf-16-be": text.encode("utf-16-be")}
    found["hex"] = text.encode().hex().encode()
    for start in range(3):
        whole = base64.b64encode(b"x" * start + text.encode())
        found[f"base64+{start}"] = whole[4:-4]
    return found


def places_of(data: bytes) -> set[str]:
    """Return the encodings in which some bytes contain the name; its first letters may be those of another word."""
    lower = data.lower()
    return {name for name, form in forms(NAME[4:]).items() if form in (data if name.startswith("base64") else lower)}


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yield some bytes and, of an archive or a compressed text, what is in it."""
    yield data
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from unpacked(archive.read(name))
    elif data[:2] == b"\x1f\x8b":
        yield from unpacked(gzip.decompress(data))


def tables() -> Iterator[tuple[str, str]]:
    """Yield every table of the database as one text, those of the indexes too; each value is a line or more."""
    with connection.cursor() as cursor:
        for name in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(name)}")
            yield name, "\n".join(map(_as_text, chain.from_iterable(cursor.fetchall())))


def _as_text(value: object) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)


def remains(home: Path) -> set[str]:
    """Return where the name is, in the database and the home."""
    found = set()
    for table, text in tables():
        raw = text.encode("utf-8", errors="surrogatepass")
        found |= {f"{table} ({form})" for form in places_of(raw)}
        if table == "django_session":
            found |= {f"{table} (data)" for data in _session_data(text) if places_of(data)}
    for file in [file for file in home.rglob("*") if file.is_file()]:
        where = file.relative_to(home).parts[0]
        found |= {f"{where} (name)"} if places_of(str(file.relative_to(home)).encode()) else set()
        for data in unpacked(file.read_bytes()):
            found |= {f"{where} ({form})" for form in places_of(data)}
    return found


def _session_data(text: str) -> Iterator[bytes]:
    for part in text.replace("\n", ":").split(":"):
        is_compressed = part.startswith(".")
        raw = part.lstrip(".")
        try:
            data = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
            yield zlib.decompress(data) if is_compressed else data
        except (ValueError, zlib.error):
            continue

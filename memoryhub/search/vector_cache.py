"""A per-process cache of row embeddings as matrices.

Loading is limited by the time of a search; the next search continues. At most about 256 MB are kept, least recently
searched workspaces evicted first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from django.db.models import Count, Max, QuerySet

from knowledge_app.models import RowVector
from memoryhub.graph.row_vectors import MOST_ROWS, SOURCES
from memoryhub.lib.text_caches import keeps_texts

if TYPE_CHECKING:
    from memoryhub.graph.nearest import Rows

MOST_BYTES = 256 * 2**20  # of all matrices of a process
CHUNK = 500  # vectors per query
Version = tuple[int, int]  # highest key and number of a kind's vectors


@dataclass(frozen=True)
class Matrix:
    """Vectors of one kind: row keys, hashes of the embedded texts, and an (n, d) array of unit vectors.

    ``first`` and ``last``: keys of the oldest and newest vector loaded. ``is_whole``: all are loaded.
    """

    version: Version = (0, 0)
    first: int = 0
    last: int = 0
    keys: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    rows: Rows | None = None
    is_whole: bool = False


Matrices = dict[str, Matrix]
_lock = Lock()
_kept: OrderedDict[tuple[int, str], Matrices] = OrderedDict()


@keeps_texts
def forget_all() -> None:
    """Clear the cache."""
    with _lock:
        _kept.clear()


def versions_of(workspace_id: int) -> dict[str, Version]:
    """Return the version of a workspace's vectors by kind; one query."""
    rows = RowVector.objects.filter(workspace=workspace_id).order_by()
    return {kind: (last, count) for kind, last, count in rows.values_list("kind").annotate(Max("pk"), Count("pk"))}


def matrices_of(workspace_id: int, fingerprint: str, versions: dict[str, Version], *, until: float) -> Matrices:
    """Return a workspace's vectors of one fingerprint by kind, newest first, as many as can be loaded in time.

    ``until``: a ``time.monotonic`` value. A kind's vectors stay cached until one of them is deleted.
    """
    known = _kept.get((workspace_id, fingerprint), {})
    found: Matrices = {}
    for kind in (kind for kind in SOURCES if kind in versions):
        vectors = RowVector.objects.filter(workspace=workspace_id, kind=kind)
        room = MOST_BYTES - _size(found)
        found[kind] = _current(vectors, known.get(kind), versions[kind], fingerprint, room=room, until=until)
    with _lock:
        _kept[workspace_id, fingerprint] = found
        _kept.move_to_end((workspace_id, fingerprint))
        while len(_kept) > 1 and sum(map(_size, _kept.values())) > MOST_BYTES:
            _kept.popitem(last=False)
    return found


def _size(matrices: Matrices) -> int:
    return sum(matrix.rows.nbytes for matrix in matrices.values() if matrix.rows is not None)


def _current(
    vectors: QuerySet[RowVector], known: Matrix | None, version: Version, fingerprint: str, *, room: int, until: float
) -> Matrix:
    """Return a kind's matrix, extended by new vectors and by those not loaded yet. ``room``: in bytes."""
    if known and known.version == version and known.is_whole:
        return known
    length = int(fingerprint.rpartition("/")[2])
    most = min(MOST_ROWS, room // (4 * length))
    if known is None or len(known.keys) >= most or not _only_grew(vectors, known, version):
        known = Matrix()
    pages = [known] if known.last else []
    vectors = vectors.filter(fingerprint=fingerprint)
    newer, is_whole = bool(pages) and known.version != version, False
    while not is_whole and time.monotonic() < until:
        if not newer and sum(len(page.keys) for page in pages) >= most:
            is_whole = True
            continue
        page = _page(vectors, pages, length, newer=newer)
        pages.append(page)
        is_whole = page.is_whole and not newer
        newer = newer and not page.is_whole
    return _joined(pages, version, is_whole=is_whole)


def _only_grew(vectors: QuerySet[RowVector], known: Matrix, version: Version) -> bool:
    return known.version == version or vectors.filter(pk__lte=known.version[0]).count() == known.version[1]


def _page(vectors: QuerySet[RowVector], pages: Sequence[Matrix], length: int, *, newer: bool) -> Matrix:
    """Return the next page of vectors, newer or older than the given pages; ``is_whole``: there are no more."""
    if newer:
        rows = vectors.filter(pk__gt=max(page.last for page in pages)).order_by("pk")
    else:
        first = min((page.first for page in pages if page.first), default=0)
        rows = (vectors.filter(pk__lt=first) if first else vectors).order_by("-pk")
    found = list(rows[:CHUNK].values_list("pk", "object_id", "text_hash", "vector"))
    pks = [row[0] for row in found]
    filtered = [row for row in found if len(row[3]) == 4 * length]
    return Matrix(
        first=min(pks, default=0),
        last=max(pks, default=0),
        keys=tuple(row[1] for row in filtered),
        hashes=tuple(row[2] for row in filtered),
        rows=_stacked([row[3] for row in filtered], length),
        is_whole=len(found) < CHUNK,
    )


def _joined(pages: Sequence[Matrix], version: Version, *, is_whole: bool) -> Matrix:
    import numpy as np

    parts = [page.rows for page in pages if page.rows is not None]
    return Matrix(
        version,
        first=min((page.first for page in pages if page.first), default=0),
        last=max((page.last for page in pages), default=0),
        keys=tuple(key for page in pages for key in page.keys),
        hashes=tuple(known for page in pages for known in page.hashes),
        rows=np.concatenate(parts) if parts else None,
        is_whole=is_whole,
    )


def _stacked(vectors: Sequence[bytes | memoryview], length: int) -> Rows:
    import numpy as np

    rows: Rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), length)
    return rows

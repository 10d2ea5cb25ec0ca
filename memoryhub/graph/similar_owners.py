"""Sections, sessions, tags and projects whose texts have similar embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from knowledge_app.models import RowVector
from memoryhub.graph.memory_texts import MemoryText
from sessions_app.models import Workspace

LEAST = 0.6  # cosine of the mean embeddings, measured from the mean of all
MOST = 2  # similar nodes of each
LEAST_ROWS = 2  # embedded rows of a node


def similar_owners(workspace: Workspace, texts: Iterable[MemoryText]) -> list[tuple[str, str, float]]:
    """Return the pairs of nodes that are similar, with the cosine. Two queries; empty without embeddings."""
    owners = {text.row: [owner.key for owner in text.owners] for text in texts if text.row and text.owners}
    vectors = RowVector.objects.filter(workspace=workspace)
    prints = Counter(vectors.values_list("fingerprint", flat=True))
    if not prints or not owners:
        return []
    import numpy as np

    sums: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    counts: Counter[str] = Counter()
    latest = vectors.filter(fingerprint=prints.most_common(1)[0][0]).order_by("pk")
    for kind, pk, stored in latest.values_list("kind", "object_id", "vector").iterator(chunk_size=500):
        vector = np.frombuffer(bytes(stored), dtype="<f4").astype(np.float64)
        for key in owners.get((kind, pk), ()):
            sums[key] = sums[key] + vector if key in sums else vector
            counts[key] += 1
    keys = sorted(key for key in sums if counts[key] >= LEAST_ROWS)
    if len(keys) <= MOST:
        return []
    means = np.array([sums[key] / counts[key] for key in keys])
    means -= means.mean(axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    units = means / np.where(lengths > 0, lengths, 1)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    nearest = [np.argsort(-row, kind="stable")[:MOST].tolist() for row in cosines]
    return [
        (key, keys[other], round(float(cosines[place, other]), 3))
        for place, key in enumerate(keys)
        for other in nearest[place]
        if cosines[place, other] >= LEAST
    ]

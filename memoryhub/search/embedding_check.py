"""Compare a workspace's embeddings with the words of its rows, to weight semantic search by how far they agree.

For each of the newest rows, the row with the most similar words should be near in the embedding too. Random vectors
put it anywhere: on average, half of the rows are nearer.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from memoryhub.graph.row_vectors import MOST_CHARS, SOURCES, hash_of, texts_of
from memoryhub.lib.search.tokenizing import STOP_WORDS, split_words
from memoryhub.search.vector_cache import Matrices, Matrix, Version

if TYPE_CHECKING:
    from memoryhub.graph.nearest import Rows

ROWS = 300  # newest of the kind with the most vectors
MIN_PAIRS = 6  # with fewer rows to compare, nothing is known
UNKNOWN_WEIGHT = 0.5
MIN_SIMILARITY, MAX_SIMILARITY = 0.1, 0.9  # of the words of two rows; the same text has the same vector
NO_AGREEMENT, AGREEMENT = 0.6, 0.9  # shares of rows that are farther away, for weights 0 and 1; .5 is chance
GROWTH = 1.1  # compare again when more vectors than that have changed
KEPT = 256
Key = tuple[int, str]
_lock = Lock()
_weights: OrderedDict[Key, tuple[Version, float]] = OrderedDict()


def forget_all() -> None:
    """Clear this process's weights."""
    with _lock:
        _weights.clear()


def known_weight(workspace_id: int, model: str, versions: Mapping[str, Version]) -> float | None:
    """Return the weight that was last computed for about the same vectors, or None."""
    last, number = _whole(versions)
    with _lock:
        (known_last, known), weight = _weights.get((workspace_id, model), ((0, 0), 0.0))
    is_similar = max(known, number) <= GROWTH * min(known, number) and last - known_last <= (GROWTH - 1) * number
    return weight if known and is_similar else None


def semantic_weight(workspace_id: int, model: str, versions: Mapping[str, Version], matrices: Matrices) -> float:
    """Return the weight of semantic matches beside matches of words, from 0 to 1.

    It is computed again when a tenth of the workspace's vectors may have changed; one query then.
    """
    known = known_weight(workspace_id, model, versions)
    if known is not None:
        return known
    kind, matrix = max(matrices.items(), key=lambda item: len(item[1].keys))
    weight = weight_of(_texts(kind, matrix), matrix)
    with _lock:
        _weights[workspace_id, model] = _whole(versions), weight
        while len(_weights) > KEPT:
            _weights.popitem(last=False)
    return weight


def weight_of(texts: Mapping[int, str], matrix: Matrix) -> float:
    """Return the weight of a kind's vectors. ``texts``: of some of its rows, by key."""
    places = [place for place, key in enumerate(matrix.keys) if key in texts]
    if matrix.rows is None or len(places) < MIN_PAIRS:
        return UNKNOWN_WEIGHT
    agreement = agreements([texts[matrix.keys[place]] for place in places], matrix.rows[places])
    if len(agreement) < MIN_PAIRS:
        return UNKNOWN_WEIGHT
    surely = float(agreement.mean()) - 2 * float(agreement.std()) / math.sqrt(len(agreement))
    return min(1.0, max(0.0, (surely - NO_AGREEMENT) / (AGREEMENT - NO_AGREEMENT)))


def agreements(texts: Sequence[str], vectors: Rows) -> Rows:
    """Return for each text with a similar one the share of vectors that are farther away than that one's, 0 to 1."""
    import numpy as np

    similar = _word_similarity(texts)
    similar[(similar > MAX_SIMILARITY) | np.eye(len(texts), dtype=bool)] = -1
    nearest = similar.argmax(axis=1)
    rows = np.flatnonzero(similar.max(axis=1) >= MIN_SIMILARITY)
    cosines = vectors[rows] @ vectors.T
    own = cosines[np.arange(len(rows)), nearest[rows]][:, None]
    farther = (cosines < own).sum(axis=1) + (cosines == own).sum(axis=1) / 2 - 0.5
    shares: Rows = farther / max(1, len(texts) - 2)  # the text itself is nearer, and isn't compared
    return np.minimum(1.0, shares)


def _whole(versions: Mapping[str, Version]) -> Version:
    """Return the highest key and the number of the vectors of all kinds."""
    return max(last for last, _ in versions.values()), sum(count for _, count in versions.values())


def _word_similarity(texts: Sequence[str]) -> Rows:
    """Return the cosines of the texts' words, weighted by rarity."""
    import numpy as np

    words = [{word for word in split_words(text) if word not in STOP_WORDS} for text in texts]
    frequency = Counter(word for found in words for word in found)
    places = {word: place for place, word in enumerate(word for word, count in frequency.items() if count > 1)}
    table = np.zeros((len(texts), max(1, len(places))), dtype=np.float32)
    for row, found in enumerate(words):
        for word in found & places.keys():
            table[row, places[word]] = math.log(len(texts) / frequency[word])
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    table /= np.where(lengths == 0, 1, lengths)
    return table @ table.T


def _texts(kind: str, matrix: Matrix) -> dict[int, str]:
    """Return the embedded texts of the newest rows that still have them; one query."""
    hashes = dict(zip(matrix.keys, matrix.hashes, strict=True))
    keys = sorted(hashes, reverse=True)[:ROWS]
    rows = texts_of(kind, SOURCES[kind].model._default_manager.filter(pk__in=keys))
    return {one.pk: one.text[:MOST_CHARS] for one in rows if hash_of(one.text) == hashes[one.pk]}

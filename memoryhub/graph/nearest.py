"""Nearest neighbours of embeddings, by the cosines of unit vectors. Pure.

numpy is imported only when needed: it takes a tenth of the time that a process needs to start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.float32]

Nearest = list[tuple[int, float]]  # keys with their cosines, the nearest first
LEAST = 0.5  # minimum cosine of a neighbour
MOST = 10  # neighbours per term


def unit_rows(vectors: Sequence[bytes]) -> Rows:
    """Convert little-endian float32 vectors of equal size to (n, d) unit rows; zero vectors stay zero."""
    import numpy as np

    rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.linalg.norm(rows, axis=1, keepdims=True)
        units: Rows = np.nan_to_num(rows / np.where(sizes > 0, sizes, 1)).astype(np.float32)
    return units


class Space:
    """Comparable unit vectors by key, each with a list of its nearest neighbours.

    A list has the ten nearest with a cosine of at least 0.5; a longer one keeps its length. ``blocked`` pairs (in
    both directions), which people pinned or removed, are in no list.
    """

    def __init__(self, keys: Sequence[int], rows: Rows, blocked: Collection[tuple[int, int]] = ()) -> None:
        import numpy as np

        self._places = {key: place for place, key in enumerate(keys)}
        self._keys = list(keys)
        self._rows = rows
        self._blocked = frozenset(blocked)
        self._nearest: dict[int, Nearest] = {}
        self._floors = np.full(len(self._keys), LEAST, dtype=np.float32)

    def __contains__(self, key: int) -> bool:
        return key in self._places

    def nearest(self, key: int) -> Nearest:
        return self._nearest.get(key, [])

    def cosine(self, key: int, other: int) -> float:
        """Return the cosine of two keys in the space."""
        return _rounded(float(self._rows[self._places[key]] @ self._rows[self._places[other]]))

    def remember(self, key: int, others: Iterable[tuple[int, float | None]]) -> None:
        """Set a key's stored list of neighbours; missing cosines are computed."""
        known = [(other, self.cosine(key, other) if value is None else value) for other, value in others]
        self._set(key, sorted(known, key=lambda item: (-item[1], item[0])))

    def place(self, keys: Sequence[int], rows: Rows) -> set[int]:
        """Add or replace vectors; return the keys whose lists changed, including their own.

        ``rows``: (n, d) unit rows.
        """
        holes = self._forget(keys)
        self._take(keys, rows)
        anew = [*keys, *sorted(holes)]
        cosines = self._rows @ self._rows[[self._places[key] for key in anew]].T
        changed = set(anew)
        for column, key in enumerate(anew):
            self._set(key, self._best(key, cosines[:, column]))
        for column, key in enumerate(keys):
            changed |= self._add_to_lists(key, cosines[:, column])
        return changed

    def _forget(self, keys: Sequence[int]) -> set[int]:
        """Remove keys from all lists; return the keys whose lists changed."""
        again = {key for key in keys if key in self._places}
        holes = set()
        for key, others in self._nearest.items() if again else ():
            if key not in again and any(other in again for other, _ in others):
                holes.add(key)
        return holes

    def _take(self, keys: Sequence[int], rows: Rows) -> None:
        new = [number for number, key in enumerate(keys) if key not in self._places]
        for number, key in enumerate(keys):
            if key in self._places:
                self._rows[self._places[key]] = rows[number]
        for number in new:
            self._places[keys[number]] = len(self._keys)
            self._keys.append(keys[number])
        if new:
            import numpy as np

            self._rows = np.concatenate([self._rows, rows[new]]) if len(self._rows) else rows[new].copy()
            self._floors = np.concatenate([self._floors, np.full(len(new), LEAST, dtype=np.float32)])

    def _best(self, key: int, cosines: Rows) -> Nearest:
        """Return the nearest neighbours of a key from its cosines with all vectors."""
        import numpy as np

        room = max(MOST, len(self.nearest(key)))
        found = np.flatnonzero(cosines >= LEAST)
        ordered = found[np.argsort(-cosines[found], kind="stable")]
        best: Nearest = []
        for place in ordered.tolist():
            other = self._keys[place]
            if other != key and (key, other) not in self._blocked:
                best.append((other, _rounded(float(cosines[place]))))
                if len(best) == room:
                    break
        return best

    def _add_to_lists(self, key: int, cosines: Rows) -> set[int]:
        """Add a key to the lists of its near neighbours; return the keys whose lists changed."""
        import numpy as np

        changed = set()
        for place in np.flatnonzero((cosines >= LEAST) & (cosines >= self._floors)).tolist():
            other = self._keys[place]
            if other == key or (other, key) in self._blocked or any(one == key for one, _ in self.nearest(other)):
                continue
            before = self.nearest(other)
            room = max(MOST, len(before))
            known = [*before, (key, _rounded(float(cosines[place])))]
            self._set(other, sorted(known, key=lambda item: (-item[1], item[0]))[:room])
            if self.nearest(other) != before:
                changed.add(other)
        return changed

    def _set(self, key: int, others: Nearest) -> None:
        self._nearest[key] = others
        self._floors[self._places[key]] = others[-1][1] if len(others) >= MOST else LEAST


def _rounded(cosine: float) -> float:
    """Return a cosine rounded to six decimals and clipped to one."""
    return round(max(-1.0, min(1.0, cosine)), 6)

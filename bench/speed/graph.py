"""Measure how long the graph of a memory takes: 2,000 nodes placed, and a whole workspace read and placed.

    python bench/speed/graph.py [NODES]

The layout of 2,000 nodes should take less than 3 seconds on two cores.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memoryhub.graph.placement import find_communities, place_nodes

NODES = 2_000
EDGES_PER_NODE = 4
REPEATS = 3


def links_of(count: int) -> list[tuple[int, int, float]]:
    """Return random edges, three in four of them within communities of 40 nodes."""
    chance = random.Random(7)
    found = {}
    for node in range(count):
        for _ in range(EDGES_PER_NODE):
            start = node - node % 40
            other = (
                chance.randrange(start, min(count, start + 40)) if chance.random() < 0.75 else chance.randrange(count)
            )
            if other != node:
                found[min(node, other), max(node, other)] = round(chance.uniform(0.05, 1), 3)
    return [(one, other, strength) for (one, other), strength in sorted(found.items())]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    links = links_of(count)
    sizes = [4 + 18 / (1 + node / 20) ** 0.5 for node in range(count)]
    find_communities(3, [(0, 1, 1.0)])  # imports networkx
    for _ in range(REPEATS):
        start = time.perf_counter()
        communities = find_communities(count, links)
        middle = time.perf_counter()
        place_nodes(sizes, links)
        whole = time.perf_counter() - middle
        print(
            f"{count:,} nodes, {len(links):,} edges: {whole:.2f} s, of which communities {middle - start:.2f} s "
            f"({max(communities) + 1} found)"
        )


if __name__ == "__main__":
    main()

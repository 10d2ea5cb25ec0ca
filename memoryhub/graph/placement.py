"""Find the communities of a graph and place its nodes, so that communities lie together. Pure and deterministic.

networkx finds the communities (Louvain) and arranges them; numpy then places the nodes by forces, in the way of
ForceAtlas2 (Jacomy and others 2014, doi 10.1371/journal.pone.0098679). Both are imported only here, when needed:
web processes that draw no graph don't pay for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.float32]

SEED = 7
STEPS = 90
BLOCK = 64
CLOSEST = 5.0  # distance below which nodes don't repel each other more
SCALE = 1_000  # the furthest coordinate
PULL, WITHIN = 0.05, 2.0  # of edges, and how much stronger they pull within a community
COHESION = 0.05  # pull to the middle of the community
GRAVITY = (0.09, 0.145)  # pull to the middle of all, across and down: pictures are wider than high
Link = tuple[int, int, float]  # two nodes and the strength of their edge


@dataclass(frozen=True)
class Placement:
    """The position and community of each node. Communities are numbered by size, the largest first."""

    positions: list[tuple[int, int]]
    communities: list[int]


def place_nodes(sizes: Sequence[float], links: Sequence[Link]) -> Placement:
    """Place nodes of the given sizes (radii), at most a few thousand."""
    if not sizes:
        return Placement([], [])
    communities = find_communities(len(sizes), links)
    start = _arrange(communities, sizes, links)
    moved = _separate(_relax(start, communities, sizes, links), sizes)
    return Placement(_scaled(moved), communities)


def find_communities(count: int, links: Sequence[Link]) -> list[int]:
    """Return the community of each node; nodes without edges have one each."""
    import networkx

    graph: Any = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(links)
    groups = networkx.community.louvain_communities(graph, weight="weight", seed=SEED)
    ordered = sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))
    numbers = {node: number for number, group in enumerate(ordered) for node in group}
    return [numbers[node] for node in range(count)]


def _arrange(communities: Sequence[int], sizes: Sequence[float], links: Sequence[Link]) -> Rows:
    """Return initial positions: each community in a disc, those with many common edges near each other."""
    import networkx
    import numpy as np

    count = max(communities) + 1
    members: list[list[int]] = [[] for _ in range(count)]
    for node, community in enumerate(communities):
        members[community].append(node)
    graph: Any = networkx.Graph()
    for one, other, strength in links:
        pair = communities[one], communities[other]
        if pair[0] != pair[1] and max(pair) < MOST_ARRANGED:
            known = graph.get_edge_data(*pair, {"weight": 0.0})["weight"]
            graph.add_edge(*pair, weight=known + strength)
    centres = networkx.spring_layout(graph, weight="weight", seed=SEED, iterations=60) if len(graph) else {}
    spread = 1.1 * math.sqrt(sum((size + 6) ** 2 for size in sizes))
    start = np.zeros((len(sizes), 2), dtype=np.float32)
    for community, nodes in enumerate(members):
        angle = community * GOLDEN
        alone = (math.cos(angle) * 1.1, math.sin(angle) * 1.1)
        centre = np.asarray(centres.get(community, alone)) * spread
        radius = 0.0
        for place, node in enumerate(nodes):  # the most important in the middle
            radius += (sizes[node] + 6) ** 2
            turn = place * GOLDEN
            start[node] = centre + math.sqrt(radius) * np.array([math.cos(turn), math.sin(turn)])
    return start


MOST_ARRANGED = 480  # communities that networkx arranges without scipy
GOLDEN = math.pi * (3 - math.sqrt(5))


def _relax(start: Rows, communities: Sequence[int], sizes: Sequence[float], links: Sequence[Link]) -> Rows:
    """Move nodes: all repel each other, edges and communities pull together."""
    import numpy as np

    count = len(start)
    at = start.copy()
    group = np.asarray(communities)
    mass = (np.asarray(sizes, dtype=np.float32) + 6) ** 2
    one = np.fromiter((link[0] for link in links), dtype=np.int64, count=len(links))
    other = np.fromiter((link[1] for link in links), dtype=np.int64, count=len(links))
    pull = np.fromiter((link[2] for link in links), dtype=np.float32, count=len(links))
    pull *= np.where(group[one] == group[other], WITHIN, 1.0).astype(np.float32) * PULL
    members = np.bincount(group).astype(np.float32)
    for step in range(STEPS):
        cooling = 1 - step / STEPS
        force = _repulsion(at, mass)
        along = (at[other] - at[one]) * pull[:, None]
        for axis in range(2):
            force[:, axis] += np.bincount(one, along[:, axis], count) - np.bincount(other, along[:, axis], count)
            centre = np.bincount(group, at[:, axis]) / members
            force[:, axis] += (centre[group] - at[:, axis]) * COHESION - at[:, axis] * GRAVITY[axis]
        length = np.maximum(np.linalg.norm(force, axis=1), 1e-6)
        at += force * (np.minimum(length, 40 * cooling) / length)[:, None]
    return at


def _repulsion(at: Rows, mass: Rows) -> Rows:
    """Return the force on each node from all others, by blocks of rows that fit into the processor's cache.

    Plain loops: for such narrow matrices, the threads of a matrix product cost more than they gain.
    """
    import numpy as np

    force = np.empty_like(at)
    x, y = np.ascontiguousarray(at[:, 0]), np.ascontiguousarray(at[:, 1])
    for start in range(0, len(at), BLOCK):
        end = start + BLOCK
        across, down = x[start:end, None] - x, y[start:end, None] - y
        share = across * across
        share += down * down
        np.maximum(share, CLOSEST**2, out=share)
        np.divide(mass, share, out=share)
        across *= share
        down *= share
        force[start:end, 0] = across.sum(axis=1)
        force[start:end, 1] = down.sum(axis=1)
    return force


def _separate(at: Rows, sizes: Sequence[float]) -> Rows:
    """Push overlapping nodes apart."""
    import numpy as np

    radius = np.asarray(sizes, dtype=np.float32) + 2.5
    for _ in range(12):
        order = np.argsort(at[:, 0], kind="stable")
        x = at[order, 0]
        moved = False
        push = np.zeros_like(at)
        for shift in range(1, min(60, len(at))):
            if shift >= len(at):
                break
            one, other = order[:-shift], order[shift:]
            close = (x[shift:] - x[:-shift]) < radius[one] + radius[other]
            if not close.any():
                break
            one, other = one[close], other[close]
            between = at[other] - at[one]
            distance = np.maximum(np.linalg.norm(between, axis=1), 0.01)
            overlap = radius[one] + radius[other] - distance
            hit = overlap > 0
            if not hit.any():
                continue
            moved = True
            step = between[hit] / distance[hit, None] * (overlap[hit] * 0.5)[:, None]
            np.add.at(push, other[hit], step)
            np.add.at(push, one[hit], -step)
        at = at + push * 0.8
        if not moved:
            break
    return at


def _scaled(at: Rows) -> list[tuple[int, int]]:
    """Return whole positions around the middle, the furthest at SCALE."""
    middle = (at.max(axis=0) + at.min(axis=0)) / 2
    centred = at - middle
    furthest = float(abs(centred).max()) or 1.0
    return [(round(float(x) * SCALE / furthest), round(float(y) * SCALE / furthest)) for x, y in centred]

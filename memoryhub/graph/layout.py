"""The layout of a term and its neighbours as points on a ring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SIZE = 320
CENTRE = SIZE / 2
NEAR, FAR = 80.0, 128.0  # radius of cosine 1 and of 0 or unknown


@dataclass(frozen=True)
class Node:
    """A neighbour at (x, y); ``anchor``: the text anchor of its label."""

    label: str
    href: str
    x: float
    y: float
    anchor: str


def ring(neighbours: Sequence[tuple[str, str, float | None]]) -> list[Node]:
    """Place (label, address, cosine or None) clockwise from the top; higher cosines are nearer to the centre."""
    nodes = []
    for index, (label, href, cosine) in enumerate(neighbours):
        angle = 2 * math.pi * index / len(neighbours) - math.pi / 2
        radius = FAR - (FAR - NEAR) * max(0.0, min(1.0, cosine or 0.0))
        x, y = CENTRE + radius * math.cos(angle), CENTRE + radius * math.sin(angle)
        side = math.cos(angle)
        anchor = "middle" if abs(side) < 0.2 else "start" if side > 0 else "end"
        nodes.append(Node(label, href, round(x, 1), round(y, 1), anchor))
    return nodes

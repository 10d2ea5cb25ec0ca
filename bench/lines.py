"""Compaction: the hub's join of near-duplicate lines beside Grip's comparison of each line with each other."""

from __future__ import annotations

import random
import time
from typing import Any

from corpus import Writer

from memoryhub.lib.search.tokenizing import STOP
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, group_pairs, near_pairs
from memoryhub.search.grip_scoring import tokens_of

COPIES = 0.3  # of the lines, each nearly as one before it


def made_lines(count: int) -> list[str]:
    """Return lines without numbers and negations, as both sides cut them into the same words."""
    writer, own = Writer(seed=23), random.Random(29)
    lines: list[str] = []
    others = [word for word in writer.words[500:5_000] if len(word) > 2]
    for text in writer.texts(count, usual=24, least=16, most=50):
        words = [word for word in text.rstrip(".").lower().split() if word not in STOP and len(word) > 2]
        if lines and own.random() < COPIES:
            words = own.choice(lines).split()
            words[own.randrange(len(words))] = own.choice(others)
        lines.append(" ".join(words) or "nothing")
    return lines


def kept_by_all_pairs(lines: list[str], threshold: float) -> list[int]:
    """Return the lines that stay, each compared with each: Jaccard's likeness, the first of a group stays."""
    sets = [set(tokens_of(line)) for line in lines]
    gone: set[int] = set()
    for place, one in enumerate(sets):
        if place in gone:
            continue
        for other in range(place + 1, len(sets)):
            if other in gone:
                continue
            union = len(one | sets[other])
            if union and len(one & sets[other]) / union >= threshold:
                gone.add(other)
    return [place for place in range(len(lines)) if place not in gone]


def kept_by_join(lines: list[str], threshold: float) -> list[int]:
    same, _ = near_pairs(lines, threshold=threshold)
    gone = {other for _, others, _ in group_pairs(same) for other in others}
    return [place for place in range(len(lines)) if place not in gone]


def compare(count: int, measured: int) -> dict[str, Any]:
    """Return seconds of both ways at ``count`` lines; all pairs of ``measured`` lines, made more by the square."""
    lines = made_lines(count)
    began = time.perf_counter()
    kept_by_join(lines, DEFAULT_THRESHOLD)
    ours = time.perf_counter() - began
    part = lines[:measured]
    began = time.perf_counter()
    kept = kept_by_all_pairs(part, DEFAULT_THRESHOLD)
    theirs = time.perf_counter() - began
    return {
        "lines": count,
        "measured": measured,
        "seconds": ours,
        "seconds of all pairs": theirs * (count / measured) ** 2,
        "kept": len(kept),
        "same": kept == kept_by_join(part, DEFAULT_THRESHOLD),
    }

"""Compare the hub's search for near-duplicate lines with Grip's comparison of every pair of lines.

``bench/search/measure.py`` runs it; it prints JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from bench.corpus import Writer  # noqa: E402
from memoryhub.lib.search.tokenizing import STOP_WORDS  # noqa: E402
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, group_pairs, near_pairs  # noqa: E402
from memoryhub.search.grip_scoring import tokens_of  # noqa: E402

COPIES = 0.3  # share of lines that nearly repeat an earlier one


def made_lines(count: int) -> list[str]:
    """Return lines without numbers and negations, so that both sides tokenise them alike."""
    writer, own = Writer(seed=23), random.Random(29)
    lines: list[str] = []
    others = [word for word in writer.words[500:5_000] if len(word) > 2]
    for text in writer.texts(count, usual=24, least=16, most=50):
        words = [word for word in text.rstrip(".").lower().split() if word not in STOP_WORDS and len(word) > 2]
        if lines and own.random() < COPIES:
            words = own.choice(lines).split()
            words[own.randrange(len(words))] = own.choice(others)
        lines.append(" ".join(words) or "nothing")
    return lines


def kept_by_all_pairs(lines: list[str], threshold: float) -> list[int]:
    """Return the lines to keep after comparing every pair by Jaccard similarity: the first of each group."""
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
    """Time both ways with ``count`` lines; all pairs are measured with ``measured`` lines and extrapolated."""
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


if __name__ == "__main__":
    print(json.dumps(compare(int(sys.argv[1]), int(sys.argv[2]))))

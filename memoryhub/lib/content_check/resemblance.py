"""Recognise text that resembles injected instructions, also if no rule has its words.

A linear model weighs the features of a text. ``bench/content_check/training.py`` makes the weights from tables of
instructions and facts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from itertools import chain
from math import sqrt
from pathlib import Path

from memoryhub.lib.content_check.features import features_of
from memoryhub.lib.text_caches import text_cache

WEIGHTS = Path(__file__).parent / "weights.bin"
HEADER = struct.Struct("<ff")  # the size of a step of the weights, and what is added to each score
CERTAINLY_FACT = -2.5
MAX_PART_CHARS = 240
MIN_SENTENCE_CHARS = 30
_SENTENCE = re.compile(r"\S\s+\S+\s+\S|[\u3040-\u30ff\u3400-\u9fff]{5}")  # three words; an address alone says nothing
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；।؟۔])")


def resembles_instruction(folded: str) -> bool:
    """Return whether a part of a folded text resembles the instructions of the tables."""
    return any(score(part) > 0 for part in _parts(folded) if _SENTENCE.search(part))


def resembles_fact(folded: str) -> bool:
    """Return whether a folded sentence resembles the facts of the tables so much that no rule need apply to it."""
    return score(folded) < CERTAINLY_FACT


@text_cache(4_096)  # a sentence is also read with its neighbours, and when a rule applies to it
def score(folded: str) -> float:
    """Return how much a text resembles an instruction: below 0 for a fact. Takes linear time."""
    step, constant, weights = _weights()
    found = features_of(folded)
    return step * sum(weights[feature] for feature in found) / sqrt(len(found)) + constant


@cache
def _weights() -> tuple[float, float, memoryview]:
    raw = memoryview(WEIGHTS.read_bytes())
    step, constant = HEADER.unpack(raw[: HEADER.size])
    return step, constant, raw[HEADER.size :].cast("b")


def _parts(folded: str) -> set[str]:
    """Return the sentences of a text, and its parts of several sentences up to ``MAX_PART_CHARS``."""
    parts, part = {folded[:MAX_PART_CHARS]}, ""
    for sentence in chain.from_iterable(map(_pieces, SENTENCE_END.split(folded))):
        if len(part) + len(sentence) > MAX_PART_CHARS:
            parts.add(part)
            part = ""
        if len(sentence) >= MIN_SENTENCE_CHARS:
            parts.add(sentence)
        part = f"{part} {sentence}".strip()
    return {*parts, part} - {""}


def _pieces(sentence: str) -> Iterator[str]:
    """Yield a sentence in overlapping pieces of up to ``MAX_PART_CHARS``."""
    step = MAX_PART_CHARS // 2
    for start in range(0, max(1, len(sentence) - step), step):
        yield sentence[start : start + MAX_PART_CHARS]

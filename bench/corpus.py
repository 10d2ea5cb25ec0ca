"""Test texts: LoCoMo's conversations, and any number of generated entries.

Generated texts are the same in every run: words by Zipf's law with English function words as the most common ones,
messages of 5 to 120 words, and sessions of 50 entries spread over a thousand workspaces, a third in the first.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from memoryhub.lib.search.tokenizing import STOP_WORDS

QUESTIONS = Path(__file__).resolve().parent.parent.parent / "shared" / "bench" / "locomo_dev.json"
START = datetime(2025, 1, 6, 8, tzinfo=UTC)
WORKSPACES = 1_000
GIANT = 3  # one in this many sessions belongs to the first workspace
PER_SESSION = 50
AUTHORS = ("Ada", "Grace", "Edsger", "Barbara", "assistant", "Niklaus")
COMMONEST = (
    "the of and to a in is it that for you was on with as have but be they i at this not are from by or we an had"
)
ONSETS = "b br c ch d dr f fl g gr h j k l m n p pl qu r s sh st t tr v w"
VOWELS = "a e i o u ai ea ou"
CODAS = "n r l s t nd ck m"


@dataclass(frozen=True)
class Turn:
    """A generated entry."""

    workspace: int  # from 1
    session: int  # from 1
    position: int
    author: str
    text: str
    at: datetime


def vocabulary(size: int) -> list[str]:
    """Return distinct words, most common first: function words, then generated ones."""
    own = random.Random(1)
    first = COMMONEST.split()
    words = dict.fromkeys([*first, *(word for word in sorted(STOP_WORDS - set(first)) if len(word) > 1)])
    onsets, vowels, codas = ONSETS.split(), VOWELS.split(), ["", "", *CODAS.split()]
    while len(words) < size:
        count = own.choice((1, 2, 2, 3, 3, 4))
        syllables = (own.choice(onsets) + own.choice(vowels) + own.choice(codas) for _ in range(count))
        words["".join(syllables)] = None
    return list(words)


class Writer:
    """Generates the same sequence of texts in every run."""

    def __init__(self, seed: int = 7, *, vocabulary_size: int = 50_000) -> None:
        self.words = vocabulary(vocabulary_size)
        self._array = np.array(self.words, dtype=object)
        shares = 1 / (np.arange(vocabulary_size) + 2.7) ** 1.07  # Mandelbrot's form of Zipf's law
        self._cumulated = np.cumsum(shares / shares.sum())
        self._random = np.random.default_rng(seed)

    def texts(self, count: int, *, usual: float = 18, least: int = 5, most: int = 120) -> list[str]:
        """Return texts with log-normally distributed lengths in words, around ``usual``."""
        lengths = np.clip(self._random.lognormal(np.log(usual), 0.8, count), least, most).astype(int)
        places = np.searchsorted(self._cumulated, self._random.random(int(lengths.sum())))
        words = self._array[np.minimum(places, len(self.words) - 1)].tolist()
        texts, start = [], 0
        for length in lengths.tolist():
            text = " ".join(words[start : start + length])
            texts.append(f"{text[0].upper()}{text[1:]}.")
            start += length
        return texts


def turns(writer: Writer, *, seed: int = 3) -> Iterator[list[Turn]]:
    """Yield sessions of generated entries, endlessly."""
    own = random.Random(seed)
    session, at = 0, START
    while True:
        texts = writer.texts(PER_SESSION * 100)
        for first in range(0, len(texts), PER_SESSION):
            session += 1
            workspace = 1 if own.randrange(GIANT) == 0 else own.randint(2, WORKSPACES)
            voices = own.sample(AUTHORS, 2)
            at += timedelta(minutes=11)
            yield [
                Turn(workspace, session, place, voices[place % 2], text, at + timedelta(seconds=20 * place))
                for place, text in enumerate(texts[first : first + PER_SESSION])
            ]


def question_from(text: str, own: random.Random) -> str:
    """Return 2 to 8 words of a text, at least one of which isn't a stop word."""
    words = text.rstrip(".").lower().split()
    telling = [word for word in words if word not in STOP_WORDS]
    if not telling:
        return ""
    wanted = min(len(words), own.randint(2, 8))
    chosen = own.sample(range(len(words)), wanted)
    picked = [words[place] for place in sorted(chosen)]
    return " ".join(picked if any(word not in STOP_WORDS for word in picked) else [*picked[1:], own.choice(telling)])


def conversations(path: Path) -> list[dict[str, Any]]:
    """Return LoCoMo's conversations (CC BY-NC 4.0, for measuring only)."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["conversations"]
    return found


def text_of(entry: dict[str, Any]) -> str:
    caption = f" [image: {entry['caption']}]" if entry.get("caption") else ""
    return f"{entry['text']}{caption}"


def said(entry: dict[str, Any]) -> dict[str, str]:
    """Return a conversation's entry as a message to append."""
    return {"role": "user", "name": entry["author"], "content": text_of(entry), "timestamp": f"{entry['time']}+00:00"}

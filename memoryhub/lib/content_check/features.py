"""Describe a text by numbers that stand for its words, parts of words and concepts, for ``resemblance``."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import combinations, pairwise, product

from memoryhub.lib.content_check.lexicon import Hit, Is, Reading
from memoryhub.lib.content_check.rules import readings_of
from memoryhub.lib.content_check.targets import COMMAND, PATH, has_target

FEATURES = 1 << 16
_PLACES = [  # each kind of place stands for itself, whatever its address is
    (re.compile(r"\b[a-z][a-z0-9+]{1,9}://[^\s,，。、」）)'\"]+|\bwww\.\S+"), " ⓤ "),
    (re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), " ⓜ "),
    (re.compile(r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{3,4}){3,8}\b|\b0x[0-9a-f]{6,}|\bbc1[a-z0-9]{6,}"), " ⓘ "),
    (re.compile(r"\+\d[\d ()-]{6,}\d|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"), " ⓟ "),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "0"),
]
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W_]+|[ⓤⓜⓘⓟ`/~?]")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_MAX_WORD_CHARS = 20
_NAMES = {bit: name for name, bit in vars(Is).items() if name.isupper() and bit != Is.COMMON}


def features_of(folded: str) -> list[int]:
    """Return the features of a folded text: sorted numbers below ``FEATURES``."""
    names = {*_parts(folded), *_concepts(folded)}
    return sorted({zlib.crc32(name.encode()) % FEATURES for name in names})


def _parts(folded: str) -> Iterator[str]:
    """Yield words, pairs of words, and parts of 3 to 5 letters; of 1 to 3 characters where words aren't spaced."""
    for pattern, sign in _PLACES:
        folded = pattern.sub(sign, folded)
    last = "^"
    yield last
    for word in _TOKEN.findall(folded):
        if _UNSPACED.match(word):
            yield from _grams(word, (1, 2, 3))
        else:
            bounded = f"<{word}>"
            yield bounded
            yield from _grams(bounded, (3, 4, 5))
            yield f"{last} {word}"
        last = word[-_MAX_WORD_CHARS:]
    yield f"{last} $"


def _grams(word: str, sizes: tuple[int, ...]) -> Iterator[str]:
    return (word[start : start + size] for size in sizes for start in range(len(word) - size + 1))


def _concepts(folded: str) -> Iterator[str]:
    """Yield the concepts of the language that has most of the words, those in a row, and those that meet."""
    is_targeted = has_target(folded)
    yield f"target {is_targeted}"
    yield f"command {bool(COMMAND.search(folded))}"
    yield f"path {bool(PATH.search(folded))}"
    readings = readings_of(folded, has_target=is_targeted)
    if readings:
        reading = max(readings.values(), key=lambda reading: reading.words)
        yield from _meetings(reading, is_targeted=is_targeted)


def _meetings(reading: Reading, *, is_targeted: bool) -> Iterator[str]:
    named = [names for hit in reading.hits if (names := _names(hit))]
    for one, other in pairwise(named):
        yield from (f"{first}>{second}" for first, second in product(one, other))
    met = sorted({name for names in named for name in names} | ({"TARGETED"} if is_targeted else set()))
    yield from (f"concept {name}" for name in met)
    yield from (f"{one}&{other}" for one, other in combinations(met, 2))


def _names(hit: Hit) -> list[str]:
    names = [name for bit, name in _NAMES.items() if hit.bits & bit]
    return names + [f"leading {name}" for name in names] if hit.leads else names

"""Tokenise text in the same way as the search indexes of both databases.

Words are runs of letters and digits, folded and stemmed by Porter's algorithm. In "paired" scripts,
which don't separate words or attach particles and articles to them, a run is indexed as pairs of adjacent characters,
so that words inside it can be found. The databases drop emoji, so each is indexed as a word made of its code point.
"""

from __future__ import annotations

import re
import unicodedata

import snowballstemmer

from memoryhub.lib.text_caches import text_cache

# Regular expression classes, without punctuation.
# Scripts without spaces: Thai, Lao, Tibetan, Burmese, Khmer, kana, Han.
UNSPACED = (
    "\u0e00-\u0e4e\u0e50-\u0e59\u0e5c-\u0fff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17db-\u17ff"
    "\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
# Scripts that attach articles and other small words, like Hangul particles: Hebrew, Arabic.
ATTACHING = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7-\u05f2\u0610-\u061a\u0620-\u0669\u066e-\u06d3\u06d5-\u06ff"
    "\u0750-\u077f\ufb1d-\ufb28\ufb2a-\ufd3d\ufd40-\ufdfb\ufe70-\ufefc"
)
PAIRED = UNSPACED + HANGUL + ATTACHING
EMOJI_RANGES = (
    (0x2300, 0x23FF),
    (0x2600, 0x27BF),
    (0x2B00, 0x2BFF),
    (0x1F000, 0x1F0FF),
    (0x1F1E6, 0x1F1FF),
    (0x1F300, 0x1FAFF),
)
EMOJI = "".join(f"{chr(first)}-{chr(last)}" for first, last in EMOJI_RANGES)
EMOJI_PREFIX = "zu"  # of the indexed word: zu128077 for U+1F44D
# Removed when folding: accents, Hebrew points, Arabic diacritics and tatweel.
MARKS = "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
# Also removed: soft hyphens, zero-width characters, bidirectional controls and variation selectors.
INVISIBLE_RANGES = (
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x2069),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
)
INVISIBLE = "".join(f"{chr(first)}-{chr(last)}" for first, last in INVISIBLE_RANGES)
_COMMON = """
a about after all also am an and any are as at be because been before being between both but by can could did do does
doing done down during each few for from further had has have having he her here hers him his how i if in into is it
its itself just like made make many me more most much my no nor not now of off on once only or other our out over own
s same she should so some such t than that the their them then there these they this those through to too under until
up very was we were what when where which while who whom why will with would you your
"""
STOP_WORDS = frozenset(_COMMON.split())
_RUNS = re.compile(f"[{PAIRED}]+|[{EMOJI}]+|[^\\W_{PAIRED}]+")
_PAIRED = re.compile(f"[{PAIRED}]")
_EMOJI = re.compile(f"[{EMOJI}]")
_REMOVED = re.compile(f"[{MARKS}{INVISIBLE}]")
_porter = snowballstemmer.stemmer("porter")


@text_cache(100_000)
def stem(word: str) -> str:
    """Return the stem of a lower-case word. Words of up to two letters, or with non-ASCII letters, aren't stemmed."""
    return str(_porter.stemWord(word)) if len(word) > 2 and word.isascii() and word.isalpha() else word


def fold(text: str) -> str:
    """Return text for comparison: lower case, without diacritics and invisible characters, compatibility characters
    replaced (NFKC), ß as ss, ς as σ, ı as i. Both databases' indexes fold in the same way."""
    if text.isascii():
        return text.lower()
    return fold_keeping_case(text).lower().replace("ς", "σ").replace("ı", "i")


def fold_keeping_case(text: str) -> str:
    """Return text folded but for its case, with as many characters as ``fold`` returns."""
    bare = _REMOVED.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare.replace("ß", "ss").replace("ẞ", "SS"))


def is_paired(word: str) -> bool:
    """Return whether a word is in a script that is indexed as pairs of characters."""
    return bool(_PAIRED.match(word))


def is_emoji(word: str) -> bool:
    return bool(_EMOJI.match(word))


def split_words(text: str) -> list[str]:
    """Return the folded words of a text in order; a run of a paired script or of emoji is one word."""
    return _RUNS.findall(fold(text))


def word_parts(word: str) -> list[str]:
    """Return the parts that a word can be searched by: pairs of adjacent characters, single emoji, or the word."""
    if is_emoji(word):
        return list(word)
    return [word[i : i + 2] for i in range(max(1, len(word) - 1))] if is_paired(word) else [word]


def index_words(word: str) -> list[str]:
    """Return the words that the indexes contain for a word."""
    return [f"{EMOJI_PREFIX}{ord(part)}" if is_emoji(part) else part for part in word_parts(word)]

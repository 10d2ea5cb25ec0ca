"""Extract the keywords of a text for the semantic graph. Pure.

Keywords are sent to an embedding provider, so anything that could be a key, a hash or a number is left out.
"""

from __future__ import annotations

import re

from memoryhub.lib.search.tokenizing import UNSPACED
from memoryhub.lib.text.forgotten import without_mark

MAX_KEYWORDS = 20  # per text
MIN_CHARS, MAX_CHARS = 3, 30
MAX_UNSPACED = 4  # longer runs of a script without spaces are phrases, not words
WORD = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff]+"  # Chinese characters
    "|[\u30a1-\u30fa\u30fc]+"  # katakana, mostly single words
    f"|[^\\W_{UNSPACED}]+(?:'[^\\W_{UNSPACED}]+)*"
)
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{6,}")
_MIXED = re.compile(r".*\d\D+\d|(?=.*\d).{13}")  # digits in several places, or in a long word: an identifier
_COMMON = (
    "about above after again against all also and any are aren't because been before being below between both but "
    "can cannot could couldn't did didn't does doesn't doing don't down during each either else etc even every "
    "few for from further get gets got had hadn't has hasn't have haven't having her here hers herself him "
    "himself his how however i'd i'll i'm i've if in into is isn't it it's its itself just let like made make "
    "makes many may me might more most much must my myself neither never no nor not now of off often on once one "
    "only or other our ours ourselves out over own per rather really same shall she should shouldn't since so "
    "some still such than that that's the their theirs them themselves then there there's these they they're this "
    "those though through thus to too two under until up upon us use used uses using very via was wasn't we we're "
    "were weren't what when where whether which while who whom whose why will with within without won't would "
    "wouldn't yet you you're your yours yourself"
)
STOP_WORDS = frozenset(_COMMON.split())


def keywords_of(text: str) -> list[str]:
    """Return up to 20 distinct lower-case keywords of a text, in order of first use.

    Words have 3 to 30 characters. Stop words, numbers and identifiers are left out. In scripts without spaces, only
    short runs between other characters count as words.
    """
    found: dict[str, None] = {}
    for match in WORD.finditer(without_mark(text).lower().replace("’", "'")):
        word = match.group()
        word = "" if word in STOP_WORDS else word.partition("'")[0]
        if is_keyword(word):
            found[word] = None
            if len(found) == MAX_KEYWORDS:
                break
    return list(found)


def is_keyword(word: str) -> bool:
    """Tell whether a lower-case word can be a keyword."""
    if is_unspaced(word[:1]):
        return 2 <= len(word) <= (MAX_CHARS if "\u30a1" <= word[0] <= "\u30ff" else MAX_UNSPACED)
    if not MIN_CHARS <= len(word) <= MAX_CHARS or word in STOP_WORDS:
        return False
    return not (word.isnumeric() or _HEX.fullmatch(word) or _MIXED.match(word))


def is_unspaced(character: str) -> bool:
    """Tell whether a character belongs to a script without spaces between words."""
    return bool(re.match(f"[{UNSPACED}]", character))


def has_word(text: str, word: str) -> bool:
    """Tell whether a text contains a whole word, ignoring case."""
    before = r"(?<!\w)" if _needs_edge(word[:1]) else ""
    after = r"(?!\w)" if _needs_edge(word[-1:]) else ""
    return bool(re.search(f"{before}{re.escape(word)}{after}", text, re.IGNORECASE))


def _needs_edge(character: str) -> bool:
    return bool(re.match(r"\w", character)) and not is_unspaced(character)

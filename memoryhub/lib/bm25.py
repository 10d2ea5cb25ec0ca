"""Ranking texts for a query by BM25, with document frequencies of the collection at hand. Pure.

k1 1.2 and b 0.75; idf = ln(1 + (N - n + 0.5) / (n + 0.5)). Words are stemmed by Porter's algorithm; scripts without
spaces count by pairs of characters.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import snowballstemmer

K1, B = 1.2, 0.75
MAX_QUERY_CHARS, MAX_QUERY_TERMS = 512, 12
_COMMON = """
a about after all also am an and any are as at be because been before being between both but by can could did do does
doing done down during each few for from further had has have having he her here hers him his how i if in into is it
its itself just like made make many me more most much my no nor not now of off on once only or other our out over own
s same she should so some such t than that the their them then there these they this those through to too under until
up very was we were what when where which while who whom why will with would you your
"""
STOP = frozenset(_COMMON.split())
UNSPACED = (
    "\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"  # a regex class
)
_RUNS = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_porter = snowballstemmer.stemmer("porter")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; what isn't plain English letters is its own."""
    return str(_porter.stemWord(word)) if word.isascii() and word.isalpha() else word


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and without accents; pairs of unspaced characters."""
    words: list[str] = []
    for run in _RUNS.findall(text.lower() if text.isascii() else _without_accents(text)):
        if _UNSPACED.match(run):
            words += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        else:
            words.append(run)
    return words


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", "".join(c for c in apart if not "\u0300" <= c <= "\u036f"))


def terms_of(text: str, *, wanted: Collection[str] = ()) -> list[str]:
    """Return the stems of a text's words, stop words left out unless they are ``wanted``."""
    return [stem(word) for word in words_of(text) if word not in STOP or word in wanted]


def query_words(query: str) -> list[str]:
    """Return what a query asks for: at most 12 different words of its first 512 characters, stop words left out.

    A query of nothing but stop words asks for those.
    """
    found = list(dict.fromkeys(words_of(query[:MAX_QUERY_CHARS])))
    return ([word for word in found if word not in STOP] or found)[:MAX_QUERY_TERMS]


def count_documents(documents: Sequence[Sequence[str]]) -> Counter[str]:
    """Return for each term the number of documents that have it. ``documents``: terms of each."""
    return Counter(term for terms in documents for term in set(terms))


def rank(weights: Mapping[str, float], documents: Sequence[Sequence[str]]) -> list[tuple[int, float]]:
    """Return the documents that have a term of a query: (index, score), best first, the earlier one of equals first.

    ``weights``: how much each term of the query counts, 1 for a word that was asked for.
    """
    wanted = weights.keys()
    counts = [Counter(term for term in terms if term in wanted) for terms in documents]
    frequency = Counter(term for count in counts for term in count)
    total = len(documents)
    average = sum(map(len, documents)) / total if total else 0.0
    idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in frequency.items()}
    scored = []
    for index, count in enumerate(counts):
        if count:
            norm = K1 * (1 - B + B * len(documents[index]) / average)
            score = sum(weights[t] * idf[t] * tf * (K1 + 1) / (tf + norm) for t, tf in count.items())
            scored.append((index, score))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))

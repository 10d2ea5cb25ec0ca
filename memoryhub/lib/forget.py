"""Finding words that are to be forgotten, and taking them out of texts, JSON and records. Pure.

A phrase is a sequence of tokens: words in any case and compatibility form, one character each in scripts without
spaces. So "Anna  WEBER" is found in "anna-weber's", and "田中" inside a sentence, but "ann" not inside "annual". What
was forgotten is known again by keyed hashes of such sequences, which tell nobody the words.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

MARK = "[forgotten]"
LEAST_CHARS = 3  # of a phrase: a shorter one would take half of everything with it
MAX_TOKENS = 32  # of a phrase that are compared
_PIECES = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\\W_]+")
_BULLET = re.compile(r"^(\s*(?:[-*+]|#{1,6}|\d+[.)])\s+)")
Phrase = tuple[str, ...]
Span = tuple[int, int]
Finder = Callable[[str], list[Span]]  # finds what is to be forgotten in a text: [start, end), in order


@dataclass(frozen=True)
class Digest:
    """A phrase as its number of tokens and the keyed hash of them, in hex."""

    length: int
    hash: str


def tokens_with_places(text: str) -> list[tuple[str, int, int]]:
    """Return a text's tokens, each with where it begins and ends."""
    return [(_folded(found.group()), found.start(), found.end()) for found in _PIECES.finditer(text)]


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()


def phrase_of(text: str) -> Phrase:
    """Return the tokens of a phrase, the first 32 of a longer one; () for one that is too short to look for."""
    tokens = tuple(token for token, _, _ in tokens_with_places(text))[:MAX_TOKENS]
    has_unspaced = any(not token.isascii() for token in tokens)
    is_enough = sum(map(len, tokens)) >= LEAST_CHARS or (has_unspaced and len(tokens) > 1)
    return tokens if is_enough else ()


def find_phrases(phrases: Collection[Phrase]) -> Finder:
    """Return a finder of phrases."""
    wanted = [phrase for phrase in phrases if phrase]
    firsts = {phrase[0] for phrase in wanted}

    def find(text: str) -> list[Span]:
        folded = _folded(text)
        if not any(first in folded for first in firsts):  # cheap, and true of almost every text
            return []
        tokens = tokens_with_places(text)
        words = [token for token, _, _ in tokens]
        spans = [
            (tokens[i][1], tokens[i + len(phrase) - 1][2])
            for phrase in wanted
            for i in range(len(words) - len(phrase) + 1)
            if words[i] == phrase[0] and tuple(words[i : i + len(phrase)]) == phrase
        ]
        return _joined(spans)

    return find


def digest_of(phrase: Phrase, key: bytes) -> Digest:
    """Return the keyed hash of a phrase. ``key``: at most 64 bytes."""
    return Digest(len(phrase), hashlib.blake2b("\x1f".join(phrase).encode(), key=key, digest_size=16).hexdigest())


def find_digests(digests: Collection[Digest], key: bytes) -> Finder:
    """Return a finder of what hashes to one of the digests."""
    hashes = {digest.hash for digest in digests}
    lengths = sorted({digest.length for digest in digests})

    def find(text: str) -> list[Span]:
        tokens = tokens_with_places(text)
        words = tuple(token for token, _, _ in tokens)
        return _joined(
            [
                (tokens[i][1], tokens[i + length - 1][2])
                for length in lengths
                for i in range(len(words) - length + 1)
                if digest_of(words[i : i + length], key).hash in hashes
            ]
        )

    return find


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _nothing(_text: str) -> list[Span]:
    return []


@dataclass(frozen=True)
class Redaction:
    """What to take out: the words that ``words`` finds, and whole lines in which ``lines`` finds something."""

    words: Finder = _nothing
    lines: Finder = _nothing

    def mentions(self, value: Any) -> bool:
        """Tell whether a text, or any text inside a JSON value, holds what is to be forgotten."""
        return any(self.words(text) or self.lines(text) for text in texts_in(value))

    def text(self, text: str) -> str:
        """Return a text without it; a line that goes keeps the bullet or heading mark that it begins with."""
        if self.lines(text):
            text = "\n".join(self._line(line) for line in text.split("\n"))
        for start, end in reversed(self.words(text)):
            text = text[:start] + MARK + text[end:]
        return text

    def _line(self, line: str) -> str:
        if not self.lines(line):
            return line
        begin = _BULLET.match(line)
        return (begin.group() if begin else "") + MARK

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text in it redacted, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return type(value)(self.value(item) for item in value)
        if isinstance(value, dict):
            return {self.value(name): self.value(item) for name, item in value.items()}
        return value

    def record(self, record: Any) -> Any:
        """Return a dataclass with every text in it redacted; the same one where there is nothing to redact."""
        changed = {
            field.name: new
            for field in fields(record)
            if (new := self._of_record(old := getattr(record, field.name))) != old
        }
        return replace(record, **changed) if changed else record

    def _of_record(self, value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return self.record(value)
        if isinstance(value, list) and value and is_dataclass(value[0]):
            return [self.record(item) for item in value]
        return self.value(value)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)

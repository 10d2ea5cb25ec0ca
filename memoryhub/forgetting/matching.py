"""Match phrases and redact them in texts, JSON and records. Pure.

A phrase is a sequence of tokens: words, ignoring case and Unicode form, or single characters in scripts without
spaces. "Anna  WEBER" matches "anna-weber's" and its JSON escapes, "田中" matches inside a sentence, "ann" doesn't
match "annual". Erased phrases are recognised by keyed hashes of their tokens, which don't reveal the words.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from memoryhub.forgetting.markup import FILLER, without_markup
from memoryhub.lib.content_check.normalising import SELECTORS
from memoryhub.lib.search.passages import merge_spans
from memoryhub.lib.search.tokenizing import HANGUL, UNSPACED
from memoryhub.lib.text.forgotten import MARK

LEAST_CHARS = 3  # of a phrase: shorter ones would match almost everything
_ESCAPE = re.compile(
    r"(?<!\\)\\++(?:u(?P<code>[0-9a-fA-F]{4})|[nrtbf])"  # JSON, also within JSON; each run is read once
    r"|(?P<bytes>(?:%[0-9a-fA-F]{2})+|(?:=[0-9A-F]{2})+)"  # URLs and e-mails (quoted-printable)
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});)"
    r"|(?P<hyphen>[-=\u2010]\r?\n[ \t]*)"  # a word that continues on the next line
)
_ESCAPE_MARKS = ("\\", "%", "=", "&", "-\n", "-\r\n", "\u2010")  # each escape has one: faster than _ESCAPE
_PROGRAMS_DOCUMENT = re.compile(
    r"(AGENTS|BOOTSTRAP|CLAUDE|DREAMS|GEMINI|HEARTBEAT|HISTORY|IDENTITY|MEMORY|QWEN|README|SOUL|TOOLS|USER)\.md"
)
_BULLET = re.compile(r"^(\s*(?:[-*+]|#{1,6}|\d+[.)])\s+)")
APART = UNSPACED + HANGUL  # scripts in which each character is a token
Phrase = tuple[str, ...]
Span = tuple[int, int]
Finder = Callable[[str], list[Span]]  # returns the matches in a text as [start, end), in order


@dataclass(frozen=True)
class Digest:
    """A phrase as its number of tokens and the keyed hash of them, in hex."""

    length: int
    hash: str


_IGNORED = re.compile(  # not displayed, as those of the category Cf; and marks that strike through or enclose letters
    f"[\u034f\u0334-\u0338\u0483-\u0489\u20d0-\u20ff{SELECTORS}]"
)


@lru_cache
def _pieces() -> re.Pattern[str]:
    """Return the token pattern: a character of an unspaced script, or a word with its combining marks."""
    characters, kinds = map(chr, range(0x80, 0x10000)), ("Mn", "Mc", "Me", "Cf")
    joined = "".join(re.escape(one) for one in characters if unicodedata.category(one) in kinds)
    letter = f"[^\\W_{APART}]"
    return re.compile(f"[{APART}]|{letter}(?:{letter}|[{joined}])*")


def tokens_with_places(text: str) -> list[tuple[str, int, int]]:
    """Return a text's tokens as (token, start, end)."""
    return [(_folded(found.group()), found.start(), found.end()) for found in _pieces().finditer(text)]


def _tokens(text: str) -> list[str]:
    """Return a text's tokens alone, which is quicker."""
    if text.isascii():
        return _pieces().findall(text.lower())
    words = _pieces().findall(text)
    folded = {word: _folded(word) for word in set(words)}
    return [folded[word] for word in words]


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    plain = "".join(c for c in unicodedata.normalize("NFKC", word) if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", _IGNORED.sub("", plain).casefold())


def composed(text: str) -> str:
    """Return a text in composed form (NFC), as finders expect."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _unescaped(text: str) -> str:
    """Decode the escapes in a text, keeping its length."""

    def meaning(found: re.Match[str]) -> str:
        escape = found.group()
        if found["code"]:
            plain = chr(int(found["code"], 16))
        elif found["bytes"]:
            plain = _decoded(escape)
        elif found["entity"]:
            plain = html.unescape(escape)
        else:
            return (FILLER if found["hyphen"] else " ") * len(escape)
        return plain.ljust(len(escape), FILLER)[: len(escape)]

    return _ESCAPE.sub(meaning, text)


def _decoded(escape: str) -> str:
    """Return the text of ``%C3%BC`` or ``=C3=BC``; the escape itself if it isn't UTF-8."""
    try:
        return bytes.fromhex(escape.replace(escape[0], "")).decode()
    except UnicodeDecodeError:
        return escape


def phrase_of(text: str) -> Phrase:
    """Return the tokens of a phrase, or () if it is too short."""
    tokens = tuple(token for token, _, _ in tokens_with_places(composed(text)))
    has_unspaced = any(not token.isascii() for token in tokens)
    is_enough = sum(map(len, tokens)) >= LEAST_CHARS or (has_unspaced and len(tokens) > 1)
    return tokens if is_enough else ()


def _searching(spans_of: Callable[[str], list[Span]]) -> Finder:
    """Return a finder that searches a text, its unescaped form, and both without markup."""

    def find(text: str) -> list[Span]:
        forms = [text]
        if FILLER in text:  # a zero-width space within a word is ignored, but it may also separate words
            forms.append(text.replace(FILLER, " "))
        if any(mark in text for mark in _ESCAPE_MARKS) and _ESCAPE.search(text):
            forms.append(_unescaped(text))
        forms += [plain for form in list(forms) for plain in without_markup(form)]
        return merge_spans([span for form in forms for span in spans_of(form)])

    return find


def find_phrases(phrases: Collection[Phrase]) -> Finder:
    wanted = [phrase for phrase in phrases if phrase]
    firsts = {phrase[0] for phrase in wanted}

    def spans_of(text: str) -> list[Span]:
        if text.isascii() and not any(first in text.lower() for first in firsts):  # fast path for most texts
            return []
        tokens = tokens_with_places(text)
        words = [token for token, _, _ in tokens]
        return [
            (tokens[i][1], tokens[i + len(phrase) - 1][2])
            for phrase in wanted
            for i in range(len(words) - len(phrase) + 1)
            if words[i] == phrase[0] and tuple(words[i : i + len(phrase)]) == phrase
        ]

    return _searching(spans_of) if wanted else nothing


def find_exactly(text: str) -> Finder:
    """Return a finder of an exact text with word boundaries at both ends."""
    pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return lambda value: [found.span() for found in pattern.finditer(value)]


def find_any(finders: Sequence[Finder]) -> Finder:
    """Return a finder of what any of the finders finds."""
    used = [find for find in finders if find is not nothing]
    if len(used) < 2:
        return used[0] if used else nothing
    return lambda text: merge_spans([span for find in used for span in find(text)])


def digest_of(phrase: Phrase, key: bytes) -> Digest:
    """Return the keyed hash of a phrase. ``key``: at most 64 bytes."""
    joined = "\x1f".join(phrase).encode(errors="surrogatepass")
    return Digest(len(phrase), hashlib.blake2b(joined, key=key, digest_size=16).hexdigest())


def find_digests(digests: Collection[Digest], key: bytes, found: dict[str, Phrase] | None = None) -> Finder:
    """Return a finder of token sequences with one of the digests. ``found``: gets the sequences, by hash."""
    hashes = {digest.hash for digest in digests}
    lengths = sorted({digest.length for digest in digests})

    def spans_of(text: str) -> list[Span]:
        words, spans = _tokens(text), []
        for length in lengths:
            known = {}
            for phrase in set(zip(*(words[i:] for i in range(length)), strict=False)):  # each once
                if (digest := digest_of(phrase, key)).hash in hashes:
                    known[phrase] = digest.hash
            if known:
                places = tokens_with_places(text)
                starts = [i for i in range(len(words) - length + 1) if tuple(words[i : i + length]) in known]
                spans += [(places[i][1], places[i + length - 1][2]) for i in starts]
            if found is not None:
                found.update((hashed, phrase) for phrase, hashed in known.items())
        return spans

    return _searching(spans_of) if hashes else nothing


def nothing(_text: str) -> list[Span]:
    """Find nothing."""
    return []


@dataclass(frozen=True)
class Redaction:
    """What to remove: the matches of ``words``, and whole lines with a match of ``lines``."""

    words: Finder = nothing
    lines: Finder = nothing

    def __or__(self, other: Redaction) -> Redaction:
        return Redaction(find_any((self.words, other.words)), find_any((self.lines, other.lines)))

    def mentions(self, value: Any) -> bool:
        """Tell whether a text, or any text in a JSON value, has a match."""
        return any(self.words(text) or self.lines(text) for text in map(composed, texts_in(value)))

    def text(self, text: str) -> str:
        """Redact a text, line by line; a removed line keeps its bullet or heading mark."""
        if not self.mentions(text):
            return text
        text = composed(text)
        if spans := self.lines(text):
            text = _without_lines(text, spans)
        for start, end in reversed(self.words(text)):
            text = text[:start] + MARK + "\n" * text.count("\n", start, end) + text[end:]
        return text

    def value(self, value: Any, *, keys: bool = True) -> Any:
        """Redact every text in a JSON value; ``keys``: also the keys of objects."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return type(value)(self.value(item, keys=keys) for item in value)
        if isinstance(value, dict):
            return {self.value(name) if keys else name: self.value(item, keys=keys) for name, item in value.items()}
        return value

    def record(self, record: Any) -> Any:
        """Redact every text in a dataclass; return the same object if nothing changes."""
        changed = {
            field.name: new
            for field in fields(record)
            if (new := self._of_record(old := getattr(record, field.name))) != old
        }
        return replace(record, **changed) if changed else record

    def _of_record(self, value: Any) -> Any:
        if isinstance(value, list) and value and is_dataclass(value[0]):
            return [self.record(item) for item in value]
        return self.value(value)


def _without_lines(text: str, spans: Sequence[Span]) -> str:
    """Replace each line that overlaps one of the spans, which are in order; a match may go over several lines."""
    lines, place, following = text.split("\n"), 0, 0
    for number, line in enumerate(lines):
        start, place = place, place + len(line) + 1
        while following < len(spans) and spans[following][1] <= start:
            following += 1
        if following < len(spans) and spans[following][0] < place:
            mark = _BULLET.match(line)
            lines[number] = (mark.group() if mark else "") + MARK
    return "\n".join(lines)


def is_programs_name(name: str) -> bool:
    """Tell whether a document has a name that its program gives, such as SOUL.md or CLAUDE.md, not one of its own."""
    return _PROGRAMS_DOCUMENT.fullmatch(name.rpartition("/")[2]) is not None


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)

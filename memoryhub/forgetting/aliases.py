"""Propose other names of a person: spellings, addresses, numbers, ids and sessions. Nothing is decided here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import Model

from memoryhub.forgetting.hub_erasure import Person
from memoryhub.forgetting.matching import Phrase, composed, phrase_of, texts_in, tokens_with_places
from memoryhub.forgetting.rules import text_columns
from memoryhub.lib.text_caches import text_cache
from sessions_app.models import Entry, Session, Workspace

MOST = 40  # proposals shown
LEAST_PART = 3  # letters of a part of a name
LEAST_ID = 4  # characters of an id
LEAST_DIGITS = 7  # of a phone number
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER = re.compile(r"\+?\d[\d ()/.-]{5,18}\d")
_DATE = re.compile(r"(?:19|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?!\d)")
_SENDER = re.compile(r"(?:sender|user|from|author|account|member|chat|peer|contact)s?(?:_?(?:id|name|handle))?", re.I)
_INTRODUCTION = re.compile(
    r"(?:my name is|i am|i'm|this is|ich bin|ich heiße|mein name ist|je m'appelle|je suis|me llamo|mi chiamo)\s+$",
    re.I,
)
SPELLING, PART, ADDRESS, NUMBER, ID = "spelling", "part", "address", "number", "id"


@dataclass
class Alias:
    """A proposal: its kind, the text as it occurs, and the number of rows and workspaces with it."""

    kind: str
    text: str
    rows: int = 0
    workspaces: set[str] = field(default_factory=set)


@dataclass
class OwnSession:
    """A session that may be the person's own, and why: "key", "name" or "id"."""

    key: str
    reason: str
    entries: int
    workspaces: set[str] = field(default_factory=set)


class AliasFinder:
    """Collects proposals from rows. A row is given once, by ``add``."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.known = set(person.phrases)
        self.variants = {_folded(phrase): SPELLING for phrase in self.known}
        self.variants |= {_folded(("".join(phrase),)): SPELLING for phrase in self.known}
        for phrase in self.known:
            if len(phrase) > 1 and not any(character.isdigit() for token in phrase for character in token):
                self.variants |= {_folded((token,)): PART for token in phrase if len(token) >= LEAST_PART}
        self.firsts = {phrase[0] for phrase in self.variants}
        self.numbers = {digits for word in person.words if (digits := _digits(word))}
        self.found: dict[tuple[str, Phrase], Alias] = {}
        self.named: set[int] = set()  # primary keys of sessions in which the person's name is the user's

    def add(self, row: Model, workspace: Workspace | None) -> None:
        """Search a row."""
        place = workspace.slug if workspace else ""
        seen: set[tuple[str, Phrase]] = set()
        for column in text_columns(type(row))[0]:
            value = getattr(row, column.name)
            if not value:
                continue
            for text in map(composed, texts_in(value)):
                for kind, surface, is_name_of_user in self._in_text(text):
                    self._count(kind, surface, place, seen)
                    if is_name_of_user or (kind == "" and column.name in ("name", "extra", "title", "note")):
                        self._add_sender(row, place, seen)

    def _in_text(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the kind ("": a known name), the text and whether the user introduces themselves, of each match."""
        for found in _NUMBER.finditer(text) if self.numbers else ():
            if _digits(found.group()) in self.numbers:
                yield NUMBER, found.group(), False
        if not self._may_be_named(text):
            return
        tokens = tokens_with_places(text)
        plain = [_plain(token) for token, _, _ in tokens]
        if not self.firsts.intersection(plain):
            return
        covered: set[int] = set()  # tokens of longer matches, which come first
        for phrase, kind in sorted(self.variants.items(), key=lambda variant: -len(variant[0])):
            for i in _places(tuple(plain), phrase):
                if i in covered:
                    continue
                covered.update(range(i, i + len(phrase)))
                matched = tokens[i : i + len(phrase)]
                start, end = matched[0][1], matched[-1][2]
                is_known = tuple(token for token, _, _ in matched) in self.known
                yield "" if is_known else kind, text[start:end], bool(_INTRODUCTION.search(text[:start]))
                yield from _beside(text, start, end) if is_known else ()

    def may_match(self, text: str) -> bool:
        """Return whether ``add`` may find something in a text: a fast check that excludes most ASCII texts."""
        return bool(self.numbers and _NUMBER.search(text)) or self._may_be_named(text)

    def _may_be_named(self, text: str) -> bool:
        simple = _single_letters(text.lower())
        return not text.isascii() or any(first in simple for first in self.firsts)

    def _add_sender(self, row: Model, place: str, seen: set[tuple[str, Phrase]]) -> None:
        """Propose the sender ids of a row that the person wrote, and remember its session."""
        if not isinstance(row, Entry | Session) or (isinstance(row, Entry) and row.role != "user"):
            return
        self.named.add(row.session_id if isinstance(row, Entry) else row.pk)
        for name, value in row.extra.items() if isinstance(row.extra, dict) else ():
            if _SENDER.fullmatch(str(name)) and isinstance(value, str | int) and len(str(value)) >= LEAST_ID:
                self._count(ID, str(value), place, seen)

    def _count(self, kind: str, surface: str, place: str, seen: set[tuple[str, Phrase]]) -> None:
        phrase = phrase_of(surface)
        if not kind or not phrase or phrase in self.known:
            return
        key = (kind, phrase)
        alias = self.found.setdefault(key, Alias(kind, surface.strip()))
        alias.rows += key not in seen
        alias.workspaces |= {place} - {""}
        seen.add(key)

    def aliases(self) -> list[Alias]:
        """Return the proposals, by kind and frequency; addresses and numbers that are part of a known name last."""
        order = [SPELLING, ADDRESS, NUMBER, ID, PART]
        found = sorted(self.found.values(), key=lambda alias: (order.index(alias.kind), -alias.rows, alias.text))
        return found[:MOST]

    def sessions(self) -> list[OwnSession]:
        """Return sessions that may be the person's own, also in other workspaces."""
        rows = list(Session.objects.select_related("workspace").order_by("key", "id"))
        ids = {_identifier(row.key) for row in rows if row.pk in self.named or row.key in self.person.sessions}
        ids |= {word.rpartition(":")[2].strip() for word in self.person.words if ":" in word}
        id_phrases = {phrase_of(one) for one in ids if len(one) >= LEAST_ID and any(map(str.isdigit, one))} - {()}
        found: dict[str, OwnSession] = {}
        for row in rows:
            reason = self._reason(row, id_phrases)
            if reason or row.key in self.person.sessions:
                one = found.setdefault(row.key, OwnSession(row.key, reason, 0))
                one.entries += row.entry_count
                one.workspaces.add(row.workspace.slug)
        return list(found.values())

    def _is_in(self, key: str) -> bool:
        """Tell whether a key contains a name as a part of a word, as ``slack:D02GRETE`` does."""
        plain = _plain(key.casefold())
        names = ("".join(phrase) for phrase, kind in self.variants.items() if kind == SPELLING)
        return any(len(name) >= LEAST_ID and name in plain for name in names)

    def _reason(self, row: Session, ids: set[Phrase]) -> str:
        tokens = tuple(token for token, _, _ in tokens_with_places(composed(row.key)))
        if any(_places(tokens, phrase) for phrase in self.known) or self._is_in(row.key):
            return "key"
        if row.pk in self.named:
            return "name"
        return "id" if any(_places(tokens, phrase) for phrase in ids) else ""


def _beside(text: str, start: int, end: int) -> Iterator[tuple[str, str, bool]]:
    """Yield the addresses and numbers on the line of a match."""
    line = text[text.rfind("\n", 0, start) + 1 : len(text) if (stop := text.find("\n", end)) < 0 else stop]
    for found in _EMAIL.finditer(line):
        yield ADDRESS, found.group(), False
    for found in _NUMBER.finditer(line):
        if len(_digits(found.group())) >= LEAST_DIGITS and not _DATE.match(found.group()):
            yield NUMBER, found.group(), False


def _places(tokens: Phrase, phrase: Phrase) -> list[int]:
    """Return where a phrase begins in a sequence of tokens."""
    size = len(phrase)
    return [i for i in range(len(tokens) - size + 1) if tokens[i] == phrase[0] and tokens[i : i + size] == phrase]


def _identifier(key: str) -> str:
    """Return the part of a session key that identifies the user or chat: ``telegram:12345`` → ``12345``."""
    return key.rpartition(":")[2]


def _digits(text: str) -> str:
    """Return the last nine digits of a phone number; "" if it isn't one."""
    digits = "".join(character for character in text if character.isdigit())
    letters = sum(character.isalpha() for character in text)
    return digits[-9:] if len(digits) >= LEAST_DIGITS and not letters else ""


def _folded(phrase: Phrase) -> Phrase:
    return tuple(_plain(token) for token in phrase)


@text_cache(50_000)
def _plain(token: str) -> str:
    return _without_diacritics(token)


def _without_diacritics(text: str) -> str:
    """Return a text without diacritics; "ae", "oe", "ue" and "ss" become one letter: Müller, Mueller, Muller."""
    letters = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    letters = letters.replace("ø", "o").replace("ł", "l").replace("ß", "ss").replace("æ", "ae").replace("œ", "oe")
    return _single_letters(letters)


def _single_letters(text: str) -> str:
    return text.replace("ae", "a").replace("oe", "o").replace("ue", "u").replace("ss", "s")

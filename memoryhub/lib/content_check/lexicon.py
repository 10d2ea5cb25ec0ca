"""Find the words of rules, and of what rules reach, in a folded text, language by language.

The tables (``words_*``) list the words of each concept. ``_`` joins the words of a phrase, ``~`` is a gap in it, and
``*`` is the rest of a word. In languages without spaces, words match within longer ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from memoryhub.lib.content_check import words_asian, words_germanic, words_other, words_romance, words_slavic_turkish
from memoryhub.lib.content_check.normalising import fold
from memoryhub.lib.text_caches import text_cache


class Is:
    """The concepts that a word can stand for."""

    NORM = 1 << 0  # obligation, permission, condition, policy, wish
    NOT = 1 << 1
    AGENT = 1 << 2  # the assistant, you
    YOU = 1 << 3
    ACT = 1 << 4  # to send, run, write ...
    MILD = 1 << 5  # an act that gives nothing away
    GRAVE = 1 << 6  # to approve, pay, trust, install ...
    WIPE = 1 << 7
    DROP = 1 << 8  # to ignore, skip, disable, hide; without
    GUARD = 1 << 9  # confirmations, checks, warnings, logs
    ORDERS = 1 << 10  # instructions, rules
    PRIOR = 1 << 11
    CONSENT = 1 << 37  # a GUARD that somebody gives: confirmation, approval
    WAIVE = 1 << 12  # not needed
    VOID = 1 << 13  # no longer in force
    SELF = 1 << 14  # this note, this text
    SECRET = 1 << 15
    TELL = 1 << 16
    SHOW = 1 << 17
    WHO = 1 << 18  # the user, anyone, third parties
    THAT = 1 << 19
    MONEY = 1 << 20
    PUSH = 1 << 21  # to recommend, name, prefer
    ONLY = 1 << 22
    VENDOR = 1 << 23
    COVERT = 1 << 24
    EVERY = 1 << 25
    REPLY = 1 << 26  # what an assistant writes or gets: answers, mail, documents
    DATA = 1 << 27
    LEAD = 1 << 28  # words between the start of a clause and its imperative
    TO = 1 << 29
    TARGET = 1 << 30  # a URL, an address or code
    OBEY = 1 << 31
    WHEN = 1 << 32  # conditions
    NONE = 1 << 33  # no, not any
    ASK = 1 << 34
    BEFORE = 1 << 35
    ANYONE = 1 << 38  # whoever, guests
    GET = 1 << 39  # to receive
    QUESTION = 1 << 40
    COMMON = 1 << 36  # shows only which language it is


@dataclass(slots=True)
class Hit:
    """A word or phrase found: where, what it stands for, and whether it begins a clause, as imperatives do."""

    start: int
    end: int
    bits: int
    leads: bool = False


@dataclass(slots=True)
class Reading:
    """What was found of one language."""

    hits: list[Hit] = field(default_factory=list)
    bits: int = 0
    words: int = 0  # at different places
    is_spaced: bool = True

    def settle(self, label: int, targets: list[int]) -> None:
        """Change what words stand for after others. ``label``: where the label of the text ends, -1 without one."""
        self.hits += [Hit(start, start + len(OPAQUE), Is.TARGET) for start in targets]
        self.hits.sort(key=lambda hit: hit.start)
        last_not = last_drop = -1_000
        for hit in self.hits:
            if hit.bits & (Is.DROP | Is.COVERT) and hit.start - last_not <= SENTENCE_CHARS:
                hit.bits &= ~(Is.DROP | Is.COVERT)  # "never without review"
            elif hit.bits & (Is.DROP | Is.VOID | Is.WIPE):
                last_drop = hit.end
            if hit.bits & Is.ORDERS:  # a source in "according to the policy", a label in "Rule: no meetings"
                is_source = (hit.bits & Is.NORM or hit.end <= label) and hit.start - last_drop > SENTENCE_CHARS
                hit.bits &= ~Is.ORDERS if is_source else ~Is.NORM
            if hit.bits & Is.NORM and not hit.bits & Is.NOT and hit.start - last_not <= 15:
                hit.bits |= Is.WAIVE  # "isn't required"
            if hit.bits & Is.GUARD and hit.bits & (Is.ASK | Is.GRAVE):
                hit.bits |= Is.CONSENT
            if hit.bits & Is.NOT:
                last_not = hit.end
            self.bits |= hit.bits


_Entry = tuple[str, int, tuple[str, ...]]  # language, concepts, further words of the phrase

_UNSPACED = {"zh", "ja", "ko"}
_VARYING = {"ar", "hi", "bn", "fa-ur"}  # longer words match as prefixes, Arabic ones without their particles
_EXACT_LETTERS = {"bn": 2}  # up to which words don't match as prefixes
_NEGATED_FORMS = {"tr", "ja", "ko", "bn"}  # in these, the words of telling are listed with their negation
_TABLES = {
    "en": words_germanic.ENGLISH,
    "de": words_germanic.GERMAN,
    "nl": words_germanic.DUTCH,
    "fr": words_romance.FRENCH,
    "es": words_romance.SPANISH,
    "it": words_romance.ITALIAN,
    "pt": words_romance.PORTUGUESE,
    "ru": words_slavic_turkish.RUSSIAN,
    "pl": words_slavic_turkish.POLISH,
    "tr": words_slavic_turkish.TURKISH,
    "zh": words_asian.CHINESE,
    "ja": words_asian.JAPANESE,
    "ko": words_asian.KOREAN,
    **words_other.OTHERS,
}
_CONCEPTS = {name.lower(): bit for name, bit in vars(Is).items() if name.isupper()} | {
    "acted": Is.ACT,
    "waive": Is.NORM | Is.NOT | Is.WAIVE,
}
_DEEDS = Is.ACT | Is.GRAVE | Is.WIPE | Is.DROP | Is.PUSH
_LETTERS = str.maketrans({"ł": "l", "ı": "i", "ß": "s", "ø": "o", "đ": "d", "’": "'"})
OPAQUE = "§"  # stands for a URL, an address or code
_WORD = re.compile(OPAQUE + r"|[^\W_](?:[\w'\u0900-\u0963\u0966-\u0dff-]*[\w\u0900-\u0963\u0966-\u0dff])?'?")
_INFLECTED = re.compile(  # German and Dutch: weiterzuleiten, weitergeleitet, doorgestuurd
    r"^(aus|ein|mit|weiter|hoch|herunter|an|ab|vor|frei|preis|bei|hinzu|weg|um|heraus|zuruck|nach|uit|door|mee|af|op|toe"
    r"|over|)(?:zu|ge)(?=\w{4})"
)
_UNSPACED_CHAR = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ARABIC_PARTICLE = re.compile("^[وفبلس]?(?:ال)?(?=..)")
_CLAUSE_MARKS = frozenset(',;:—–("“”«»„!?.。、，：；（「『…|>')
_BENT = {  # words that are no imperatives but, mostly, in the third person
    "en": re.compile(r"(?:ed|ing|[^s]s)$"),
    "de": re.compile(r"^(?!schalt$|halt$|leit$|acht|antwort$|beacht$|bericht$).{4,}t$"),
    "nl": re.compile(r"^.{3,}[^aeiou]t$"),
    "ru": re.compile(r"(?:[еиюя]т|тся)$"),
    "uk": re.compile(r"(?:є|ить|ать|ять|ється)$"),
    "pl": re.compile(r"(?:[aeę]|uje|uja)$"),
    "ar": re.compile(r"^ي"),
}
_PREPOSITIONS = {"without", "ohne", "zonder", "sans", "sin", "senza", "sem", "без", "bez"}
_NEGATING = Is.NOT | Is.DROP | Is.NONE
_BEFORE_IMPERATIVES = Is.LEAD | Is.NORM | Is.NOT
MAX_WORD_CHARS = 40
MAX_LABEL_CHARS = 50
SENTENCE_CHARS = 60
GAP_CHARS = 45


def plain(text: str) -> str:
    """Return a folded text with the letters that the tables are written in."""
    return text.translate(_LETTERS)


@dataclass(slots=True)
class _Index:
    exact: dict[str, list[_Entry]] = field(default_factory=dict)
    prefix: dict[str, list[_Entry]] = field(default_factory=dict)
    suffix: dict[str, list[_Entry]] = field(default_factory=dict)
    unspaced: dict[str, list[_Entry]] = field(default_factory=dict)


@cache
def _index() -> _Index:
    index = _Index()
    for language, table in _TABLES.items():
        found: dict[str, int] = {}
        for concept, words in table.items():
            for word in words.split():
                found[word] = found.get(word, 0) | _CONCEPTS[concept]
        for word, bits in found.items():
            first, *rest = (plain(fold(part)) for part in word.replace("~", "_~_").replace("__", "_").split("_"))
            _add_word(index, first, (language, _settled(bits, language), tuple(rest)))
    return index


def _settled(bits: int, language: str) -> int:
    """Return the concepts of a word without those that others of them rule out."""
    if bits & (Is.WIPE | Is.WAIVE):
        bits &= ~Is.DROP
    if bits & Is.WHEN:
        bits &= ~Is.NORM
    if language in _NEGATED_FORMS and bits & (Is.TELL | Is.SHOW):
        bits |= Is.NOT | (Is.NORM if language in ("tr", "bn") else 0)
    return bits


def _add_word(index: _Index, first: str, entry: _Entry) -> None:
    language, bits, rest = entry
    if language in _UNSPACED and not first.isascii():
        index.unspaced.setdefault(first, []).append(entry)
    elif first.endswith("*") or (language in _VARYING and len(first) > _EXACT_LETTERS.get(language, 0)):
        index.prefix.setdefault(first.strip("*"), []).append(entry)
    elif first.startswith("*"):
        index.suffix.setdefault(first[1:], []).append(entry)
    else:
        index.exact.setdefault(first, []).append(entry)
    if language == "tr" and bits & _DEEDS and "*" in first + "".join(rest):  # the bare stem is the imperative
        bare = (language, bits | Is.NORM, tuple(part.strip("*") for part in rest))
        index.exact.setdefault(first.strip("*"), []).append(bare)


def concepts_in(text: str) -> dict[str, int] | None:
    """Return the concepts that the words of a folded text may stand for, by language: at least those of ``read``.

    Faster than that. None for text without spaces between words.
    """
    text = plain(text)
    if _UNSPACED_CHAR.search(text):
        return None
    found: dict[str, int] = {}
    for word in _WORD.findall(text):
        for language, bits in _concepts_of(word):
            found[language] = found.get(language, 0) | bits
    return found


@text_cache(10_000)
def _concepts_of(word: str) -> list[tuple[str, int]]:
    return [(language, bits) for language, bits, _ in _entries(word) if bits != Is.COMMON]


def read(text: str) -> dict[str, Reading]:
    """Return what is found in a folded text, by language."""
    text = plain(text) + "。"
    readings: dict[str, Reading] = {}
    targets: list[int] = []
    end_of_last = 0
    for match in _WORD.finditer(text):
        start, word = match.start(), match.group()
        between = text[end_of_last:start]
        begins = start == 0 or not _CLAUSE_MARKS.isdisjoint(between) or " - " in between
        if word == OPAQUE:
            targets.append(start)
        elif _UNSPACED_CHAR.search(word):
            _read_unspaced(text, match, begins=begins, readings=readings)
        elif len(word) <= MAX_WORD_CHARS:
            _read_word(text, match, begins=begins, before=end_of_last, readings=readings)
        end_of_last = match.end()
    label = text.find(":", 0, MAX_LABEL_CHARS)
    for reading in readings.values():
        reading.settle(label, targets)
    return readings


def _read_word(text: str, match: re.Match[str], *, begins: bool, before: int, readings: dict[str, Reading]) -> None:
    """Add what a word may be, in any language. ``before``: where the word before it ends."""
    word = match.group()
    for language, bits, rest in _entries(word):
        end = _end_of_phrase(text, match.end(), rest) if rest else match.end()
        if end:
            is_bent = word in _PREPOSITIONS or (language in _BENT and bool(_BENT[language].search(word)))
            is_name = text[end : end + 1] in ('"', ":", ".")  # {"mail": ...}, restore.sh
            hit = Hit(match.start(), end, bits, begins and not is_bent and not is_name)
            _add(readings, language, hit, before=-1 if is_bent else before)


@text_cache(10_000)
def _entries(word: str) -> list[_Entry]:
    """Return what a word without its inflection, its article or its particle may be, in any language."""
    index = _index()
    forms = {word, _INFLECTED.sub(r"\1", word), *word.split("'")}
    if "\u0600" <= word[0] <= "\u06ff":
        forms.add(_ARABIC_PARTICLE.sub("", word))
    entries = [entry for form in forms for entry in index.exact.get(form, ())]
    entries += [entry for form in forms for n in range(1, len(form) + 1) for entry in index.prefix.get(form[:n], ())]
    return entries + [entry for n in range(2, len(word)) for entry in index.suffix.get(word[-n:], ())]


def _read_unspaced(text: str, run: re.Match[str], *, begins: bool, readings: dict[str, Reading]) -> None:
    unspaced = _index().unspaced
    longest: dict[str, int] = {}  # where the words so far end
    for start in range(run.start(), run.end()):
        for length in range(1, 9):
            for language, bits, rest in unspaced.get(text[start : start + length], ()):
                end = start + length
                if rest:
                    end = _end_of_gap(text, end, rest)
                if end:
                    is_part = end <= longest.get(language, 0)  # of a word that began before: ず in 必ず
                    longest[language] = max(longest.get(language, 0), end)
                    hit = Hit(start, end, bits & ~_NEGATING if is_part else bits, begins and start == run.start())
                    _add(readings, language, hit, before=start)


def _end_of_gap(text: str, position: int, rest: tuple[str, ...]) -> int:
    """Return where the further parts of a phrase end in text without spaces, 0 if they aren't there."""
    is_gap = False
    for part in rest:
        if part == "~":
            is_gap = True
        else:
            found = text.find(part, position, position + len(part) + (15 if is_gap else 1))
            if found < 0:
                return 0
            position, is_gap = found + len(part), False
    return position


def _end_of_phrase(text: str, position: int, rest: tuple[str, ...]) -> int:
    """Return where the further words of a phrase end, 0 if they don't follow."""
    is_gap = False
    for part in rest:
        if part == "~":
            is_gap = True
            continue
        if text.find(part.strip("*"), position, position + GAP_CHARS) < 0:
            return 0
        for word in _WORD.finditer(text, position, position + GAP_CHARS):
            if _fits(word.group(), part):
                break
            if not is_gap:
                return 0
        else:
            return 0
        position, is_gap = word.end(), False
    return position


def _fits(word: str, part: str) -> bool:
    if part.endswith("*"):
        return word.startswith(part[:-1])
    return word.endswith(part[1:]) if part.startswith("*") else word == part


def _add(readings: dict[str, Reading], language: str, hit: Hit, *, before: int) -> None:
    reading = readings.get(language)
    if reading is None:
        reading = readings[language] = Reading(is_spaced=language not in _UNSPACED)
    hits = reading.hits
    if hits and hits[-1].start == hit.start:
        known = hits.pop()  # of two phrases, the longer one tells what is negated
        shorter, longer = sorted((known, hit), key=lambda one: one.end)
        if shorter.end < longer.end:
            shorter.bits &= ~_NEGATING
        hit = Hit(hit.start, longer.end, shorter.bits | longer.bits, known.leads or hit.leads)
    else:
        reading.words += 1
    hit.leads = hit.leads or any(last.end == before and last.bits & _BEFORE_IMPERATIVES for last in hits[-4:])
    hits.append(hit)

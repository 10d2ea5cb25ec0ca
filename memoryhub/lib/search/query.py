"""What is asked for in the search box: words, "phrases", identifiers, -exclusions, a OR b, field:value. Pure.

A question in natural language is a query as good as any: its words are joined by OR, the commonest left out. What
has no meaning in the language is searched as words, and a note says so where that isn't plain. Nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from functools import reduce

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.search.fields import ALIASES, DATE_FIELDS, FIELDS, TRAITS, bounds_of, fixed_value
from memoryhub.lib.search.query_tokens import MAX_CHARS, Piece, cleaned, core_of, is_identifier, pieces_of, written
from memoryhub.lib.search.tokenizing import STOP, fold, is_paired, runs_of

MAX_TERMS = 12
MIN_PREFIX = 3  # letters of a word from which it stands for all that begin with it
_LONG_NAMES = [name for name in ALIASES if len(name) > 3]
_FIELD_LIKE = re.compile(r"([a-z_]{3,12}):(?!:|//).")
_LONE_OR = _("OR joins two words or phrases; here it was read as a plain word.")
# notes on what a field doesn't have: on no value at all, and on a wrong one
_ODD_DATES = (
    _(
        "%(field)s: has no value; dates are written 2026-01-31, 2026-01, 2026, today, monday or 7d. "
        "It was searched as words."
    ),
    _(
        '%(field)s: "%(value)s" is no date; dates are written 2026-01-31, 2026-01, 2026, today, monday or 7d. '
        "It was searched as words."
    ),
)
_ODD_VALUES = (
    _("%(field)s: has no value; there are %(values)s. It was searched as words."),
    _('%(field)s: has no "%(value)s"; there are %(values)s. It was searched as words.'),
)
_ODD_WORDS = (
    _("%(field)s: has no value; write %(field)s:value. It was searched as words."),
    _('%(field)s: has no "%(value)s"; write %(field)s:value. It was searched as words.'),
)
_OPERATORS = (("or",), ("and",))
_WITH_NOT = "ain aren can couldn didn doesn don hadn hasn haven isn mustn needn shan shouldn wasn weren won wouldn"
_NEGATED = frozenset(_WITH_NOT.split())


@dataclass(frozen=True)
class Term:
    """One thing asked for: folded words in order; several are a phrase, or an identifier that is one unit.

    A run of a paired script is one word here. ``is_prefix``: the last word stands for all that begin with it.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    is_quoted: bool = False


@dataclass(frozen=True)
class Filter:
    """A field that has one of some values, or that has none of them where ``is_excluded``.

    Of before, after and on, ``start`` (inclusive) and ``end`` (exclusive) are aware times in UTC; None is open.
    """

    field: str
    values: tuple[str, ...]
    is_excluded: bool = False
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Query:
    """What a text asks for.

    ``terms`` rank, and one of them has to fit unless there is something ``required``: groups, of each of which one
    term has to be there. Filters all hold together. ``notes``: how the text was read where that isn't plain.
    """

    text: str
    terms: tuple[Term, ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[Term, ...]:
        """All terms that count for ranking, those of required groups too."""
        return _once([*self.terms, *(term for group in self.required for term in group)])[:MAX_TERMS]


def parse(text: str, *, now: datetime, match_all: bool = False, prefix: bool = False, zone: tzinfo = UTC) -> Query:
    """Return what a text asks for; any text at all.

    At most 512 characters and 12 terms are used, and a note tells what was left out. ``match_all``: every word has
    to be there. ``prefix``: the last word may be half typed. ``now`` (aware) and ``zone`` settle what dates mean.
    """
    used = cleaned(text)
    notes: list[str] = []
    if len(text) > MAX_CHARS:
        notes.append(gettext("Only the first %(count)s characters were read.") % {"count": MAX_CHARS})
    pieces = pieces_of(used)
    half_typed = pieces[-1] if prefix and pieces and pieces[-1].end == len(text) else None
    filters, pieces = _take_filters(pieces, notes, now, zone)
    terms, required = _take_terms(pieces, notes, half_typed)
    if match_all:
        terms, required = (), _different([*required, *zip(terms, strict=True)])
    terms, required = _limited(terms, required, notes)
    unwanted = [piece for piece in pieces if piece.is_excluded and not piece.field and _has_words(piece)]
    excluded = _once(_unit_of(piece) for piece in unwanted)
    _note_left_out(excluded[MAX_TERMS:], notes)
    return Query(used, terms, required, excluded[:MAX_TERMS], filters, tuple(dict.fromkeys(notes)))


def _take_filters(
    pieces: Sequence[Piece], notes: list[str], now: datetime, zone: tzinfo
) -> tuple[tuple[Filter, ...], list[Piece]]:
    """Return the filters, and the pieces with those that are none turned into words."""
    found: dict[tuple[str, bool, str], Filter] = {}
    left: list[Piece] = []
    for piece in pieces:
        filters = [one for value in piece.values if (one := _filter_of(piece, value, now, zone))]
        for one in filters:
            is_apart = one.is_excluded and one.field in DATE_FIELDS
            key = (one.field, one.is_excluded, one.values[0] if is_apart else "")
            found[key] = _joined(found[key], one) if key in found else one
        left += _unread(piece, filters, notes)
    if any(one.field == "on" and len(one.values) > 1 for one in found.values()):
        notes.append(gettext("Several dates of on: are read as the time from the first to the last."))
    return tuple(found.values()), left


def _filter_of(piece: Piece, value: str, now: datetime, zone: tzinfo) -> Filter | None:
    if piece.field in DATE_FIELDS:
        bounds = bounds_of(piece.field, value, now, zone)
        return Filter(piece.field, (value,), piece.is_excluded, *bounds) if bounds else None
    known = _known(piece.field, value)
    return Filter(piece.field, (known,), piece.is_excluded) if known else None


def _known(field: str, value: str) -> str | None:
    """Return a value as it is compared; None where the field has no such value."""
    return fixed_value(field, value) if FIELDS[field].values else value.strip()


def _joined(one: Filter, other: Filter) -> Filter:
    """Return the filter that takes what either takes; of dates what lies between, too."""
    values = tuple(dict.fromkeys(one.values + other.values))
    start = min(one.start, other.start) if one.start and other.start else None
    end = max(one.end, other.end) if one.end and other.end else None
    return replace(one, values=values, start=start, end=end)


def _unread(piece: Piece, filters: Sequence[Filter], notes: list[str]) -> list[Piece]:
    """Return a piece as what it is from here on: a filter that was read, words that are none, or both."""
    if not piece.field:
        _note_mistyped(piece, notes)
        return [piece]
    if len(filters) == len(piece.values) > 0:
        return [piece]
    read = {value for one in filters for value in one.values}
    odd = [value for value in piece.values if (_known(piece.field, value) or value) not in read]
    notes += [_about(piece.field, value) for value in odd or [""]]
    if not filters:
        return [replace(piece, field="", values=())]
    return [piece, *(replace(piece, text=value, field="", values=()) for value in odd)]


def _about(field: str, value: str) -> str:
    """Return the note on a value that a field doesn't have, or on none at all."""
    known = FIELDS[field].values
    words = _ODD_DATES if field in DATE_FIELDS else _ODD_VALUES if known else _ODD_WORDS
    return words[bool(value)] % {"field": field, "value": _brief(value), "values": ", ".join(known)}


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _note_mistyped(piece: Piece, notes: list[str]) -> None:
    like = None if piece.is_quoted else _FIELD_LIKE.match(piece.text.lower())
    close = get_close_matches(like[1], _LONG_NAMES, n=1, cutoff=0.82) if like else []
    if like and close:
        words = gettext('There is no field "%(field)s"; did you mean %(close)s? It was searched as words.')
        notes.append(words % {"field": like[1], "close": close[0]})


def _take_terms(
    pieces: Sequence[Piece], notes: list[str], half_typed: Piece | None
) -> tuple[tuple[Term, ...], tuple[tuple[Term, ...], ...]]:
    """Return the terms that rank, without stop words where there is anything else, and the required groups."""
    joins = ["", *(_join_at(pieces, place) for place in range(len(pieces))), ""]  # of each piece, with ends
    plain: list[Term] = []
    required: list[tuple[Term, ...]] = []
    for place, piece in enumerate(pieces):
        before, join, after = joins[place : place + 3]
        if join or piece.field or piece.is_excluded or not _has_words(piece):
            continue
        is_alone = not (piece.is_quoted or before or after)
        found = _words_of(piece.text) if is_alone else (_unit_of(piece),)
        found = _half_typed(found, piece) if piece is half_typed else found
        if is_alone:
            plain += found
        elif before == "OR":
            required[-1] = _once([*required[-1], *found])
        else:
            required.append(found)
        if is_alone and piece.text == "OR":
            notes.append(str(_LONE_OR))
    held = {term.words for group in required for term in group}
    telling = [term for term in plain if not _is_stop(term) and term.words not in held]
    if not telling and any(piece.field or piece.is_excluded for piece in pieces):
        plain = [term for term in plain if term.words not in _OPERATORS]  # kind:a OR kind:b asks for no word
    return _once(telling if telling or required else plain), _different(required)


def _join_at(pieces: Sequence[Piece], place: int) -> str:
    """Return "OR" or "AND" where a piece is that operator, with something to join on both sides."""
    if not _is_operator(pieces[place]) or not 0 < place < len(pieces) - 1:
        return ""
    sides = pieces[place - 1], pieces[place + 1]
    joins = all(not (one.field or one.is_excluded or _is_operator(one)) and _has_words(one) for one in sides)
    return pieces[place].text if joins else ""


def _is_operator(piece: Piece) -> bool:
    return piece.text in ("OR", "AND") and not (piece.is_quoted or piece.is_excluded or piece.field)


def _has_words(piece: Piece) -> bool:
    return bool(_unit_of(piece).words)


def _unit_of(piece: Piece) -> Term:
    """Return a whole piece as one term."""
    return Term(tuple(runs_of(piece.text if piece.is_quoted else core_of(piece.text))), is_quoted=piece.is_quoted)


def _words_of(token: str) -> tuple[Term, ...]:
    """Return the terms of a plain token: one for an identifier, else one for each word."""
    core = core_of(token)
    words = tuple(runs_of(core))
    if len(words) > 1 and (is_identifier(core) or _is_negated(words)):
        return (Term(words),)
    return tuple(Term((word,)) for word in words)


def _is_negated(words: Sequence[str]) -> bool:
    return len(words) == 2 and words[1] == "t" and words[0] in _NEGATED


def _is_stop(term: Term) -> bool:
    return (len(term.words) == 1 and term.words[0] in STOP) or _is_negated(term.words)


def _half_typed(terms: tuple[Term, ...], piece: Piece) -> tuple[Term, ...]:
    """Return the terms of the last piece, the last of them as a prefix where it may be one."""
    word = terms[-1].words[-1]
    is_word = len(terms[-1].words) == 1 and not terms[-1].is_quoted and not _is_stop(terms[-1])
    fits = is_word and (len(word) >= MIN_PREFIX or is_paired(word)) and fold(piece.text).endswith(word)
    return (*terms[:-1], replace(terms[-1], is_prefix=True)) if fits else terms


def _once(terms: Iterable[Term]) -> tuple[Term, ...]:
    found: dict[tuple[str, ...], Term] = {}
    for term in terms:
        known = found.setdefault(term.words, term)
        if term.is_prefix:
            found[term.words] = replace(known, is_prefix=True)
    return tuple(found.values())


def _different(groups: Iterable[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    return tuple(dict.fromkeys(groups))


def _limited(
    terms: tuple[Term, ...], required: tuple[tuple[Term, ...], ...], notes: list[str]
) -> tuple[tuple[Term, ...], tuple[tuple[Term, ...], ...]]:
    """Return what fits into twelve terms, what is required first."""
    room = MAX_TERMS
    kept: list[tuple[Term, ...]] = []
    for group in required:
        if room:
            kept.append(group[:room])
            room -= len(kept[-1])
    _note_left_out([*[term for group in required for term in group][MAX_TERMS:], *terms[room:]], notes)
    return terms[:room], tuple(kept)


def _note_left_out(terms: Sequence[Term], notes: list[str]) -> None:
    if not terms:
        return
    words, more = gettext("At most %(most)s words and phrases are used; left out: %(words)s."), len(terms) - 5
    if more > 0:
        words = ngettext(
            "At most %(most)s words and phrases are used; left out: %(words)s and %(count)s more.",
            "At most %(most)s words and phrases are used; left out: %(words)s and %(count)s more.",
            more,
        )
    named = ", ".join(_brief(_shown(term)) for term in terms[:5])
    notes.append(words % {"most": MAX_TERMS, "words": named, "count": more})


def _shown(term: Term) -> str:
    words = " ".join(term.words) + ("…" if term.is_prefix else "")
    return f'"{words}"' if term.is_quoted or len(term.words) > 1 else words


def describe(query: Query, *, zone: tzinfo = UTC) -> list[str]:
    """Return in plain words how a query was read, a phrase each; dates are those of a zone."""
    read = []
    if len(query.terms) == 1 and not query.required:
        read.append(_held(query.terms))
    elif query.terms:
        words = gettext("better with: %(words)s") if query.required else gettext("any of: %(words)s")
        read.append(words % {"words": ", ".join(map(_shown, query.terms))})
    read += [_held(group) for group in query.required]
    if query.excluded:
        read.append(gettext("not: %(words)s") % {"words": ", ".join(map(_shown, query.excluded))})
    for one in query.filters:
        phrase = _filter_read(one, zone)
        read.append(gettext("not %(filter)s") % {"filter": phrase} if one.is_excluded else phrase)
    return read


def _held(group: Sequence[Term]) -> str:
    return gettext("has to hold %(words)s") % {"words": _either(map(_shown, group))}


def _either(values: Iterable[str]) -> str:
    """Return what one of several is said to be: a or b or c."""
    return reduce(lambda one, other: gettext("%(one)s or %(other)s") % {"one": one, "other": other}, values)


def _filter_read(one: Filter, zone: tzinfo) -> str:
    if one.start and one.end:
        first, last = _when(one.start, zone), _when(one.end - timedelta(days=1), zone)
        words = gettext("on %(first)s") if first == last else gettext("from %(first)s to %(last)s")
        return words % {"first": first, "last": last}
    if one.end:
        return gettext("before %(day)s") % {"day": _when(one.end, zone)}
    if one.start:
        return gettext("from %(day)s on") % {"day": _when(one.start, zone)}
    named = TRAITS if one.field == "has" else {}
    values = _either(str(named.get(value, value)) for value in one.values)
    return str(FIELDS[one.field].reads) % {"values": values}


def _when(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local:%Y-%m-%d}" if local.time() == time.min else f"{local:%Y-%m-%d %H:%M}"


def with_filter(text: str, field: str, value: str) -> str:
    """Return a query's text narrowed to a value of a field; as it is where it asks for that already.

    The filter comes first, where no open quote reaches it and no limit cuts it. ``field``: any name of one there is.
    """
    name, wanted = _named(field, value)
    pieces = [piece for piece in pieces_of(cleaned(text)) if piece.field == name and not piece.is_excluded]
    if not wanted or any(_known(name, known) == wanted for piece in pieces for known in piece.values):
        return text
    return f"{name}:{written(wanted)} {cleaned(text).strip()}".strip()


def without_filter(text: str, field: str, value: str, *, is_excluded: bool = False) -> str:
    """Return a query's text without a value of a field; ``is_excluded``: without -field:value."""
    name, wanted = _named(field, value)
    left = cleaned(text)
    for piece in reversed(pieces_of(left)):
        values = [known for known in piece.values if _known(name, known) != wanted]
        if piece.field != name or piece.is_excluded != is_excluded or len(values) == len(piece.values):
            continue
        listed = ",".join(map(written, values))
        kept = f"{'-' if is_excluded else ''}{name}:{listed}" if values else ""
        left = " ".join(part for part in (left[: piece.start].rstrip(), kept, left[piece.end :].lstrip()) if part)
    return left


def _named(field: str, value: str) -> tuple[str, str | None]:
    name = ALIASES.get(field.lower(), field)
    return name, _known(name, cleaned(value))

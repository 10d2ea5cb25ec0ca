"""Parse search queries: words, "phrases", identifiers, -exclusions, a OR b, field:value.

Plain words are joined by OR, without stop words, so that questions in natural language work. Invalid syntax is
searched as words, with a note to the user; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from functools import reduce

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.search.fields import ALIASES, DATE_FIELDS, FIELDS, TRAITS, date_bounds, fixed_value
from memoryhub.lib.search.query_tokens import (
    MAX_CHARS,
    MIN_PREFIX,
    Token,
    clean_query,
    is_beginning,
    is_identifier,
    is_path,
    token_core,
    token_literal,
    tokenize,
)
from memoryhub.lib.search.question import PHRASING_WORDS
from memoryhub.lib.search.tokenizing import STOP_WORDS, fold, is_emoji, is_paired, split_words

MAX_TERMS = 12
_LONG_NAMES = [name for name in ALIASES if len(name) > 3]
_FIELD_LIKE = re.compile(r"([a-z_]{3,12}):(?!:|//).")
_LONE_OR = _("OR needs a word or phrase on both sides. It was searched as a word.")
_NO_NOT = _("NOT doesn't exclude words. To exclude one, write -word.")
_NOTED = {"OR": _LONE_OR, "NOT": _NO_NOT}
# pairs of notes: for a missing value, and for an invalid one
_INVALID_DATE = (
    _("%(field)s: needs a date such as 2026-01-31, 2026-01, 2026, today, monday or 7d. It was searched as words."),
    _(
        '%(field)s: "%(value)s" is not a date such as 2026-01-31, 2026-01, 2026, today, monday or 7d. '
        "It was searched as words."
    ),
)
_INVALID_VALUE = (
    _("%(field)s: needs one of %(values)s. It was searched as words."),
    _('%(field)s: "%(value)s" is not one of %(values)s. It was searched as words.'),
)
_MISSING_VALUE = (
    _("%(field)s: needs a value, as in %(field)s:value. It was searched as words."),
    _('%(field)s: "%(value)s" is not valid, write %(field)s:value. It was searched as words.'),
)
_OPERATORS = (("or",), ("and",))
_NEGATED_STEMS = (
    "ain aren can couldn didn doesn don hadn hasn haven isn mustn needn shan shouldn wasn weren won wouldn"
)
_NEGATED = frozenset(_NEGATED_STEMS.split())


@dataclass(frozen=True)
class Term:
    """A term: one folded word, or several in order as a phrase or identifier.

    A run of a paired script is one word. ``is_prefix``: the last word is a prefix. ``literal``: the term as typed,
    folded, if it has signs that its words lack, such as "c++".
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    is_quoted: bool = False
    literal: str = field(default="", compare=False)

    @property
    def is_phrasing(self) -> bool:
        """Whether the term only phrases a question, such as "many" in "how many days ago"."""
        return self.words[-1] in PHRASING_WORDS and not (len(self.words) > 1 or self.is_prefix or self.is_quoted)


@dataclass(frozen=True)
class Filter:
    """A field that must have one of ``values``, or none of them if ``is_excluded``.

    For date fields, ``start`` (inclusive) and ``end`` (exclusive) are aware times in UTC; None is open.
    """

    field: str
    values: tuple[str, ...]
    is_excluded: bool = False
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Query:
    """A parsed query.

    Rows must match one term of each ``required`` group, or one of ``terms`` if there are no groups; ``terms`` affect
    ranking. All filters must match. ``notes``: messages to the user about parts that were ignored or reinterpreted.
    """

    text: str
    terms: tuple[Term, ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ranked_terms(self) -> tuple[Term, ...]:
        """All terms that affect ranking, including those of required groups."""
        return _unique_terms([*self.terms, *(term for group in self.required for term in group)])[:MAX_TERMS]


def parse(text: str, *, now: datetime, match_all: bool = False, prefix: bool = False, zone: tzinfo = UTC) -> Query:
    """Parse a query. Any text is valid.

    At most 512 characters and 12 terms are used; notes list what was dropped. ``match_all``: require every word.
    ``prefix``: the last word may be incomplete. ``now`` (aware) and ``zone`` resolve dates.
    """
    used = clean_query(text)
    notes: list[str] = []
    if len(text) > MAX_CHARS:
        notes.append(gettext("Only the first %(count)s characters were used.") % {"count": MAX_CHARS})
    tokens = tokenize(used)
    partial_token = tokens[-1] if prefix and tokens and tokens[-1].end == len(text) else None
    filters, tokens = _extract_filters(tokens, notes, now, zone)
    terms, required = _extract_terms(tokens, notes, partial_token)
    if match_all:
        terms, required = (), _unique_groups([*required, *zip(terms, strict=True)])
    if len(terms) > MAX_TERMS:  # drop the words that say least
        terms = tuple(sorted(terms, key=lambda term: term.is_phrasing))
    terms, required = _limit_terms(terms, required, notes)
    exclusions = [token for token in tokens if token.is_excluded and not token.field and _has_words(token)]
    excluded = _unique_terms(_whole_term(token) for token in exclusions)
    _note_dropped_terms(excluded[MAX_TERMS:], notes)
    return Query(used, terms, required, excluded[:MAX_TERMS], filters, tuple(dict.fromkeys(notes)))


def _extract_filters(
    tokens: Sequence[Token], notes: list[str], now: datetime, zone: tzinfo
) -> tuple[tuple[Filter, ...], list[Token]]:
    """Return the filters, and the tokens with invalid fields turned into words."""
    merged: dict[tuple[str, bool, str], Filter] = {}
    resolved: list[Token] = []
    for token in tokens:
        filters = [one for value in token.values if (one := _filter_of(token, value, now, zone))]
        for one in filters:
            is_separate = one.is_excluded and one.field in DATE_FIELDS
            key = (one.field, one.is_excluded, one.values[0] if is_separate else "")
            merged[key] = _merge_filters(merged[key], one) if key in merged else one
        resolved += _resolve_token(token, filters, notes)
    if any(one.field == "on" and len(one.values) > 1 for one in merged.values()):
        notes.append(gettext("Several on: dates select everything from the first to the last."))
    return tuple(merged.values()), resolved


def _filter_of(token: Token, value: str, now: datetime, zone: tzinfo) -> Filter | None:
    if token.field in DATE_FIELDS:
        bounds = date_bounds(token.field, value, now, zone)
        return Filter(token.field, (value,), token.is_excluded, *bounds) if bounds else None
    known = normalise_value(token.field, value)
    return Filter(token.field, (known,), token.is_excluded) if known else None


def normalise_value(field: str, value: str) -> str | None:
    """Return a field's value in its normal form, or None if the field has no such value."""
    return fixed_value(field, value) if FIELDS[field].values else value.strip()


def _merge_filters(one: Filter, other: Filter) -> Filter:
    """Return a filter that matches what either matches, and for dates everything in between."""
    values = tuple(dict.fromkeys(one.values + other.values))
    start = min(one.start, other.start) if one.start and other.start else None
    end = max(one.end, other.end) if one.end and other.end else None
    return replace(one, values=values, start=start, end=end)


def _resolve_token(token: Token, filters: Sequence[Filter], notes: list[str]) -> list[Token]:
    """Return a token as it is used: as a filter, as words if its values are invalid, or as both."""
    if not token.field:
        _note_typo(token, notes)
        return [token]
    if len(filters) == len(token.values) > 0:
        return [token]
    valid = {value for one in filters for value in one.values}
    invalid = [value for value in token.values if (normalise_value(token.field, value) or value) not in valid]
    notes += [_invalid_value_note(token, value) for value in invalid or [""]]
    if not filters:
        return [replace(token, field="", values=())]
    return [token, *(replace(token, text=value, field="", values=()) for value in invalid)]


def _invalid_value_note(token: Token, value: str) -> str:
    known = FIELDS[token.field].values
    messages = _INVALID_DATE if token.field in DATE_FIELDS else _INVALID_VALUE if known else _MISSING_VALUE
    typed = token.text.partition(":")[0].lower()  # "until" for the field "before"
    return messages[bool(value)] % {"field": typed, "value": _shorten(value), "values": ", ".join(known)}


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _note_typo(token: Token, notes: list[str]) -> None:
    like = None if token.is_quoted else _FIELD_LIKE.match(token.text.lower())
    close = get_close_matches(like[1], _LONG_NAMES, n=1, cutoff=0.82) if like else []
    if like and close:
        message = gettext('There is no field "%(field)s". Did you mean %(close)s? It was searched as words.')
        notes.append(message % {"field": like[1], "close": close[0]})


def _extract_terms(
    tokens: Sequence[Token], notes: list[str], partial_token: Token | None
) -> tuple[tuple[Term, ...], tuple[tuple[Term, ...], ...]]:
    """Return the optional terms, without stop words and emoji if there are other words, and the required groups."""
    operators = ["", *(_operator_at(tokens, index) for index in range(len(tokens))), ""]  # padded at both ends
    plain: list[Term] = []
    required: list[tuple[Term, ...]] = []
    for index, token in enumerate(tokens):
        before, operator, after = operators[index : index + 3]
        if operator or token.field or token.is_excluded or not _has_words(token):
            continue
        is_plain = not (token.is_quoted or before or after)
        terms = _word_terms(token.text) if is_plain else (_whole_term(token),)
        terms = _with_prefix(terms, token) if token is partial_token else terms
        if is_plain:
            plain += terms
        elif before == "OR":
            required[-1] = _unique_terms([*required[-1], *terms])
        else:
            required.append(terms)
        if is_plain and token.text in _NOTED:
            notes.append(str(_NOTED[token.text]))
    in_groups = {term.words for group in required for term in group}
    content_terms = [term for term in plain if not _is_stop(term) and term.words not in in_groups]
    content_terms = [term for term in content_terms if not is_emoji(term.words[0])] or content_terms
    if not content_terms and any(token.field or token.is_excluded for token in tokens):
        plain = [term for term in plain if term.words not in _OPERATORS]  # kind:a OR kind:b contains no words
    return _unique_terms(content_terms if content_terms or required else plain), _unique_groups(required)


def _operator_at(tokens: Sequence[Token], index: int) -> str:
    """Return "OR" or "AND" if a token is that operator with an operand on both sides, else ""."""
    if not _is_operator(tokens[index]) or not 0 < index < len(tokens) - 1:
        return ""
    sides = tokens[index - 1], tokens[index + 1]
    joins = all(not (one.field or one.is_excluded or _is_sign(one)) and _has_words(one) for one in sides)
    return tokens[index].text if joins else ""


def _is_operator(token: Token) -> bool:
    return token.text in ("OR", "AND") and not (token.is_quoted or token.is_excluded or token.field)


def _is_sign(token: Token) -> bool:
    return _is_operator(token) or (token.text == "NOT" and not token.is_quoted)


def _has_words(token: Token) -> bool:
    return bool(_whole_term(token).words)


def _whole_term(token: Token) -> Term:
    words = tuple(split_words(token.text if token.is_quoted else token_core(token.text)))
    if not token.is_quoted and is_beginning(token.text):
        return Term(words, is_prefix=True)
    literal = token_literal(token.text, is_quoted=token.is_quoted)
    return Term(words, is_quoted=token.is_quoted, literal=literal)


def _word_terms(token: str) -> tuple[Term, ...]:
    """Return the terms of a plain token: one for an identifier, otherwise one per word."""
    core = token_core(token)
    words = tuple(split_words(core))
    is_prefix = is_beginning(token)
    if len(words) == 1 or is_identifier(core) or is_path(token) or _is_negated(words):
        return (Term(words, is_prefix, literal="" if is_prefix else token_literal(token)),) if words else ()
    return (*(Term((word,)) for word in words[:-1]), Term(words[-1:], is_prefix))


def _is_negated(words: Sequence[str]) -> bool:
    return len(words) == 2 and words[1] == "t" and words[0] in _NEGATED


def _is_stop(term: Term) -> bool:
    return not term.literal and ((len(term.words) == 1 and term.words[0] in STOP_WORDS) or _is_negated(term.words))


def _with_prefix(terms: tuple[Term, ...], token: Token) -> tuple[Term, ...]:
    """Return the terms of an incomplete last token, with the last one as a prefix if it is long enough."""
    word = terms[-1].words[-1]
    is_word = len(terms[-1].words) == 1 and not terms[-1].is_quoted and not _is_stop(terms[-1])
    is_prefix = is_word and (len(word) >= MIN_PREFIX or is_paired(word)) and fold(token.text).endswith(word)
    return (*terms[:-1], replace(terms[-1], is_prefix=True)) if is_prefix else terms


def _unique_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    by_words: dict[tuple[str, ...], Term] = {}
    for term in terms:
        known = by_words.setdefault(term.words, term)
        if term.is_prefix or term.literal:
            literal = known.literal or term.literal
            by_words[term.words] = replace(known, is_prefix=known.is_prefix or term.is_prefix, literal=literal)
    return tuple(by_words.values())


def _unique_groups(groups: Iterable[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    return tuple(dict.fromkeys(groups))


def _limit_terms(
    terms: tuple[Term, ...], required: tuple[tuple[Term, ...], ...], notes: list[str]
) -> tuple[tuple[Term, ...], tuple[tuple[Term, ...], ...]]:
    """Return at most MAX_TERMS terms, required ones first, and add a note about the others."""
    remaining = MAX_TERMS
    kept: list[tuple[Term, ...]] = []
    for group in required:
        if remaining:
            kept.append(group[:remaining])
            remaining -= len(kept[-1])
    _note_dropped_terms([*[term for group in required for term in group][MAX_TERMS:], *terms[remaining:]], notes)
    return terms[:remaining], tuple(kept)


def _note_dropped_terms(terms: Sequence[Term], notes: list[str]) -> None:
    if not terms:
        return
    message, more = gettext("Only %(most)s words and phrases are used. Ignored: %(words)s."), len(terms) - 5
    if more > 0:
        message = ngettext(
            "Only %(most)s words and phrases are used. Ignored: %(words)s and %(count)s more.",
            "Only %(most)s words and phrases are used. Ignored: %(words)s and %(count)s more.",
            more,
        )
    words = ", ".join(_shorten(_display(term)) for term in terms[:5])
    notes.append(message % {"most": MAX_TERMS, "words": words, "count": more})


def _display(term: Term) -> str:
    words = " ".join(term.words) + ("…" if term.is_prefix else "")
    return f'"{words}"' if term.is_quoted or len(term.words) > 1 else words


def describe(query: Query, *, zone: tzinfo = UTC) -> list[str]:
    """Return how a query was interpreted, as a list of phrases; dates are in ``zone``."""
    phrases = []
    if len(query.terms) == 1 and not query.required:
        phrases.append(_must_contain(query.terms))
    elif query.terms:
        message = gettext("optional: %(words)s") if query.required else gettext("any of: %(words)s")
        phrases.append(message % {"words": ", ".join(map(_display, query.terms))})
    phrases += [_must_contain(group) for group in query.required]
    if query.excluded:
        phrases.append(gettext("not: %(words)s") % {"words": ", ".join(map(_display, query.excluded))})
    for one in query.filters:
        phrase = _describe_filter(one, zone)
        phrases.append(gettext("not %(filter)s") % {"filter": phrase} if one.is_excluded else phrase)
    return phrases


def _must_contain(group: Sequence[Term]) -> str:
    return gettext("contains %(words)s") % {"words": _join_or(map(_display, group))}


def _join_or(values: Iterable[str]) -> str:
    return reduce(lambda one, other: gettext("%(one)s or %(other)s") % {"one": one, "other": other}, values)


def _describe_filter(one: Filter, zone: tzinfo) -> str:
    if one.start and one.end:
        first, last = _format_day(one.start, zone), _format_day(one.end - timedelta(days=1), zone)
        message = gettext("on %(first)s") if first == last else gettext("from %(first)s to %(last)s")
        return message % {"first": first, "last": last}
    if one.end:
        return gettext("before %(day)s") % {"day": _format_day(one.end, zone)}
    if one.start:
        return gettext("since %(day)s") % {"day": _format_day(one.start, zone)}
    labels = TRAITS if one.field == "has" else {}
    values = _join_or(str(labels.get(value, value)) for value in one.values)
    return str(FIELDS[one.field].template) % {"values": values}


def _format_day(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local:%Y-%m-%d}" if local.time() == time.min else f"{local:%Y-%m-%d %H:%M}"

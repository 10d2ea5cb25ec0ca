"""Add filters to the text of a query, and remove them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memoryhub.lib.search.fields import ALIASES
from memoryhub.lib.search.query import normalise_value
from memoryhub.lib.search.query_tokens import clean_query, is_identifier, quote_value, token_core, tokenize
from memoryhub.lib.search.tokenizing import fold

_WORD = re.compile(r"\w+")


def with_filter(text: str, field: str, value: str) -> str:
    """Return a query's text with ``field:value`` added, unless it has that filter already.

    The filter is put first, where an unclosed quote or the length limit can't affect it. ``field`` may be an alias.
    """
    name, normal = _normalise_field(field, value)
    tokens = [token for token in tokenize(clean_query(text)) if token.field == name and not token.is_excluded]
    if not normal or any(normalise_value(name, known) == normal for token in tokens for known in token.values):
        return text
    return f"{name}:{quote_value(normal)} {clean_query(text).strip()}".strip()


def without_filter(text: str, field: str, value: str, *, is_excluded: bool = False) -> str:
    """Return a query's text without ``field:value``, or with ``is_excluded`` without ``-field:value``."""
    name, normal = _normalise_field(field, value)
    rest = clean_query(text)
    for token in reversed(tokenize(rest)):
        values = [known for known in token.values if normalise_value(name, known) != normal]
        if token.field != name or token.is_excluded != is_excluded or len(values) == len(token.values):
            continue
        listed = ",".join(map(quote_value, values))
        kept = f"{'-' if is_excluded else ''}{name}:{listed}" if values else ""
        rest = " ".join(part for part in (rest[: token.start].rstrip(), kept, rest[token.end :].lstrip()) if part)
    return rest


def with_words(text: str, words: Mapping[str, str]) -> str:
    """Return a query's text with plain words replaced, in the same case. ``words``: replacements by folded word."""
    rest = clean_query(text)
    for token in reversed(tokenize(rest)):
        if not (token.is_quoted or token.field or token.is_excluded or is_identifier(token_core(token.text))):
            text = _WORD.sub(lambda word: _cased(words.get(fold(word[0]), word[0]), word[0]), token.text)
            rest = rest[: token.start] + text + rest[token.end :]
    return rest


def _cased(word: str, typed: str) -> str:
    """Return a word with the capital letters of the typed one: all, the first or none."""
    if typed.isupper() and len(typed) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def _normalise_field(field: str, value: str) -> tuple[str, str | None]:
    name = ALIASES.get(field.lower(), field)
    return name, normalise_value(name, clean_query(value))

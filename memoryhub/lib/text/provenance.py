"""Check whether a new fact comes from what a user wrote, or only from tool results and other messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryhub.lib.text.similarity import tokens_of

MIN_SHARE = 0.5  # share of a fact's words that a message must have to be a source of it


@dataclass(frozen=True)
class Source:
    """A message that a fact may come from."""

    is_user: bool
    words: frozenset[str]


def sources_of(messages: Iterable[tuple[str, str]]) -> list[Source]:
    """Return messages, given as (role, content), as sources."""
    return [Source(role == "user", frozenset(tokens_of(content))) for role, content in messages if content.strip()]


def lacks_user_source(fact: str, sources: Sequence[Source]) -> bool:
    """Return whether a fact's words come only from messages that no user wrote.

    A fact that shares few words with every message, such as a translation, has an unknown source and counts as the
    user's, unless the user wrote nothing.
    """
    words = tokens_of(fact)
    if not words:
        return False
    shares = [(len(words & source.words) / len(words), source.is_user) for source in sources]
    if not any(source.is_user for source in sources):
        return bool(sources)
    return any(share >= MIN_SHARE for share, _ in shares) and not any(
        share >= MIN_SHARE for share, is_user in shares if is_user
    )

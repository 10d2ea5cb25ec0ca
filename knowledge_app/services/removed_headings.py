"""Recognise headings of a few words that people refused or removed, when an agent writes them again.

Such words are in many documents, so they are only recognised in the same document. A heading that went with the lines
below it may come again over others, as "## Notes" does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db.models import Q

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.decisions import PEOPLE
from memoryhub.lib.text.facts import Section, split_sections
from memoryhub.lib.text.repeats import Words, is_telling, words_of
from memoryhub.lib.text_caches import text_cache

MAX_COMPARED = 500  # decisions about a document, newest first


@dataclass(frozen=True)
class _Gone:
    """A heading that a decision removed, and the words of the lines below it that went with it."""

    heading: Words
    below: frozenset[Words]

    def is_again(self, lines: Collection[Words]) -> bool:
        """Tell whether it is the same heading over these lines: it went alone, or none of them is new."""
        return not self.below or self.below.issuperset(lines)


def headings_again(document: MemoryDocument, before: str, after: str, held: Collection[int]) -> set[int]:
    """Return the numbers of the headings that a change adds and that people refused or removed.

    ``held``: the lines of the change that say again what people removed.
    """
    known, lines = set(before.split("\n")), after.split("\n")
    new = [place for place in split_sections(after) if _is_short(place) and lines[place.start - 1] not in known]
    if not new:
        return set()
    gone = list(_gone(document))
    found = set()
    for place in new:
        heading = words_of(lines[place.start - 1])
        below = {words_of(lines[number - 1]) for number in _below(after, place) if number not in held} - {()}
        if any(one.heading == heading and one.is_again(below) for one in gone):
            found.add(place.start)
    return found


def removed_alone(before: str, after: str) -> Iterator[str]:
    """Yield the headings of more words that a change removed, unless lines below them went with them."""
    lines, kept = before.split("\n"), {"", *after.split("\n")}
    for place in split_sections(before):
        if not place.level or _is_short(place) or lines[place.start - 1] in kept:
            continue
        if all(lines[number - 1] in kept for number in _below(before, place) if number <= len(lines)):
            yield place.title


def _is_short(place: Section) -> bool:
    return bool(place.level) and not is_telling(words_of(place.title))


def _below(text: str, heading: Section) -> Iterator[int]:
    """Yield the numbers of the lines below a heading, also below its subheadings."""
    end = next(
        (one.start for one in split_sections(text) if one.start > heading.start and one.level <= heading.level),
        text.count("\n") + 2,
    )
    yield from range(heading.start + 1, end)


def _gone(document: MemoryDocument) -> Iterator[_Gone]:
    """Yield the headings that people refused, or removed and didn't add since."""
    refused = Q(status=HeldChange.Status.REJECTED) | Q(status=HeldChange.Status.APPROVED) & ~Q(decided_parts={})
    changes = HeldChange.objects.filter(refused, document=document).order_by("-pk")
    names = ("pk", "proposed_hash", "base__content_hash", "ours__content_hash", "status", "decided_parts")
    for *key, status, parts in changes.values_list(*names)[:MAX_COMPARED]:
        numbers = None if status == HeldChange.Status.REJECTED else tuple(parts.get("refused", ()))
        yield from _refused(*key, numbers)
    revisions = MemoryRevision.objects.filter(document=document, author_kind__in=PEOPLE).exclude(base=None)
    added: set[Words] = set()
    for key in revisions.order_by("-pk").values_list("base", "base__content_hash", "pk", "content_hash")[
        :MAX_COMPARED
    ]:
        lost, new = _removed(*key)
        yield from (one for one in lost if one.heading not in added)
        added |= new


@text_cache(10_000)  # by hashes: forgetting, which alone changes texts, changes them
def _refused(
    pk: int, _proposed: str, _base: str | None, _ours: str | None, numbers: tuple[int, ...] | None
) -> tuple[_Gone, ...]:
    proposed, *others = HeldChange.objects.values_list("proposed", "base__content", "ours__content").get(pk=pk)
    kept = {line for text in others for line in (text or "").split("\n")}
    return _lost(proposed, kept, numbers)


@text_cache(10_000)
def _removed(base: int, _base_hash: str, pk: int, _hash: str) -> tuple[tuple[_Gone, ...], frozenset[Words]]:
    """Return the headings that a revision removed, and those that it added."""
    contents = MemoryRevision.objects.in_bulk([base, pk])
    before, after = contents[base].content, contents[pk].content
    added = _lost(after, set(before.split("\n")), None)
    return _lost(before, set(after.split("\n")), None), frozenset(one.heading for one in added)


def _lost(text: str, kept: Collection[str], numbers: Collection[int] | None) -> tuple[_Gone, ...]:
    """Return the short headings of a text that are not among the kept lines. ``numbers``: those that can be lost."""
    lines = text.split("\n")
    lost = {number for number, line in enumerate(lines, 1) if line not in kept}
    lost = lost if numbers is None else lost.intersection(numbers)
    return tuple(
        _Gone(
            words_of(lines[place.start - 1]),
            frozenset(words_of(lines[number - 1]) for number in _below(text, place) if number in lost) - {()},
        )
        for place in split_sections(text)
        if _is_short(place) and place.start in lost
    )

"""The revisions that added, reworded or removed a fact. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Q

from knowledge_app.models import Fact, HeldChange, MemoryRevision
from knowledge_app.services.documents.revisions import accepted_words, is_acceptance
from memoryhub.lib.document_size import is_oversize
from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts

MAX_REVISIONS = 200  # whose texts are compared
MOVED = "moved"


@dataclass(frozen=True)
class Step:
    """A revision that added, reworded or removed the fact. ``text``: the fact's text from then on."""

    action: str
    revision: MemoryRevision
    text: str

    @property
    def proposal(self) -> HeldChange | None:
        """The proposal that did this, if a person accepted it with the revision. Not for the person's own words."""
        if not is_acceptance(self.revision):
            return None
        proposed = accepted_words(self.revision, self.revision.document.separator)
        return self.revision.proposal if (self.text in proposed) == (self.action != "removed") else None


def steps_of(fact: Fact) -> list[Step]:
    """Return the revisions that added, reworded or removed a fact, oldest first; at least the one that added it.

    The texts of the latest 200 revisions are followed back from the fact's last text, line by line.
    """
    return [step for step in followed_steps(fact)[0] if step.action != MOVED]


def followed_steps(fact: Fact) -> tuple[list[Step], bool]:
    """Return what ``steps_of`` does and moves, and whether the text was followed back to the revision that added it.

    A move gives the fact another category, or takes it out of a section that stays.
    """
    last = fact.died.number - 1 if fact.died else None
    numbers = Q(number__gte=fact.born.number) & (Q() if last is None else Q(number__lte=last))
    stored = fact.document.revisions.exclude(MemoryRevision.OF_FILE)  # which may have lines that are held
    revisions = stored.filter(numbers).order_by("-number")[: MAX_REVISIONS + 1]
    if fact.document.head_id == fact.born_id:  # it is new: there is nothing to follow
        revisions = revisions.none()
    separator = fact.document.separator
    text, steps, is_whole = fact.text, [], True
    here: list[FactLine] | None = None  # the facts with this text in the newer revision
    for number, (newer, older) in enumerate(pairwise(revisions.iterator(chunk_size=4)), 1):
        if number == MAX_REVISIONS or is_oversize(older.content):
            is_whole = False
            break
        here = fact_lines(newer.content, separator, only=text) if here is None else here
        before = fact_lines(older.content, separator, only=text)
        if not here or _is_same(here[0], before):
            here = before
            continue
        earlier, action = _change(here[0], fact_lines(newer.content, separator), fact_lines(older.content, separator))
        if earlier is None:
            is_whole = False
            break
        if action:
            steps.append(Step(action, newer, text))
        text, here = earlier, None
    steps.append(Step("added", fact.born, text))
    steps.reverse()
    return [*steps, Step("removed", fact.died, fact.text)] if fact.died else steps, is_whole


def _is_same(now: FactLine, before: Sequence[FactLine]) -> bool:
    return any((line.category, line.section) == (now.category, now.section) for line in before)


def _change(now: FactLine, after: Sequence[FactLine], before: Sequence[FactLine]) -> tuple[str | None, str]:
    """Return a fact's text before a revision, None if that added it, and what the revision did to it, if anything."""
    same = [line for line in before if line.text == now.text]
    if same:
        sections = {line.section for line in after}
        is_in_place = any(line.category == now.category and line.section not in sections for line in same)
        return now.text, "" if is_in_place else MOVED
    match = match_facts(before, after).get(after.index(now))
    return (before[match].text, "reworded") if match is not None else (None, "")

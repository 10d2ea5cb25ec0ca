"""Decide what to do about a text that an agent wrote to its file: accept, merge, or hold it for review."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from knowledge_app.models import MemoryRevision
from knowledge_app.models.documents import ALL_HELD
from memoryhub.lib.text.change_guard import LOSS_LIMIT, compare_facts, count_negations
from memoryhub.lib.text.merge import merge_texts, overlay_texts
from memoryhub.lib.text_caches import text_cache
from sessions_app.models import Workspace

Policy = Workspace.AgentChanges
LEAST_WORDS = 3  # of a removed line that is recognised within a longer line
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)]|#{1,6})\s+(?:\[[\w-]{1,64}\]\s+)?")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class OutsideEdit:
    """What to do about a file's text. ``text``: the new head for take and merge, the proposed text for hold.

    ``flags``: the reasons to hold it. ``note``: a clause to add to the message. ``revision``: the earlier revision
    that the file contains.
    """

    verdict: Literal["unchanged", "agreed", "behind", "take", "merge", "hold", "empty"]
    text: str = ""
    flags: tuple[str, ...] = ()
    note: str = ""
    revision: MemoryRevision | None = None
    proposed: str = ""  # the text with the lines that are held, if ``text`` is without them


@dataclass(frozen=True)
class LineEdits:
    """Lines that were added and removed, without blank ones."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def include(self, other: LineEdits) -> bool:
        return other.added <= self.added and other.removed <= self.removed


def plan_outside_edit(
    base: str | None,
    head: str | None,
    disk: str,
    *,
    read: Sequence[str] = (),
    unseen: LineEdits = LineEdits(),
    policy: str = Policy.HOLD_RISKY,
) -> OutsideEdit:
    """Compare three texts: ``base`` was last seen in the file, ``head`` is the hub's, ``disk`` is now in the file.

    The agent's changes are merged with the hub's; additions of both sides are kept. Changes of the same lines are
    held, and so are texts that undo ``unseen``, and those that the workspace's ``policy`` holds. An empty text is
    ignored. Without ``head``, the file is new. ``read``: the texts that the agent may have read before it wrote,
    oldest first; by default ``base``.
    """
    if head is None:
        new = _policy_flags("", disk, policy)
        return OutsideEdit("hold", disk, new) if new else OutsideEdit("take", disk)
    if disk == base:
        return OutsideEdit("unchanged")
    if disk == head:
        return OutsideEdit("agreed")
    if not disk.strip():
        return OutsideEdit("empty")
    ancestor = _nearest(read or [base or ""], disk)
    merged = merge_texts(ancestor, head, disk)
    if merged.text is None:
        flag = f"both sides changed the same lines in {_places(merged.conflict_count)}"
        return OutsideEdit("hold", overlay_texts(ancestor, head, disk), (flag,))
    flags = _unseen_flags(head, merged.text, unseen) + _policy_flags(head, merged.text, policy)
    if flags:
        return OutsideEdit("hold", merged.text, flags)
    if merged.text == disk:
        return OutsideEdit("take", disk)
    is_late = head == base
    note = "was based on an earlier text" if is_late else "changed in the hub and in the file, in different lines"
    return OutsideEdit("merge", merged.text, note=note)


def removal_flags(before: str, after: str) -> tuple[str, ...]:
    """Return a message if a change removes more fact lines than the limit. Reworded lines don't count."""
    change = compare_facts(before, after)
    removed = len(change.removed)
    is_too_much = removed and removed / change.old_count > LOSS_LIMIT
    return (f"removes {removed} of {change.old_count} facts",) if is_too_much else ()


def set_back_flags(disk: str, *, base: str, older: Sequence[str], lost: frozenset[str]) -> tuple[str, ...]:
    """Return a message if a file lacks lines of people and others, and is more like an older text than ``base``.

    A backup of the file may have been restored. ``older``: the texts before ``base``. ``lost``: the lines of people
    that are missing. An agent that has read them may remove them.
    """
    without = [text for text in older if lost.isdisjoint(text.split("\n"))]
    if not lost or not without or line_edits(base, disk).removed <= lost:
        return ()
    if _nearest([base, *without], disk) == base:
        return ()
    return (f"goes back to an older text without {_lines(len(lost))} saved in the hub",)


def line_edits(before: str, after: str) -> LineEdits:
    """Return the lines that a change of a text added and removed."""
    old, new = _counted(before), _counted(after)
    return LineEdits(_without_blank(new - old), _without_blank(old - new))


def hub_edits(revisions: Iterable[MemoryRevision], head: str) -> LineEdits:
    """Return the lines that revisions added and ``head`` has, and those that they removed and it lacks."""
    edits = [line_edits(revision.base.content if revision.base else "", revision.content) for revision in revisions]
    current = set(head.split("\n"))
    added = {line for edit in edits for line in edit.added} & current
    return LineEdits(frozenset(added), frozenset({line for edit in edits for line in edit.removed} - current))


def _without_blank(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(line for line in lines if line.strip())


def _counted(text: str) -> Counter[str]:
    return Counter(text.split("\n"))


def _nearest(texts: Sequence[str], text: str) -> str:
    """Return the text with the fewest different lines, comparing their words; of several, the first."""
    lines = _counted_words(text)

    def distance(other: str) -> int:
        theirs = _counted_words(other)
        return (lines - theirs).total() + (theirs - lines).total()

    return min(texts, key=distance)


def _counted_words(text: str) -> Counter[tuple[str, ...]]:
    return Counter(map(_words, text.split("\n")))


@text_cache(50_000)
def _words(line: str) -> tuple[str, ...]:
    """Return the words of a line, ignoring its bullet, category, markup, punctuation, case and Unicode form."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", _BULLET.sub("", line, count=1)).casefold()))


def _unseen_flags(head: str, text: str, unseen: LineEdits) -> tuple[str, ...]:
    lines = set(text.split("\n"))
    dropped = len(unseen.added - lines)
    restored = _count_restored(unseen.removed, lines - set(head.split("\n")))
    flags = [f"drops {_lines(dropped)} just saved in the hub"] if dropped else []
    flags += [f"brings back {_lines(restored)} just removed in the hub"] if restored else []
    return tuple(flags)


def _count_restored(removed: Iterable[str], new: Iterable[str]) -> int:
    """Return how many removed lines the new lines contain: with the same words, or all of them among others."""
    lines_with: defaultdict[str, set[str]] = defaultdict(set)
    for line in new:
        for word in _words(line):
            lines_with[word].add(line)

    def is_restored(line: str) -> bool:
        words = _words(line)
        found = set.intersection(*(lines_with.get(word, set()) for word in words)) if words else set()
        return any(
            (len(words) >= LEAST_WORDS and count_negations(other) == count_negations(line)) or _words(other) == words
            for other in found
        )

    return sum(map(is_restored, removed))


def _policy_flags(head: str, text: str, policy: str) -> tuple[str, ...]:
    if text == head or policy == Policy.ACCEPT:
        return ()
    flags = removal_flags(head, text)
    return flags or ((ALL_HELD,) if policy == Policy.HOLD_ALL else ())


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count:,} places"

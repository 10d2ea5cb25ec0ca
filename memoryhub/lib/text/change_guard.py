"""Compare the facts of two versions of a memory document, and decide whether a person must review the change.

Facts are matched after normalising markup and whitespace, so that a reworded line counts as rewritten, not as
removed and added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from memoryhub.lib.content_check.check import RESEMBLES, Finding, check_text
from memoryhub.lib.content_check.shape import EXPLANATIONS, INSTRUCTION
from memoryhub.lib.text.diff import line_changes
from memoryhub.lib.text.facts import FactLine, fact_lines, is_fence, match_equal_facts, match_facts, normal_form
from memoryhub.lib.text.places import changed_places
from memoryhub.lib.text.separated import separator_in

# Limits of a change without review:
LOSS_LIMIT = 0.10  # share of facts removed or rewritten, in one change or since the last review
MIN_SHARE = 0.5  # share of the characters that must remain
MAX_GROWTH = 3.0  # growth factor in characters
FREE_GROWTH_CHARS = 2_000  # up to this size, a document may grow by any factor
MAX_TRIES = 64  # of parts of a change that may leave pinned facts alone; the rest is held
_Edit = tuple[int, int, list[str]]
_OF_CHECK = re.compile(r"\d+ new lines?(?:: each)? (.+)", re.DOTALL)
_CODES = {text: code for code, text in EXPLANATIONS.items()} | {
    RESEMBLES: INSTRUCTION,
    "look like instructions to a model": INSTRUCTION,  # of several lines, in older databases
}
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION = re.compile(
    r"\b(not|no|never|none|neither|nor|without|cannot|can't|won't|don't|doesn't|isn't|aren't|wasn't|nicht|kein\w*|nie"
    r"|ohne|pas|jamais|sans|nunca|ningun\w*|sin|não|sem|не|нет|никогда|без)\b|n't\b|[不没無无]|ない|ません",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FactChanges:
    """The facts removed, added and rewritten (old, new) between two texts, and the number of old facts."""

    removed: list[FactLine] = field(default_factory=list)
    added: list[FactLine] = field(default_factory=list)
    rewritten: list[tuple[FactLine, FactLine]] = field(default_factory=list)
    old_count: int = 0


def compare_facts(before: str, after: str, separator: str = "") -> FactChanges:
    """Return the facts that were removed, added and rewritten between two texts.

    ``separator``: default: the one that a text contains, if any.
    """
    separator = separator or separator_in(before) or separator_in(after)
    old, new = fact_lines(before, separator), fact_lines(after, separator)
    pairs = match_facts(old, new)
    kept = set(pairs.values())
    rewritten = [
        (old[i], new[j]) for j, i in sorted(pairs.items()) if normal_form(old[i].text) != normal_form(new[j].text)
    ]
    return FactChanges(
        removed=[line for i, line in enumerate(old) if i not in kept],
        added=[line for j, line in enumerate(new) if j not in pairs],
        rewritten=rewritten,
        old_count=len(old),
    )


@dataclass(frozen=True)
class CheckedChange:
    """Two versions of a text, and what the content check found in the lines that the second one adds or moves."""

    before: str
    after: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def new_findings(self) -> list[Finding]:
        """The findings in lines that the first version doesn't have."""
        old, new = set(self.before.split("\n")), self.after.split("\n")
        return [finding for finding in self.findings if new[finding.line - 1] not in old]


_checked: ContextVar[CheckedChange | None] = ContextVar("checked", default=None)


@contextmanager
def change_checked(before: str, after: str) -> Iterator[None]:
    """Check a change now; in this block, ``check_change`` returns it at once."""
    token = _checked.set(check_change(before, after))
    try:
        yield
    finally:
        _checked.reset(token)


def is_change_checked() -> bool:
    """Return whether this is within a block of ``change_checked``."""
    return _checked.get() is not None


def check_change(before: str, after: str, *, known: CheckedChange | None = None) -> CheckedChange:
    """Run the content check on the changed lines of a text. ``known`` is returned if it is about the same texts."""
    for one in (known, _checked.get()):
        if one is not None and (one.before, one.after) == (before, after):
            return one
    changes = line_changes(before.split("\n"), after.split("\n"))
    changed = {number + 1 for tag, _, _, j, j_end in changes if tag != "equal" for number in range(j, j_end)}
    return CheckedChange(before, after, check_text(after, only=changed))


def review_reasons(change: CheckedChange, *, pinned: Collection[int] = (), lost_before: int = 0) -> list[str]:
    """Return the reasons why a person must review a change; an empty list if nobody needs to.

    ``pinned``: line numbers of pinned facts in the old text. ``lost_before``: the number of facts that runs removed
    since the last review.
    """
    facts = compare_facts(change.before, change.after)
    reasons = _loss_reasons(facts, lost_before)
    reasons += pin_reasons(change.before, change.after, pinned)
    reasons += _size_reasons(change.before, change.after)
    reasons += _meaning_reasons(facts)
    return reasons + safety_reasons(change)


def _loss_reasons(change: FactChanges, lost_before: int) -> list[str]:
    total = change.old_count
    touched = len(change.removed) + len(change.rewritten)
    if total and touched / total > LOSS_LIMIT:
        rewrites = f", rewrites {len(change.rewritten)}" if change.rewritten else ""
        return [f"removes {len(change.removed)} of {total} facts{rewrites}"]
    whole = total + lost_before
    lost = len(change.removed) + lost_before
    if change.removed and lost / whole > LOSS_LIMIT:
        return [f"with this change, {lost} of {whole} facts have been removed since the last review"]
    return []


def pin_reasons(before: str, after: str, pinned: Collection[int]) -> list[str]:
    """Return a message if a text lacks pinned facts of another, or says them elsewhere; see ``changed_places``."""
    touched = changed_places(before, after, pinned) if pinned else []
    return [f"touches {len(touched)} pinned fact{'' if len(touched) == 1 else 's'}"] if touched else []


def _size_reasons(before: str, after: str) -> list[str]:
    old, new = len(before.strip()), len(after.strip())
    if old and new < old * MIN_SHARE:
        return [f"leaves {new:,} of {old:,} characters"]
    if new > FREE_GROWTH_CHARS and old and new > old * MAX_GROWTH:
        return [f"grows from {old:,} to {new:,} characters"]
    return []


def numbers_in(text: str) -> Counter[str]:
    """Return how often each number occurs in a text."""
    return Counter(_NUMBER.findall(text))


def count_negations(text: str) -> int:
    return len(_NEGATION.findall(text))


def _meaning_reasons(change: FactChanges) -> list[str]:
    numbers = sum(numbers_in(a.text) != numbers_in(b.text) for a, b in change.rewritten)
    negations = sum(count_negations(a.text) != count_negations(b.text) for a, b in change.rewritten)
    reasons = [f"changes numbers in {numbers} fact{'' if numbers == 1 else 's'}"] if numbers else []
    return reasons + ([f"changes a negation in {negations} fact{'' if negations == 1 else 's'}"] if negations else [])


def safety_reasons(change: CheckedChange) -> list[str]:
    """Return what the content check finds in lines that a change adds, as messages."""
    counts = Counter(finding.message for finding in change.new_findings)
    return [
        f"1 new line {text}" if count == 1 else f"{count} new lines: each {text}" for text, count in counts.items()
    ]


def code_of_check(reason: str) -> str | None:
    """Return the code of what the content check found, for one of the ``safety_reasons``; None for other reasons.

    Codes that only ``hidden_content`` gives are "hidden".
    """
    found = _OF_CHECK.fullmatch(reason)
    return _CODES.get(found[1], "hidden") if found else None


def additions_only(change: CheckedChange, *, held: Collection[int] = ()) -> str:
    """Return the old text with only the new facts of a change, under their new headings.

    New lines that the content check flags are left out, as are those with a number in ``held``.
    """
    lines, new_lines = change.before.split("\n"), change.after.split("\n")
    flagged = {finding.line for finding in change.findings} | set(held)
    facts = compare_facts(change.before, change.after)
    added = {line.line - 1 for line in facts.added if line.line not in flagged}
    headings = {number for number in range(len(new_lines)) if number + 1 not in flagged}
    result: list[str] = []
    for tag, start, end, j, j_end in line_changes(lines, new_lines):
        result += lines[start:end]
        if tag in ("insert", "replace"):
            result += _with_headings(new_lines, range(j, j_end), added, headings)
    if lines[-1] == "" and result[-1] != "":  # keep the final line break
        result.append("")
    return "\n".join(result)


def safe_part(change: CheckedChange, *, pinned: Collection[int] = (), held: Collection[int] = ()) -> str:
    """Return the new text without new lines that the content check flags, and without changes of pinned facts.

    New lines with a number in ``held`` are left out, too. Where such a line replaces others, those stay. The result
    has all pinned facts, and all others that the new text has: other lines that would cost one, such as a code fence
    around it, are left out.
    """
    lines, new_lines = change.before.split("\n"), change.after.split("\n")
    touched = set(changed_places(change.before, change.after, pinned))
    held = {*held, *(finding.line for finding in change.new_findings), *_others_like(change, touched)}
    pinned_at = {number - 1 for number in touched}
    singles: list[list[_Edit]] = []
    fences: list[_Edit] = []  # which are only accepted together: half of a pair would swallow what follows
    are_fences_held = False
    for tag, start, end, j, j_end in line_changes(lines, new_lines):
        if tag == "equal":
            continue
        added = [new_lines[index] for index in range(j, j_end) if index + 1 not in held]
        is_held = len(added) < j_end - j or not pinned_at.isdisjoint(range(start, end))
        if any(map(is_fence, [*lines[start:end], *new_lines[j:j_end]])):
            are_fences_held |= is_held
            fences.append((start, end, added))
        elif not (is_held and any(line.strip() for line in lines[start:end])):
            singles.append([(start, end, added)])
    lost = _lost_facts(change.before, change.after)

    def fits(chosen: Sequence[_Edit]) -> bool:
        text = _edited(lines, chosen)
        return not changed_places(change.before, text, pinned) and _lost_facts(change.before, text) <= lost

    return _edited(lines, _fitting([*singles, *([] if are_fences_held else [fences])], fits))


def _others_like(change: CheckedChange, lines: Collection[int]) -> set[int]:
    """Return the line numbers of new facts that say what the facts at some lines of the old text do, or similar."""
    old, new = fact_lines(change.before), fact_lines(change.after)
    forms = {normal_form(fact.text) for fact in old if fact.line in lines}
    pairs = match_facts(old, new) if lines else {}
    reworded = {new[j].line for j, i in pairs.items() if old[i].line in lines}
    return reworded | {fact.line for fact in new if normal_form(fact.text) in forms}


def _lost_facts(before: str, after: str) -> set[int]:
    """Return the indexes of the facts that another text doesn't have in the same words."""
    old = fact_lines(before)
    return set(range(len(old))) - set(match_equal_facts(old, fact_lines(after)).values())


def _edited(lines: Sequence[str], edits: Sequence[_Edit]) -> str:
    """Return a text with edits applied: lines [start, end), counted from 0, become others."""
    result = list(lines)
    for start, end, new in sorted(edits, reverse=True):
        result[start:end] = new
    return "\n".join(result)


def _fitting(groups: Sequence[list[_Edit]], fits: Callable[[Sequence[_Edit]], bool]) -> list[_Edit]:
    """Return the edits of the groups that fit together, found by halving; ``fits`` holds for the result."""
    fitting: list[_Edit] = []
    waiting = [list(groups)]
    for _ in range(MAX_TRIES):
        if not waiting:
            break
        part = waiting.pop()
        edits = [edit for group in part for edit in group]
        if fits([*fitting, *edits]):
            fitting += edits
        elif len(part) > 1:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
    return fitting


def _with_headings(lines: list[str], indexes: range, added: set[int], headings: set[int]) -> list[str]:
    """Return the added lines in a range, each with the heading and blank lines directly before it.

    ``headings``: the indexes of lines that may be used as headings.
    """
    kept: list[str] = []
    pending: list[str] = []
    for index in indexes:
        if index in added:
            kept += [*pending, lines[index]]
            pending = []
        elif lines[index].lstrip().startswith("#") and index in headings:
            pending = [*([""] if pending[:1] == [""] else []), lines[index]]
        elif not lines[index].strip():
            pending.append("")
    return kept

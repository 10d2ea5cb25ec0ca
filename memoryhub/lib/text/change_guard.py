"""Compare the facts of two versions of a memory document, and decide whether a person must review the change.

Facts are matched after normalising markup and whitespace, so that a reworded line counts as rewritten, not as
removed and added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from memoryhub.lib.text.diff import line_changes
from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts, normal_form

# Limits of a change without review:
LOSS_LIMIT = 0.10  # share of facts removed or rewritten, in one change or since the last review
MIN_SHARE = 0.5  # share of the characters that must remain
MAX_GROWTH = 3.0  # growth factor in characters
FREE_GROWTH_CHARS = 2_000  # up to this size, a document may grow by any factor
INVISIBLE = re.compile(  # zero width, fillers, bidi controls, tags, variation selectors from 17
    "[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_INSTRUCTION = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|earlier|above|all|any|your|these|other)\b.{0,40}"
    r"\b(instruction|rule|prompt|message|fact|memor|guideline|limit)"
    r"|\bsystem prompt\b|\byou (must|shall|are now|have to) (now |always |never )?"
    r"(obey|act|pretend|reveal|delete|remove|send|output|reply|respond|ignore)|<\s*/?\s*(system|assistant|tool|instructions?)\s*>|\[/?(INST|SYSTEM)\]"
    r"|\b(delete|remove|drop|erase|overwrite)\b.{0,30}\b(all|every|other|existing|the)\b.{0,20}\b(fact|memor|line|entr)"
    r"|\bwhen (consolidating|summari[sz]ing|updating (the )?memory)\b",
    re.IGNORECASE,
)
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


def compare_facts(before: str, after: str) -> FactChanges:
    """Return the facts that were removed, added and rewritten between two texts."""
    old, new = fact_lines(before), fact_lines(after)
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


def review_reasons(before: str, after: str, *, pinned: Collection[str] = (), lost_before: int = 0) -> list[str]:
    """Return the reasons why a person must review a change; an empty list if nobody needs to.

    ``pinned``: texts of pinned facts. ``lost_before``: the number of facts that runs removed since the last review.
    """
    change = compare_facts(before, after)
    reasons = _loss_reasons(change, lost_before)
    reasons += _pin_reasons(after, pinned)
    reasons += _size_reasons(before, after)
    reasons += _meaning_reasons(change)
    return reasons + _safety_reasons(before, after)


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


def _pin_reasons(after: str, pinned: Collection[str]) -> list[str]:
    kept = {normal_form(line.text) for line in fact_lines(after)}
    touched = [text for text in pinned if normal_form(text) not in kept]
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


def _safety_reasons(before: str, after: str) -> list[str]:
    new = [line for line in after.split("\n") if line not in set(before.split("\n"))]
    instructions = sum(is_instruction(line) for line in new)
    hidden = sum(bool(INVISIBLE.search(line)) for line in new)
    reasons = []
    if instructions:
        reasons.append(
            "1 new line looks like an instruction to a model"
            if instructions == 1
            else f"{instructions} new lines look like instructions to a model"
        )
    if hidden:
        reasons.append(
            "1 new line contains invisible characters"
            if hidden == 1
            else f"{hidden} new lines contain invisible characters"
        )
    return reasons


def is_instruction(line: str) -> bool:
    """Return whether a line looks like an instruction to a model instead of a fact."""
    return bool(_INSTRUCTION.search(line))


def additions_only(before: str, after: str) -> str:
    """Return the old text with only the new facts of a change, under their new headings.

    New lines that look like instructions or contain invisible characters are left out.
    """
    lines, new_lines = before.split("\n"), after.split("\n")
    added = {line.line - 1 for line in compare_facts(before, after).added if _is_safe(new_lines[line.line - 1])}
    result: list[str] = []
    for tag, start, end, j, j_end in line_changes(lines, new_lines):
        result += lines[start:end]
        if tag in ("insert", "replace"):
            result += _with_headings(new_lines, range(j, j_end), added)
    if lines[-1] == "" and result[-1] != "":  # keep the final line break
        result.append("")
    return "\n".join(result)


def _with_headings(lines: list[str], indexes: range, added: set[int]) -> list[str]:
    """Return the added lines in a range, each with the heading and blank lines directly before it."""
    kept: list[str] = []
    pending: list[str] = []
    for index in indexes:
        if index in added:
            kept += [*pending, lines[index]]
            pending = []
        elif lines[index].lstrip().startswith("#"):
            pending = [*([""] if pending[:1] == [""] else []), lines[index]]
        elif not lines[index].strip():
            pending.append("")
    return kept


def _is_safe(line: str) -> bool:
    return not is_instruction(line) and not INVISIBLE.search(line)


def show_invisible(text: str) -> str:
    """Return text with invisible and bidi control characters replaced by their code point: ⟦U+200B⟧."""
    return INVISIBLE.sub(lambda match: f"⟦U+{ord(match.group()):04X}⟧", text)

"""What a change of a memory document does to its facts, and whether a person has to look at it first. Pure.

The limits are those of reliability.md 5.2. Facts are compared line by line after marks and spaces are settled, so a
reworded line shows as changed, not as lost and new.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from memoryhub.lib.text.diff import line_changes
from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts, normal_form

LOSS_LIMIT = 0.10  # share of the fact lines that may be removed or rewritten unseen, at once or since a person looked
LEAST_SHARE = 0.5  # of the characters must stay
MOST_GROWTH = 3.0  # times its characters a document may become
GROWTH_FROM = 2_000  # characters: a small document may grow as it likes
INVISIBLE = re.compile(  # of zero width, fillers, bidi controls, tags, variation selectors 17 and above
    "[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_ORDERS = re.compile(
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
class Change:
    """Old and new facts of a change: those gone, those come, and pairs that were reworded."""

    removed: list[FactLine] = field(default_factory=list)
    added: list[FactLine] = field(default_factory=list)
    rewritten: list[tuple[FactLine, FactLine]] = field(default_factory=list)
    old_count: int = 0


def compare_facts(before: str, after: str) -> Change:
    """Tell what became of each fact line from one text to another."""
    old, new = fact_lines(before), fact_lines(after)
    pairs = match_facts(old, new)
    kept = set(pairs.values())
    rewritten = [
        (old[i], new[j]) for j, i in sorted(pairs.items()) if normal_form(old[i].text) != normal_form(new[j].text)
    ]
    return Change(
        removed=[line for i, line in enumerate(old) if i not in kept],
        added=[line for j, line in enumerate(new) if j not in pairs],
        rewritten=rewritten,
        old_count=len(old),
    )


def flags_of(before: str, after: str, *, pinned: Collection[str] = (), lost_before: int = 0) -> list[str]:
    """Return why a person has to look at a change, a sentence each; nothing where nobody needs to.

    ``pinned``: texts of facts that no run may touch. ``lost_before``: facts that runs removed since a person looked.
    """
    change = compare_facts(before, after)
    flags = _losses(change, lost_before)
    flags += _pinned(after, pinned)
    flags += _size(before, after)
    flags += _altered(change)
    return flags + _unsafe(before, after)


def _losses(change: Change, lost_before: int) -> list[str]:
    total = change.old_count
    touched = len(change.removed) + len(change.rewritten)
    if total and touched / total > LOSS_LIMIT:
        words = f", rewrites {len(change.rewritten)}" if change.rewritten else ""
        return [f"removes {len(change.removed)} of {total} facts{words}"]
    whole = total + lost_before
    lost = len(change.removed) + lost_before
    if change.removed and lost / whole > LOSS_LIMIT:
        return [f"with this, {lost} of {whole} facts are gone since a person last looked"]
    return []


def _pinned(after: str, pinned: Collection[str]) -> list[str]:
    kept = {normal_form(line.text) for line in fact_lines(after)}
    touched = [text for text in pinned if normal_form(text) not in kept]
    return [f"touches {len(touched)} pinned fact{'' if len(touched) == 1 else 's'}"] if touched else []


def _size(before: str, after: str) -> list[str]:
    old, new = len(before.strip()), len(after.strip())
    if old and new < old * LEAST_SHARE:
        return [f"leaves {new:,} of {old:,} characters"]
    if new > GROWTH_FROM and old and new > old * MOST_GROWTH:
        return [f"grows from {old:,} to {new:,} characters"]
    return []


def numbers_in(text: str) -> Counter[str]:
    """Return the numbers of a text, each with how often it occurs."""
    return Counter(_NUMBER.findall(text))


def count_negations(text: str) -> int:
    return len(_NEGATION.findall(text))


def _altered(change: Change) -> list[str]:
    numbers = sum(numbers_in(a.text) != numbers_in(b.text) for a, b in change.rewritten)
    turned = sum(count_negations(a.text) != count_negations(b.text) for a, b in change.rewritten)
    flags = [f"changes numbers in {numbers} fact{'' if numbers == 1 else 's'}"] if numbers else []
    return flags + ([f"changes a negation in {turned} fact{'' if turned == 1 else 's'}"] if turned else [])


def _unsafe(before: str, after: str) -> list[str]:
    new = [line for line in after.split("\n") if line not in set(before.split("\n"))]
    orders, hidden = sum(is_instruction(line) for line in new), sum(bool(INVISIBLE.search(line)) for line in new)
    flags = [f"{orders} new line{'' if orders == 1 else 's'} read like orders to a model"] if orders else []
    return flags + ([f"{hidden} new line{'' if hidden == 1 else 's'} hold invisible characters"] if hidden else [])


def is_instruction(line: str) -> bool:
    """Tell whether a line reads like an order to a model instead of a fact."""
    return bool(_ORDERS.search(line))


def additions_only(before: str, after: str) -> str:
    """Return the old text with the new facts of the change in their places, and nothing else of it.

    Lines that read like orders or hold invisible characters stay out too. Headings come along with the facts that
    they stand over.
    """
    lines, new_lines = before.split("\n"), after.split("\n")
    born = {line.line - 1 for line in compare_facts(before, after).added if _is_safe(new_lines[line.line - 1])}
    result: list[str] = []
    for tag, start, end, j, j_end in line_changes(lines, new_lines):
        result += lines[start:end]
        if tag in ("insert", "replace"):
            result += _with_headings(new_lines, range(j, j_end), born)
    if lines[-1] == "" and result[-1] != "":  # the old text's last line ended: so does the new one's
        result.append("")
    return "\n".join(result)


def _with_headings(lines: list[str], places: range, born: set[int]) -> list[str]:
    """Return the new facts among some lines, with headings, and the blank lines round them, that lead to one."""
    taken: list[str] = []
    waiting: list[str] = []
    for place in places:
        if place in born:
            taken += [*waiting, lines[place]]
            waiting = []
        elif lines[place].lstrip().startswith("#"):
            waiting = [*([""] if waiting[:1] == [""] else []), lines[place]]
        elif not lines[place].strip():
            waiting.append("")
    return taken


def _is_safe(line: str) -> bool:
    return not is_instruction(line) and not INVISIBLE.search(line)


def show_invisible(text: str) -> str:
    """Make characters that hide or turn text visible, as their code in brackets."""
    return INVISIBLE.sub(lambda found: f"⟦U+{ord(found.group()):04X}⟧", text)

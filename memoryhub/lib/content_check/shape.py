"""Recognise text that tells a model what to do: an obligation or imperative together with a sensitive target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from memoryhub.lib.content_check.normalising import decoded_texts, is_disguised, scrambled, variants
from memoryhub.lib.content_check.overrides import imitates_role, overrides_instructions
from memoryhub.lib.content_check.resemblance import resembles_fact, resembles_instruction
from memoryhub.lib.content_check.rules import judge_rules
from memoryhub.lib.content_check.targets import has_target, pipes_to_shell
from memoryhub.lib.text_caches import text_cache

INSTRUCTION, OVERRIDE, ROLE, ENCODED, DISGUISED = "instruction", "override", "role", "encoded", "disguised"
TOO_LONG = "too_long"
EXPLANATIONS = {
    INSTRUCTION: "looks like an instruction to a model",
    OVERRIDE: "tries to override instructions or safeguards",
    ROLE: "imitates a system message or a role of the conversation",
    ENCODED: "contains encoded text",
    DISGUISED: "is written with disguised letters",
    TOO_LONG: "is too long to be checked",
}
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；।؟۔])|\n+|(?:\\n)+")
_LIST_MARK = re.compile(r"^[\s>]*(?:[-*+•·▪◦‣]|\d{1,3}[.)]|#{1,6})?\s*(?:\[[ x]\]\s*)?(?:\[[\w -]{1,40}\]\s*)?")


def shape_of(text: str) -> str | None:
    """Return the code of what a text looks like, or None if it looks like a fact. Undoes disguises first."""
    unmarked = _LIST_MARK.sub("", text, count=1)
    for number, reading in enumerate(variants(unmarked)):
        if code := _judge(reading):
            return code
        if number == 0 and len(reading) > 20:
            for scramble in scrambled(reading):
                if overrides_instructions(scramble) or judge_rules(scramble, has_target=False) == "override":
                    return ENCODED
    if is_disguised(unmarked):
        return DISGUISED
    if any(True for _ in decoded_texts(text)):
        return ENCODED
    return None


def resembles(text: str) -> bool:
    """Return whether a text, or a reading of it, resembles known instructions."""
    readings = variants(_LIST_MARK.sub("", text, count=1))
    return any(resembles_instruction(_single_spaced(reading)) for reading in readings)


def may_have_finding(lines: list[str]) -> bool:
    """Return whether a passage of these lines may have a finding; each line may begin a clause."""
    unmarked = _LIST_MARK.sub("", " ".join(line.strip() for line in lines), count=1)
    for number, reading in enumerate(variants(unmarked)):
        if _judge_text(_single_spaced(reading)):
            return True
        if number == 0 and any(True for _ in scrambled(reading)):
            return True
    clauses = _LIST_MARK.sub("", " | ".join(line.strip() for line in lines), count=1)
    if any(_judge_sentences(_single_spaced(reading), is_mixed=True) for reading in variants(clauses)):
        return True
    return is_disguised(unmarked) or any(True for _ in decoded_texts(unmarked))


def _single_spaced(folded: str) -> str:
    return " ".join(folded.replace("’", "'").split())


def _judge(folded: str) -> str | None:
    folded = _single_spaced(folded)
    return _judge_text(folded) or _judge_sentences(folded)


def _judge_text(folded: str) -> str | None:
    if imitates_role(folded):
        return ROLE
    if overrides_instructions(folded):
        return OVERRIDE
    return INSTRUCTION if pipes_to_shell(folded) else None


def _judge_sentences(folded: str, *, is_mixed: bool = False) -> str | None:
    return next((verdict for sentence in _sentences(folded) if (verdict := _verdict(sentence, is_mixed))), None)


@text_cache(4_096)  # a sentence is in several passages
def _verdict(sentence: str, is_mixed: bool) -> str:  # noqa: FBT001 - a key of the cache
    verdict = judge_rules(sentence, has_target=has_target(sentence), is_mixed=is_mixed)
    return "" if verdict == INSTRUCTION and not is_mixed and resembles_fact(sentence) else verdict


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, and each two in a row, because an obligation may precede its target."""
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]
    yield from parts
    yield from (f"{first} {second}" for first, second in pairwise(parts) if len(first) < 40)

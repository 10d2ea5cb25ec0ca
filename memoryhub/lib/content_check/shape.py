"""Recognise text that tells a model what to do: an obligation or imperative together with a sensitive target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from memoryhub.lib.content_check.normalising import decoded_texts, is_disguised, scrambled, variants
from memoryhub.lib.content_check.overrides import imitates_role, overrides_instructions
from memoryhub.lib.content_check.rules import judge_rules
from memoryhub.lib.content_check.targets import PIPE_TO_SHELL, has_target

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


def _judge(folded: str) -> str | None:
    folded = " ".join(folded.replace("’", "'").replace("`", "`").split())
    if imitates_role(folded):
        return ROLE
    if overrides_instructions(folded):
        return OVERRIDE
    if PIPE_TO_SHELL.search(folded):
        return INSTRUCTION
    for sentence in _sentences(folded):
        if verdict := judge_rules(sentence, has_target=has_target(sentence)):
            return verdict
    return None


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, and each two in a row, because an obligation may precede its target."""
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]
    yield from parts
    if 1 < len(parts) <= 6:
        yield from (f"{first} {second}" for first, second in pairwise(parts) if len(first) < 40)

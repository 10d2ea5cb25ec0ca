"""Parse the replies of consolidation models: repair known variants, reject everything else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.text.facts import BULLET
from memoryhub.lib.validation import DUPLICATE_KEY, BadJSON, Decoded, clean_text, decode_json, json_text

MAX_ENTRY = 8_000  # characters
MAX_MEMORY = 400_000
EMPTY_MEMORY = "(empty)"  # how a request shows an empty memory
MAX_OBSERVATIONS = 20  # of each kind, per reply
KINDS = {"findings": "finding", "insights": "insight", "lessons": "lesson"}
_FENCE = re.compile(r"^\s*```[\w-]*\n(?P<inside>.*?)\n?```\s*$", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"^\W*(unchanged|no changes?|same( as before)?|as before|n/?a|none|null|nothing( new)?|todo|tbd|undefined"
    r"|string|\.\.\."
    r"|existing (content|memory)|full (updated )?(content|memory)|memory_update|history_entry|see above|"
    r"(current |the )?memory(\.md)?|(the )?(rest|file|document|memory) (is |remains |stays )?unchanged)\W*$",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^\W*(error|exception|traceback|<!doctype|<html|internal server error|service unavailable)\b", re.I
)
_BULLET = re.compile(rf"{BULLET.pattern}(\S.*)$")
_NOTHING = re.compile(r"^\W*no new facts\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class SavedMemory:
    """The arguments of save_memory."""

    history_entry: str
    memory_update: str


def read_save_memory(arguments: Any, *, memory: str, mark: str) -> SavedMemory:
    """Return the arguments of a save_memory call (formats.md section 1). ``memory``: the current MEMORY.md.

    They may be an object, JSON text of one, text encoded twice, text in a code fence, or a list that begins with one.
    A history entry that is an object is kept as its JSON text; a memory that is none is refused, since MEMORY.md
    must not become one. A memory that repeats the current one is valid whatever it says, even if it is empty.
    Raises Invalid with what is wrong.
    """
    fields = _object(arguments)
    entry, update = fields.get("history_entry"), fields.get("memory_update")
    if isinstance(entry, dict | list) and entry:
        entry = json_text(entry)
    history = _field("history_entry", entry, MAX_ENTRY, mark)
    if isinstance(update, str) and _is_unchanged(memory, update):
        return SavedMemory(history, memory)
    return SavedMemory(history, _unfenced(_field("memory_update", update, MAX_MEMORY, mark)))


def _is_unchanged(memory: str, update: str) -> bool:
    """Tell whether an update is the current memory, apart from white space at the ends of lines."""
    before, after = ([line.rstrip() for line in text.strip().splitlines()] for text in (memory, _unfenced(update)))
    return after == before or (not before and after == [EMPTY_MEMORY])


def read_observations(text: str, *, mark: str) -> list[tuple[str, str]]:
    """Return (kind, text) of an answer ``{"findings": [], "insights": [], "lessons": []}``, in that order.

    The JSON may stand in a code fence, or have words before and after it; an item may be an object with a content.
    At most 20 of a kind are taken. Raises Invalid where there is no such object.
    """
    if mark in text:
        raise Invalid("The reply repeats the request.", code="bad_reply")
    found = _embedded_object(text)
    if not found.keys() & KINDS.keys():
        raise Invalid("The reply has no findings, insights or lessons.", code="bad_reply")
    return [(KINDS[name], content) for name in KINDS for content in _item_texts(found.get(name) or [])]


def _embedded_object(text: str) -> dict[str, Any]:
    start, end = text.find("{"), text.rfind("}")
    try:
        value = _unambiguous(decode_json(text[start : end + 1])) if 0 <= start < end else None
    except BadJSON as error:
        raise Invalid(f"The reply can't be read as JSON: {error.message}.", code="bad_reply") from error
    if not isinstance(value, dict):
        raise Invalid(f"The reply isn't a JSON object: {text.strip()[:80]!r}", code="bad_reply")
    return value


def _unambiguous(decoded: Decoded) -> Any:
    """Return a value without repeated keys, of which the hub would have to choose one."""
    if DUPLICATE_KEY in decoded.repairs:
        raise Invalid("The reply has the same key twice.", code="bad_reply")
    return decoded.value


def _item_texts(items: Any) -> list[str]:
    if not isinstance(items, list):
        raise Invalid("Findings, insights and lessons must be lists.", code="bad_reply")
    texts = [item.get("content") if isinstance(item, dict) else item for item in items]
    clean = [clean_text(text).strip() for text in texts if isinstance(text, str)]
    return list(dict.fromkeys(text for text in clean if text and not _PLACEHOLDER.match(text)))[:MAX_OBSERVATIONS]


def _object(value: Any) -> dict[str, Any]:
    for _ in range(3):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = value[0]
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            break
        try:
            decoded = decode_json(_unfenced(value))
        except BadJSON as error:
            raise Invalid(
                f"The arguments of save_memory can't be read: {error.message}.", code="bad_reply"
            ) from error
        value = _unambiguous(decoded)
    raise Invalid("The arguments of save_memory aren't an object.", code="bad_reply")


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text)
    return fenced["inside"] if fenced else text


def _field(name: str, value: Any, limit: int, mark: str) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{name} isn't text.", code="bad_reply")
    text = clean_text(value)
    if not text.strip():
        raise Invalid(f"{name} is empty.", code="bad_reply")
    if len(text) > limit:
        raise Invalid(f"{name} has {len(text):,} characters; the limit is {limit:,}.", code="bad_reply")
    if _PLACEHOLDER.match(text) or _ERROR.match(text):
        raise Invalid(f"{name} is a placeholder or an error message: {text.strip()[:80]!r}", code="bad_reply")
    if mark in text:
        raise Invalid(f"{name} repeats the request.", code="bad_reply")
    return text


def read_facts(text: str, *, mark: str) -> list[str]:
    """Return the bullets of Grip's answer, without their marks; none for "No new facts". Raises Invalid.

    Only an answer that says nothing else counts as "No new facts": Grip drops a whole list for a mention of it.
    """
    if mark in text:
        raise Invalid("The reply repeats the request.", code="bad_reply")
    facts = [bullet.group(1).strip() for line in _unfenced(text).split("\n") if (bullet := _BULLET.match(line))]
    facts = [fact for fact in facts if not _NOTHING.match(fact) and not _PLACEHOLDER.match(fact)]
    if not facts and not _NOTHING.match(text.strip()):
        raise Invalid(f"The reply isn't a list of facts: {text.strip()[:80]!r}", code="bad_reply")
    return facts

"""Describe what an export to a layout writes, converts and leaves out, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.layouts.snapshot import LABELS, program_of

Label = str | Promise
KINDS = (
    "sessions",
    "entries",
    "summaries",
    "documents",
    "history",
    "knowledge",
    "observations",
    "key_values",
    "cached_responses",
    "terms",
)
_CONVERSATION = ("sessions", "entries")
_NANOBOT = (*_CONVERSATION, "documents", "history", "knowledge", "observations")
SUPPORTED_KINDS: dict[str, tuple[str, ...]] = {
    "nanobot": _NANOBOT,
    "nanobot-current": _NANOBOT,
    "grip": (*_CONVERSATION, "summaries", "documents", "history", "knowledge", "observations", "cached_responses"),
    "grid": ("observations", "key_values", "terms"),
    "agterm": (*_CONVERSATION, "summaries"),
    "hub": KINDS,
}
_BULLETS = _("become bullets in MEMORY.md (- [category] text), without their sources, tags and times")
_NO_ZONE = _("are written in the hub's time zone without an offset, as in nanobot")
_MINUTES = _("are written in the hub's time zone to the minute, as in nanobot")
_PLAIN = _("become messages of their role, because this layout has no such types")
_PARTS = _("have several parts or none; their text is joined")
_CONVERTED: dict[str, dict[str, Label]] = {  # always
    "nanobot": {
        "knowledge": _BULLETS,
        "observations": _BULLETS,
        "shared_names": _(
            "have a key whose file name another has or that is too long; the program lists them, "
            "but can't find them by key"
        ),
        "history_with_blank_lines": _("contain a blank line, at which nanobot splits entries; written as a dot"),
    },
    "nanobot-current": {
        "knowledge": _BULLETS,
        "observations": _BULLETS,
        "shared_names": _("have a key too long for a file name; the program doesn't open them"),
        "hidden_sessions": _("stay hidden from the program, under their old names"),
        "history_without_time": _("have no time"),
        "long_history": _("exceed the 1,000 that nanobot keeps when it next trims its journal"),
    },
    "grip": {
        "observations": _BULLETS,
        "other_documents": _(
            "go to SOUL.md and USER.md, which Grip reads; MemoryHub doesn't read them back from there"
        ),
        "shared_names": _(
            "have a key whose file name another has or that is too long; the program doesn't open them"
        ),
        "history_without_time": _("get the previous entry's time, because Grip identifies entries by their time"),
        "summaries": _("become part of the session's summary"),
    },
    "grid": {
        "observations": _("go to observations-export.json, which MemoryHub reads; only grid writes its own index")
    },
    "agterm": {
        "shared_names": _("have a key whose file name another has or that is too long; the key in the file is used")
    },
    "hub": {},
}
_FOREIGN: dict[str, dict[str, Label]] = {  # if the memory came from another program
    "nanobot": {
        "message_times": _NO_ZONE,
        "history_times": _MINUTES,
        "typed_entries": _PLAIN,
        "message_parts": _PARTS,
    },
    "nanobot-current": {
        "message_times": _NO_ZONE,
        "history_times": _MINUTES,
        "typed_entries": _PLAIN,
        "message_parts": _PARTS,
        "session_summaries": _("become _last_summary"),
    },
    "grip": {
        "history_times": _("are written in UTC to the second, as in Grip"),
        "typed_entries": _PLAIN,
        "message_parts": _PARTS,
    },
    "agterm": {
        "tool_calls": _("become text; the calls themselves are kept in the message's metadata"),
        "tool_results": _("get the role system; call and tool are kept in the message's metadata"),
        "message_times": _("are written in UTC to the millisecond"),
        "message_parts": _PARTS,
    },
}
_UNSUPPORTED_REASONS: dict[str, dict[str, Label]] = {  # instead of the general reason
    "nanobot": {
        "summaries": _("nanobot 0.1 doesn't support them; the summarised messages are written in full"),
        "key_values": _("nanobot 0.1 has no key-values, and a secret doesn't belong in MEMORY.md"),
    },
    "nanobot-current": {
        "summaries": _("nanobot 0.3 doesn't support them; the summarised messages are written in full"),
        "key_values": _("nanobot 0.3 has no key-values, and a secret doesn't belong in MEMORY.md"),
    },
    "grip": {
        "folded_entries": _("are consolidated or summarised, so Grip's file doesn't contain them any more"),
        "message_times": _("Grip's messages have no times"),
    },
}
_DETAILS: dict[str, tuple[str, ...]] = {  # unsupported details of supported kinds
    "nanobot": ("session_summaries", "checkpoints", "history_sessions"),
    "nanobot-current": (),
    "grip": ("folded_entries", "titles", "checkpoints", "history_sessions"),
    "grid": (),
    "agterm": ("session_summaries", "pointers", "titles", "checkpoints"),
    "hub": (),
}
_NEVER_EXPORTED: dict[str, Label] = {  # in every layout
    "revisions": _("only the current text of documents is written; earlier revisions stay in this hub"),
    "withdrawn": _("withdrawn items stay in this hub"),
    "marks": _("pins, checks and review dates exist only in the hub"),
    "row_marks": _("checks and review dates of knowledge and observations exist only in the hub"),
    "removed_relations": _("were removed from the graph by a person; the removal stays in this hub"),
    "held_changes": _("await review"),
    "held_rows": _("await review"),
    "runs": _("runs and their costs stay in this hub"),
}
_EARLIER = _("are from before their session restarted; the program's file contains only the current conversation")
_HIDDEN = _("were added by the program, or are on a branch that was left")
_FIELDS = _("belong to another program")
NAMES = (  # of all kinds, as the template filter ``words`` prints them
    gettext_noop("Cached responses"),
    gettext_noop("Checkpoints"),
    gettext_noop("Documents"),
    gettext_noop("More fields"),
    gettext_noop("Held changes"),
    gettext_noop("Held rows"),
    gettext_noop("Hidden sessions"),
    gettext_noop("History"),
    gettext_noop("History sessions"),
    gettext_noop("History times"),
    gettext_noop("History with blank lines"),
    gettext_noop("History without time"),
    gettext_noop("Key-values"),
    gettext_noop("Knowledge"),
    gettext_noop("Long history"),
    gettext_noop("Marks"),
    gettext_noop("Message parts"),
    gettext_noop("Message times"),
    gettext_noop("Observations"),
    gettext_noop("Other documents"),
    gettext_noop("Pointers"),
    gettext_noop("Removed relations"),
    gettext_noop("Revisions"),
    gettext_noop("Row marks"),
    gettext_noop("Runs"),
    gettext_noop("Session summaries"),
    gettext_noop("Sessions"),
    gettext_noop("Shared names"),
    gettext_noop("Summaries"),
    gettext_noop("Terms"),
    gettext_noop("Titles"),
    gettext_noop("Tool calls"),
    gettext_noop("Tool results"),
    gettext_noop("Withdrawn"),
)


@dataclass(frozen=True)
class Part:
    """A number of rows of a kind, with how they are converted or why they are left out ("" if written unchanged)."""

    kind: str
    count: int
    words: str = ""


@dataclass(frozen=True)
class ExportPlan:
    """What an export writes, converts and leaves out. Converted rows are also counted as written.

    ``secret_count``: the number of key-values written that look like secrets; they are written unchanged.
    """

    layout: str
    written: list[Part]
    converted: list[Part]
    left_out: list[Part]
    secret_count: int = 0


def plan_layout(counts: Mapping[str, int], layout: str, program: str) -> ExportPlan:
    """Return the plan for exporting a workspace. ``program``: the program that its rows came from.

    ``counts``: rows by kind, for ``KINDS`` and the kinds in the tables above. Raises KeyError for an unknown layout.
    """
    is_native = program == program_of(layout)
    supported = SUPPORTED_KINDS[layout]
    converted = dict(_CONVERTED[layout])
    left_out: dict[str, Label] = {kind: _unsupported_reason(layout, kind) for kind in KINDS if kind not in supported}
    if "sessions" in supported:
        left_out |= {kind: _unsupported_reason(layout, kind) for kind in _DETAILS[layout]}
    if layout != "hub":
        left_out |= {"earlier_entries": _EARLIER, "hidden_entries": _HIDDEN} if "entries" in supported else {}
        if not is_native:
            converted |= _FOREIGN.get(layout, {})
            left_out |= {"further_fields": _FIELDS} if "entries" in supported else {}
            left_out |= {"checkpoints": _unsupported_reason(layout, "checkpoints")} if "sessions" in supported else {}
        if layout == "grip" and not is_native:
            left_out |= {"message_times": _unsupported_reason(layout, "message_times")}
    left_out |= _NEVER_EXPORTED
    written = dict(counts)
    if layout == "grip":
        written["entries"] = counts.get("entries", 0) - counts.get("folded_entries", 0)
    if layout == "hub":
        written["entries"] = counts.get("entries", 0) + counts.get("earlier_entries", 0)
    return ExportPlan(
        layout,
        [Part(kind, written[kind]) for kind in KINDS if kind in supported and written.get(kind)],
        _parts(converted, counts),
        _parts(left_out, counts),
        counts.get("secrets", 0) if "key_values" in supported else 0,
    )


def _unsupported_reason(layout: str, kind: str) -> Label:
    general = gettext("%(program)s doesn't support them") % {"program": LABELS[layout]}
    return _UNSUPPORTED_REASONS.get(layout, {}).get(kind, general)


def _parts(words: Mapping[str, Label], counts: Mapping[str, int]) -> list[Part]:
    return [Part(kind, counts[kind], str(text)) for kind, text in words.items() if counts.get(kind)]

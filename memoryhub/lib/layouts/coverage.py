"""What a layout holds, what is converted for it and what is left out: said before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.layouts.snapshot import WORDS, program_of

Clause = str | Promise
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
_TALK = ("sessions", "entries")
_NANOBOT = (*_TALK, "documents", "history", "knowledge", "observations")
HOLDS: dict[str, tuple[str, ...]] = {
    "nanobot": _NANOBOT,
    "nanobot-current": _NANOBOT,
    "grip": (*_NANOBOT, "cached_responses"),
    "grid": ("observations", "key_values", "terms"),
    "agterm": (*_TALK, "summaries"),
    "hub": KINDS,
}
_BULLETS = _("become bullets of MEMORY.md, a line each: - [category] text; their sources, tags and times don't fit")
_NO_ZONE = _("are written in the hub's time zone without naming it, as nanobot does")
_MINUTES = _("are written to the minute in the hub's time zone, as nanobot does")
_PLAIN = _("become plain messages of their role: this layout has no such types")
_PARTS = _("hold several parts or none; their text is joined")
_CONVERTED: dict[str, dict[str, Clause]] = {  # always
    "nanobot": {
        "knowledge": _BULLETS,
        "observations": _BULLETS,
        "shared_names": _(
            "have a key whose file name another has or that is too long; the program finds them listed, "
            "not by their key"
        ),
        "history_with_blank_lines": _("hold a blank line, at which nanobot's log parts entries"),
    },
    "nanobot-current": {
        "knowledge": _BULLETS,
        "observations": _BULLETS,
        "shared_names": _("have a key too long for a file name; the program doesn't open them"),
        "hidden_sessions": _("stay hidden: the program had left them behind, and their names are those of before"),
        "history_without_time": _("have an empty time"),
        "long_history": _("are more than the 1,000 that nanobot keeps when it next trims its journal"),
    },
    "grip": {
        "observations": _BULLETS,
        "other_documents": _(
            "go to SOUL.md and USER.md, which Grip reads; MemoryHub doesn't read them back from there"
        ),
        "shared_names": _(
            "have a key whose file name another has or that is too long; the program doesn't open them"
        ),
        "history_without_time": _("take the time of the entry before, since Grip knows an entry by its time"),
    },
    "grid": {
        "observations": _("go to observations-export.json, which MemoryHub reads; only grid writes its own index")
    },
    "agterm": {
        "shared_names": _("have a key whose file name another has or that is too long; the key in the file counts")
    },
    "hub": {},
}
_FOREIGN: dict[str, dict[str, Clause]] = {  # where the memory came from another program
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
        "session_summaries": _("become the summary of what went before, _last_summary"),
    },
    "grip": {
        "history_times": _("are written to the second in UTC, as Grip does"),
        "typed_entries": _PLAIN,
        "message_parts": _PARTS,
    },
    "agterm": {
        "tool_calls": _("become text; the calls themselves are kept in the entry's metadata"),
        "tool_results": _("get the role system; call and tool are kept in the entry's metadata"),
        "message_times": _("are written in UTC to the millisecond"),
        "message_parts": _PARTS,
    },
}
_NO_PLACE: dict[str, dict[str, Clause]] = {  # in the place of the general words
    "nanobot": {
        "summaries": _("nanobot 0.1 has no place for them; what they fold is written in full"),
        "key_values": _("nanobot 0.1 has no exact values, and a secret doesn't belong into MEMORY.md"),
    },
    "nanobot-current": {
        "summaries": _("nanobot 0.3 has no place for them; what they fold is written in full"),
        "key_values": _("nanobot 0.3 has no exact values, and a secret doesn't belong into MEMORY.md"),
    },
    "grip": {
        "summaries": _("Grip has no place for them; what they fold is written in full"),
        "pointers": _("Grip has none: it may consolidate again what was consolidated"),
        "message_times": _("Grip's messages have no times"),
    },
}
_DETAILS: dict[str, tuple[str, ...]] = {  # what goes with a kind that fits, and does not fit itself
    "nanobot": ("session_summaries", "checkpoints", "history_sessions"),
    "nanobot-current": (),
    "grip": ("pointers", "titles", "checkpoints", "history_sessions"),
    "grid": (),
    "agterm": ("session_summaries", "pointers", "titles", "checkpoints"),
    "hub": (),
}
_STAYS: dict[str, Clause] = {  # in every layout
    "revisions": _("the documents are written as they are now; their earlier revisions stay in this hub"),
    "withdrawn": _("was withdrawn, and stays in this hub"),
    "marks": _("pins, checks and review dates are the hub's own"),
    "row_marks": _("checks and review dates of knowledge and observations are the hub's own"),
    "removed_relations": _("a person removed them from the graph, and that stays in this hub"),
    "held_changes": _("waits for a person in the review inbox"),
    "runs": _("what the hub did, and what it cost, stays in this hub"),
}
_EARLIER = _("were said before their session began anew; the program's file holds the current conversation")
_FIELDS = _("belong to another program")
NAMES = (  # of all kinds, as the filter ``words`` shows them
    gettext_noop("Cached responses"),
    gettext_noop("Checkpoints"),
    gettext_noop("Documents"),
    gettext_noop("Earlier entries"),
    gettext_noop("Entries"),
    gettext_noop("Further fields"),
    gettext_noop("Held changes"),
    gettext_noop("Hidden sessions"),
    gettext_noop("History"),
    gettext_noop("History sessions"),
    gettext_noop("History times"),
    gettext_noop("History with blank lines"),
    gettext_noop("History without time"),
    gettext_noop("Key values"),
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
    gettext_noop("Typed entries"),
    gettext_noop("Withdrawn"),
)


@dataclass(frozen=True)
class Part:
    """So many of a kind, and in words how they are converted or why they are left out ("" where they simply fit)."""

    kind: str
    count: int
    words: str = ""


@dataclass(frozen=True)
class ExportPlan:
    """What an export writes, converts on the way, and leaves out. What is converted is among what is written.

    ``secret_count``: of the exact values written, those that look like secrets; they are written as they are.
    """

    layout: str
    written: list[Part]
    converted: list[Part]
    left_out: list[Part]
    secret_count: int = 0


def plan_layout(counts: Mapping[str, int], layout: str, program: str) -> ExportPlan:
    """Say what a workspace with these counts comes to in a layout. ``program``: whose files its rows came from.

    ``counts`` has the kinds of ``KINDS`` and those that the tables above name. Raises KeyError for another layout.
    """
    is_native = program == program_of(layout)
    holds = HOLDS[layout]
    converted = dict(_CONVERTED[layout])
    left_out: dict[str, Clause] = {kind: _no_place(layout, kind) for kind in KINDS if kind not in holds}
    if "sessions" in holds:
        left_out |= {kind: _no_place(layout, kind) for kind in _DETAILS[layout]}
    if layout != "hub":
        left_out |= {"earlier_entries": _EARLIER} if "entries" in holds else {}
        if not is_native:
            converted |= _FOREIGN.get(layout, {})
            left_out |= {"further_fields": _FIELDS} if "entries" in holds else {}
            left_out |= {"checkpoints": _no_place(layout, "checkpoints")} if "sessions" in holds else {}
        if layout == "grip" and not is_native:
            left_out |= {"message_times": _no_place(layout, "message_times")}
    left_out |= _STAYS
    written = dict(counts)
    if layout == "hub":
        written["entries"] = counts.get("entries", 0) + counts.get("earlier_entries", 0)
    return ExportPlan(
        layout,
        [Part(kind, written[kind]) for kind in KINDS if kind in holds and written.get(kind)],
        _parts(converted, counts),
        _parts(left_out, counts),
        counts.get("secrets", 0) if "key_values" in holds else 0,
    )


def _no_place(layout: str, kind: str) -> Clause:
    general = gettext("%(program)s has no place for them") % {"program": WORDS[layout]}
    return _NO_PLACE.get(layout, {}).get(kind, general)


def _parts(words: Mapping[str, Clause], counts: Mapping[str, int]) -> list[Part]:
    return [Part(kind, counts[kind], str(text)) for kind, text in words.items() if counts.get(kind)]

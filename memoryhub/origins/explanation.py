"""Explain a fact: where it came from, how certain that is, its revisions, readers and near-duplicates. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, prefetch_related_objects
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import Fact, FactSource, HistoryEntry, MemoryRevision
from knowledge_app.services.documents.fact_steps import Step, steps_of
from knowledge_app.services.held_rows import held_fields
from memoryhub.lib.content_check.stand_ins import FLAGGED, served_name, served_text
from memoryhub.lib.errors import NotFound
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, tokens_of
from memoryhub.models import AccessRecord
from sessions_app.models import Entry, Workspace
from sessions_app.services.access_log import accesses_of_fact
from sessions_app.services.transcript import Turn, read_turns

AROUND = 2  # messages before and after one that a fact came from
MAX_READERS = 10
MAX_COMPARED = 2_000  # facts of the workspace, for near-duplicates
MAX_DUPLICATES = 10
BY_PERSON = ("person", "command")  # authors of revisions
CERTAINTY: dict[str, str] = {
    "person": "certain",
    "proposal": "unknown",  # without a source
    "agent": "certain",
    "learned": "certain",
    "written_by": "certain",
    "recorded_with": "likely",
    "probably_from": "probable",
    "unknown": "unknown",
}
KINDS: dict[str, str | Promise] = {
    "person": _("Added by a person"),
    "proposal": _("Proposed and accepted"),
    "agent": _("Added by an agent"),
    "learned": _("Learned in a consolidation"),
    "written_by": _("Written by a tool call"),
    "recorded_with": _("Recorded at the same time"),
    "probably_from": _("Probably from a message"),
    "unknown": _("Origin unknown"),
}
CERTAINTIES: dict[str, str | Promise] = {
    "certain": _("Certain"),
    "likely": _("Likely"),
    "probable": _("Probable"),
    "unknown": _("Unknown"),
}


@dataclass(frozen=True)
class Origin:
    """One origin with the messages around its message, in order."""

    source: FactSource
    around: list[Entry] = field(default_factory=list)

    @property
    def label(self) -> str:
        return str(KINDS[self.source.kind])

    @property
    def percent(self) -> int:
        """The score of a probable message in percent."""
        return round(100 * (self.source.score or 0))


@dataclass(frozen=True)
class Reader:
    """A person or agent that read the fact. ``via``: the label of the interface; ``at``: the latest time."""

    name: str
    via: str
    count: int
    at: datetime


@dataclass(frozen=True)
class Explanation:
    """Everything known about a fact. ``kind`` and ``certainty``: of its best origin (KINDS, CERTAINTIES).

    ``correction``: the revision in which a person gave the fact its text, and ``corrected_text``: its text before.
    A proposal that a person accepted is as certain as its best source.
    """

    fact: Fact
    kind: str
    certainty: str
    origins: list[Origin]
    steps: list[Step]
    readers: list[Reader]
    reader_count: int
    duplicates: list[tuple[Fact, float]]
    correction: Step | None = None
    corrected_text: str = ""

    @property
    def kind_label(self) -> str:
        if self.correction:
            return gettext("Corrected by %(name)s") % {"name": self.correction.revision.author_name}
        if self.accepted:
            return accepted_label(self.accepted)
        return str(KINDS[self.kind])

    @property
    def accepted(self) -> MemoryRevision | None:
        """The revision with which a person accepted the fact's words from a proposal."""
        return self.fact.accepted

    @property
    def certainty_label(self) -> str:
        return str(CERTAINTIES[self.certainty])

    @property
    def seen_entries(self) -> list[Entry]:
        """Every message shown, once."""
        return list({entry.pk: entry for origin in self.origins for entry in origin.around}.values())


def turns_of(explanation: Explanation) -> list[tuple[Origin, list[Turn]]]:
    """Return each origin with the messages around it as turns.

    A message is shown once: the first of several origins close to each other has the messages around all of them, and
    the others have none.
    """
    shown: set[int] = set()
    found = []
    for number, origin in enumerate(explanation.origins):
        near: dict[int, Entry] = {}
        if origin.source.entry_id not in shown:
            near = {entry.pk: entry for entry in origin.around}
            for other in explanation.origins[number + 1 :]:
                if other.source.entry_id in near:
                    near |= {entry.pk: entry for entry in other.around}
        entries = sorted((near[pk] for pk in near.keys() - shown), key=lambda entry: entry.position)
        turns = read_turns(entries)
        results = {call.result.pk for turn in turns for call in turn.calls if call.result}
        shown |= {turn.entry.pk for turn in turns} | results
        found.append((origin, turns))
    return found


def find_fact(workspace: Workspace, pk: int) -> Fact:
    """Return a fact of a workspace, current or removed. Raises NotFound."""
    rows = Fact.objects.select_related("document__head", "document__workspace", "born", "died", "accepted__proposal")
    fact = rows.filter(workspace=workspace, pk=pk).first()
    if fact is None:
        raise NotFound(f"{workspace.slug} has no fact {pk}.")
    return fact


def explain(fact: Fact) -> Explanation:
    """Return the explanation of a fact. About ten queries, and the texts of its document's revisions."""
    order = FactSource.Kind.values
    rows = fact.sources.filter(history_entry__hold=None)  # a held entry explains nothing
    rows = rows.select_related("entry__session", "run__session", "history_entry__session")
    sources = sorted(rows, key=lambda source: (order.index(source.kind), -(source.score or 0), source.pk))
    origins = [Origin(source, entries_around(source.entry) if source.entry else []) for source in sources]
    steps = steps_of(fact)
    prefetch_related_objects([step.revision for step in steps], "proposal", "document")
    correction, corrected_text = (None, "") if fact.accepted else correction_of(steps)
    best = sources[0] if sources else None
    kind = "person" if correction else kind_of(fact, best)
    died = fact.died.number if fact.died else None
    accesses = accesses_of_fact(fact.pk, fact.document_id, born=fact.born.number, died=died)
    accesses = accesses.filter(workspace=fact.workspace_id)
    return Explanation(
        fact=fact,
        kind=kind,
        certainty=certainty_of(kind, best),
        origins=origins,
        steps=steps,
        readers=readers_of(accesses),
        reader_count=accesses.count(),
        duplicates=near_duplicates(fact),
        correction=correction,
        corrected_text=corrected_text,
    )


def readers_of(accesses: QuerySet[AccessRecord]) -> list[Reader]:
    """Return who read a fact and through which interface, the latest first."""
    groups = accesses.order_by().values("actor_name", "via").annotate(count=Count("pk"), latest=Max("at"))
    return [
        Reader(group["actor_name"], str(AccessRecord.Via(group["via"]).label), group["count"], group["latest"])
        for group in groups.order_by("-latest")[:MAX_READERS]
    ]


def correction_of(steps: list[Step]) -> tuple[Step | None, str]:
    """Return the step in which a person gave a fact its text, and its text before; None unless the text is new."""
    wordings = [step for step in steps if step.action != "removed"]
    last = wordings[-1]
    if last.action != "reworded" or last.revision.author_kind not in BY_PERSON or last.text == wordings[0].text:
        return None, ""
    return last, wordings[-2].text


def kind_of(fact: Fact, best: FactSource | None) -> str:
    """Return the kind of a fact's origin (KINDS), given its best source, unless its text was corrected."""
    if fact.accepted_id:
        return "proposal"
    if fact.born.author_kind in BY_PERSON:
        return "person"
    if fact.born.author_kind == "agent" and best is None:
        return "agent"
    return str(best.kind) if best else "unknown"


def certainty_of(kind: str, best: FactSource | None) -> str:
    """Return how certain an origin is. Whoever accepts a proposal says nothing about where it is from."""
    return CERTAINTY[best.kind if kind == "proposal" and best else kind]


def accepted_label(revision: MemoryRevision) -> str:
    """Return who proposed and who accepted the change that a revision accepts."""
    if revision.proposal is None:
        return gettext("Accepted by %(person)s") % {"person": revision.author_name}
    names = {"who": revision.proposal.proposer, "person": revision.author_name}
    return gettext("Proposed by %(who)s, accepted by %(person)s") % names


def entries_around(entry: Entry) -> list[Entry]:
    """Return a message with the two before and after it in its session."""
    near = Q(position__gte=max(0, entry.position - AROUND), position__lte=entry.position + AROUND)
    rows = (
        Entry.objects.in_conversation()
        .filter(near, session=entry.session_id, epoch=entry.epoch)
        .select_related("session__workspace")
    )
    return list(rows.order_by("position"))


def near_duplicates(fact: Fact) -> list[tuple[Fact, float]]:
    """Return current facts of the workspace that are similar to a fact, most similar first."""
    rows = Fact.objects.filter(workspace=fact.workspace_id, died=None).exclude(pk=fact.pk)
    mine = tokens_of(fact.text)
    ratios: dict[int, float] = {}
    for pk, text in rows.order_by("-id").values_list("pk", "text")[:MAX_COMPARED]:
        theirs = tokens_of(text)
        ratio = len(mine & theirs) / len(mine | theirs) if mine or theirs else 0.0
        if ratio >= DEFAULT_THRESHOLD:
            ratios[pk] = ratio
    nearest = sorted(ratios, key=lambda pk: (-ratios[pk], pk))[:MAX_DUPLICATES]
    facts = Fact.objects.select_related("document").in_bulk(nearest)
    return [(facts[pk], ratios[pk]) for pk in nearest if pk in facts]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON, for the command, REST and MCP, with stand-ins for flagged names and reasons."""
    fact = explanation.fact
    return {
        "fact": {
            "id": fact.pk,
            "document": _document_name(fact),
            "section": fact.section,
            "category": fact.category,
            "text": fact.text,
            "pinned": fact.pinned,
            "verified_at": fact.last_verified_at,
            "current": fact.died_id is None,
        },
        "kind": explanation.kind,
        "certainty": explanation.certainty,
        "proposal": _acceptance_json(explanation.accepted) if explanation.accepted else None,
        "origins": [_origin_json(origin) for origin in explanation.origins],
        "revisions": [
            {
                "action": step.action,
                "revision": step.revision.number,
                "author": step.revision.author_name,
                "proposed_by": step.proposal.author_name if step.proposal else None,
                "proposal": step.proposal.pk if step.proposal else None,
                "reason": served_text(step.revision.reason)
                if step.revision.author_kind == "agent"
                else step.revision.reason,
                "created_at": step.revision.created_at,
                "text": step.text,
            }
            for step in explanation.steps
        ],
        "readers": explanation.reader_count,
        "near_duplicates": [
            {"id": other.pk, "document": _document_name(other), "text": other.text, "similarity": round(ratio, 4)}
            for other, ratio in explanation.duplicates
        ],
    }


def _acceptance_json(revision: MemoryRevision) -> dict[str, Any]:
    proposal = revision.proposal
    return {
        "id": proposal.pk if proposal else None,
        "proposed_by": proposal.author_name if proposal else None,
        "accepted_by": revision.author_name,
        "accepted_at": revision.created_at,
    }


def _document_name(fact: Fact) -> str:
    return served_name(fact.document.name, "document", fact.document_id)


def _origin_json(origin: Origin) -> dict[str, Any]:
    source = origin.source
    history = source.history_entry
    return {
        "kind": source.kind,
        "score": source.score,
        "run": source.run_id,
        "history": {"id": history.pk, "content": _history_text(history), "at": _time(history.occurred_at)}
        if history
        else None,
        "message": _message_json(source.entry) if source.entry else None,
        "around": [_message_json(entry) for entry in origin.around],
    }


def _history_text(history: HistoryEntry) -> str:
    return FLAGGED if held_fields(history)["held"] else history.content


def _message_json(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "session": served_name(entry.session.key, "session", entry.session_id),
        "epoch": entry.epoch,
        "position": entry.position,
        "kind": entry.kind,
        "role": entry.role,
        "content": entry.content,
        "tool_calls": entry.tool_calls,
        "at": _time(entry.occurred_at),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None

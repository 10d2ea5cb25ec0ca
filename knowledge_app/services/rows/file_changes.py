"""Changes that agents' files make in rows: taken, or kept out and proposed where a person has to decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Model

from knowledge_app.models import KeyValue
from knowledge_app.services.decisions import FROM_FILES, NAMES, REPEATING, decided_fields, was_rejected
from knowledge_app.services.held_rows import AGENTS_FILE, Finding, with_holds
from knowledge_app.services.removed_texts import RemovedTexts
from knowledge_app.services.rows.agent_changes import propose, waiting_findings
from knowledge_app.services.rows.proposed_edits import proposals_of, supersede_proposals
from knowledge_app.services.rows.row_changes import Values
from memoryhub.lib.errors import Conflict
from sessions_app.models import Run
from sessions_app.services.audit import By


@dataclass(frozen=True)
class KeptOut:
    """What a file says in fields of a row that keep their values. ``findings``: why.

    ``taken``: fields that kept their values when the file said something else, and that it may change now.
    ``left``: fields whose values wait in the file, because too many changes are proposed already.
    """

    values: Values = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    taken: Collection[str] = ()
    left: Collection[str] = ()

    @property
    def is_decided(self) -> bool:
        return any(one["code"] == "decided" for one in self.findings)


def kept_out(model: type[Model], values: Iterable[tuple[Any, Values]]) -> dict[Any, KeptOut]:
    """Return the rows with fields that a file changes and that wait for a person. ``values``: the file's, by row."""
    names = FROM_FILES.get(model, ())
    news = {row: new for row, value in values if (new := _news(row, value, names))}
    if not news:
        return {}
    rows = list(news)
    decided, proposed = decided_fields(rows), _earlier(rows)
    with_holds(rows)
    removed = RemovedTexts(rows[0].workspace, apart_from=rows)
    found = (
        (row, _kept_out(row, new, decided[row.pk], proposed.get(row.pk, ()), removed)) for row, new in news.items()
    )
    return {row: kept for row, kept in found if kept.values or kept.taken}


def _news(row: Any, value: Values, names: Sequence[str]) -> Values:
    """Return what a file changes, without what it has said ever since the hub's value became another one."""
    given = {name: value[name] for name in names if name in value and getattr(row, name) != value[name]}
    return {name: new for name, new in given.items() if name not in row.corrected or row.corrected[name] != new}


def _kept_out(row: Any, news: Values, decided: set[str], proposed: Sequence[Run], removed: RemovedTexts) -> KeptOut:
    theirs = {name: new for name, new in news.items() if name in decided}
    free = {name: new for name, new in news.items() if name not in decided}
    if not theirs or waiting_findings(row, free, decided, removed):
        theirs = news
    findings = waiting_findings(row, theirs, decided, removed)
    kept = theirs if findings else {}
    taken = [name for name in news.keys() - decided - kept.keys() if _was_kept_out(row, name, proposed)]
    return KeptOut(kept, findings, taken)


def _was_kept_out(row: Any, name: str, proposed: Sequence[Run]) -> bool:
    """Tell whether a field differs from the file only because of a proposal, not because somebody corrected it."""
    said = [run.options["values"][name] for run in proposed if name in run.options["values"]]
    return bool(said) and row.corrected.get(name) in (*said, getattr(row, name))


def propose_kept_out(found: Mapping[Any, KeptOut], by: By) -> dict[Any, KeptOut]:
    """Propose what files say in rows that keep their values; return these, with what is left to be proposed later.

    A text of a withdrawn row brings it back if it is approved. What a person rejected isn't proposed again.
    """
    earlier = _earlier(list(found))
    return {
        row: kept if _propose(row, kept, earlier.get(row.pk, ()), by) else replace(kept, left=tuple(kept.values))
        for row, kept in found.items()
    }


def _earlier(rows: Sequence[Any]) -> dict[int, list[Run]]:
    """Return what files proposed for rows of one table before, by row."""
    return proposals_of(rows[0].workspace_id, NAMES[type(rows[0])], AGENTS_FILE) if rows else {}


def _propose(row: Any, kept: KeptOut, earlier: Sequence[Run], by: By) -> bool:
    """Propose what a row's file says, and return False if too many proposals are waiting."""
    values = dict(kept.values)
    if not values:
        return True
    if row.withdrawn_at:
        if REPEATING[type(row)] not in values:
            return True
        values |= {"withdrawn_at": None, "withdrawn_reason": ""}
    if any(was_rejected(run) and run.options["values"] == values for run in earlier):
        return True
    if earlier:
        supersede_proposals(row, NAMES[type(row)], values, by=by)
    try:
        propose(row, values, kept.findings, "", by)
    except Conflict:
        return False
    return True


def end_proposals(changed: Mapping[Any, Collection[str]], by: By) -> None:
    """Cancel what a file said earlier in the fields that it changes now, given by row."""
    earlier = _earlier(list(changed))
    for row in changed:
        if row.pk in earlier:
            supersede_proposals(row, NAMES[type(row)], {name: getattr(row, name) for name in changed[row]}, by=by)


def returns(row: Any, news: Values) -> bool:
    """Tell whether a file's change takes a withdrawn row back in: the agent writes the key again."""
    return isinstance(row, KeyValue) and "value" in news and row.withdrawn_at is not None

"""Hold rows that agents write, or that come from their files, if the content check flags them.

A held row is stored, but left out of everything that agents read as memory until a person approves it or edits its
text. What agents add is checked in ``_create`` of each table, and rows of their files by ``hold_imported``. A flagged
change of a row in use is proposed instead (``rows.agent_changes``, ``rows.file_changes``); ``undoable_edits`` checks
changes of rows that are held already, and undos.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet, prefetch_related_objects

from knowledge_app.models import HeldRow, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.decisions import REPEATING, keys_like_decided_ones
from knowledge_app.services.removed_texts import RemovedTexts, with_key
from memoryhub.lib.content_check.precheck import findings_in
from memoryhub.lib.layouts.records import Problem
from memoryhub.lib.text.repeats import is_telling, words_of
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By, record

Finding = dict[str, Any]  # field, line (from 1), code and message
RowT = TypeVar("RowT", bound=Model)
LINKS: dict[type[Model], str] = {
    KnowledgeEntry: "knowledge",
    Observation: "observation",
    KeyValue: "key_value",
    HistoryEntry: "history_entry",
}
TEXTS: dict[type[Model], tuple[str, ...]] = {  # the fields to check
    KnowledgeEntry: ("content", "source", "tags"),
    Observation: ("content", "source"),
    KeyValue: ("key", "value"),
    HistoryEntry: ("content",),
}
LIKE_ANOTHER: Finding = {
    "field": "key",
    "line": 1,
    "code": "decided",
    "message": "is almost the same key as one that a person wrote, corrected or withdrew",
}
MAX_FINDINGS = 20  # kept for a row
BATCH_ROWS = 500
_JSON_STRING = re.compile(r'("(?:[^"\\]|\\.?)*(?:"|\Z))(\s*:)?', re.DOTALL)
AGENTS_FILE = Actor("sync", "the agent's file")


def unheld(rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows that agents may get as memory."""
    return rows.filter(hold=None)


def findings_of(row: Model, fields: Collection[str] | None = None) -> list[Finding]:
    """Return what the content check finds in some fields of a row, by default all."""
    names = [name for name in TEXTS[type(row)] if fields is None or name in fields]
    return text_findings((name, text) for name in names for text in _texts(getattr(row, name)))


def text_findings(texts: Iterable[tuple[str, str]]) -> list[Finding]:
    """Return what the content check finds in texts, given as (field, text)."""
    return [
        {"field": name, "line": found.line, "code": found.code, "message": found.message}
        for name, text in texts
        for found in findings_in(text)
    ][:MAX_FINDINGS]


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [text for text in value if isinstance(text, str)]


def text_hash(row: Model) -> str:
    """Return a hash of the checked texts of a row."""
    texts = json.dumps([getattr(row, name) for name in TEXTS[type(row)]])
    return hashlib.sha256(texts.encode()).hexdigest()


def with_holds(rows: Sequence[Any]) -> None:
    """Load the holds of rows of one table."""
    for start in range(0, len(rows), BATCH_ROWS):
        prefetch_related_objects(rows[start : start + BATCH_ROWS], "hold")


def hold_flagged(rows: Sequence[Any], by: By) -> None:
    """Hold the new rows of one table that are flagged or say again what people removed, unless a person wrote them.

    What runs find is checked before.
    """
    if by.actor.kind not in ("agent", "run") or not rows:
        return
    against = _decided(rows[0].workspace, rows, RemovedTexts(rows[0].workspace, apart_from=rows))
    for row in rows:
        if findings := (findings_of(row) if by.actor.kind == "agent" else []) or against(row):
            _hold(row, findings, by)


def hold_imported(
    workspace: Workspace,
    new: Sequence[Any],
    changed: Mapping[Any, Collection[str]],
    *,
    waiting: int = 0,
    path: str,
    now: datetime,
    dry_run: bool,
) -> list[Problem]:
    """Hold the flagged ones of the rows of one table that a file adds or changes; return a problem with their number.

    New rows that go against what people decided are held, too. ``changed``: the names of the changed fields by row.
    ``waiting``: how many other flagged changes are proposed. In a dry run, rows are only counted.
    """
    against = _decided(workspace, new, RemovedTexts(workspace, apart_from=new))
    flagged = [(row, findings) for row in new if (findings := findings_of(row) or against(row))]
    count = len(flagged) + waiting + sum(1 for row, names in changed.items() if findings_of(row, names))
    if not dry_run:
        by = By(AGENTS_FILE, now)
        _hold_new(workspace, flagged, by)
        items = list(changed.items())
        for start in range(0, len(items), BATCH_ROWS):
            review_changes(dict(items[start : start + BATCH_ROWS]), by, is_undo=False)
    if not count:
        return []
    what = f"{count:,} {'row is' if count == 1 else 'rows are'} flagged by the content check"
    return [Problem(path, None, what, "held for review", "held")]


def _decided(workspace: Workspace, rows: Sequence[Any], removed: RemovedTexts) -> Callable[[Any], list[Finding]]:
    """Return a function that tells what is wrong with new or held rows of one table by what people decided."""
    keys = keys_like_decided_ones(workspace, {row.key for row in rows if isinstance(row, KeyValue)})

    def findings(row: Any) -> list[Finding]:
        return _repeats(row, removed) or ([LIKE_ANOTHER] if getattr(row, "key", None) in keys else [])

    return findings


def change_findings(row: Any, values: Mapping[str, Any], removed: RemovedTexts) -> list[Finding]:
    """Return what is wrong with new values of a row that an agent sets: they are flagged, or were removed before."""
    changed = copy(row)
    for name, value in values.items():
        setattr(changed, name, value)
    names = [name for name in values if getattr(row, name) != getattr(changed, name)]
    return findings_of(changed, names) or _repeats(changed, removed, names)


def _repeats(row: Any, removed: RemovedTexts, fields: Collection[str] | None = None) -> list[Finding]:
    """Return the first of some fields, by default all, that says again what people removed.

    Apart from the text itself, a field must say enough.
    """
    repeating = REPEATING.get(type(row), "")
    names = [name for name in TEXTS[type(row)] if fields is None or name in fields]
    for name in names if repeating else ():
        texts = _texts(getattr(row, name))
        if name == "value":
            texts += [with_key(row.key, row.value), *([_without_keys(row.value)] if "{" in row.value else [])]
        if any(removed.has(text) for text in texts if name == repeating or is_telling(words_of(text))):
            return [{"field": name, "line": 1, "code": "removed", "message": "says again what a person removed"}]
    return []


def _without_keys(text: str) -> str:
    """Return the text of a JSON document without the keys of objects, whose parts may say something together."""
    return _JSON_STRING.sub(lambda string: " " if string[2] else string[0], text)


def _hold_new(workspace: Workspace, flagged: Sequence[tuple[Any, list[Finding]]], by: By) -> None:
    """Hold new rows with one audit record, since a file may contain thousands."""
    if not flagged:
        return
    HeldRow.objects.bulk_create(
        [HeldRow(**{f"{LINKS[type(row)]}_id": row.pk}, **_values(row, findings, by)) for row, findings in flagged],
        batch_size=BATCH_ROWS,
    )
    first = flagged[0][0]
    name = row_name(first) if len(flagged) == 1 else f"{len(flagged):,} {first._meta.verbose_name_plural}"
    text = f"{name} held for review: {_codes(one for _, findings in flagged for one in findings)}"
    record(by, "row.held", "workspace", workspace.pk, text, workspace=workspace)


def review_changes(changed: Mapping[Any, Collection[str]], by: By, *, is_undo: bool) -> None:
    """Hold or release rows of one table by their changed fields.

    Text that a person enters is approved. What an agent or its file changes or takes back in is checked, and so is
    what an undo restores. A held row is checked like a new one.
    """
    is_agents = by.actor.kind in ("agent", AGENTS_FILE.kind)
    retexted = {
        row: texts for row, names in changed.items() if (texts := _changed_texts(row, names, is_agents=is_agents))
    }
    if not retexted:
        return
    link = LINKS[type(next(iter(retexted)))]
    held = {getattr(one, f"{link}_id"): one for one in HeldRow.objects.filter(**{f"{link}__in": list(retexted)})}
    rows = list(retexted)
    removed = RemovedTexts(rows[0].workspace, apart_from=rows)
    against = _decided(rows[0].workspace, [row for row in rows if row.pk in held], removed)
    for row, names in retexted.items():
        hold = held.get(row.pk)
        if hold and (is_agents or is_undo):
            findings = findings_of(row) or against(row)
        elif is_agents or is_undo:
            findings = findings_of(row, names) or ([] if is_undo else _repeats(row, removed, names))
        else:
            _approve_texts(hold, names)
            continue
        if findings:
            _hold(row, findings, by)
        elif hold:
            hold.delete()


def _changed_texts(row: Any, names: Collection[str], *, is_agents: bool) -> set[str]:
    """Return which of the changed fields are checked: all texts if an agent takes a withdrawn row back in."""
    texts = set(TEXTS.get(type(row), ()))
    is_back = is_agents and "withdrawn_at" in names and row.withdrawn_at is None
    return texts if is_back else texts & set(names)


def _approve_texts(hold: HeldRow | None, names: Collection[str]) -> None:
    """Take the findings in fields that a person entered from a hold, and end it if there are no others."""
    if hold is None:
        return
    hold.findings = [one for one in hold.findings if one["field"] not in names]
    if hold.findings:
        hold.save(update_fields=["findings"])
    else:
        hold.delete()


def _hold(row: Any, findings: list[Finding], by: By) -> None:
    link = LINKS[type(row)]
    HeldRow.objects.update_or_create(**{f"{link}_id": row.pk}, defaults=_values(row, findings, by))
    text = f"{row_name(row)} held for review: {_codes(findings)}"
    record(by, "row.held", link, row.pk, text, workspace=row.workspace)


def _values(row: Any, findings: list[Finding], by: By) -> dict[str, Any]:
    return {
        "workspace_id": row.workspace_id,
        "findings": findings,
        "author_kind": by.actor.kind,
        "author_name": by.actor.name[:200],
        "created_at": by.at,
    }


def _codes(findings: Iterable[Finding]) -> str:
    return ", ".join(sorted({finding["code"] for finding in findings}))


def row_name(row: Model) -> str:
    """Return "Knowledge entry 3", for audit texts."""
    return f"{str(row._meta.verbose_name).capitalize()} {row.pk}"


def held_fields(row: Any) -> dict[str, Any]:
    """Return ``held`` and ``findings`` of a row, for JSON. One query unless ``hold`` is selected."""
    held: HeldRow | None = getattr(row, "hold", None)
    return {"held": held is not None, "findings": held.findings if held else []}

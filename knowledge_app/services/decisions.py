"""Tell which fields of knowledge entries, observations and key-values people decided about.

People wrote them or corrected them. They verified, approved, withdrew or restored the row, or merged others into it:
then its text is among the fields. Agents and their files can only propose to change these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast

from knowledge_app.models import EditedRow, Fact, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.content_check.normalising import plain_form
from sessions_app.models import AuditRecord, Run, Workspace

PEOPLE = (AuditRecord.ActorKind.PERSON, AuditRecord.ActorKind.COMMAND)
NAMES: dict[type[Model], str] = {
    KnowledgeEntry: "knowledge",
    Observation: "observations",
    KeyValue: "key_values",
}
REPEATING: dict[type[Model], str] = {  # the field that may say again what people removed
    KnowledgeEntry: "content",
    Observation: "content",
    KeyValue: "value",
}
FROM_FILES: dict[type[Model], tuple[str, ...]] = {  # fields of an agent's file that people can correct
    KnowledgeEntry: ("category", "content", "source", "tags"),
    Observation: ("category", "content", "source"),
    KeyValue: ("value", "is_json"),
}
ADDED = {  # audit actions with which somebody adds a row
    "knowledge": "knowledge.added",
    "observations": "observations.added",
    "key_values": "key_value.written",
}
CONFIRMED = "key_value.confirmed"  # a person wrote the value that a key has
BATCH_ROWS = 500


def decided_fields(rows: Sequence[Any]) -> dict[int, set[str]]:
    """Return, by primary key, the fields of rows of one table that people decided about.

    ``withdrawn_at`` is among them if people withdrew the row.
    """
    if not rows:
        return {}
    names = FROM_FILES[type(rows[0])]
    edited: dict[int, set[str]] = defaultdict(set)
    for start in range(0, len(rows), BATCH_ROWS):
        batch = rows[start : start + BATCH_ROWS]
        text = (REPEATING[type(rows[0])],)
        wanted = (*((pk, names) for pk in _written(batch)), *((pk, text) for pk in _approved(batch)))
        for pk, changed in (*_edited(batch), *wanted):
            edited[pk].update(changed)
    return {row.pk: _decided(row, edited[row.pk], names) for row in rows}


def ranks_to_keep(rows: Sequence[Any]) -> dict[int, int]:
    """Return, by primary key, which of duplicate rows of one table is to be kept: the one with the lowest rank.

    Pinned facts come first, then verified rows, then others whose text people wrote or decided about.
    """
    if not rows:
        return {}
    if isinstance(rows[0], Fact):
        decided = {fact.pk for fact in rows if _is_by_person(fact)}
    else:
        text = REPEATING[type(rows[0])]
        decided = {pk for pk, names in decided_fields(rows).items() if text in names}
    return {row.pk: _rank(row, is_decided=row.pk in decided) for row in rows}


def _rank(row: Any, *, is_decided: bool) -> int:
    marks = getattr(row, "pinned", False), getattr(row, "last_verified_at", None), is_decided
    return next((rank for rank, mark in enumerate(marks) if mark), len(marks))


def _is_by_person(fact: Fact) -> bool:
    return bool(fact.corrected_id or fact.accepted_id) or fact.born.author_kind in PEOPLE


def is_by_person(options: Mapping[str, Any]) -> bool:
    """Tell whether the options of an edit name a person as its author."""
    return (options.get("actor") or [""])[0] in PEOPLE


def _decided(row: Any, edited: set[str], names: Sequence[str]) -> set[str]:
    if row.withdrawn_at and "withdrawn_at" in edited:
        return {*names, "withdrawn_at"}
    is_wanted = "withdrawn_at" in edited or getattr(row, "last_verified_at", None)
    decided = edited & set(names) | ({REPEATING[type(row)]} if is_wanted else set())
    return set(names) if decided and isinstance(row, KeyValue) else decided


def _edited(rows: Sequence[Any]) -> Iterator[tuple[int, Collection[str]]]:
    """Yield rows that people edited, with the names of the changed fields. An edit that was undone counts, too."""
    model = type(rows[0])
    edits = EditedRow.objects.filter(
        run__workspace=rows[0].workspace_id, table=NAMES[model], object_id__in=[row.pk for row in rows]
    )
    for pk, before, options in edits.values_list("object_id", "before", "run__options"):
        if is_by_person(options):
            yield pk, _named(model, options["action"], before or {})


def _named(model: type[Model], action: str, before: Mapping[str, Any]) -> Collection[str]:
    """Return the fields that an edit decides about: a merge the text of the row that stays."""
    is_kept = action == "merge" and "withdrawn_at" not in before
    return FROM_FILES[model] if action == "add" else [*before, REPEATING[model]] if is_kept else before


def _approved(rows: Sequence[Any]) -> set[int]:
    """Return the held rows of one table that people approved, and not only their keys."""
    latest: dict[int, AuditRecord] = {}
    records = AuditRecord.objects.filter(
        workspace=rows[0].workspace_id,
        action__in=("row.approved", "row.held"),
        object_kind=NAMES[type(rows[0])].removesuffix("s"),
        object_id__in=[str(row.pk) for row in rows],
    )
    for record in records.order_by("id"):
        latest[int(record.object_id)] = record
    return {pk for pk, record in latest.items() if record.action == "row.approved" and _is_of_text(record)}


def _is_of_text(approval: AuditRecord) -> bool:
    return {one["field"] for one in approval.detail["findings"]} != {"key"}


def _written(rows: Sequence[Any]) -> Iterator[int]:
    """Yield the rows that people added, alone or in a table that they imported."""
    table, pks = NAMES[type(rows[0])], {row.pk for row in rows}
    people = AuditRecord.objects.filter(workspace=rows[0].workspace_id, actor_kind__in=PEOPLE)
    added = people.filter(action__in=[ADDED[table], *([CONFIRMED] if table == "key_values" else [])])
    if table == "observations":
        for detail in added.filter(at__in={row.recorded_at for row in rows}).values_list("detail", flat=True):
            yield from pks.intersection(detail.get("added", ()))
    else:
        yield from map(int, added.filter(object_id__in=map(str, pks)).values_list("object_id", flat=True))
    if times := imports(rows[0].workspace)[table]:
        history: Any = type(rows[0]).history
        yield from history.filter(id__in=pks, history_date__in=times).values_list("id", flat=True)


def imports(workspace: Workspace) -> defaultdict[str, list[datetime]]:
    """Return when people imported tables, by their names: the dates that the rows' histories have."""
    found: defaultdict[str, list[datetime]] = defaultdict(list)
    records = AuditRecord.objects.filter(object_kind="workspace", object_id=str(workspace.pk), workspace=workspace)
    by_people = records.filter(action="rows.imported", actor_kind__in=PEOPLE)
    for at, detail in by_people.values_list("at", "detail"):
        found[detail.get("table", "")].append(at)
    return found


def was_rejected(run: Run) -> bool:
    """Tell whether a person rejected a proposed edit."""
    return run.status == Run.Status.CANCELLED and not run.proposal.get("superseded")


def rejected_edits(workspace: Workspace) -> QuerySet[Run]:
    """Return the proposed edits of rows that people rejected, without those that a newer proposal replaced."""
    runs = Run.objects.filter(
        workspace=workspace, kind=Run.Kind.EDIT, origin=Run.Origin.AGENT, status=Run.Status.CANCELLED
    )
    return runs.annotate(text=Cast("proposal", TextField())).exclude(text__contains='"superseded":true')


def keys_like_decided_ones(workspace: Workspace, keys: Collection[str]) -> set[str]:
    """Return the new keys that look like one that people decided about: but for case, accents, spaces and signs."""
    plain = {key: _plain(key) for key in keys}
    wanted = set(plain.values()) - {""}
    if workspace.pk is None or not wanted:
        return set()
    known = KeyValue.objects.filter(workspace=workspace).values_list("pk", "key")
    pks = [pk for pk, key in known.iterator() if key not in plain and _plain(key) in wanted]
    rows = list(KeyValue.objects.filter(pk__in=pks))
    decided = decided_fields(rows)
    taken = {_plain(row.key) for row in rows if decided[row.pk]}
    return {key for key in keys if plain[key] in taken}


def _plain(key: str) -> str:
    return "".join(char for char in plain_form(key) if char.isalnum())

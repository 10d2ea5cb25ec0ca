"""Check the rows of an imported table: which row of the hub each one is, and what it changes. Writes nothing."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.undoable_edits import apply_values
from memoryhub.forgetting.import_filter import ImportRules, import_rules
from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.tables import Table
from memoryhub.lib.validation import BadJSON, brief, decode_json
from memoryhub.spreadsheets import cells
from memoryhub.spreadsheets.limits import CellLimits
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH

BATCH_ROWS = 500
OUTCOMES = ("new", "changed", "unchanged", "skipped")  # of rows that can be imported
MAX_ID_DIGITS = 18
MASK = _("(hidden)")
NO_SUCH_ROW = {
    "knowledge": _("%(workspace)s has no knowledge entry %(id)s; to add it as a new row, clear its id"),
    "observations": _("%(workspace)s has no observation %(id)s; to add it as a new row, clear its id"),
    "key_values": _("%(workspace)s has no key-value %(id)s; to add it as a new row, clear its id"),
}
ANOTHER_OWN_ID = {
    "knowledge": _("%(column)s: knowledge entry %(id)s has %(own_id)s, which can't change"),
    "observations": _("%(column)s: observation %(id)s has %(own_id)s, which can't change"),
    "key_values": _("%(column)s: key-value %(id)s has %(own_id)s, which can't change"),
}
Values = dict[str, Any]


class WrongRow(Invalid):
    """A row that can't be imported, with the reason."""

    code = "wrong_row"


@dataclass
class RowPlan:
    """The plan for one row, numbered from 1: new, changed, unchanged, skipped or wrong.

    ``changes``: ``(column, before, after)``, secrets masked, also of a skipped row. ``notes``: values that are
    adjusted, or why the row is skipped; ``errors``: why it can't be imported. ``updated_at``: of the hub's row.
    """

    number: int
    outcome: str = "wrong"
    label: str = ""
    changes: list[tuple[str, Any, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    updated_at: datetime | None = None


@dataclass
class Candidate:
    """A row of the table: its cells as values, and the hub's row if there is one."""

    plan: RowPlan
    slug: str = ""
    pk: int | None = None
    own_id: str | None = None
    is_secret: bool = False
    exported: datetime | None = None  # the exported updated_at, unless newer changes are overwritten
    values: Values = field(default_factory=dict)
    workspace: Workspace | None = None
    kept: Any = None


@dataclass
class CheckedTable:
    """All rows of a table with their plans, and the unsaved instances."""

    rows: list[RowPlan] = field(default_factory=list)
    new: list[Any] = field(default_factory=list)
    changed: list[Any] = field(default_factory=list)
    fields: set[str] = field(default_factory=set)  # changed in any row

    @property
    def counts(self) -> Counter[str]:
        return Counter(row.outcome for row in self.rows)

    @property
    def digest(self) -> str:
        """Identify what a preview shows. It is the same with and without ``overwrite``."""
        shown = ((row.number, row.updated_at, row.changes) for row in self.rows if row.outcome != "unchanged")
        return hashlib.sha256(repr(list(shown)).encode()).hexdigest()


@dataclass(frozen=True)
class TableImport:
    """How a table is imported: the agent's own id, and a reader for each column.

    ``first``: columns that apply to new rows only, since the hub updates them. ``shown``: columns that set nothing.
    """

    own_id: str
    readers: Mapping[str, cells.Reader]
    first: Collection[str]
    shown: Collection[str]
    check: Callable[[Candidate], None]

    @property
    def columns(self) -> list[str]:
        return ["id", "workspace", self.own_id, *self.readers, *self.shown]


def _check_knowledge(row: Candidate) -> None:
    """Replace an unknown category by learned_fact, as imports do; an empty one doesn't change a known row."""
    category = row.values.get("category", "")
    if category not in KnowledgeEntry.Category.values:
        row.values.pop("category", None)
        if row.kept is None or category:
            row.values["category"] = KnowledgeEntry.Category.LEARNED_FACT.value
            note = gettext("the category %(category)s is unknown; learned_fact is used")
            row.plan.notes.append(note % {"category": brief(category) or gettext("(none)")})


def _check_observation(row: Candidate) -> None:
    category = row.values.get("category", "")
    if not category and row.kept is not None:
        row.values.pop("category", None)
    elif category not in Observation.Category.values:
        words = gettext("the category %(category)s isn't one of finding, insight, lesson")
        raise WrongRow(words % {"category": brief(category) or gettext("(none)")})


def _check_key_value(row: Candidate) -> None:
    """Keep a secret's value if its cell is empty, since exports leave it out."""
    if not row.values.get("value"):
        if row.kept is not None and row.kept.is_secret:
            row.values.pop("value", None)
            row.values.pop("is_json", None)
            return
        if row.kept is None and row.is_secret:
            raise WrongRow(gettext("its value is a secret, which exports leave out: enter it, or remove the row"))
    kept = row.kept or KeyValue()
    if row.values.get("is_json", kept.is_json):
        try:
            decode_json(row.values.get("value", kept.value))
        except BadJSON as error:
            raise WrongRow(gettext("its value isn't JSON, but is_json is set")) from error


IMPORTS = {
    "knowledge": TableImport(
        "content_id",
        {
            "category": cells.text,
            "content": cells.text,
            "source": cells.text,
            "tags": cells.tags,
            "access_count": cells.count,
            "accessed_at": cells.moment,
            "created_at": cells.moment,
            "withdrawn_at": cells.moment,
            "withdrawn_reason": cells.text,
            "last_verified_at": cells.moment,
            "review_by": cells.day,
        },
        ("access_count", "accessed_at"),
        ("updated_at",),
        _check_knowledge,
    ),
    "observations": TableImport(
        "uid",
        {
            "category": cells.text,
            "content": cells.text,
            "source": cells.text,
            "occurred_at": cells.moment,
            "occurred_at_text": cells.text,
            "access_count": cells.count,
            "accessed_at": cells.moment,
            "confirmation_count": cells.count,
            "withdrawn_at": cells.moment,
            "withdrawn_reason": cells.text,
            "last_verified_at": cells.moment,
            "review_by": cells.day,
        },
        ("access_count", "accessed_at", "confirmation_count"),
        ("updated_at",),
        _check_observation,
    ),
    "key_values": TableImport(
        "key",
        {"value": cells.text, "is_json": cells.flag, "withdrawn_at": cells.moment, "withdrawn_reason": cells.text},
        (),
        ("is_secret", "updated_at"),
        _check_key_value,
    ),
}


def check_table(
    table: str, rows: Table, *, zone: tzinfo, now: datetime, overwrite: bool = False, lock: bool = False
) -> CheckedTable:
    """Check each row of a table of knowledge entries, observations or key-values.

    ``zone``: of times without one. ``overwrite``: also change rows that have changed in the hub since the export.
    ``lock``: lock the rows, in the transaction that writes.
    """
    spec = IMPORTS[table]
    candidates = [_read(spec, Candidate(RowPlan(number)), row, zone) for number, row in enumerate(rows.rows, 1)]
    _find_workspaces(candidates)
    find = _Finder(table, spec, [row for row in candidates if not row.plan.errors], lock=lock)
    checked = CheckedTable([row.plan for row in candidates])
    limits = CellLimits(table)
    seen: dict[object, int] = {}
    for row in candidates:
        try:
            if not row.plan.errors:
                row.kept = find(row)
                row.exported = None if overwrite else row.exported
                _check_unique(seen, table, row)
                spec.check(row)
                limits.check(row.own_id, row.values, row.kept)
                _apply(table, spec, row, checked, now)
        except Invalid as error:
            row.plan.errors.append(error.message)
    return checked


def _find_workspaces(candidates: Sequence[Candidate]) -> None:
    """Find each row's workspace, and refuse rows with forgotten content."""
    known = {found.slug: found for found in Workspace.objects.filter(slug__in={row.slug for row in candidates})}
    rules = {slug: import_rules(found) for slug, found in known.items()}
    for row in candidates:
        row.workspace = known.get(row.slug)
        forgotten = rules.get(row.slug)
        if row.workspace is None:
            missing = gettext("there is no workspace %(name)s") % {"name": brief(row.slug)}
            row.plan.errors.append(missing if row.slug else gettext("it has no workspace"))
        elif forgotten and _is_forgotten(row, forgotten):
            row.plan.errors.append(
                gettext(
                    "it contains forgotten content; an operator can allow re-import on the page Forget or Data about "
                    "a person"
                )
            )


def _is_forgotten(row: Candidate, rules: ImportRules) -> bool:
    source = row.values.get("source")
    is_of_source = isinstance(source, str) and rules.is_source(source)
    return is_of_source or rules.mentions([row.own_id, *row.values.values()])


def _read(spec: TableImport, row: Candidate, given: Mapping[str, Any], zone: tzinfo) -> Candidate:
    def cell(name: str, reader: cells.Reader) -> Any:
        try:
            return reader(given[name], zone)
        except cells.BadCell as error:
            row.plan.errors.append(f"{name}: {error.message}")
            return ""

    row.slug = cell("workspace", cells.text).strip() if "workspace" in given else ""
    number = cell("id", cells.text).strip() if "id" in given else ""
    if number.isdecimal() and len(number) <= MAX_ID_DIGITS:
        row.pk = int(number)
    elif number:
        row.plan.errors.append(gettext("id: %(number)s is not a number") % {"number": brief(number)})
    row.own_id = cell(spec.own_id, cells.text) if spec.own_id in given else None
    if row.own_id and len(row.own_id) > KEY_LENGTH:
        too_long = gettext("%(column)s: longer than %(count)s characters")
        row.plan.errors.append(too_long % {"column": spec.own_id, "count": str(KEY_LENGTH)})
    row.is_secret = bool(cell("is_secret", cells.flag)) if "is_secret" in given else False
    row.exported = cell("updated_at", cells.moment) if "updated_at" in given else None
    row.values = {name: cell(name, reader) for name, reader in spec.readers.items() if name in given}
    row.plan.label = brief(str(row.own_id if spec.own_id == "key" else row.values.get("content", "")))
    return row


class _Finder:
    """Find the hub's rows in a few queries: by id, by the agent's id, by content."""

    def __init__(self, table: str, spec: TableImport, rows: Sequence[Candidate], *, lock: bool) -> None:
        self.table, self.spec = table, spec
        manager = TABLES[table].model._default_manager
        found = manager.select_for_update() if lock else manager.all()
        spaces = {row.workspace.pk: row.workspace for row in rows if row.workspace}
        self.by_pk: dict[int, Any] = {}
        for some in _batches({row.pk for row in rows if row.pk is not None}):
            self.by_pk |= {kept.pk: kept for kept in found.filter(pk__in=some)}
        self.by_own_id: dict[tuple[int, str], Any] = {}  # by workspace and id
        self.by_identity: dict[tuple[int, str], Any] = {}
        for pk in spaces:
            in_workspace = [row for row in rows if row.workspace and row.workspace.pk == pk and row.pk is None]
            identity = {_identity(row) for row in in_workspace} if table == "knowledge" else set()
            for some in _batches({row.own_id for row in in_workspace if row.own_id is not None} | identity):
                for kept in found.filter(workspace=pk, **{f"{spec.own_id}__in": some}):
                    self.by_own_id[pk, getattr(kept, spec.own_id)] = self.by_pk.setdefault(kept.pk, kept)
            for some in _batches(identity):
                living: Any = found.filter(workspace=pk, identity__in=some, withdrawn_at=None)
                for kept in living.order_by("-id"):
                    self.by_identity[pk, kept.identity] = self.by_pk.setdefault(kept.pk, kept)

    def __call__(self, row: Candidate) -> Any:
        """Return the hub's row, or None for a new one, whose agent's id is then set. Raises WrongRow."""
        assert row.workspace is not None  # noqa: S101  rows without one are wrong already
        kept = self._known(row, row.workspace)
        if kept is not None:
            kept.workspace = row.workspace  # saves a query in the audit
            return kept
        if row.own_id is None and self.table == "key_values":
            raise WrongRow(gettext("it has neither an id nor a key"))
        if not row.own_id and self.table != "key_values":
            row.own_id = _identity(row) if self.table == "knowledge" else str(uuid.uuid4())
        return None

    def _known(self, row: Candidate, workspace: Workspace) -> Any:
        if row.pk is None:
            identity = (workspace.pk, _identity(row))
            named = self.by_own_id.get((workspace.pk, row.own_id)) if row.own_id is not None else None
            return named or self.by_identity.get(identity) or (None if row.own_id else self.by_own_id.get(identity))
        kept = self.by_pk.get(row.pk)
        if kept is None or kept.workspace_id != workspace.pk:
            raise WrongRow(str(NO_SUCH_ROW[self.table]) % {"workspace": workspace.slug, "id": row.pk})
        own_id = getattr(kept, self.spec.own_id)
        if row.own_id not in (None, own_id) and (row.own_id or self.spec.own_id == "key"):
            named = {"column": self.spec.own_id, "id": row.pk, "own_id": brief(own_id)}
            raise WrongRow(str(ANOTHER_OWN_ID[self.table]) % named)
        return kept


def _batches(values: Collection[Any]) -> Iterator[list[Any]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), BATCH_ROWS):
        yield ordered[start : start + BATCH_ROWS]


def _identity(row: Candidate) -> str:
    """Return the content hash of a knowledge entry, for the category that the row will have."""
    category = row.values.get("category", "")
    known = category if category in KnowledgeEntry.Category.values else KnowledgeEntry.Category.LEARNED_FACT.value
    return content_id(known, row.values.get("content", ""))


def _check_unique(seen: dict[object, int], table: str, row: Candidate) -> None:
    """Refuse a row that occurs twice in the table. Raises WrongRow."""
    places: list[object] = [row.kept.pk] if row.kept is not None else [(row.slug, "id", row.own_id)]
    if row.kept is None and table == "knowledge":
        places.append((row.slug, "says", _identity(row)))
    for place in places:
        if place in seen:
            raise WrongRow(gettext("it is the same as row %(number)s") % {"number": seen[place]})
        seen[place] = row.plan.number


def _apply(table: str, spec: TableImport, row: Candidate, checked: CheckedTable, now: datetime) -> None:
    was_secret = row.is_secret
    if row.kept is None:
        instance: Any = TABLES[table].model(workspace=row.workspace, updated_at=now, **row.values)
        derive(instance)
        setattr(instance, spec.own_id, row.own_id)
        checked.new.append(instance)
        row.plan.outcome = "new"
        row.plan.changes = [(name, None, value) for name, value in row.values.items() if value not in ("", None, [])]
    else:
        instance, was_secret = row.kept, was_secret or getattr(row.kept, "is_secret", False)
        values = {name: value for name, value in row.values.items() if name not in spec.first}
        before = apply_values(instance, values)
        row.plan.updated_at = instance.updated_at
        row.plan.changes = [(name, before[name], values[name]) for name in values if name in before]
        row.plan.outcome = "changed" if before else "unchanged"
        if before and row.exported and row.exported < instance.updated_at:
            names = ", ".join(name for name, _before, _after in row.plan.changes)
            row.plan.notes.append(gettext("changed in the hub since the export: %(columns)s") % {"columns": names})
            row.plan.outcome = "skipped"
        if row.plan.outcome == "changed":
            instance.updated_at = now
            checked.changed.append(instance)
            checked.fields |= {*before, "updated_at"}
    if was_secret or getattr(instance, "is_secret", False):
        row.plan.changes = [_masked(change) if change[0] == "value" else change for change in row.plan.changes]


def _masked(change: tuple[str, Any, Any]) -> tuple[str, Any, Any]:
    name, before, _after = change
    return name, str(MASK) if before is not None else None, str(MASK)

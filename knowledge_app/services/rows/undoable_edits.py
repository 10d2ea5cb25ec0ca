"""Edits of one or many rows, carried out in batches and undoable.

An edit is a run that stores each row's state before and after it (``EditedRow``). Undoing an edit is itself an edit,
so undoing that one redoes the first. If a worker dies, the next one continues with the rows that aren't done yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Field, Model
from django.utils.translation import gettext, gettext_noop, override
from simple_history.utils import bulk_update_with_history

from knowledge_app.models import Confirmation, EditedRow, Fact
from knowledge_app.services.decisions import FROM_FILES, REPEATING
from knowledge_app.services.held_rows import review_changes
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.edit_tables import TABLES, Table
from knowledge_app.services.rows.row_changes import CHANGES, PAST_TENSES, Changes, Values
from knowledge_app.services.rows.session_and_run_edits import FINAL, STEP_ROWS, STEPS, undo_step
from knowledge_app.services.rows.tag_limit import refuse_too_many_tags
from knowledge_app.services.rows.verified_texts import leave_unverified, verified_before, was_verified
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.processes import this_process
from sessions_app.models import Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.runs import RunNotFitting, claim_run, fail_run, finish_run, hold_lease, renew_lease

AT_ONCE = 500  # rows; larger edits are left to a worker
STEPS_AT_ONCE = 50  # rows, for actions with a step for each row
BATCH_ROWS = 500
BROKEN_OFF = (Run.Status.CANCELLED, Run.Status.FAILED, Run.Status.PARKED)
USES = ("access_count", "accessed_at")  # changed by agents' use, not by edits
HEAD_START = timedelta(minutes=1)  # for the requesting process, before a worker may claim the run


def edit_rows(
    workspace: Workspace,
    table: str,
    action: str,
    units: Sequence[int | Sequence[int]],
    *,
    values: Values | None = None,
    reason: str = "",
    along: Values | None = None,
    by: By,
) -> Run:
    """Change rows of a workspace and return the run: done for up to 500 rows, queued for a worker beyond.

    ``units``: primary keys, or groups of them for an action that makes several rows one (merge: the first stays).
    ``action`` and ``values``: see ``row_changes``. ``reason``: what the rows' histories say,
    instead of the action's own word. ``along``: related changes that are undone with them. Rows that are gone, or of
    another workspace, are passed over. Steps (``session_and_run_edits``) are queued beyond 50. Raises
    Invalid.
    """
    groups = [[unit] if isinstance(unit, int) else list(unit) for unit in units]
    if not groups:
        raise Invalid(gettext("Select at least one row."), code="nothing_chosen")
    if action in ("tag", "recategorise"):
        refuse_too_many_tags(workspace, [pk for group in groups for pk in group], values or {})
    options: dict[str, Any] = {"table": table, "action": action, "units": groups, "values": values or {}}
    options |= {name: value for name, value in (("reason", reason), ("along", along)) if value}
    return _start(_request(workspace, options, sum(len(group) for group in groups), by), by)


def undo_edit(run: Run, *, by: By) -> Run:
    """Restore every row that an edit changed and that hasn't changed since; return the run that does so.

    An edit that failed or was cancelled halfway is undone as far as it was done. It counts as undone when the
    returned run is done. Raises RunNotFitting if it is running, changed nothing, is final, or was undone already.
    """
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        touched = list(EditedRow.objects.filter(run=locked).order_by("id").values_list("object_id", flat=True))
        is_partly_done = locked.status in BROKEN_OFF and touched
        if locked.kind != Run.Kind.EDIT or not (locked.status == Run.Status.DONE or is_partly_done):
            raise RunNotFitting(gettext("Run %(number)s is not an edit that can be undone now.") % {"number": run.pk})
        if is_final(locked):
            raise RunNotFitting(gettext("Edit %(number)s is final: it can't be undone.") % {"number": run.pk})
        live = Run.objects.filter(workspace=locked.workspace_id, kind=Run.Kind.EDIT, status__in=LIVE_STATUSES)
        if any(options.get("of") == locked.pk for options in live.values_list("options", flat=True)):
            raise RunNotFitting(gettext("Edit %(number)s is being undone already.") % {"number": run.pk})
        offered = Confirmation.objects.filter(pk=locked.options.get("confirmation", 0))
        offered.update(status=Confirmation.Status.OFFERED, decided_at=None, decided_by="")
        options = {
            "table": locked.options["table"],
            "action": "undo",
            "of": locked.pk,
            "of_action": locked.options["action"],
            "units": [[pk] for pk in touched],
            "values": {},
        }
        undoing = _request(locked.workspace, options, len(touched), by)
    return _start(undoing, by)


def is_final(run: Run) -> bool:
    """Tell whether an edit can't be undone."""
    return run.options["action"] in FINAL or run.options.get("of_action") in STEPS


def has_steps(options: dict[str, Any]) -> bool:
    """Tell whether an edit, or the one that it undoes, runs a step for each row instead of setting fields."""
    return options["action"] in STEPS or options.get("of_action") in STEPS


def _request(workspace: Workspace, options: dict[str, Any], size: int, by: By) -> Run:
    return Run.objects.create(
        workspace=workspace,
        kind=Run.Kind.EDIT,
        options=options | {"actor": [by.actor.kind, by.actor.name]},
        requested_by=by.actor.name[:200],
        not_before=by.at + HEAD_START if _is_small(options, size) else by.at,
        steps_total=size,
        created_at=by.at,
    )


def _is_small(options: dict[str, Any], size: int) -> bool:
    return size <= (STEPS_AT_ONCE if has_steps(options) else AT_ONCE)


def _start(run: Run, by: By) -> Run:
    """Carry out a small edit now; a large one is left to a worker."""
    is_small = _is_small(run.options, run.steps_total)
    claimed = claim_run(run.pk, owner=this_process(), now=by.at + HEAD_START) if is_small else None
    if claimed is None:
        return run
    Run.objects.filter(pk=run.pk).update(started_at=by.at)
    try:
        with override(settings.LANGUAGE_CODE):  # the error message is stored
            carry_out_edit(claimed, now=by.at)
    except Exception as error:
        failure = (
            error
            if isinstance(error, MemoryHubError)
            else MemoryHubError(f"The edit failed: {type(error).__name__}.", code="edit_broken")
        )
        fail_run(claimed, failure, now=by.at, is_transient=False)
        raise
    return Run.objects.select_related("workspace").get(pk=run.pk)


def carry_out_edit(run: Run, *, now: datetime) -> None:
    """Edit the remaining rows of a claimed edit in batches, each in its own transaction.

    Raises LeaseLost if the run was cancelled meanwhile; finished batches stay and can be undone.
    """
    touched = set(EditedRow.objects.filter(run=run).values_list("object_id", flat=True))
    units = run.options["units"]
    total = sum(len(unit) for unit in units)
    left = [unit for unit in units if touched.isdisjoint(unit)]
    seen = total - sum(len(unit) for unit in left)
    for batch in _batches(left, STEP_ROWS if has_steps(run.options) else BATCH_ROWS):
        seen += sum(len(unit) for unit in batch)
        _change_batch(run, batch, seen, total, now)
    _finish(run, total, now)


def _batches(units: Iterable[list[int]], rows: int) -> Iterator[list[list[int]]]:
    batch: list[list[int]] = []
    size = 0
    for unit in units:
        batch.append(unit)
        size += len(unit)
        if size >= rows:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@db_retry.retried
@transaction.atomic
def _change_batch(run: Run, units: list[list[int]], seen: int, total: int, now: datetime) -> None:
    hold_lease(run)
    table = TABLES[run.options["table"]]
    pks = [pk for unit in units for pk in unit]
    found: Any = table.model._default_manager.select_for_update(of=("self",))
    found = found.filter(workspace=run.workspace_id, pk__in=pks)
    if run.options["values"].get("held_only"):
        found = found.select_related("hold")
    rows = {row.pk: row for row in found}
    if has_steps(run.options):
        _run_steps(run, [rows[pk] for pk in pks if pk in rows], now)
    elif run.options["action"] == "undo":
        _write(run, table, rows, _undo_changes(run, table, rows, pks), now)
    else:
        _write(run, table, rows, _changes(run, table, rows, units, now), now)
    renew_lease(run, stage=gettext_noop("writing"), steps_done=seen, steps_total=total)


def _changes(run: Run, table: Table, rows: dict[int, Model], units: list[list[int]], now: datetime) -> Changes:
    changes: Changes = {}
    change, values = CHANGES[run.options["action"]], run.options["values"]
    if run.options["action"] == "assign":
        values = _typed(table, values)
    for unit in units:
        present = [rows[pk] for pk in unit if pk in rows]
        if present and present[0].pk == unit[0]:  # a group whose first row is gone has nothing to merge into
            changes |= change(present, values, now)
    return changes


def _run_steps(run: Run, rows: Sequence[Model], now: datetime) -> None:
    """Run or undo the step for each row, and record the rows for which it was done."""
    by, action = By(Actor(*run.options["actor"]), now), run.options["action"]
    keys = [row.pk for row in rows]  # deleted rows lose their keys
    if action == "undo":
        earlier = EditedRow.objects.filter(run=run.options["of"], object_id__in=keys)
        results = earlier.values_list("object_id", "after")
        done: dict[int, Values] = {pk: {} for pk, result in results if undo_step(result or {}, by=by)}
    else:
        step, values = STEPS[action], run.options["values"]
        taken = {pk: step(row, values, by) for pk, row in zip(keys, rows, strict=True)}
        done = {pk: result for pk, result in taken.items() if result is not None}
    EditedRow.objects.bulk_create(
        EditedRow(run=run, table=run.options["table"], object_id=pk, before={}, after=result)
        for pk, result in done.items()
    )


def _undo_changes(run: Run, table: Table, rows: dict[int, Model], pks: Sequence[int]) -> Changes:
    """Return the earlier values of rows that haven't changed since the edit, including rows that it removed."""
    changes: Changes = {}
    found = EditedRow.objects.filter(run=run.options["of"], object_id__in=pks)
    for edited in found.annotate(made_at=F("run__created_at")):
        row = rows.get(edited.object_id)
        if edited.after is None:
            if row is None and edited.before is not None and not _key_is_taken(table, run, edited):
                rows[edited.object_id] = _recreate(table, run, edited)
                changes[edited.object_id] = {}
        elif row is not None and _is_unchanged_since(row, edited.after):
            changes[edited.object_id] = None if edited.before is None else _put_back(table, row, edited)
    if table.model is Fact:
        leave_unverified(rows, changes)
    return changes


def _key_is_taken(table: Table, run: Run, edited: EditedRow) -> bool:
    """Tell whether another row now has the key of a removed row."""
    if not table.own_key:
        return False
    same = {table.own_key: edited.before[table.own_key]}
    return table.model._default_manager.filter(workspace=run.workspace_id, **same).exists()


def _is_unchanged_since(row: Model, after: Values) -> bool:
    left = {name: value for name, value in after.items() if name not in USES}
    return _plain(row, left) == left


def _put_back(table: Table, row: Any, edited: Any) -> Values:
    """Return a row's earlier values, keeping accesses counted since, and the text as verified as it was."""
    values = _typed(table, edited.before)
    verified_at, text = getattr(row, "last_verified_at", None), REPEATING.get(table.model)
    if verified_at and verified_at > edited.made_at and text in values:
        values.setdefault("last_verified_at", verified_before(row, edited.made_at))
    elif text and (again := values.get("last_verified_at")) and not was_verified(row, values, again):
        del values["last_verified_at"]
    if "access_count" in values:
        values["access_count"] = max(0, row.access_count - edited.after["access_count"] + values["access_count"])
    if "accessed_at" in values and _plain(row, ["accessed_at"])["accessed_at"] != edited.after["accessed_at"]:
        del values["accessed_at"]
    return values


def _recreate(table: Table, run: Run, edited: EditedRow) -> Model:
    values = _typed(table, edited.before)
    return table.model(pk=edited.object_id, workspace_id=run.workspace_id, **values)


def _write(run: Run, table: Table, rows: dict[int, Model], changes: Changes, now: datetime) -> None:
    edited: list[EditedRow] = []
    changed: dict[Model, Collection[str]] = {}
    removed: list[int] = []
    names: set[str] = set()
    for pk, values in changes.items():
        row = rows[pk]
        before: Values | None
        after: Values | None
        if row._state.adding:
            row.save(force_insert=True)
            before, after = None, _plain(row, _own_names(table))
        elif values is None:
            before, after = _plain(row, _own_names(table)), None
            removed.append(pk)
        else:
            before = apply_values(row, values)
            if not before:
                continue
            after = _plain(row, before)
            names |= before.keys()
            changed[row] = before.keys()
        edited.append(EditedRow(run=run, table=run.options["table"], object_id=pk, before=before, after=after))
    EditedRow.objects.bulk_create(edited, batch_size=BATCH_ROWS)
    table.model._default_manager.filter(pk__in=removed).delete()
    if changed:
        _update(run, table, list(changed), names, now)
        by = By(Actor(*run.options["actor"]), now)
        review_changes(changed, by, is_undo=run.options["action"] == "undo")


def apply_values(row: Any, values: Values) -> Values:
    """Set fields of a row and its derived columns; return the old values of those that changed, as JSON types.

    A changed field that is also in the agent's file is marked as corrected, so that imports don't overwrite it. The
    row isn't saved.
    """
    names = [*values, *(["corrected"] if hasattr(row, "corrected") else [])]
    derived = derive(row)
    before = _plain(row, {*names, *derived})
    for name, value in values.items():
        if name in FROM_FILES.get(type(row), ()) and getattr(row, name) != value:
            row.corrected = _corrected(row, name, value)
        setattr(row, name, value)
    if "corrected" in values:  # when undoing, the restored value wins, whatever the order of the fields
        row.corrected = values["corrected"]
    derive(row)
    after = _plain(row, before)
    return {name: value for name, value in before.items() if value != after[name]}


def _corrected(row: Any, name: str, value: Any) -> Values:
    """Return the file's values of the corrected fields after one more field is set."""
    files = {name: getattr(row, name)} | row.corrected
    return {field: kept for field, kept in files.items() if field != name or kept != value}


def _update(run: Run, table: Table, changed: list[Model], names: set[str], now: datetime) -> None:
    if table.is_dated and hasattr(changed[0], "updated_at"):
        names = names | {"updated_at"}
        for row in changed:
            row.updated_at = now  # type: ignore[attr-defined]
    fields = sorted(names)
    if not table.has_history:
        table.model._default_manager.bulk_update(changed, fields, batch_size=BATCH_ROWS)
        return
    reason = f"{run.requested_by}: {run.options.get('reason') or PAST_TENSES[run.options['action']]}"
    bulk_update_with_history(
        changed, table.model, fields, batch_size=BATCH_ROWS, default_change_reason=reason, default_date=now
    )


def _own_names(table: Table) -> list[str]:
    fields = table.model._meta.concrete_fields
    return [field.attname for field in fields if not field.primary_key and field.attname != "workspace_id"]


def _plain(row: Model, names: Iterable[str]) -> Values:
    """Return fields of a row as JSON types."""
    found = ((name, getattr(row, name)) for name in names)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in found}


def _typed(table: Table, values: Values) -> Values:
    """Convert values of ``_plain`` back to the types of their fields."""
    fields: dict[str, Field[Any, Any]] = {field.attname: field for field in table.model._meta.concrete_fields}
    return {name: fields[name].to_python(value) for name, value in values.items()}


@db_retry.retried
@transaction.atomic
def _finish(run: Run, total: int, now: datetime) -> None:
    changed = EditedRow.objects.filter(run=run).count()
    table, action = TABLES[run.options["table"]], run.options["action"]
    if action == "undo":
        _update_undone_edit(run)
    text = f"{table.count(changed)} {PAST_TENSES[action]}"
    proposal: dict[str, Any] = {"changed": changed, "passed_over": total - changed, "words": text}
    if is_final(run):
        proposal["is_final"] = True
    finish_run(run, status=Run.Status.DONE, now=now, proposal=proposal)
    record(
        By(Actor(*run.options["actor"]), now),
        "rows.edited",
        "run",
        run.pk,
        text,
        workspace=run.workspace,
        detail={"table": run.options["table"], "action": action, "changed": changed},
    )


def _update_undone_edit(run: Run) -> None:
    """Update the edits that an undo leads back to: each undo that is done again undoes its own edit again."""
    status = Run.Status.UNDONE
    while run.options["action"] == "undo":
        run = Run.objects.get(pk=run.options["of"])
        Run.objects.filter(pk=run.pk).update(status=status)
        status = Run.Status.DONE if status == Run.Status.UNDONE else Run.Status.UNDONE

"""What people decided in the inbox, from the audit log: latest first, with texts and what undoes each decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import HeldChange, HeldRow
from knowledge_app.services.documents.undone_decisions import DECIDED
from knowledge_app.services.held_rows import LINKS
from knowledge_app.services.rows.edit_tables import CONCERNS, TABLES
from knowledge_app.services.rows.held_row_decisions import REASON
from memoryhub.inbox.items import LOADERS, short, text_of_row
from memoryhub.inbox.queue import QueueScope
from memoryhub.inbox.sources import IS_CONFLICT
from memoryhub.models import Job
from memoryhub.runs.part_decisions import undo_approval_url, undo_url
from sessions_app.models import AuditRecord, ImportReport, Run, Workspace

KINDS: dict[str, Promise] = {
    "change": _("Changes"),
    "addition": _("Additions"),
    "finding": _("Findings"),
    "run": _("Runs"),
    "failure": _("Imports and jobs"),
}
Workspaces = QuerySet[Workspace]
PEOPLE = (AuditRecord.ActorKind.PERSON, AuditRecord.ActorKind.COMMAND)
PAGES = {
    "knowledge": "knowledge:knowledge-entry",
    "observation": "knowledge:observation",
    "key_value": "knowledge:key-value",
}
OF_EDITS = f'"table":"{CONCERNS}"'  # in the options of an edit of findings
FINDINGS: dict[str, Promise] = {"dismissed": _("Dismissed"), "open": _("Opened again"), "settled": _("Settled")}


@dataclass(frozen=True)
class Decision:
    """A decision. ``line``: of a change, as in the inbox. ``words``: what an edit did, ``reason``: the person's own.

    ``undo``: the URL that undoes it, "" if nothing does; ``needs_operator``: whether only operators may.
    """

    record: AuditRecord
    label: str | Promise
    outcome: str | Promise
    title: str
    is_accepted: bool = False
    is_undone: bool = False
    line: tuple[str, str] = ("", "")
    words: str = ""
    reason: str = ""
    proposer: str = ""
    url: str = ""
    undo: str = ""
    needs_operator: bool = False


def decision_records(scope: QueueScope, kind: str = "") -> QuerySet[AuditRecord]:
    """Return the audit records of decisions, unordered. ``kind``: one of KINDS, "" for all.

    SQLite reads only the latest ones by an index if the condition names one workspace, or none for the whole hub.
    """
    wanted = Q(pk__in=[])
    for name in [kind] if kind in KINDS else KINDS:
        wanted |= CONDITIONS[name](scope.workspaces)
    own = Q() if scope.of_hub else Q(workspace__in=list(scope.workspaces.values_list("pk", flat=True)))
    return AuditRecord.objects.filter(own, wanted, actor_kind__in=PEOPLE).select_related("workspace")


def _changes(_workspaces: Workspaces) -> Q:
    return Q(action__in=("change.approved", "change.rejected"))


def _additions(workspaces: Workspaces) -> Q:
    held = HeldRow.objects.filter(workspace__in=workspaces).exclude(history_entry=None)
    is_rejected = Q(object_kind="workspace") | Q(object_id__in=_keys(held, "history_entry_id"))
    withdrawn = Q(action="history.withdrawn") & is_rejected
    return Q(action="row.approved") | withdrawn | _edits(workspaces, f'"reason":"{REASON}"')


def _findings(workspaces: Workspaces) -> Q:
    return _edits(workspaces, OF_EDITS)


def _edits(workspaces: Workspaces, part: str) -> Q:
    runs = Run.objects.filter(workspace__in=workspaces, kind=Run.Kind.EDIT).annotate(
        text=Cast("options", TextField())
    )
    runs = runs.filter(text__contains=part).exclude(text__contains='"action":"undo"')
    return Q(action="rows.edited", object_id__in=_keys(runs, "pk"))


def _runs(workspaces: Workspaces) -> Q:
    """Held runs that were approved or rejected without a held change, and dismissed ones."""
    log = AuditRecord.objects.filter(workspace__in=workspaces, object_kind="run")
    waited = Q(action="run.held") | Q(action="run.finished", detail__contains='"status":"held"')
    of_changes = HeldChange.objects.filter(workspace__in=workspaces).exclude(run=None)
    is_own = ~Q(object_id__in=_keys(of_changes, "run_id")) & Q(object_id__in=log.filter(waited).values("object_id"))
    return Q(action="run.dismissed") | Q(action__in=("run.approved", "run.cancelled")) & is_own


def _failures(_workspaces: Workspaces) -> Q:
    return Q(action__in=("import.dismissed", "job.dismissed"))


def _keys(rows: QuerySet[Any], name: str) -> QuerySet[Any]:
    keys: QuerySet[Any] = rows.annotate(key=Cast(name, CharField())).values("key")
    return keys


CONDITIONS: dict[str, Callable[[Workspaces], Q]] = {
    "change": _changes,
    "addition": _additions,
    "finding": _findings,
    "run": _runs,
    "failure": _failures,
}


def load_decisions(workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    """Return the decisions of records, in order. A fixed number of queries."""
    groups: defaultdict[str, list[AuditRecord]] = defaultdict(list)
    for record in records:
        groups[record.action if record.action == "row.approved" else record.object_kind].append(record)
    found: dict[int, Decision] = {}
    for group, several in groups.items():
        load = GROUPS.get(group)
        found |= {one.record.pk: one for one in load(workspaces, several)} if load else {}
    return [found[record.pk] for record in records if record.pk in found]


def _url(record: AuditRecord, name: str, pk: int) -> str:
    return reverse(name, args=[record.workspace.slug, pk]) if record.workspace else ""


def _pks(records: Iterable[AuditRecord]) -> set[int]:
    return {int(record.object_id) for record in records if record.object_id.isdecimal()}


def _of_changes(workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    rows = HeldChange.objects.filter(workspace__in=workspaces).select_related("workspace").defer("proposed", "raw")
    changes = rows.in_bulk(_pks(records))
    conflicts = set(rows.filter(IS_CONFLICT, pk__in=changes).values_list("pk", flat=True))
    texts = LOADERS["change"](changes)
    found = []
    for record in records:
        change = changes.get(int(record.object_id))
        if change is None:
            continue
        is_accepted = record.action == "change.approved"
        stands = change.status in DECIDED and change.decided_at == record.at
        done = change.decision if stands else HeldChange.Status("approved" if is_accepted else "rejected").label
        found.append(
            Decision(
                record,
                _("Conflict") if change.pk in conflicts else _("Change"),
                done,
                texts[change.pk].title,
                is_accepted=is_accepted,
                is_undone=not stands,
                line=texts[change.pk].line,
                reason=change.decision_reason if stands else "",
                proposer=change.proposer,
                url=_url(record, "held-change", change.pk),
                undo=undo_url([change]) if stands else "",
            )
        )
    return found


def _of_approvals(workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    texts, in_use = _rows(workspaces, ((record.object_kind, pk) for record in records for pk in _pks([record])))
    latest = {(record.object_kind, record.object_id): record.pk for record in sorted(records, key=lambda one: one.pk)}
    found = []
    for record in records:
        place = record.object_kind, int(record.object_id)
        stands = place in in_use and latest[record.object_kind, record.object_id] == record.pk
        page = PAGES.get(record.object_kind)
        found.append(
            Decision(
                record,
                _("Addition"),
                _("Accepted"),
                texts.get(place, record.text),
                is_accepted=True,
                is_undone=place in texts and not stands,
                proposer=record.detail.get("author_name", ""),
                url=_url(record, page, place[1]) if page and place in texts else "",
                undo=undo_approval_url(record) if stands else "",
            )
        )
    return found


def _rows(workspaces: Workspaces, places: Iterable[tuple[str, int]]) -> tuple[dict[Any, str], set[Any]]:
    """Return the texts of rows by their link and key, and which of them agents may use."""
    wanted: defaultdict[str, set[int]] = defaultdict(set)
    for link, pk in places:
        wanted[link].add(pk)
    texts, in_use = {}, set()
    for model, link in LINKS.items():
        rows = model._default_manager.filter(workspace__in=workspaces, pk__in=wanted.get(link, ()))
        for row in rows.select_related("hold") if link in wanted else ():
            texts[link, row.pk] = short(text_of_row(row))
            if getattr(row, "hold", None) is None and row.withdrawn_at is None:  # type: ignore[attr-defined]
                in_use.add((link, row.pk))
    return texts, in_use


def _of_history(workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    """Return the rejected history entries; those that were rejected at once are one decision."""
    texts, _in_use = _rows(workspaces, (("history_entry", pk) for pk in _pks(records)))
    titles = {record.pk: texts.get((record.object_kind, int(record.object_id)), record.text) for record in records}
    return [Decision(record, _("Addition"), _("Rejected"), titles[record.pk]) for record in records]


def _of_runs(workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    """Return the edits of rows and of findings, and the decisions about held and stopped runs."""
    runs = Run.objects.filter(workspace__in=workspaces).in_bulk(_pks(records))
    titles = _titles(workspaces, runs)
    found = []
    for record in records:
        run = runs.get(int(record.object_id))
        if run is None:
            continue
        is_edit = record.action == "rows.edited"
        is_undone = (is_edit or record.action == "run.approved") and run.status == Run.Status.UNDONE
        may_undo = run.kind == Run.Kind.EDIT and run.status == Run.Status.DONE and run.proposal.get("changed")
        label, outcome = _outcome(record, run)
        found.append(
            Decision(
                record,
                label,
                outcome,
                titles.get(run.pk) or f"{run.get_kind_display()} {run.pk}",
                is_accepted=record.action == "run.approved",
                is_undone=is_undone,
                words=run.options.get("along", {}).get("words", "") if is_edit else "",
                url=_url(record, "run", run.pk),
                undo=_url(record, "undo-run", run.pk) if may_undo else "",
            )
        )
    return found


def _outcome(record: AuditRecord, run: Run) -> tuple[str | Promise, str | Promise]:
    if record.action != "rows.edited":
        names = {"run.approved": _("Approved"), "run.cancelled": _("Rejected"), "run.dismissed": _("Dismissed")}
        return _("Run"), names[record.action]
    if run.options["table"] == CONCERNS:
        return _("Finding"), FINDINGS.get(run.options["values"].get("status", ""), _("Settled"))
    return _("Addition"), _("Rejected")


def _titles(workspaces: Workspaces, runs: dict[int, Run]) -> dict[int, str]:
    """Return the text of the first row that each edit changed or would change."""
    firsts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for run in runs.values():
        if run.kind == Run.Kind.EDIT and run.options.get("units"):
            firsts[run.options["table"]][run.pk] = run.options["units"][0][0]
    titles: dict[int, str] = {}
    for table, first in firsts.items():
        texts = _texts(workspaces, table, set(first.values()))
        titles |= {run: texts[pk] for run, pk in first.items() if pk in texts}
    return titles


def _texts(workspaces: Workspaces, table: str, pks: set[int]) -> dict[int, str]:
    if table == CONCERNS:
        found = LOADERS["finding"](pks)
        return {pk: text.quote or text.title for pk, text in found.items()}
    link = LINKS.get(TABLES[table].model, "")
    texts, _in_use = _rows(workspaces, ((link, pk) for pk in pks))
    return {pk: text for (_link, pk), text in texts.items()}


def _of_failures(_workspaces: Workspaces, records: Sequence[AuditRecord]) -> list[Decision]:
    kind = records[0].object_kind
    model: Any = ImportReport if kind == "import" else Job
    pks = _pks(records)
    dismissed = dict(model.objects.filter(pk__in=pks).values_list("pk", "dismissed_at"))
    texts = LOADERS[kind](pks)
    found = []
    for record in records:
        pk = int(record.object_id)
        stands = dismissed.get(pk) == record.at
        title = texts[pk].title if pk in texts else record.text
        undo = f"{reverse('undo-dismissal')}?{kind}={pk}" if stands else ""
        label = _("Import") if kind == "import" else _("Job")
        found.append(
            Decision(
                record,
                label,
                _("Dismissed"),
                title,
                is_undone=pk in dismissed and not stands,
                url=texts[pk].url if pk in texts else "",
                undo=undo,
                needs_operator=kind == "import",
            )
        )
    return found


GROUPS: dict[str, Callable[[Workspaces, Sequence[AuditRecord]], list[Decision]]] = {
    "held_change": _of_changes,
    "row.approved": _of_approvals,
    "history_entry": _of_history,
    "workspace": _of_history,
    "run": _of_runs,
    "import": _of_failures,
    "job": _of_failures,
}

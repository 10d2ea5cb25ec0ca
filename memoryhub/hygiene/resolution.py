"""Resolving concerns in bulk: dismiss, withdraw, keep one of two, verify, set a review date. All can be undone.

Each action is an edit of the concerns. Its ``options["along"]`` lists what else changed, for undo: runs on other
tables, removed facts, and earlier dates of facts.

``seen``: the ``texts_hash`` of what the person has seen, "" if unknown. Every action raises Conflict if it isn't that
of the texts stored now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext

from knowledge_app.models import Concern, Fact, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.editing import (
    bring_back,
    curate_facts,
    edit_fact,
    is_back,
    remove_facts,
    revise_fact,
)
from knowledge_app.services.documents.fact_states import restore_states
from knowledge_app.services.rows.edit_tables import CONCERNS
from knowledge_app.services.rows.knowledge import clean_content, save_entry
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from knowledge_app.services.rows.verified_texts import reworded_since
from memoryhub.hygiene.clusters import concerns_of_cluster
from memoryhub.hygiene.rows import CACHED, ENTRIES, FACTS, KEY_VALUES, KNOWLEDGE, OBSERVATIONS
from memoryhub.hygiene.seen import check_texts
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Invalid, LimitExceeded, NotFound, Refused
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import lock_workspace

Kind, Status = Concern.Kind, Concern.Status
Place = tuple[str, int]
PAIRS = (Kind.DUPLICATE, Kind.CONTRADICTION)
MERGED = (KNOWLEDGE, OBSERVATIONS)
MAX_AT_ONCE = 500
MAX_MARKED = 10_000  # where only concerns change
REASON = "hygiene"


@db_retry.retried
@transaction.atomic
def dismiss(workspace: Workspace, pks: Collection[int], *, seen: str = "", by: By) -> Run:
    """Dismiss open concerns; scans don't raise them again. Raises Invalid, LimitExceeded."""
    concerns = _chosen(workspace, pks, limit=MAX_MARKED, seen=seen)
    return _mark(workspace, concerns, Status.DISMISSED, {"words": f"{_count(concerns)} dismissed"}, by)


def dismiss_cluster(workspace: Workspace, concern: Concern, *, seen: str = "", by: By) -> Run:
    """Dismiss all concerns of a cluster of duplicates. Raises Invalid, LimitExceeded."""
    return dismiss(workspace, [one.pk for one in concerns_of_cluster(concern)] or [concern.pk], seen=seen, by=by)


@db_retry.retried
@transaction.atomic
def reopen(workspace: Workspace, pks: Collection[int], *, by: By) -> Run:
    """Reopen dismissed concerns. Raises Invalid, LimitExceeded."""
    concerns = _chosen(workspace, pks, status=Status.DISMISSED, limit=MAX_MARKED)
    return _mark(workspace, concerns, Status.OPEN, {"words": f"{_count(concerns)} opened again"}, by)


@db_retry.retried
@transaction.atomic
def withdraw(workspace: Workspace, pks: Collection[int], *, seen: str = "", by: By) -> Run:
    """Withdraw the rows of concerns and settle every concern about those rows.

    Raises Invalid, LimitExceeded, and Refused if all rows are messages.
    """
    concerns = [concern for concern in _chosen(workspace, pks, seen=seen) if concern.kind not in PAIRS]
    places = {(concern.table, concern.object_id) for concern in concerns}
    places = {place for place in places if place[0] != ENTRIES}
    if concerns and not places:
        raise Refused(
            gettext("Messages can't be withdrawn. Dismiss the finding, or forget its content."),
            code="not_withdrawable",
        )
    along = _withdraw_rows(workspace, places, by)
    return _resolve(workspace, _about(workspace, places), along | {"words": f"{_rows(places)} withdrawn"}, by)


@db_retry.retried
@transaction.atomic
def keep(workspace: Workspace, pks: Collection[int], *, other: bool, seen: str = "", by: By) -> Run:
    """Keep one row of each pair (the first, or ``other``) and withdraw the other, merging it where possible.

    Raises Invalid, LimitExceeded.
    """
    concerns = [concern for concern in _chosen(workspace, pks, seen=seen) if concern.kind in PAIRS]
    pairs: dict[Place, tuple[Place, bool]] = {}
    for concern in concerns:
        sides = [(concern.table, concern.object_id), (concern.other_table, concern.other_id or 0)]
        stays, goes = reversed(sides) if other else sides
        if goes in pairs or stays in pairs:
            continue
        pairs[goes] = (stays, concern.kind == Kind.DUPLICATE)
    if not concerns:
        raise Invalid(gettext("Choose at least one pair."), code="nothing_chosen")
    along = _withdraw_pairs(workspace, pairs, by)
    return _resolve(workspace, _about(workspace, pairs), along | {"words": f"{_rows(pairs)} withdrawn"}, by)


@transaction.atomic
def keep_in_cluster(workspace: Workspace, pks: Collection[int], *, stays: Place, by: By) -> Run:
    """Keep one row of the cluster of these concerns and withdraw the others. Raises as ``keep_one``."""
    return keep_one(workspace, _chosen(workspace, pks)[0], stays=stays, text="", by=by)


@db_retry.retried
@transaction.atomic
def keep_one(workspace: Workspace, concern: Concern, *, stays: Place, text: str, seen: str = "", by: By) -> Run:
    """Keep one row of a cluster of duplicates with this text ("" for its own) and withdraw the others.

    Raises Invalid, LimitExceeded, KnowledgeExists, NotFound.
    """
    concerns = _chosen(workspace, [one.pk for one in concerns_of_cluster(concern)] or [concern.pk], seen=seen)
    places = {(one.table, one.object_id) for one in concerns}
    places |= {(one.other_table, one.other_id) for one in concerns if one.other_id is not None}
    if stays not in places:
        raise Invalid(gettext("Choose the row to keep."), code="nothing_chosen")
    pairs = dict.fromkeys(sorted(places - {stays}), (stays, True))
    along = _withdraw_pairs(workspace, pairs, by)
    for name, values in (_reword(workspace, stays, text, by) if text.strip() else {}).items():
        along[name] = [*along.get(name, []), *values]
    return _resolve(workspace, _about(workspace, pairs), along | {"words": f"{_rows(pairs)} withdrawn"}, by)


def _reword(workspace: Workspace, place: Place, text: str, by: By) -> dict[str, list[Any]]:
    """Change the text of a row; return the data for undo."""
    table, pk = place
    if table == FACTS:
        fact = Fact.objects.filter(workspace=workspace, pk=pk, died=None).first()
        if fact is None:
            raise NotFound(gettext("This fact has been removed in the meantime."), code="no_such_fact")
        new = " ".join(text.split())
        if new == fact.text:
            return {}
        edited = edit_fact(fact, text=new, category=fact.category, section=fact.section, by=by)
        return {"texts": [[edited.pk, fact.text, new]]}
    if table == KNOWLEDGE:
        entry = KnowledgeEntry.objects.get(workspace=workspace, pk=pk)
        return {} if entry.content == text.strip() else {"runs": [save_entry(entry, {"content": text}, by=by).pk]}
    row = Observation.objects.get(workspace=workspace, pk=pk)
    if row.content == text.strip():
        return {}
    return {"runs": [edit_rows(workspace, table, "assign", [pk], values={"content": clean_content(text)}, by=by).pk]}


def _withdraw_pairs(workspace: Workspace, pairs: dict[Place, tuple[Place, bool]], by: By) -> dict[str, Any]:
    """Withdraw rows that others replace. ``pairs``: by row, its replacement and whether to merge it into that."""
    merged: defaultdict[Place, list[int]] = defaultdict(list)
    for goes, (stays, is_duplicate) in pairs.items():
        if is_duplicate and stays[0] == goes[0] and stays[0] in MERGED:
            merged[stays].append(goes[1])
    rest = set(pairs) - {(stays[0], pk) for stays, pks in merged.items() for pk in pks}
    along = _withdraw_rows(workspace, rest, by)
    for table in MERGED:
        groups = [[pk, *others] for (of, pk), others in merged.items() if of == table]
        if groups:
            along["runs"].append(edit_rows(workspace, table, "merge", groups, by=by).pk)
    return along


@db_retry.retried
@transaction.atomic
def verify(workspace: Workspace, pks: Collection[int], *, seen: str = "", by: By) -> Run:
    """Mark the rows of stale concerns as verified. Raises Invalid, LimitExceeded."""
    return _refresh(workspace, _chosen(workspace, pks, seen=seen), "verify", {}, "marked as verified", by)


@db_retry.retried
@transaction.atomic
def review(workspace: Workspace, pks: Collection[int], *, day: date | None, by: By) -> Run:
    """Set a new review date for the rows of stale concerns.

    Raises LimitExceeded, and Invalid for a date that isn't in the future.
    """
    if day is None or day <= timezone.localdate(by.at):
        raise Invalid(gettext("Enter a date in the future."), code="wrong_day")
    words = f"to be reviewed by {day.day} {day:%b} {day.year}"
    return _refresh(workspace, _chosen(workspace, pks), "review", {"review_by": day.isoformat()}, words, by)


def _refresh(
    workspace: Workspace, chosen: Sequence[Concern], action: str, values: dict[str, str], words: str, by: By
) -> Run:
    stale = [concern for concern in chosen if concern.kind == Kind.STALE]
    places = {(concern.table, concern.object_id) for concern in stale}
    if not places:
        raise Invalid(gettext("Choose at least one stale row."), code="nothing_chosen")
    along: dict[str, Any] = {"runs": [], "facts": [], "dates": []}
    for table, rows in _by_table(places).items():
        if table == FACTS:
            along["dates"] = _refresh_facts(workspace, rows, values.get("review_by"), by)
        else:
            along["runs"].append(edit_rows(workspace, table, action, rows, values=values, by=by).pk)
    return _resolve(workspace, stale, along | {"words": f"{_rows(places)} {words}"}, by)


def _refresh_facts(workspace: Workspace, pks: Sequence[int], review_by: str | None, by: By) -> list[list[Any]]:
    """Verify facts or set their review date; return their dates before and after."""
    before = {}
    for fact in Fact.objects.filter(workspace=workspace, died=None, pk__in=pks).select_related("document__workspace"):
        before[fact.pk] = fact
    for document in {fact.document_id: fact.document for fact in before.values()}.values():
        of_document = [pk for pk, fact in before.items() if fact.document_id == document.pk]
        day = parse_date(review_by) if review_by else None
        curate_facts(document, of_document, by=by, verified=day is None, review_by=day)
    return [
        [pk, _text(fact.last_verified_at), _text(fact.review_by), *_now_dates(fact, review_by, by.at)]
        for pk, fact in before.items()
    ]


def _now_dates(fact: Fact, review_by: str | None, now: datetime) -> list[str | None]:
    return [_text(fact.last_verified_at), review_by] if review_by else [_text(now), _text(fact.review_by)]


def _text(moment: date | None) -> str | None:
    return moment.isoformat() if moment else None


def _withdraw_rows(workspace: Workspace, places: Iterable[Place], by: By) -> dict[str, Any]:
    """Remove facts and cached responses, withdraw other rows; return the data for undo."""
    along: dict[str, Any] = {"runs": [], "facts": [], "dates": []}
    for table, pks in _by_table(places).items():
        if table == FACTS:
            along["facts"] = _remove_facts(workspace, pks, by)
        elif table in (KNOWLEDGE, OBSERVATIONS, KEY_VALUES, CACHED):
            action = "remove" if table == CACHED else "withdraw"
            values = {} if table == CACHED else {"reason": REASON}
            along["runs"].append(edit_rows(workspace, table, action, pks, values=values, by=by).pk)
    return along


def _remove_facts(workspace: Workspace, pks: Sequence[int], by: By) -> list[int]:
    living = Fact.objects.filter(workspace=workspace, died=None, pk__in=pks)
    by_document: defaultdict[int, list[int]] = defaultdict(list)
    for pk, number in living.order_by("pk").values_list("pk", "document"):
        by_document[number].append(pk)
    for document in MemoryDocument.objects.filter(pk__in=by_document):
        remove_facts(document, by_document[document.pk], by=by)
    return sorted(pk for found in by_document.values() for pk in found)


def _by_table(places: Iterable[Place]) -> dict[str, list[int]]:
    tables: defaultdict[str, list[int]] = defaultdict(list)
    for table, pk in sorted(places):
        tables[table].append(pk)
    return dict(tables)


def _about(workspace: Workspace, places: Iterable[Place]) -> list[Concern]:
    """Return all open concerns about the given rows."""
    named = Q(pk__in=[])
    for table, pks in _by_table(places).items():
        named |= Q(table=table, object_id__in=pks) | Q(other_table=table, other_id__in=pks)
    return list(Concern.objects.filter(named, workspace=workspace, status=Status.OPEN).order_by("id"))


def _chosen(
    workspace: Workspace, pks: Collection[int], *, status: str = Status.OPEN, limit: int = 0, seen: str = ""
) -> list[Concern]:
    most = limit or MAX_AT_ONCE
    if len(pks) > most:
        words = gettext("Select at most %(most)s findings at a time (selected: %(count)s).")
        raise LimitExceeded(words % {"most": f"{most:,}", "count": f"{len(pks):,}"}, code="too_many")
    lock_workspace(workspace.pk)  # so that a concern is decided once
    found = list(Concern.objects.filter(workspace=workspace, status=status, pk__in=pks).order_by("id"))
    if not found:
        if pks and status == Status.OPEN:
            words = gettext("None of the selected findings is open any more.")
            raise Invalid(words, code="nothing_chosen")
        if status == Status.DISMISSED:
            raise Invalid(gettext("Select at least one dismissed finding."), code="nothing_chosen")
        raise Invalid(gettext("Select at least one open finding."), code="nothing_chosen")
    check_texts(found, seen)
    return found


def _resolve(workspace: Workspace, concerns: Sequence[Concern], along: dict[str, Any], by: By) -> Run:
    if not concerns:
        raise Invalid(gettext("This action doesn't apply to the selected findings."), code="nothing_chosen")
    return _mark(workspace, concerns, Status.SETTLED, along, by)


def _mark(workspace: Workspace, concerns: Sequence[Concern], status: str, along: dict[str, Any], by: By) -> Run:
    pks = [concern.pk for concern in concerns]
    return edit_rows(workspace, CONCERNS, "assign", pks, values={"status": status}, along=along, by=by)


def _count(concerns: Sequence[Concern]) -> str:
    return "1 finding" if len(concerns) == 1 else f"{len(concerns):,} findings"


def _rows(places: Collection[Place]) -> str:
    return "1 row" if len(places) == 1 else f"{len(places):,} rows"


@db_retry.retried
@transaction.atomic
def undo_resolution(run: Run, *, by: By) -> Run:
    """Undo a resolution with everything it changed, or redo it by undoing that; return the undoing run.

    Facts return at the end of their sections. Later changes are kept. Raises RunNotFitting if the edit isn't done or
    was undone already.
    """
    undoing = undo_edit(run, by=by)
    along = run.options.get("along")
    if not along:
        return undoing
    others = Run.objects.filter(workspace=run.workspace_id, pk__in=along.get("runs", []), status=Run.Status.DONE)
    again: dict[str, Any] = {"runs": [undo_edit(other, by=by).pk for other in others.order_by("-id")]}
    again["texts"] = _restore_texts(run, along.get("texts", []), by)
    again["revived"] = _bring_back(run, along.get("facts", []), by)
    again["facts"] = _remove_facts(run.workspace, _revived(along.get("revived", [])), by)
    again["dates"] = _restore_dates(run, along.get("dates", []), by)
    undoing.options = undoing.options | {"along": again}
    Run.objects.filter(pk=undoing.pk).update(options=undoing.options)
    return undoing


def _restore_texts(run: Run, texts: Sequence[Sequence[Any]], by: By) -> list[list[Any]]:
    """Restore the texts of facts that haven't changed since the action; return the data for undoing that."""
    restored = []
    for pk, before, after in texts:
        facts = Fact.objects.filter(workspace=run.workspace_id, pk=pk, died=None, text=after)
        fact = facts.select_related("corrected").first()
        if fact is not None:
            revised = revise_fact(fact, text=before, category=fact.category, section=fact.section, by=by)
            if fact.corrected:
                restore_states(revised[1], undone=[fact.corrected])
            restored.append([revised[0].pk, after, before])
    return restored


def _bring_back(run: Run, pks: Sequence[int], by: By) -> list[list[int]]:
    """Add removed facts again unless somebody did; return the key of each added one with that of the new one."""
    revived: list[list[int]] = []
    heirs: list[int] = []
    facts = Fact.objects.filter(workspace=run.workspace_id, pk__in=pks, died__isnull=False)
    for fact in facts.order_by("document", "line", "id"):
        same = Fact.objects.filter(document=fact.document_id, died=None, text=fact.text).exclude(pk__in=heirs)
        is_there = is_back(fact)
        born = Q(born__gt=fact.died_id) if is_there else Q(born=bring_back(fact, by=by))
        if heir := same.filter(born).order_by("id").first():
            _repoint(fact, heir)
            heirs.append(heir.pk)
            revived += [] if is_there else [[fact.pk, heir.pk]]
    return revived


def _revived(pairs: Sequence[Sequence[int]]) -> list[int]:
    """Return the keys of facts that were added again and haven't changed since."""
    texts = dict(Fact.objects.filter(pk__in=[pk for pair in pairs for pk in pair]).values_list("pk", "text"))
    return [heir for fact, heir in pairs if texts.get(heir) == texts.get(fact)]


def _repoint(fact: Fact, heir: Fact) -> None:
    """Point the concerns about a removed fact at the fact that replaced it, except those that are about both."""
    concerns = Concern.objects.filter(workspace=fact.workspace_id)
    first, other = Q(table=FACTS, object_id=heir.pk), Q(other_table=FACTS, other_id=heir.pk)
    concerns.filter(table=FACTS, object_id=fact.pk).exclude(other).update(object_id=heir.pk)
    concerns.filter(other_table=FACTS, other_id=fact.pk).exclude(first).update(other_id=heir.pk)


def _restore_dates(run: Run, dates: Sequence[Sequence[Any]], by: By) -> list[list[Any]]:
    """Restore the dates of facts that haven't changed since the action; return the data for undoing that."""
    restored = []
    facts = Fact.objects.filter(workspace=run.workspace_id).in_bulk([pk for pk, *_ in dates])
    verified_at = {pk: datetime.fromisoformat(then) for pk, then, _, now, _ in dates if then and then != now}
    reworded = reworded_since(facts.values(), verified_at)
    for pk, verified, review_by, verified_now, review_now in dates:
        if pk not in facts or pk in reworded:
            continue
        unchanged = Fact.objects.filter(pk=pk, text=facts[pk].text, **_dates(verified_now, review_now))
        if unchanged.update(**_dates(verified, review_by)):
            restored.append([pk, verified_now, review_now, verified, review_by])
    if count := len(restored):
        text = f"Earlier dates restored on {count} fact{'' if count == 1 else 's'}"
        record(by, "facts.curated", "run", run.pk, text, workspace=run.workspace)
    return restored


def _dates(verified: str | None, review_by: str | None) -> dict[str, Any]:
    return {"last_verified_at": parse_datetime(verified or ""), "review_by": parse_date(review_by or "")}

"""Invariants of memory documents, facts, held changes, history and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from django.db.models import CharField, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import content_hash
from memoryhub.lib.text.facts import FactLine, fact_lines
from sessions_app.models import AuditRecord, Entry

Finding = tuple[str, str]
RECORDED = {"record": "pk", "recorded_hash": "after_hash", "recorded_detail": "detail"}


def check_chain() -> tuple[int, Iterable[Finding]]:
    """A document's revisions are numbered 1 to n, and each but the first is based on an earlier one."""
    numbered = MemoryRevision.objects.values("document_id").annotate(
        n=Count("id"), first=Min("number"), last=Max("number")
    )
    found: list[Finding] = [
        (f"{row['n']} revisions numbered {row['first']} to {row['last']}", f"document {row['document_id']}")
        for row in numbered.exclude(first=1, last=F("n"))
    ]
    is_valid = Q(number=1, base=None) | Q(base__document=F("document_id"), base__number__lt=F("number"))
    broken = MemoryRevision.objects.exclude(pk__in=MemoryRevision.objects.filter(is_valid).values("pk"))
    found += [
        ("its base is not an earlier revision of its document", f"revision {pk}")
        for pk in broken.values_list("pk", flat=True)
    ]
    return MemoryRevision.objects.count(), found


def check_hashes() -> tuple[int, Iterable[Finding]]:
    """A revision's hash matches its text."""
    rows = MemoryRevision.objects.values_list("pk", "content", "content_hash").iterator(chunk_size=50)
    found = (
        ("its hash doesn't match its text", f"revision {pk}")
        for pk, content, kept in rows
        if content_hash(content) != kept
    )
    return MemoryRevision.objects.count(), found


def check_heads() -> tuple[int, Iterable[Finding]]:
    """A document's head is its latest revision."""
    latest = MemoryDocument.objects.annotate(latest=Max("revisions__number")).filter(latest__isnull=False)
    wrong = latest.exclude(head__number=F("latest"), head__document=F("pk"))
    found = [("its head is not its latest revision", f"document {pk}") for pk in wrong.values_list("pk", flat=True)]
    return MemoryDocument.objects.count(), found


def check_facts() -> tuple[int, Iterable[Finding]]:
    """The current facts of a document are those of its text, line by line."""
    return Fact.objects.filter(died=None).count(), _differing_facts()


def _differing_facts() -> Iterator[Finding]:
    for document in MemoryDocument.objects.select_related("head").iterator(chunk_size=50):
        living = Fact.objects.filter(document=document, died=None).order_by("line", "id")
        kept = [FactLine(*row) for row in living.values_list("section", "category", "text", "line")]
        if kept != fact_lines(document.head.content if document.head else "", document.separator):
            yield "its facts are not those of its text", f"document {document.pk}"


def check_origins() -> tuple[int, Iterable[Finding]]:
    """Each origin of a fact fits its kind and belongs to the fact's workspace."""
    kinds, links = FactSource.Kind, ("run", "entry", "history_entry")
    others = (Q(**{f"{name}__isnull": False}) & ~Q(**{f"{name}__workspace": F("fact__workspace")}) for name in links)
    foreign = FactSource.objects.filter(reduce(or_, others))
    found = [("it belongs to another workspace", f"origin {pk}") for pk in _pks(foreign)]
    has_score = Q(score__gt=0, score__lte=1)
    fits = (
        Q(kind=kinds.LEARNED, score=None)
        | Q(kind=kinds.WRITTEN_BY, entry__kind=Entry.Kind.TOOL_CALL, score=None)
        | Q(kind=kinds.RECORDED_WITH, entry=None, score=None)
        | Q(has_score, kind=kinds.PROBABLY_FROM, entry__kind=Entry.Kind.MESSAGE)
    )
    unfit = FactSource.objects.exclude(pk__in=FactSource.objects.filter(fits).values("pk"))
    found += [("it doesn't fit its kind", f"origin {pk}") for pk in _pks(unfit)]
    return FactSource.objects.count(), found


def _pks(rows: QuerySet[FactSource] | QuerySet[MemoryDocument]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:100])


def check_held() -> tuple[int, Iterable[Finding]]:
    """A held change is as it was recorded, and its base and ours are revisions of its document.

    A decided one has a date.
    """
    foreign = HeldChange.objects.filter(
        Q(base__isnull=False) & ~Q(base__document=F("document_id"))
        | Q(ours__isnull=False) & ~Q(ours__document=F("document_id"))
    )
    found: list[Finding] = [
        ("it belongs to another document", f"held change {pk}") for pk in foreign.values_list("pk", flat=True)
    ]
    undated = HeldChange.objects.exclude(status=HeldChange.Status.PENDING).filter(decided_at=None)
    found += [("decided, but without a date", f"held change {pk}") for pk in undated.values_list("pk", flat=True)]
    return HeldChange.objects.count(), [*found, *_changed_proposals()]


def _changed_proposals() -> Iterator[Finding]:
    """Find held changes that differ from their audit records. Those of older versions don't have the revisions."""
    held = AuditRecord.objects.filter(action="change.held", object_kind="held_change", object_id=OuterRef("text_id"))
    recorded = {name: Subquery(held.order_by("pk").values(column)[:1]) for name, column in RECORDED.items()}
    changes = HeldChange.objects.annotate(text_id=Cast("pk", CharField())).annotate(**recorded)
    erased = set(changes.filter(Exists(erasures("workspace"))).values_list("pk", flat=True))
    rows = changes.values_list("pk", "proposed", "proposed_hash", "base__number", "ours__number", *RECORDED)
    for pk, text, kept, base, ours, record, recorded_hash, detail in rows.order_by("pk").iterator(chunk_size=50):
        if content_hash(text) != kept:
            yield "its hash doesn't match its text", f"held change {pk}"
        elif record is None:
            yield "no audit record", f"held change {pk}"
        elif pk not in erased and recorded_hash != kept:
            yield "its text isn't the recorded one", f"held change {pk}"
        elif detail.get("revisions", [base, ours]) != [base, ours]:
            yield "its revisions aren't the recorded ones", f"held change {pk}"


def check_history() -> tuple[int, Iterable[Finding]]:
    """The history positions of a workspace are 0 to n - 1."""
    rows = HistoryEntry.objects.values("workspace_id").annotate(
        n=Count("id"), first=Min("position"), last=Max("position")
    )
    found = [
        (f"{row['n']} entries at positions {row['first']} to {row['last']}", f"workspace {row['workspace_id']}")
        for row in rows.exclude(first=0, last=F("n") - 1)
    ]
    return HistoryEntry.objects.count(), found


def check_audit() -> tuple[int, Iterable[Finding]]:
    """Every revision has its audit record, with the hash of its text unless text was erased since."""
    audited = AuditRecord.objects.filter(
        object_kind="revision", action__startswith="document.", object_id=OuterRef("text_id")
    )
    revisions = MemoryRevision.objects.annotate(text_id=Cast("pk", CharField()))
    unaudited = revisions.exclude(Exists(audited))
    found = [("no audit record", f"revision {pk}") for pk in unaudited.values_list("pk", flat=True)[:100]]
    others = audited.exclude(after_hash="").exclude(after_hash=OuterRef("content_hash"))
    recorded = revisions.annotate(record=Subquery(audited.order_by("pk").values("pk")[:1]))
    changed = recorded.filter(Exists(others)).exclude(Exists(erasures("document__workspace")))
    found += [("its text isn't the recorded one", f"revision {pk}") for pk in changed.values_list("pk", flat=True)]
    return AuditRecord.objects.count(), found


def erasures(workspace: str, record: str = "record") -> QuerySet[AuditRecord]:
    """Return the records of erasures since a row's own ``record``: they may have changed its text, or deleted it."""
    place = Q(workspace=None) | Q(workspace=OuterRef(workspace))
    return AuditRecord.objects.filter(place, action="memory.forgotten", pk__gt=OuterRef(record))


def check_written() -> tuple[int, Iterable[Finding]]:
    """The time at which a document's file was last written was recorded, with a revision of the document."""
    written = MemoryDocument.objects.exclude(written_at=None).annotate(text_id=Cast("pk", CharField()))
    records = AuditRecord.objects.filter(
        action="document.written", object_kind="document", object_id=OuterRef("text_id"), at=OuterRef("written_at")
    )
    forged = written.exclude(Exists(records))
    found = [("no record of writing its file", f"document {pk}") for pk in forged.values_list("pk", flat=True)]
    synced = Q(synced_revision__isnull=False) & ~Q(synced_revision__document=F("pk"))
    written_over = Q(written_over__isnull=False) & ~Q(written_over__document=F("pk"))
    foreign = MemoryDocument.objects.filter(synced | written_over)
    found += [("its file's text is of another document", f"document {pk}") for pk in _pks(foreign)]
    return written.count(), found

"""What must hold of memory documents, facts, held changes, history and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import CharField, Count, Exists, F, Max, Min, OuterRef, Q
from django.db.models.functions import Cast

from knowledge_app.models import Fact, HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import content_hash
from memoryhub.lib.text.facts import FactLine, fact_lines
from sessions_app.models import AuditRecord

Finding = tuple[str, str]


def check_chain() -> tuple[int, Iterable[Finding]]:
    """A document's revisions are numbered 1 to n, each but the first on an earlier one of the same document."""
    numbered = MemoryRevision.objects.values("document_id").annotate(
        n=Count("id"), first=Min("number"), last=Max("number")
    )
    found: list[Finding] = [
        (f"{row['n']} revisions numbered {row['first']} to {row['last']}", f"document {row['document_id']}")
        for row in numbered.exclude(first=1, last=F("n"))
    ]
    sound = Q(number=1, base=None) | Q(base__document=F("document_id"), base__number__lt=F("number"))
    torn = MemoryRevision.objects.exclude(pk__in=MemoryRevision.objects.filter(sound).values("pk"))
    found += [("its base is no earlier revision of it", f"revision {pk}") for pk in torn.values_list("pk", flat=True)]
    return MemoryRevision.objects.count(), found


def check_hashes() -> tuple[int, Iterable[Finding]]:
    """A revision's hash is that of its text."""
    rows = MemoryRevision.objects.values_list("pk", "content", "content_hash").iterator(chunk_size=50)
    found = (
        ("its text is not the one that was hashed", f"revision {pk}")
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
    """The living facts of a document are the bullets of its text, line by line."""
    return Fact.objects.filter(died=None).count(), _facts_out_of_step()


def _facts_out_of_step() -> Iterator[Finding]:
    for document in MemoryDocument.objects.select_related("head").iterator(chunk_size=50):
        living = Fact.objects.filter(document=document, died=None).order_by("line", "id")
        kept = [FactLine(*row) for row in living.values_list("section", "category", "text", "line")]
        if kept != fact_lines(document.head.content if document.head else ""):
            yield "its facts are not the bullets of its text", f"document {document.pk}"


def check_held() -> tuple[int, Iterable[Finding]]:
    """A held change's base and ours are revisions of its document; a decided one says when."""
    foreign = HeldChange.objects.filter(
        Q(base__isnull=False) & ~Q(base__document=F("document_id"))
        | Q(ours__isnull=False) & ~Q(ours__document=F("document_id"))
    )
    found: list[Finding] = [
        ("it compares with another document", f"held change {pk}") for pk in foreign.values_list("pk", flat=True)
    ]
    undated = HeldChange.objects.exclude(status=HeldChange.Status.PENDING).filter(decided_at=None)
    found += [("it was decided at no time", f"held change {pk}") for pk in undated.values_list("pk", flat=True)]
    return HeldChange.objects.count(), found


def check_history() -> tuple[int, Iterable[Finding]]:
    """History positions of a workspace are 0 to n - 1."""
    rows = HistoryEntry.objects.values("workspace_id").annotate(
        n=Count("id"), first=Min("position"), last=Max("position")
    )
    found = [
        (f"{row['n']} entries at positions {row['first']} to {row['last']}", f"workspace {row['workspace_id']}")
        for row in rows.exclude(first=0, last=F("n") - 1)
    ]
    return HistoryEntry.objects.count(), found


def check_audit() -> tuple[int, Iterable[Finding]]:
    """Every revision has its audit record."""
    told = AuditRecord.objects.filter(
        object_kind="revision", action__startswith="document.", object_id=OuterRef("text_id")
    )
    untold = MemoryRevision.objects.annotate(text_id=Cast("pk", CharField())).exclude(Exists(told))
    found = [("no audit record tells of it", f"revision {pk}") for pk in untold.values_list("pk", flat=True)[:100]]
    return AuditRecord.objects.count(), found

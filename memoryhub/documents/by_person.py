"""The memory documents about each person, of several workspaces."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from knowledge_app.models import MemoryDocument
from memoryhub.lib.search.tokenizing import fold
from memoryhub.lib.text.about_person import FOLDERS, PROFILE, person_of
from sessions_app.models import Workspace

READ = 4_000  # characters of a document in which its person's name is looked for


@dataclass
class PersonDocuments:
    """``name``: as most documents spell it, "" for the documents that don't say whom they are about."""

    name: str
    documents: list[MemoryDocument] = field(default_factory=list)

    @property
    def workspaces(self) -> list[Workspace]:
        return list(dict.fromkeys(document.workspace for document in self.documents))


def documents_by_person(workspaces: QuerySet[Workspace], name: str = "") -> list[PersonDocuments]:
    """Return the people whom documents are about, by name, and last those without a name.

    ``name``: only people whose name contains it. Spellings that differ in case and accents are one person.
    """
    groups: defaultdict[str, list[tuple[str, MemoryDocument]]] = defaultdict(list)
    for document in _candidates(workspaces):
        person = person_of(document.name, document.beginning)  # type: ignore[attr-defined]
        if person is not None and fold(name) in fold(person):
            groups[fold(person)].append((person, document))
    people = [
        PersonDocuments(Counter(spelt for spelt, _ in group).most_common(1)[0][0], [row for _, row in group])
        for group in groups.values()
    ]
    return sorted(people, key=lambda one: (not one.name, fold(one.name)))


def _candidates(workspaces: QuerySet[Workspace]) -> QuerySet[MemoryDocument]:
    named = Q(name__iendswith=PROFILE) | Q(head__content__startswith="---")
    for folder in FOLDERS:
        named |= Q(name__icontains=f"{folder}/")
    rows = MemoryDocument.objects.filter(named, workspace__in=workspaces).exclude(head=None)
    rows = rows.annotate(beginning=Left("head__content", READ)).select_related("workspace")
    return rows.order_by("workspace__name", "workspace_id", "name")

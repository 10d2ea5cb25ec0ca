"""Recognise what people removed from a workspace's memory, or replaced by other words, when an agent adds it again.

It doesn't matter where it comes back: a fact that a person removed from MEMORY.md may come as a line of USER.md or as
an observation. What another part of the memory says at present isn't removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.db.models import Model, TextField
from django.db.models.functions import Cast

from knowledge_app.models import EditedRow, Fact, KnowledgeEntry, MemoryDocument, MemoryRevision, Observation
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.repeats import LEAST_WORDS, Repeats, words_of
from sessions_app.models import AuditRecord, Run, Workspace

PEOPLE = (AuditRecord.ActorKind.PERSON, AuditRecord.ActorKind.COMMAND)
MAX_REVISIONS = 100  # that people made and that are compared, newest first
TABLES: dict[str, type[Model]] = {"knowledge": KnowledgeEntry, "observations": Observation}


@dataclass(frozen=True)
class RemovedTexts:
    """What people removed from the memory of a workspace. Read when it is first needed.

    ``apart_from``: the new rows of one table, which don't count as what the memory says at present.
    """

    workspace: Workspace
    apart_from: Sequence[Model] = ()

    @cached_property
    def _gone(self) -> Repeats:
        return Repeats(self._read_gone())

    def _read_gone(self) -> Iterator[str]:
        if self.workspace.pk is None:
            return
        yield from _removed_facts(self.workspace)
        yield from _replaced_lines(self.workspace)
        for table, model in TABLES.items():
            yield from _withdrawn(self.workspace, table, model)
            yield from _replaced(self.workspace, table)

    @cached_property
    def _present(self) -> set[tuple[str, ...]]:
        """The removed texts that the memory still says somewhere."""
        texts = _present_texts(self.workspace, self.apart_from)
        return {words for text in texts for words in self._gone.found_in(text)}

    def has(self, text: str) -> bool:
        """Tell whether a text, or one of its lines, says again what people removed."""
        if not self._gone:
            return False
        found = {words for line in (text, *text.split("\n")) for words in self._gone.found_in(line)}
        return bool(found and found - self._present)

    def added_again(self, before: str, after: str) -> set[int]:
        """Return the numbers of the lines that a change of a document adds and that say again what people removed."""
        if not self._gone:
            return set()
        added = {fact.line for fact in compare_facts(before, after).added if self.has(fact.text)}
        known = {words_of(line) for line in before.split("\n")}
        lines = after.split("\n")
        new = [number for number, line in enumerate(lines, 1) if line.strip() and words_of(line) not in known]
        added |= {number for number in new if self.has(lines[number - 1])}
        for number in new:  # a sentence that is wrapped
            joined = f"{lines[number - 1]} {lines[number]}" if number < len(lines) and lines[number].strip() else ""
            if joined and added.isdisjoint({number, number + 1}) and self.has(joined):
                added |= {number, number + 1} & set(new)
        return added


def _removed_facts(workspace: Workspace) -> Iterator[str]:
    """Yield the facts that people removed, without those that were added again since."""
    facts = Fact.objects.filter(workspace=workspace)
    removed = facts.filter(died__author_kind__in=PEOPLE).order_by("pk").values_list("document", "text", "pk")
    gone = {(document, words_of(text)): (text, pk) for document, text, pk in removed}
    if not gone:
        return
    ends = facts.exclude(died=None).exclude(died__author_kind__in=PEOPLE)
    later = ends.filter(pk__gt=min(pk for _, pk in gone.values())).order_by("pk")
    newest = {(document, words_of(text)): pk for document, text, pk in later.values_list("document", "text", "pk")}
    yield from (text for key, (text, pk) in gone.items() if newest.get(key, 0) < pk)


def _replaced_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the facts that people reworded, and the other lines that they removed, latest revisions first."""
    revisions = MemoryRevision.objects.filter(document__workspace=workspace, author_kind__in=PEOPLE)
    changed = revisions.exclude(base=None).order_by("-pk")
    values = changed.values_list("document", "document__separator", "base__content", "content")[:MAX_REVISIONS]
    added: set[tuple[int, str]] = set()
    for document, separator, before, after in values:
        counts = Counter(before.split("\n"))
        counts.subtract(after.split("\n"))
        lost = [line for line, count in counts.items() if count > 0]
        new = [line for line, count in counts.items() if count < 0]
        if separator:
            texts = _reworded(before, after)
        else:
            texts = (*filter(_is_prose, lost), *_reworded("\n".join(lost), "\n".join(new)))
        yield from (text for text in texts if (document, text) not in added)
        added |= {(document, line) for line in new}


@lru_cache(maxsize=1_000)
def _reworded(before: str, after: str) -> tuple[str, ...]:
    """Return the facts of a text that another one says in other words. Cached: each addition of an agent asks."""
    return tuple(was.text for was, _ in compare_facts(before, after).rewritten)


def _is_prose(line: str) -> bool:
    return not line.lstrip().startswith(("#", "-", "*", "+")) and len(words_of(line)) >= LEAST_WORDS


def _withdrawn(workspace: Workspace, table: str, model: type[Model]) -> Iterator[str]:
    """Yield the texts of rows that were withdrawn, except by agents or because another row says the same."""
    rows = model._default_manager.filter(workspace=workspace).exclude(withdrawn_at=None)
    texts = dict(rows.values_list("pk", "content"))
    if not texts:
        return
    edits = EditedRow.objects.filter(run__workspace=workspace, table=table, object_id__in=list(texts)[-10_000:])
    latest = {row.object_id: row.run.options for row in edits.select_related("run").order_by("pk")}
    for pk, text in texts.items():
        options = latest.get(pk, {})
        if options.get("actor", [""])[0] != "agent" and options.get("action") != "merge":
            yield text


def _replaced(workspace: Workspace, table: str) -> Iterator[str]:
    """Yield the texts that people replaced in rows of a table."""
    edits = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT).annotate(text=Cast("options", TextField()))
    runs = [
        pk
        for pk, options in edits.filter(text__contains='"content"').values_list("pk", "options")
        if options.get("table") == table
        and "content" in (options.get("values") or {})
        and (options.get("actor") or [""])[0] != "agent"
    ]
    befores = EditedRow.objects.filter(run__in=runs).values_list("before", flat=True)
    yield from (before["content"] for before in befores if before and before.get("content"))


def _present_texts(workspace: Workspace, apart_from: Sequence[Model]) -> Iterator[str]:
    documents = MemoryDocument.objects.filter(workspace=workspace, head__isnull=False)
    for content in documents.values_list("head__content", flat=True):
        yield from content.split("\n")
    yield from Fact.objects.filter(workspace=workspace, died=None).values_list("text", flat=True).iterator()
    new = {(type(row), row.pk) for row in apart_from}
    for model in TABLES.values():
        rows = model._default_manager.filter(workspace=workspace, withdrawn_at=None)
        yield from (text for pk, text in rows.values_list("pk", "content").iterator() if (model, pk) not in new)

"""Recognise what people removed from a workspace's memory, or replaced by other words, when an agent adds it again.

It doesn't matter where it comes back: a fact that a person removed from MEMORY.md may come as a line of USER.md or as
an observation. What another part of the memory says at present isn't removed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from itertools import chain
from operator import or_
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, F, Model, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from knowledge_app.models import EditedRow, Fact, HeldChange, KeyValue, MemoryDocument, MemoryRevision
from knowledge_app.services.decisions import NAMES, PEOPLE, REPEATING, imports, rejected_edits
from knowledge_app.services.removed_headings import headings_again, removed_alone
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.facts import FactLine, fact_lines
from memoryhub.lib.text.repeats import LEAST_WORDS, Repeats, Words, contains, is_telling, joined, words_of
from memoryhub.lib.text_caches import text_cache
from sessions_app.models import Run, Workspace

MAX_REVISIONS = 100  # that people made and that the sync compares with the agent's file, newest first
MAX_COMPARED = 2_000  # that people made or refused in a workspace and whose lines are known, newest first
MAX_JOINED_LINES = 4  # over which words may come in another order
AGENTS = '"actor":["agent"'  # in the options of their edits
TABLES = {NAMES[model]: (model, field) for model, field in REPEATING.items()}


@dataclass(frozen=True)
class RemovedTexts:
    """What people removed from the memory of a workspace. Read when it is first needed.

    ``apart_from``: the new rows of one table, which don't count as what the memory says at present. ``document``: the
    one that changes, in which short headings are recognised, too.
    """

    workspace: Workspace
    apart_from: Sequence[Model] = ()
    document: MemoryDocument | None = None

    @cached_property
    def _gone(self) -> Repeats:
        return Repeats(self._read_gone())

    def _read_gone(self) -> Iterator[str]:
        if self.workspace.pk is None:
            return
        yield from _removed_facts(self.workspace)
        yield from _replaced_lines(self.workspace)
        yield from _rejected_lines(self.workspace)
        keys = dict(KeyValue.objects.filter(workspace=self.workspace).values_list("pk", "key"))
        for table, pk, text in _texts_of_rows(self.workspace):
            yield from _said(text, keys.get(pk, "") if table == "key_values" else None)
        yield from _corrected_values(self.workspace)

    @cached_property
    def _present(self) -> dict[Words, set[Words]]:
        """What the memory says at present, by the removed texts that it repeats."""
        found: defaultdict[Words, set[Words]] = defaultdict(set)
        for text in _present_texts(self.workspace, self.apart_from):
            for known in self._gone.found_in(text):
                found[known].add(words_of(text))
        return found

    def has(self, text: str) -> bool:
        """Tell whether a text, or one of its lines, says again what people removed.

        Not if it says so with the words that the memory has at present: these may contain those that were corrected.
        Nor if it only lacks the label of what the memory has at present.
        """
        if not self._gone:
            return False
        lines = text.split("\n")
        forms = (text, *lines, joined(lines)) if len(lines) > 1 else (text,)
        return any(map(self._is_removed, dict.fromkeys(forms)))

    def _is_removed(self, line: str) -> bool:
        words = words_of(line)
        return any(
            not any(contains(words, one) or len(words) < len(known) for one in self._present.get(known, ()))
            for known in self._gone.found_in(line)
        )

    def added_again(self, before: str, after: str) -> set[int]:
        """Return the numbers of the lines that a change of a document adds and that say again what people removed."""
        found = self._lines_again(before, after) if self._gone else set()
        return found | (headings_again(self.document, before, after, found) if self.document else set())

    def _lines_again(self, before: str, after: str) -> set[int]:
        added = {fact.line for fact in compare_facts(before, after).added if self.has(fact.text)}
        lines = after.split("\n")
        words = [words_of(line) for line in lines]
        may_say = self._gone.may_find_in(lines)
        known = {words_of(line) for line in before.split("\n")}
        new = [number for number, line in enumerate(lines, 1) if line.strip() and words[number - 1] not in known]
        added |= {number for number in new if may_say(number - 1, number) and self.has(lines[number - 1])}
        return self._with_wrapped(added, lines, set(new), may_say)

    def _with_wrapped(
        self, numbers: set[int], lines: Sequence[str], new: set[int], may_say: Callable[[int, int], bool]
    ) -> set[int]:
        """Return numbers of lines with those of new lines that say it only together with lines before or after.

        ``may_say``: tells quickly whether lines from one index to another may.
        """
        found = set(numbers)
        for count in range(2, MAX_JOINED_LINES + 1):
            starts = {number - 1 - back for number in new - found for back in range(count)}
            for start in sorted(starts & set(range(len(lines) - count + 1))):
                window, texts = set(range(start + 1, start + count + 1)), lines[start : start + count]
                is_open = not window & found and all(map(str.strip, texts))
                if is_open and may_say(start, start + count) and self._is_removed(" ".join(texts)):
                    found |= window & new
        for first, last in self._gone.found_across(lines, {number - 1 for number in new - found}):
            window = set(range(first + 1, last + 2))
            if not window & found and self._is_removed(joined(lines[first : last + 1])):
                found |= window & new
        return found


def _removed_facts(workspace: Workspace) -> Iterator[str]:
    """Yield the facts that people removed, without those that were added again since."""
    facts = Fact.objects.filter(workspace=workspace)
    removed = (
        facts.filter(died__author_kind__in=PEOPLE).order_by("died", "pk").values_list("document", "text", "died")
    )
    gone = {(document, words_of(text)): (text, died) for document, text, died in removed}
    if not gone:
        return
    ends = facts.exclude(died=None).exclude(died__author_kind__in=PEOPLE)
    later = ends.filter(born__gte=min(died for _, died in gone.values())).order_by("born")
    newest = {
        (document, words_of(text)): born for document, text, born in later.values_list("document", "text", "born")
    }
    yield from (text for key, (text, died) in gone.items() if newest.get(key, 0) < died)


def _replaced_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the facts that people reworded, and the other lines that they removed, latest revisions first."""
    revisions = MemoryRevision.objects.filter(document__workspace=workspace, author_kind__in=PEOPLE)
    changed = (
        revisions.exclude(base=None)
        .order_by("-pk")
        .values_list("document", "document__separator", "base", "base__content_hash", "pk", "content_hash")
    )
    added: set[tuple[int, str]] = set()
    for document, separator, *key in changed[:MAX_COMPARED]:
        lost, new = _line_changes(separator, *key)
        yield from (text for text in lost if (document, text) not in added)
        added |= {(document, line) for line in new}


@text_cache(10_000)
def _line_changes(
    separator: str, base: int, _base_hash: str, pk: int, _hash: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a revision removed, and the lines that it added.

    Cached, since each addition of an agent asks. Forgetting, which alone changes texts, changes their hashes.
    """
    contents = MemoryRevision.objects.in_bulk([base, pk])
    before, after = contents[base].content, contents[pk].content
    counts = Counter(before.split("\n"))
    counts.subtract(after.split("\n"))
    lost = [line for line, count in counts.items() if count > 0]
    new = tuple(line for line, count in counts.items() if count < 0)
    changes = compare_facts(before, after, separator) if separator else compare_facts("\n".join(lost), "\n".join(new))
    reworded = [was.text for was, _ in changes.rewritten]
    others = () if separator else (*filter(_is_prose, lost), *removed_alone(before, after))
    return (*others, *reworded), new


def _rejected_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the facts and telling lines that people refused to add to documents."""
    rejected = Q(status=HeldChange.Status.REJECTED)
    in_part = Q(status=HeldChange.Status.APPROVED) & ~Q(decided_parts={})
    changes = HeldChange.objects.filter(rejected | in_part, workspace=workspace).order_by("-pk")
    hashes = ("proposed_hash", "base__content_hash", "ours__content_hash")
    names = ("document__separator", "pk", *hashes, "status", "decided_parts")
    for *key, status, parts in changes.values_list(*names)[:MAX_COMPARED]:
        numbers = parts.get("refused", None if status == HeldChange.Status.REJECTED else [])
        if numbers != []:
            yield from _refused_lines(*key, numbers and tuple(numbers))


@text_cache(10_000)
def _refused_lines(
    separator: str, pk: int, _proposed: str, _base: str | None, _ours: str | None, numbers: tuple[int, ...] | None
) -> tuple[str, ...]:
    """Return the facts and telling lines that a held change would have added: those with the ``numbers``, if given.

    Cached by hashes, as ``_line_changes``.
    """
    texts = HeldChange.objects.values_list("proposed", "base__content", "ours__content").get(pk=pk)
    proposed, *others = ((text or "").split("\n") for text in texts)
    known = {line for lines in others for line in lines}
    chosen = range(1, len(proposed) + 1) if numbers is None else numbers
    refused = {number for number in chosen if number <= len(proposed) and proposed[number - 1] not in known}
    facts = [fact.text for fact in fact_lines(texts[0], separator) if not refused.isdisjoint(_numbers_of(fact))]
    return (*facts, *(line for number in refused if is_telling(words_of(line := proposed[number - 1]))))


def _numbers_of(fact: FactLine) -> range:
    return range(fact.line, fact.line + fact.text.count("\n") + 1)


def _texts_of_rows(workspace: Workspace) -> Iterator[tuple[str, int, str]]:
    """Yield the table, key and text of rows that people refused, withdrew or replaced."""
    yield from _rejected_edits(workspace)
    yield from _replaced(workspace)
    imported = imports(workspace)
    for table in TABLES:
        for pk, text in chain(_withdrawn(workspace, table), _replaced_by_import(workspace, table, imported[table])):
            yield table, pk, text


def _rejected_edits(workspace: Workspace) -> Iterator[tuple[str, int, str]]:
    """Yield the texts that people refused to give to rows."""
    for options in rejected_edits(workspace).values_list("options", flat=True):
        _, field = TABLES.get(options["table"], (None, ""))
        text = (options.get("values") or {}).get(field)
        if isinstance(text, str):
            yield options["table"], options["units"][0][0], text


def _is_prose(line: str) -> bool:
    return not line.lstrip().startswith(("#", "-", "*", "+")) and len(words_of(line)) >= LEAST_WORDS


def _withdrawn(workspace: Workspace, table: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of rows that were withdrawn, also by merging them into others, except by agents."""
    model, field = TABLES[table]
    rows = model._default_manager.filter(workspace=workspace).exclude(withdrawn_at=None)
    texts = {(pk, at): text for pk, at, text in rows.values_list("pk", "withdrawn_at", field)}
    if not texts:
        return
    edits = _edits(workspace).filter(table=table).annotate(text=Cast("after", TextField()))
    withdrawing = edits.filter(text__contains='"withdrawn_at":"').order_by("pk")
    latest = {
        pk: (datetime.fromisoformat(after["withdrawn_at"]), is_agents)
        for pk, after, is_agents in withdrawing.values_list("object_id", "after", "is_agents")
    }
    for (pk, at), text in texts.items():
        if latest.get(pk) != (at, True):
            yield pk, text


def _replaced(workspace: Workspace) -> Iterator[tuple[str, int, str]]:
    """Yield the texts that people replaced in rows, also by undoing what agents changed."""
    edits = _edits(workspace).filter(is_agents=False, table__in=TABLES).annotate(text=Cast("before", TextField()))
    named = [Q(text__contains=f'"{field}":') for field in sorted(set(REPEATING.values()))]
    befores = edits.filter(reduce(or_, named)).values_list("table", "object_id", "before")
    texts = ((table, pk, before.get(TABLES[table][1])) for table, pk, before in befores)
    yield from ((table, pk, text) for table, pk, text in texts if text)


def _replaced_by_import(workspace: Workspace, table: str, times: Sequence[datetime]) -> Iterator[tuple[int, str]]:
    """Yield the texts that people replaced by importing tables at certain times."""
    if not times:
        return
    model, field = TABLES[table]
    states: Any = model.history  # type: ignore[attr-defined]
    earlier = states.filter(id=OuterRef("id"), history_id__lt=OuterRef("history_id")).order_by("-history_id")
    imported = states.filter(workspace=workspace, history_date__in=times)
    befores = (
        imported.annotate(before=Subquery(earlier.values(field)[:1])).exclude(before=None).exclude(before=F(field))
    )
    yield from befores.values_list("id", "before")


def _edits(workspace: Workspace) -> QuerySet[Any]:
    """Return the edited rows, with whether an agent edited them."""
    runs = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT).annotate(text=Cast("options", TextField()))
    by_agents = Q(run__in=runs.filter(text__contains=AGENTS).values("pk"))
    edits = EditedRow.objects.filter(run__workspace=workspace)
    return edits.annotate(is_agents=ExpressionWrapper(by_agents, BooleanField()))


def _corrected_values(workspace: Workspace) -> Iterator[str]:
    """Yield the values of keys in agents' files that people corrected."""
    rows = KeyValue.objects.filter(workspace=workspace).exclude(corrected={})
    for key, corrected in rows.values_list("key", "corrected"):
        value = corrected.get("value")
        if isinstance(value, str):
            yield from _said(value, key)


def _said(text: str, key: str | None) -> Iterator[str]:
    """Yield what a row said: of a value what it says with its key, and alone only if that is enough elsewhere.

    ``key``: "" if it isn't known any more.
    """
    if key is None or is_telling(words_of(text)):
        yield text
    if key:
        yield with_key(key, text)


def with_key(key: str, value: str) -> str:
    """Return what a key and its value say together."""
    return f"{key} {value}"


def _present_texts(workspace: Workspace, apart_from: Sequence[Model]) -> Iterator[str]:
    """Yield what agents can read at present; what is held isn't in force."""
    documents = MemoryDocument.objects.filter(workspace=workspace, head__isnull=False)
    for content in documents.values_list("head__content", flat=True):
        yield from content.split("\n")
    yield from Fact.objects.filter(workspace=workspace, died=None).values_list("text", flat=True).iterator()
    new = {(type(row), row.pk) for row in apart_from}
    for model, field in TABLES.values():
        rows = model._default_manager.filter(workspace=workspace, withdrawn_at=None, hold=None)
        yield from (text for pk, text in rows.values_list("pk", field).iterator() if (model, pk) not in new)
        if model is KeyValue:
            values = rows.values_list("pk", "key", "value").iterator()
            yield from (with_key(key, value) for pk, key, value in values if (model, pk) not in new)

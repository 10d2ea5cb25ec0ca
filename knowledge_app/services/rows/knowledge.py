"""Grip's knowledge base: entries in five categories, unique by content within a category."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Least
from django.utils.translation import gettext
from simple_history.utils import bulk_create_with_history

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.decisions import PEOPLE, decided_fields, ranks_to_keep
from knowledge_app.services.held_rows import hold_flagged, unheld
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.row_changes import MAX_COUNT, MAX_TAGS, has_room
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.database import db_retry
from memoryhub.lib.database.any_case import any_case, in_json
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, group_pairs, near_pairs
from memoryhub.lib.tokens import counter_for
from memoryhub.lib.validation import clean_text
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import lock_workspace

MAX_CHARS = 20_000
MAX_TAG, MAX_SOURCE = 100, 2_000  # characters
CONTEXT_CHARS = 2_000  # Grip's default
USED_FIRST = ("-access_count", F("created_at").desc(nulls_last=True), "-id")  # Grip's order of search results
CATEGORIES = [category.value for category in KnowledgeEntry.Category]  # in Grip's order of priority
DEFAULT_CATEGORY = KnowledgeEntry.Category.LEARNED_FACT.value


class KnowledgeExists(Conflict):
    """Another entry of the category has the same content."""

    code = "knowledge_exists"

    def __init__(self, other: KnowledgeEntry) -> None:
        super().__init__(gettext("Another entry of this category has the same content. Merge the two."), id=other.pk)
        self.other = other


@dataclass(frozen=True)
class Added:
    """The result of adding an entry. ``was_unknown``: the category was unknown and became learned_fact."""

    entry: KnowledgeEntry
    is_new: bool
    was_unknown: bool = False


@dataclass(frozen=True)
class Group:
    """Near-duplicate entries of a category: the one to keep, the others, and their lowest similarity to it."""

    keep: KnowledgeEntry
    others: list[KnowledgeEntry]
    similarity: float


@db_retry.retried
def add_knowledge(
    workspace: Workspace, content: str, *, category: str, source: str = "", tags: Sequence[str] = (), by: By
) -> Added:
    """Add an entry; one that is there already counts an access instead, as Grip has it.

    So does, for agents, one that a person moved out of the category. If a person or a command adds it again, a
    withdrawn one comes back and another one is verified; an agent's own repeat only counts. Raises Invalid.
    """
    was_unknown = category not in CATEGORIES
    chosen = DEFAULT_CATEGORY if was_unknown else category
    text, clean = clean_content(content), clean_tags(tags)
    with transaction.atomic():
        lock_workspace(workspace.pk)  # serialize concurrent additions of the same content
        same = KnowledgeEntry.objects.filter(workspace=workspace, identity=content_id(chosen, text))
        known = same.order_by(F("withdrawn_at").asc(nulls_first=True), "id").first()
        if known is None and by.actor.kind not in PEOPLE:
            known = _moved(workspace, chosen, text)
        if known is not None:
            return Added(_used_again(known, by), is_new=False, was_unknown=was_unknown)
        entry = KnowledgeEntry(
            workspace=workspace,
            content_id=content_id(chosen, text),
            category=chosen,
            content=text,
            source=clean_text(source)[:MAX_CHARS],
            tags=clean,
            created_at=by.at,
            accessed_at=by.at,
            awaits_file_since=by.at,
            updated_at=by.at,
        )
        return Added(_create(entry, by), is_new=True, was_unknown=was_unknown)


def _moved(workspace: Workspace, category: str, text: str) -> KnowledgeEntry | None:
    """Return the entry with a text that a person moved out of a category, if there is one."""
    elsewhere = [content_id(other, text) for other in CATEGORIES if other != category]
    same = list(_living(workspace).filter(identity__in=elsewhere))
    decided = decided_fields(same)
    moved = [entry for entry in same if "category" in decided[entry.pk]]
    return next((entry for entry in moved if entry.history.filter(category=category).exists()), None)


def clean_content(content: str) -> str:
    text = clean_text(content).strip()
    if not text:
        raise Invalid(gettext("An entry can't be empty."), code="bad_knowledge")
    if len(text) > MAX_CHARS:
        words = gettext("An entry can have at most %(most)s characters; this one has %(count)s.")
        raise Invalid(words % {"most": f"{MAX_CHARS:,}", "count": f"{len(text):,}"}, code="bad_knowledge")
    return text


def clean_tags(tags: Sequence[str], *, before: Sequence[str] = ()) -> list[str]:
    """Return tags without repeats and spaces round them. Raises Invalid for too many or too long ones.

    ``before``: those of the entry, of which all may stay.
    """
    clean = list(dict.fromkeys(tag for raw in tags if (tag := " ".join(clean_text(raw).split()))))
    if not has_room(before, clean) or any(len(tag) > MAX_TAG for tag in set(clean) - set(before)):
        limits = {"tags": MAX_TAGS, "characters": MAX_TAG}
        raise Invalid(gettext("At most %(tags)s tags of %(characters)s characters.") % limits, code="bad_knowledge")
    return clean


def _used_again(known: KnowledgeEntry, by: By) -> KnowledgeEntry:
    KnowledgeEntry.objects.filter(pk=known.pk).update(
        access_count=Least(F("access_count") + 1, MAX_COUNT), accessed_at=by.at
    )
    if by.actor.kind in PEOPLE:
        edit_rows(known.workspace, "knowledge", "return" if known.withdrawn_at else "verify", [known.pk], by=by)
    known.refresh_from_db()
    return known


def _create(entry: KnowledgeEntry, by: By) -> KnowledgeEntry:
    derive(entry)
    entry.content_id = _free_id(entry)
    created: list[KnowledgeEntry] = bulk_create_with_history(
        [entry], KnowledgeEntry, default_change_reason=f"{by.actor.name}: added", default_date=by.at
    )
    made = KnowledgeEntry.objects.get(workspace=entry.workspace, content_id=created[0].content_id)
    text = f"Knowledge entry {made.pk} added"
    record(by, "knowledge.added", "knowledge", made.pk, text, workspace=entry.workspace)
    hold_flagged([made], by)
    return made


def _free_id(entry: KnowledgeEntry) -> str:
    """Return the id for a new entry, with a number appended if another entry has it."""
    rows = KnowledgeEntry.objects.filter(workspace=entry.workspace, content_id__startswith=entry.content_id)
    taken = set(rows.values_list("content_id", flat=True))
    numbered = (f"{entry.content_id}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (entry.content_id, *numbered) if name not in taken)


def save_entry(entry: KnowledgeEntry, values: dict[str, Any], *, by: By) -> Run:
    """Change an entry in place: category, content, source, tags. Raises KnowledgeExists, Invalid."""
    wanted = checked_values(entry, values)
    return edit_rows(entry.workspace, "knowledge", "assign", [entry.pk], values=wanted, by=by)


def checked_values(entry: KnowledgeEntry, values: dict[str, Any]) -> dict[str, Any]:
    """Return new values of an entry as they are stored. Raises KnowledgeExists, Invalid."""
    wanted = dict(values)
    if "content" in wanted:
        wanted["content"] = clean_content(wanted["content"])
    if "tags" in wanted:
        wanted["tags"] = clean_tags(wanted["tags"], before=entry.tags)
    identity = content_id(wanted.get("category", entry.category), wanted.get("content", entry.content))
    if identity != entry.identity:
        _check_no_twin(entry, identity)
    return wanted


def check_content_is_free(entry: KnowledgeEntry, content: str) -> None:
    """Raise KnowledgeExists if another entry of its category has the same content."""
    identity = content_id(entry.category, content)
    if identity != entry.identity:
        _check_no_twin(entry, identity)


def restore_entry(entry: KnowledgeEntry, values: dict[str, Any], *, by: By) -> Run:
    """Restore the exact values of an earlier state. Raises KnowledgeExists."""
    identity = content_id(values["category"], values["content"])
    if identity != entry.identity or entry.withdrawn_at:
        _check_no_twin(entry, identity)
    return edit_rows(entry.workspace, "knowledge", "assign", [entry.pk], values=values, by=by)


def _check_no_twin(entry: KnowledgeEntry, identity: str) -> None:
    twin = _living(entry.workspace).filter(identity=identity).exclude(pk=entry.pk).first()
    if twin is not None:
        raise KnowledgeExists(twin)


def recategorise(workspace: Workspace, pks: Collection[int], category: str, *, by: By) -> tuple[Run, int]:
    """Move entries to a category; return the run and how many stay behind, since the category says that already.

    Raises Invalid where none can move, or for an unknown category.
    """
    if category not in CATEGORIES:
        raise Invalid(
            gettext("The categories are %(names)s.") % {"names": ", ".join(CATEGORIES)}, code="bad_knowledge"
        )
    taken = set(_living(workspace).filter(category=category).values_list("identity", flat=True))
    moving: list[int] = []
    for pk, content in _contents(workspace, pks):
        identity = content_id(category, content)
        if identity not in taken:
            moving.append(pk)
            taken.add(identity)
    if pks and not moving:
        raise Invalid(
            gettext("Nothing was changed: the category already has all of these entries."), code="nothing_to_move"
        )
    run = edit_rows(workspace, "knowledge", "assign", moving, values={"category": category}, by=by)
    return run, len(pks) - len(moving)


def _contents(workspace: Workspace, pks: Collection[int]) -> Iterator[tuple[int, str]]:
    ordered = sorted(pks)
    for start in range(0, len(ordered), 500):
        rows = KnowledgeEntry.objects.filter(workspace=workspace, pk__in=ordered[start : start + 500])
        yield from rows.order_by("id").values_list("pk", "content")


def _living(workspace: Workspace) -> QuerySet[KnowledgeEntry]:
    return KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None)


def search_knowledge(
    workspace: Workspace, query: str = "", *, category: str = "", max_results: int = 20
) -> list[KnowledgeEntry]:
    """Return entries whose content, tags or source contain a word of the query, in Grip's order."""
    rows = with_text(_living(workspace), query).select_related("hold")
    if category:
        rows = rows.filter(category=category)
    return list(rows.order_by(*USED_FIRST)[:max_results])


def with_text(rows: QuerySet[KnowledgeEntry], text: str) -> QuerySet[KnowledgeEntry]:
    """Return entries whose content, tags or source contain any of the words of a text, ignoring case."""
    words = Q()
    for word in set(text.split()):
        words |= any_case("content__icontains", word) | in_json("tags", word)
        words |= any_case("source__icontains", word)
    return rows.filter(words)


def count_access(entry: KnowledgeEntry, now: datetime) -> None:
    """Count an agent's read of an entry, as Grip does. Skipped while the database is busy."""
    values = {"access_count": Least(F("access_count") + 1, MAX_COUNT), "accessed_at": now}
    db_retry.try_write(lambda: KnowledgeEntry.objects.filter(pk=entry.pk).update(**values), "an access")


def context_export(workspace: Workspace, *, max_chars: int = CONTEXT_CHARS, max_tokens: int | None = None) -> str:
    """Return the entries for a prompt, one line each; see ``context_lines``."""
    return "\n".join(line for _, line in context_lines(workspace, max_chars=max_chars, max_tokens=max_tokens))


def context_lines(
    workspace: Workspace, *, max_chars: int = CONTEXT_CHARS, max_tokens: int | None = None
) -> list[tuple[int, str]]:
    """Return the entries for a prompt as (key, line) pairs, the lines in the form ``[category] content``.

    Ordered by Grip's priority of categories, then by use. Stops before exceeding ``max_chars`` characters, including
    line ends, or ``max_tokens`` tokens (formats.md section 3). Held entries are left out.
    """
    counter = counter_for(workspace.model)
    lines: list[tuple[int, str]] = []
    chars = tokens = 0
    for category in CATEGORIES:
        prefix = f"[{category}] "
        most = 1 + max(0, max_chars - chars) // (len(prefix) + 1)  # lines that may fit
        rows = unheld(_living(workspace)).filter(category=category).order_by(*USED_FIRST)
        for pk, content in rows.values_list("pk", "content")[:most].iterator(chunk_size=200):
            line = f"{prefix}{content}"
            tokens += counter.count(line) + 1 if max_tokens is not None else 0
            if chars + len(line) > max_chars or (max_tokens is not None and tokens > max_tokens):
                return lines
            lines.append((pk, line))
            chars += len(line) + 1
    return lines


def plan_merges(
    workspace: Workspace, *, threshold: float = DEFAULT_THRESHOLD, among: Collection[int] | None = None
) -> list[Group]:
    """Return groups of near-duplicate entries. No held ones. Reads only.

    Each keeps the most used entry, of those with the lowest of ``ranks_to_keep``. ``among``: keys of the entries to
    compare, by default all of the workspace.
    """
    groups: list[Group] = []
    wanted = None if among is None else set(among)
    for category in CATEGORIES:
        living = unheld(_living(workspace)).filter(category=category)
        texts = dict(living.order_by(*USED_FIRST).values_list("pk", "content"))
        similar = _similar({pk: text for pk, text in texts.items() if wanted is None or pk in wanted}, threshold)
        found = living.select_related("hold").in_bulk(similar)
        entries = [found[pk] for pk in texts if pk in found]
        ranks = ranks_to_keep(entries)
        entries.sort(key=lambda entry: ranks[entry.pk])
        same, _ = near_pairs([entry.content for entry in entries], threshold=threshold)
        groups += [
            Group(entries[keep], [entries[i] for i in others], ratio) for keep, others, ratio in group_pairs(same)
        ]
    return groups


def _similar(texts: Mapping[int, str], threshold: float) -> set[int]:
    """Return the keys of the texts that are near-duplicates of others."""
    keys = list(texts)
    same, _ = near_pairs(list(texts.values()), threshold=threshold)
    return {keys[place] for one, other, _ratio in same for place in (one, other)}


def merge_groups(workspace: Workspace, groups: Sequence[Sequence[int]], *, by: By) -> Run:
    """Merge groups of entries, the first of each to stay with what the others add. Raises Invalid."""
    units = [list(group) for group in groups if len(group) > 1]
    return edit_rows(workspace, "knowledge", "merge", units, by=by)

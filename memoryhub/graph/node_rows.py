"""The rows behind one node of a memory's graph, with secrets masked. Withdrawn and held rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Min, Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import Fact, FactSource, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.graph.graph_cache import ShownNode
from memoryhub.graph.keywords import WORD
from memoryhub.graph.memory_graph import term_key
from memoryhub.graph.memory_texts import key_words, project_of, safe_text
from memoryhub.lib.database.any_case import any_case, in_json
from memoryhub.lib.http.pagination import encode_cursor, parse_int
from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.tokenizing import fold
from memoryhub.lib.secrets import looks_secret
from sessions_app.models import Entry, Workspace
from sessions_app.querysets import of_own_sessions
from sessions_app.services.access_log import Seen, seen_entries, seen_rows

MOST_OF_A_KIND = 6
MOST_LOOKED_AT = 300  # newest rows of a kind that may match
MOST_CHARS = 400
Matches = Callable[[Any], bool]


@dataclass(frozen=True)
class NodeRow:
    """A row that mentions the node: its kind, text and address."""

    kind: Promise | str
    text: str
    url: str
    at: datetime | None
    seen: Seen


def rows_of(workspace: Workspace, node: ShownNode) -> list[NodeRow]:
    """Return the rows behind a node: facts first, then knowledge, observations, history and messages."""
    kind, _colon, rest = node.key.partition(":")
    found = _OF_KIND[kind](workspace, node, rest)
    return [row for rows in found for row in rows]


def _mentioning(workspace: Workspace, node: ShownNode, rest: str) -> Iterator[list[NodeRow]]:
    """Yield the rows whose text mentions a person, a project or a term."""
    words = {fold(word) for word in WORD.findall(node.label)}

    def matches(text: str) -> bool:
        if node.kind_name == "term":
            return any(term_key(word) == node.key for word in WORD.findall(text))
        return any(fold(word) in words for word in WORD.findall(text))

    def of_project(row: Any) -> bool:
        return matches(row.content) or (node.kind_name == "project" and fold(project_of(row.source)) == rest)

    yield _facts(
        _with_words(_living_facts(workspace), node, "text", "section"), lambda row: matches(row.text + row.section)
    )
    yield _knowledge(_with_words(_living(KnowledgeEntry, workspace), node, "content", "source"), of_project)
    yield _observations(_with_words(_living(Observation, workspace), node, "content", "source"), of_project)
    yield _key_values(
        _with_words(_living(KeyValue, workspace).filter(is_secret=False), node, "key", "value"), matches
    )
    yield _history(_with_words(_living(HistoryEntry, workspace), node, "content"), lambda row: matches(row.content))
    yield _messages(_with_words(_said(workspace), node, "content"), lambda row: matches(row.content))


def _of_section(workspace: Workspace, _node: ShownNode, rest: str) -> Iterator[list[NodeRow]]:
    number, _colon, title = rest.partition(":")
    facts = _living_facts(workspace).filter(document=parse_int(number) or 0)
    yield _facts(facts, lambda row: safe_text(row.section)[:200] == title, most=2 * MOST_OF_A_KIND)


def _of_tag(workspace: Workspace, node: ShownNode, rest: str) -> Iterator[list[NodeRow]]:
    def has_tag(row: Any) -> bool:
        return rest in (fold(row.category), *(fold(str(tag))[:80] for tag in getattr(row, "tags", [])))

    of_category = any_case("category__iexact", rest) | any_case("category__iexact", node.label)
    tagged = of_category | in_json("tags", node.label)
    yield _facts(_living_facts(workspace).filter(of_category), has_tag)
    yield _knowledge(_living(KnowledgeEntry, workspace).filter(tagged | in_json("tags", rest)), has_tag)
    yield _observations(_living(Observation, workspace).filter(category__in=(rest, node.label)), has_tag)


def _of_session(workspace: Workspace, _node: ShownNode, rest: str) -> Iterator[list[NodeRow]]:
    session = parse_int(rest) or 0
    learned = FactSource.objects.filter(entry__session=session).values("fact")
    yield _facts(_living_facts(workspace).filter(pk__in=learned), _any)
    yield _history(_living(HistoryEntry, workspace).filter(session=session), _any)
    yield _messages(_said(workspace).filter(session=session, role="user"), lambda row: bool(row.content.strip()))


_OF_KIND: dict[str, Callable[[Workspace, ShownNode, str], Iterator[list[NodeRow]]]] = {
    "person": _mentioning,
    "project": _mentioning,
    "term": _mentioning,
    "section": _of_section,
    "tag": _of_tag,
    "session": _of_session,
}


def _any(_row: Any) -> bool:
    return True


def _living_facts(workspace: Workspace) -> QuerySet[Any]:
    facts = Fact.objects.filter(workspace=workspace, died=None).select_related("workspace")
    return facts.annotate(first_said=Min("sources__entry__occurred_at"))


def _living(model: Any, workspace: Workspace) -> QuerySet[Any]:
    rows: QuerySet[Any] = model.objects.filter(workspace=workspace, withdrawn_at=None, hold=None)
    return rows


def _said(workspace: Workspace) -> QuerySet[Entry]:
    rows = Entry.objects.in_conversation().filter(
        workspace=workspace, kind=Entry.Kind.MESSAGE, role__in=("user", "assistant")
    )
    return rows.filter(session__archived_at=None).exclude(of_own_sessions("session__")).select_related("session")


def _with_words(rows: QuerySet[Any], node: ShownNode, *columns: str) -> QuerySet[Any]:
    """Return the rows that contain the beginning of a word of the node's label, in the usual spellings."""
    wanted = Q()
    for word in WORD.findall(node.label):
        beginning = word[: max(3, len(word) - 3)] if node.kind_name == "term" else word
        for column in columns:
            wanted |= any_case(f"{column}__icontains", beginning)
    return rows.filter(wanted) if wanted else rows.none()


def _first(rows: QuerySet[Any], matches: Matches, most: int = MOST_OF_A_KIND) -> Iterable[Any]:
    found = 0
    for row in rows.order_by("-pk")[:MOST_LOOKED_AT]:
        if found < most and matches(row):
            found += 1
            yield row


def _facts(rows: QuerySet[Any], matches: Matches, most: int = MOST_OF_A_KIND) -> list[NodeRow]:
    return [
        _row(row, _("Fact"), row.text, "documents:fact", row.first_said, "facts")
        for row in _first(rows, matches, most)
    ]


def _knowledge(rows: QuerySet[Any], matches: Matches) -> list[NodeRow]:
    found = _first(rows, matches)
    page = "knowledge:knowledge-entry"
    return [_row(row, _("Knowledge"), row.content, page, row.created_at, "knowledge") for row in found]


def _observations(rows: QuerySet[Any], matches: Matches) -> list[NodeRow]:
    found = _first(rows, matches)
    page = "knowledge:observation"
    return [_row(row, _("Observation"), row.content, page, row.occurred_at, "observations") for row in found]


def _key_values(rows: QuerySet[Any], matches: Callable[[str], bool]) -> list[NodeRow]:
    def text(row: Any) -> str:
        return f"{key_words(row.key)}: {row.value}"

    found = _first(rows, lambda row: matches(text(row)) and not looks_secret(row.key, row.value))
    page = "knowledge:key-value"
    return [_row(row, _("Key-value"), f"{row.key}: {row.value}", page, row.updated_at, "key_values") for row in found]


def _history(rows: QuerySet[Any], matches: Matches) -> list[NodeRow]:
    found = []
    for row in _first(rows, matches, 4):
        page = reverse("documents:history", args=[row.workspace.slug])
        url = f"{page}?after={encode_cursor([row.position + 1])}#history-{row.pk}"
        [seen] = seen_rows("history", [row.pk])
        found.append(NodeRow(_("History"), _shown(row.content), url, row.occurred_at, seen))
    return found


def _messages(rows: QuerySet[Any], matches: Matches) -> list[NodeRow]:
    found = []
    for row in _first(rows, matches, 4):
        url = reverse("sessions:entry", args=[row.workspace.slug, row.pk])
        [seen] = seen_entries([row])
        found.append(NodeRow(_("Message"), _shown(row.content), url, row.occurred_at, seen))
    return found


def _row(row: Any, kind: Promise, text: str, page: str, at: datetime | None, table: str) -> NodeRow:
    [seen] = seen_rows(table, [row.pk])
    return NodeRow(kind, _shown(text), reverse(page, args=[row.workspace.slug, row.pk]), at, seen)


def _shown(text: str) -> str:
    """Return the beginning of a text, with secrets masked before it is cut."""
    shown = " ".join(masked(text[: 20 * MOST_CHARS]).split())
    return shown if len(shown) <= MOST_CHARS else f"{shown[:MOST_CHARS]}…"

"""Grip's searches in the hub, compared with an independent implementation of its formula over the files."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.search.grip import search_history, search_knowledge, search_memory
from memoryhub.search.grip_scoring import HEADING, STOP_WORDS
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import By
from tests.hub import PERSON
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 1, tzinfo=UTC)
GRIP = FIXTURES / "grip"
FILES = GRIP / "workspace" / "memory"
with_fixture = pytest.mark.skipif(not GRIP.exists(), reason="the fixtures aren't beside the clone")
QUERIES = [
    "what does 99.9 % allow in 28 days?",
    "carrier client retry settings",
    "summarise the week for the team",
    "Summarise Summarise week",
    "staging database load tests",
    "bullet points over paragraphs",
    "UTC user assistant",
    "postgresql",
    "the PostNL",
    "2026-04",
    "字体",
    "to",
    "",
    "nothing like this anywhere",
]
KNOWLEDGE_QUERIES = ["", "Maya", "user_message", "decision user", "使用", "PostgreSQL 16", "2026", " "]


def words(text):
    return [word for word in re.findall(r"[a-z0-9_]+", text.lower()) if len(word) > 2 and word not in STOP_WORDS]


def grip_search(lines, query, *, limit, decay=0.0, now=NOW):
    """Grip's formula, line by line. A query of at most one word is a substring search."""
    if len(words(query)) <= 1:
        return [(line, None) for line in lines if query.lower() in line.lower()][:limit]
    scored = []
    for line in lines:
        score = 0.0
        for word in words(query):
            holding = len([other for other in lines if word in words(other)])
            if holding and word in words(line):
                share = words(line).count(word) / len(words(line))
                score += share * (math.log((len(lines) + 1) / (holding + 1)) + 1.0)
        stamp = re.match(r"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC\]", line)
        if stamp and decay:
            age = now - datetime.fromisoformat(f"{stamp[1]}T{stamp[2]}+00:00")
            score *= 1.0 / (1.0 + age / timedelta(hours=1) * decay)
        scored.append((line, score))
    return sorted([one for one in scored if one[1] > 0], key=lambda one: -one[1])[:limit]


def memory_of_grip(text, query, *, category="", limit=10):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not category or line.startswith(f"- [{category}]")]
    return grip_search(lines, query, limit=limit) if words(query) else [(line, None) for line in lines][:limit]


def history_of_grip(text, query, *, decay=0.001, limit=20, now=NOW):
    return grip_search([line for line in text.splitlines() if line.strip()], query, limit=limit, decay=decay, now=now)


def answers(hits):
    return [(hit.line, hit.score) for hit in hits]


def take(path: Path):
    return import_workspace(path, by=By(PERSON, NOW)).workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Grip home with an unrotated log."""
    memory = tmp_path / "workspace" / "memory"
    memory.mkdir(parents=True)
    (tmp_path / "config.json").write_text('{"agents": {"defaults": {"memory_window": 6}}}')
    (memory / "MEMORY.md").write_text("# Long-Term Memory\n\n- [learned_fact] pool limit is 40\n")
    lines = [
        "[2026-04-01 10:00:00 UTC] User: summary of the pool",
        "and its limit",
        "[2026-04-02 10:00:00 UTC] User: ok",
    ]
    (memory / "HISTORY.md").write_text(HEADING + "\n".join(lines) + "\n")
    return tmp_path


def log_of(folder: Path) -> Path:
    return folder / "workspace" / "memory" / "HISTORY.md"


@pytest.mark.slow
@pytest.mark.postgres
@with_fixture
def test_everything_is_found_as_grip_finds_it():
    """One test, because importing the fixture takes most of a second."""
    workspace = take(GRIP)
    text = (FILES / "MEMORY.md").read_text()
    for category, query, limit in product(["", "learned_fact", "user_preference", "none"], QUERIES, (10, 3)):
        expected = memory_of_grip(text, query, category=category, limit=limit)
        found = answers(search_memory(workspace, query, category=category, limit=limit))
        assert found == expected, (query, category, limit)

    text = (FILES / "HISTORY.md").read_text()
    for decay, query, limit in product([0.001, 0.0, 0.5], QUERIES, (20, 3)):
        expected = history_of_grip(text, query, decay=decay, limit=limit)
        found = answers(search_history(workspace, query, decay=decay, now=NOW, limit=limit))
        assert found == expected, (query, decay, limit)

    rows = json.loads((FILES / "knowledge.json").read_text())["entries"]
    for category, query in product(["", "project_decision"], KNOWLEDGE_QUERIES):
        check_knowledge(workspace, rows, query, category)


def check_knowledge(workspace, rows, query, category):
    expected = [
        row for row in rows
        if category in ("", row["category"])
        and query.lower() in " ".join([row["content"], " ".join(row["tags"]), row["source"]]).lower()
    ]  # fmt: skip
    expected = sorted(expected, key=lambda row: (-row["access_count"], -row["created_at"]))[:20]

    hits = search_knowledge(workspace, query, category=category)

    assert [hit.line for hit in hits] == [row["content"] for row in expected], (query, category)
    assert {hit.id for hit in hits} <= set(KnowledgeEntry.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("query", ["summary", "summary pool limit", "conversation history", "ok"])
def test_an_unrotated_log_includes_its_heading(query, folder):
    workspace = take(folder)

    assert answers(search_history(workspace, query, now=NOW)) == history_of_grip(log_of(folder).read_text(), query)


def test_a_removed_heading_is_not_searched(folder):
    log_of(folder).write_text(log_of(folder).read_text().removeprefix(HEADING))

    assert search_history(take(folder), "Conversation", now=NOW) == []


@pytest.mark.parametrize("query", ["pool", "limit", "pool limit", "limit user"])
def test_only_the_remaining_half_of_a_rotated_entry_is_searched(query, folder):
    log = log_of(folder)
    lines = log.read_text().splitlines(keepends=True)
    log.with_name("HISTORY.archive.20260403000000.md").write_text("".join(lines[:-2]))
    log.write_text("".join(lines[-2:]))

    hits = search_history(take(folder), query, now=NOW)

    assert answers(hits) == history_of_grip(log.read_text(), query)
    assert {hit.position for hit in hits if hit.line == "and its limit"} <= {0}


def test_each_line_of_an_entry_is_found_with_its_entry(folder):
    workspace = take(folder)
    entry = HistoryEntry.objects.get(position=0)

    [hit] = search_history(workspace, "its limit", now=NOW)

    assert (hit.kind, hit.id, hit.line, hit.score) == ("history", entry.pk, "and its limit", None)
    assert (hit.occurred_at, hit.position, hit.session_key) == (datetime(2026, 4, 1, 10, tzinfo=UTC), 0, None)


def test_only_grips_log_has_the_heading(folder):
    workspace = take(folder)
    workspace.layout = "nanobot"

    assert search_history(workspace, "Conversation", now=NOW) == []


def test_the_heading_is_not_an_entry(folder):
    [hit] = search_history(take(folder), "searchable", now=NOW)

    assert (hit.id, hit.position, hit.line) == (None, None, "Searchable summary of past conversations.")


def test_withdrawn_and_archived_entries_are_not_found(folder):
    workspace = take(folder)
    HistoryEntry.objects.filter(position=0).update(withdrawn_at=NOW)
    HistoryEntry.objects.filter(position=1).update(is_archived=True)

    assert search_history(workspace, "user", now=NOW) == []


def test_the_hubs_own_entries_are_found_in_grips_format(workspace):
    add_note(workspace, "The dome was closed", by=By(PERSON, NOW))

    [hit] = search_history(workspace, "dome", now=NOW)

    assert hit.line == "[2026-05-01 00:00:00 UTC] The dome was closed"


def test_a_memory_line_belongs_to_a_fact_or_the_document(folder):
    workspace = take(folder)

    [fact] = search_memory(workspace, "pool")
    [heading] = search_memory(workspace, "memory")

    assert (fact.id, fact.is_fact, fact.position) == (Fact.objects.get().pk, True, 3)
    assert (heading.id, heading.is_fact, heading.position) == (MemoryDocument.objects.get().pk, False, 1)


def test_only_the_current_memory_is_searched(workspace):
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, "- old\n", base=None, by=By(PERSON, timezone.now()), reason="test")
    revise_document(document, "- new\n", base=first, by=By(PERSON, timezone.now()), reason="test")

    assert [hit.line for hit in search_memory(workspace, "to")] == ["- new"]


def test_an_empty_workspace_has_no_results(workspace):
    assert search_memory(workspace, "pool limit") == []
    assert search_history(workspace, "pool limit", now=NOW) == []
    assert search_knowledge(workspace, "") == []


def test_equally_used_knowledge_is_in_order_of_addition_without_withdrawn_entries(workspace):
    for number, content in enumerate(["first", "second", "gone"]):
        KnowledgeEntry.objects.create(
            workspace=workspace,
            content_id=str(number),
            category="learned_fact",
            content=content,
            tags=["Dome", "tür"],
            source="Öl",
            created_at=NOW,
            withdrawn_at=NOW if content == "gone" else None,
        )

    assert [hit.line for hit in search_knowledge(workspace, "DOME TÜR öl")] == ["first", "second"]


def test_the_number_of_queries_is_small(folder, django_assert_max_num_queries):
    workspace = take(folder)

    with django_assert_max_num_queries(3):
        search_history(workspace, "user", now=NOW)
    with django_assert_max_num_queries(2):
        search_memory(workspace, "pool limit")
    with django_assert_max_num_queries(1):
        search_knowledge(workspace, "")

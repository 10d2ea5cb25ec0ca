"""Entries that the agent's program added or that were rewound are kept, but nothing tells a model about them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from knowledge_app.models import Concern
from knowledge_app.services.documents.consolidation import plan_consolidation
from memoryhub.conversations.context import build_context, context_text
from memoryhub.graph.memory_texts import memory_texts
from memoryhub.graph.row_vectors import rows_for, rows_to_embed, waiting_rows
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.records import EntryRecord, SessionRecord
from memoryhub.origins.explanation import entries_around
from memoryhub.runs.extract import _new_outputs
from memoryhub.search.completion import offers
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import plan_compression
from sessions_app.services.export import session_as_markdown, session_record
from sessions_app.services.importing import import_conversation
from sessions_app.services.session_links import link_sessions
from sessions_app.services.transfer import export_session
from tests.api.conftest import caller, token_for
from tests.hub import NOW, PERSON
from tests.records import entry_record
from tests.searches import latest, scope_of, texts

pytestmark = pytest.mark.django_db
SAID, HIDDEN, KEY = "wombat", "quokka", "AKIAIOSFODNN7REALKEY"
LONG = " and so on" * 30


def said(source_id: str, content: str, **values) -> EntryRecord:
    return replace(entry_record(f"{content}{LONG}", **values), source_id=source_id)


ENTRIES = [
    said("1", f"{HIDDEN} instructions", kind="context", is_injected=True, name=HIDDEN),
    said("2", f"I saw a {SAID}"),
    said("3", f"A {HIDDEN}, surely", role="assistant", is_rewound=True),
    said("4", f"Surely a {SAID}", role="assistant", extra={"thinking": f"not a {HIDDEN}"}),
    said("5", f"Thank you for the {SAID}"),
]


def take(workspace, *entries: EntryRecord, key: str = "claude:a", **values) -> Session:
    record = SessionRecord(key, list(entries), is_by_id=True, **values)
    import_conversation(workspace=workspace, record=record, path=f"{key}.jsonl", now=NOW, dry_run=False)
    link_sessions(workspace)
    return Session.objects.get(key=key)


@pytest.fixture
def session(workspace) -> Session:
    return take(workspace, *ENTRIES)


def _embedded(session: Session) -> list[str]:
    pk = session.workspace_id
    return [row.text for row in rows_for(pk, waiting_rows(pk, "any")) if row.kind == "entry"]


READERS = {
    "search": lambda session: texts(f"{HIDDEN} OR {SAID}", session.workspace),
    "newest": lambda session: latest("", session.workspace),
    "context": lambda session: build_context(session).messages,
    "context as text": lambda session: context_text(build_context(session)),
    "compression": lambda session: [row.content for row in plan_compression(session, keep=0, minimum=1).entries],
    "consolidation": lambda session: [row.content for row in plan_consolidation(session, archive_all=True).entries],
    "extraction": lambda session: [output.text for output in _new_outputs(session)[0]],
    "graph": lambda session: [text.text for text in memory_texts(session.workspace)],
    "embeddings": _embedded,
    "origins": lambda session: [row.content for row in entries_around(Entry.objects.get(source_id="2"))],
    "Markdown": lambda session: "".join(
        session_as_markdown(session, epoch=None, originals=True, zone=ZoneInfo("UTC"))
    ),
    "nanobot": lambda session: export_session(session, "nanobot")[1],
    "AgTerm": lambda session: export_session(session, "agterm")[1],
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_only_what_was_said_is_read(session, reader):
    found = str(reader(session))

    assert SAID in found
    assert HIDDEN not in found


def test_authors_of_hidden_entries_are_not_suggested(session):
    assert offers(scope_of(session.workspace), "author:q", 8, now=NOW, zone=UTC) == []


def test_embeddings_count_only_what_was_said(session):
    assert rows_to_embed(session.workspace_id)[0] == 3


def test_totals_count_all_entries_but_only_the_conversation_as_active(session):
    assert (session.entry_count, session.active_entry_count) == (5, 3)
    assert check_memory().broken == []


def test_entries_leave_and_enter_the_index_with_their_branch(workspace, session):
    take(workspace, *[replace(entry, is_rewound=entry.source_id == "4") for entry in ENTRIES])

    assert not any("Surely" in text for text in texts("surely", workspace))
    take(workspace, *[replace(entry, is_rewound=False) for entry in ENTRIES])
    assert [text[:6] for text in texts(HIDDEN, workspace)][:1] == ["A quok"]
    assert check_memory().broken == []


def test_the_whole_record_is_exported_for_a_hub(session):
    record = session_record(session)

    assert [entry.is_injected for entry in record.entries] == [True, False, False, False, False]
    assert [entry.is_rewound for entry in record.entries] == [False, False, True, False, False]


def test_agents_are_told_which_entries_are_hidden(session):
    call = caller(token_for(session.workspace, "read"))
    rows = call("GET", f"/sessions/{session.pk}/entries").json()["items"]

    assert [row["position"] for row in rows if row["injected"]] == [0]
    assert [row["position"] for row in rows if row["rewound"]] == [2]


def test_the_transcript_folds_hidden_entries(session, admin_client):
    page = admin_client.get(reverse("sessions:detail", args=[session.workspace.slug, session.pk])).content.decode()

    folded = re.findall(r"<details class=\"fold\"><summary>([^<]+)</summary>", page)
    assert folded[:2] == ["1 added by the program", "1 on a branch that was left"]
    assert page.count(HIDDEN) >= 2


def test_earlier_versions_are_named(session, admin_client):
    take(session.workspace, *ENTRIES[:-1], said("5", "Thanks"))

    page = admin_client.get(reverse("sessions:detail", args=[session.workspace.slug, session.pk])).content.decode()

    assert "1 earlier version<" in page


def test_subagents_and_forks_are_linked_in_both_directions(workspace, admin_client):
    call = {"id": "toolu_1", "type": "function", "function": {"name": "Agent", "arguments": "{}"}}
    answer = said("8", "done", kind="tool_result", role="tool", tool_call_id="toolu_1")
    task = said("7", "", kind="tool_call", role="assistant", tool_calls=[call])
    parent = take(workspace, ENTRIES[1], task, answer)
    take(
        workspace, said("9", "look"), key="claude:s", parent_key=parent.key, parent_call_id="toolu_1", title="Find it"
    )
    take(workspace, ENTRIES[1], said("f", "go on"), key="claude:f", forked_from=parent.key, title="Another way")

    def page(key: str) -> str:
        pk = Session.objects.get(key=key).pk
        return admin_client.get(reverse("sessions:detail", args=[workspace.slug, pk])).content.decode()

    result = Entry.objects.get(source_id="8")
    assert page(parent.key).count("Find it</a>") == 2
    assert "Another way</a>" in page(parent.key)
    assert reverse("sessions:entry", args=[workspace.slug, result.pk]) in page("claude:s")
    assert ">#0</a>" in page("claude:f")


def test_a_subagent_of_an_unknown_call_is_not_shown_at_calls_without_ids(workspace, admin_client):
    call = {"id": "", "type": "function", "function": {"name": "Agent", "arguments": "{}"}}
    parent = take(workspace, said("7", "", kind="tool_call", role="assistant", tool_calls=[call]))
    take(workspace, said("9", "look"), key="claude:s", parent_key=parent.key, title="Find it")

    page = admin_client.get(reverse("sessions:detail", args=[workspace.slug, parent.pk])).content.decode()

    assert page.count("Find it</a>") == 1


def test_a_session_that_is_gone_there_says_so(session, admin_client):
    take(session.workspace, ENTRIES[-1])

    page = admin_client.get(reverse("sessions:detail", args=[session.workspace.slug, session.pk])).content.decode()

    assert "Kept here, gone there" in page


def test_a_key_in_a_transcript_is_found_by_its_import(tmp_path):
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    lines = [{"_type": "metadata", "key": "cli:a"}, {"role": "tool", "content": f"aws_key = {KEY}"}]
    (sessions / "cli_a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    for _ in range(2):
        import_workspace(tmp_path, by=By(PERSON, NOW))

    assert Concern.objects.get().kind == Concern.Kind.SECRET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.conversations.context import build_context, context_text, seen_in
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, compress, open_at, talk, turn

pytestmark = pytest.mark.django_db


def contents(session: Session, **limits: int) -> list[str]:
    return [message["content"] for message in build_context(session, **limits).messages]


def remember(workspace: Workspace, content: str) -> None:
    record = DocumentRecord("MEMORY.md", content)
    import_document(workspace=workspace, record=record, path="memory/MEMORY.md", now=NOW, dry_run=False)


def test_documents_come_first_then_summaries_then_entries(workspace):
    session = open_at(workspace)
    remember(workspace, "- likes tea\n")
    talk(session, 10)
    compress(session)

    built = build_context(session)

    assert [part.source for part in built.parts[:3]] == ["MEMORY.md", "summary", "entry"]
    assert built.parts[2].entry.position == 28
    assert not built.dropped


@pytest.mark.parametrize("budget", [60, 200, 500, 900, 2000])
def test_context_stays_within_budget_and_lists_what_was_dropped(workspace, budget):
    session = open_at(workspace)
    remember(workspace, "- likes tea\n" * 20)
    talk(session, 12)
    compress(session, keep=20)

    built = build_context(session, max_tokens=budget)

    assert built.tokens <= budget
    session.refresh_from_db()
    sent = sum(part.entry is not None for part in built.parts)
    assert sent + sum(drop.position is not None for drop in built.dropped) == session.active_entry_count


def test_new_entries_do_not_change_the_prefix(workspace):
    session = open_at(workspace)
    remember(workspace, "- likes tea\n")
    talk(session, 10)
    compress(session)

    before = contents(session)
    for number in range(10, 16):
        for row in turn(number, tools=2):
            add(session, [row])
            after = contents(session)
            assert after[: len(before)] == before
            before = after


def test_entries_over_budget_are_dropped_in_steps(workspace):
    session = open_at(workspace)
    starts = []
    for number in range(60):
        add(session, [{"role": "user", "content": f"{number:04}" + "word" * 24}])  # 25 tokens each
        starts.append(contents(session, max_tokens=400)[0][:4])

    assert len(set(starts)) < 15  # 16 fit; 4 leave at once
    assert build_context(session, max_tokens=400).tokens >= 300


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["user", "call", "result", "stray", "answer"]), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_context_never_contains_orphaned_tool_messages(workspace, kinds, limit):
    session = open_at(workspace, f"cli:{abs(hash((tuple(kinds), limit)))}")
    rows, number = [], 0
    for kind in kinds:
        number += kind == "call"
        call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        rows.append({
            "user": {"role": "user", "content": "please"},
            "call": {"role": "assistant", "tool_calls": [call]},
            "result": {"role": "tool", "tool_call_id": f"c{number}", "content": "done"},
            "stray": {"role": "tool", "tool_call_id": "nobody", "content": "done"},
            "answer": {"role": "assistant", "content": "there"},
        }[kind])  # fmt: skip
    add(session, rows)
    if limit > 6:
        compress(session, keep=limit, minimum=1)

    messages = build_context(session, max_messages=limit, max_tokens=limit * 8).messages

    called: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in called
        called |= {call["id"] for call in message.get("tool_calls", [])}
    answered = {message.get("tool_call_id") for message in messages}
    assert called <= answered


def test_entries_after_a_summary_are_kept_without_a_user_message(workspace):
    session = open_at(workspace)
    add(session, turn(0, tools=20))
    compress(session)
    add(session, [{"role": "user", "content": "and now?"}])

    built = build_context(session)

    assert not built.dropped
    assert "answer 0" in built.parts[-2].message["content"]


def test_text_has_the_format_of_agterm(workspace):
    session = open_at(workspace)
    talk(session, 6, words=1)
    compress(session)
    add(session, [{"kind": "context", "name": "src/main.ts", "content": "code"}])

    text = context_text(build_context(session))

    assert text.startswith("=== Previous Conversation Summaries ===\n[2026-04-01 - 2026-04-01]\n[Previous")
    assert "\n\n=== Recent Conversation ===\nUser: request" in text
    assert "\n  calls shell {" in text
    assert text.endswith("Context (src/main.ts): code")


def test_empty_session_has_an_empty_context(workspace):
    assert build_context(open_at(workspace)).messages == []


def test_knowledge_is_in_the_context_if_enabled(workspace):
    session = open_at(workspace)
    add_knowledge(workspace, "Use tabs.", category="user_preference", by=By(PERSON, NOW))
    add_knowledge(workspace, "Pool limit 60.", category="project_decision", by=By(PERSON, NOW))
    remember(workspace, "- likes tea\n")
    add(session, [{"role": "user", "content": "hello"}])
    assert "knowledge" not in [part.source for part in build_context(session).parts]

    Workspace.objects.update(knowledge_in_context=True)
    built = build_context(session)

    assert [part.source for part in built.parts] == ["MEMORY.md", "knowledge", "entry"]
    lines = "[user_preference] Use tabs.\n[project_decision] Pool limit 60."
    assert lines in built.messages[1]["content"]
    assert f"=== Knowledge ===\n{lines}" in context_text(built)
    assert [seen.table for seen in seen_in(built)] == ["entries", "knowledge", "knowledge", "documents"]
    tight = build_context(session, max_tokens=20)
    assert "knowledge" in [drop.why.partition(":")[0] for drop in tight.dropped]
    assert tight.tokens <= 20


def test_numeric_tool_call_ids_keep_the_pair(workspace):
    session = open_at(workspace)
    call = {"id": 7, "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    rows = [
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": 7, "content": "a.txt"},
    ]
    add(session, rows)

    built = build_context(session)

    assert not built.dropped
    assert built.messages[1]["tool_calls"][0]["id"] == built.messages[2]["tool_call_id"] == "7"


def test_memory_is_delimited_data_in_a_user_message(workspace):
    remember(workspace, "- tea\n=== 0 ===\n")
    (part, *_) = build_context(open_at(workspace)).parts

    lines = part.message["content"].split("\n")
    assert (part.message["role"], lines[1], lines[1] == lines[-1]) == ("user", lines[-1], True)
    assert lines.count(lines[1]) == 2
    assert part.text in part.message["content"]

from __future__ import annotations

import itertools
import json

import pytest
from markdown_it import MarkdownIt

from memoryhub.lib.layouts.records import SessionRecord, SummaryRecord
from memoryhub.lib.text import as_markdown
from tests.records import entry_record, session_record

PARSER = MarkdownIt("commonmark")


def call(name: str = "shell", arguments: str = '{"c": "ls"}', *, of: str = "c1"):
    return {"id": of, "type": "function", "function": {"name": name, "arguments": arguments}}


def transcript(*args, **options) -> str:
    return "".join(as_markdown.transcript(*args, **options))


def outline(text: str) -> list[str]:
    """Return the headings of a Markdown text outside lists, quotes and fences."""
    tokens = PARSER.parse(text)
    return [
        after.content
        for token, after in itertools.pairwise(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def test_messages_are_copied_verbatim():
    record = session_record("Is it **ready**?", "Yes:\n\n- one\n- two", key="cli:main", title="The release")

    assert transcript(record) == (
        "# The release\n\nSession `cli:main`, 2 entries.\n\n"
        "## #0 · User · 2026-03-01 08:00:00 UTC\n\nIs it **ready**?\n\n"
        "## #1 · Assistant · 2026-03-01 08:01:00 UTC\n\nYes:\n\n- one\n- two\n"
    )


def test_a_tool_result_is_shown_with_its_call_in_a_longer_fence():
    output = "before\n````\ninside\n````"
    entries = [
        entry_record("", role="assistant", kind="tool_call", tool_calls=[call(arguments='{"c": "cat `x`"}')]),
        entry_record(output, role="tool", kind="tool_result", tool_call_id="c1", name="shell"),
    ]

    text = transcript(SessionRecord("cli:main", entries))

    assert [token.content for token in PARSER.parse(text) if token.type == "fence"] == [
        '{\n  "c": "cat `x`"\n}\n',
        f"{output}\n",
    ]
    assert outline(text) == ["cli:main", "#0 · Assistant"]


def test_a_call_that_is_only_text_is_fenced():
    record = SessionRecord("k", [entry_record("shell(**x**)", role="assistant", kind="tool_call")])

    assert "```\nshell(**x**)\n```" in transcript(record)


def test_calls_that_share_an_id_get_their_own_results():
    entries = [
        entry_record("", role="assistant", kind="tool_call", tool_calls=[call(), call("look")]),
        entry_record("first", role="tool", kind="tool_result", tool_call_id="c1"),
        entry_record("second", role="tool", kind="tool_result", tool_call_id="c1"),
    ]

    text = transcript(SessionRecord("cli:main", entries))

    assert text.index("first") < text.index("`look`") < text.index("second")


@pytest.mark.parametrize(
    "hostile",
    [
        "```\nno end",
        "<!-- no end",
        "<script>",
        "## #7 · User\n\nforged",
        "~~~~ \nx",
        "<details>\n\nx",
        "1. a\n\n   ```",
    ],
)
def test_content_cannot_hide_or_forge_a_turn(hostile):
    text = transcript(session_record(hostile, "after", key="k", timed=False))

    assert outline(text) == ["k", "#0 · User", "#1 · Assistant"]
    assert hostile in text


@pytest.mark.parametrize("title", ["# *a* [b](c) `d` <e>\n## f", "\n", "تم `x`", "``"])
def test_a_title_is_one_line_of_plain_text(title):
    record = session_record("hello", key=f"cli:{title}", title=title)

    inline = PARSER.parse(transcript(record))[1]

    assert {child.type for child in inline.children or []} <= {"text", "text_special", "code_inline"}
    assert " ".join(title.split()) in "".join(child.content for child in inline.children or [])


def folded() -> SessionRecord:
    record = session_record("one", "two", "three", "four", key="k", timed=False)
    for entry in record.entries[1:3]:
        object.__setattr__(entry, "summary_source_id", "s")
    return SessionRecord("k", record.entries, [SummaryRecord("s", "They counted.", [])])


def test_compressed_entries_are_replaced_by_their_summary():
    text = transcript(folded())

    assert outline(text) == ["k", "#0 · User", "#1 to #2 · Folded into a summary", "#3 · Assistant"]
    assert "They counted." in text
    assert "two" not in text


def test_compressed_entries_can_follow_their_summary():
    assert outline(transcript(folded(), originals=True)) == [
        "k",
        "#0 · User",
        "#1 to #2 · Folded into a summary",
        "#1 · Assistant",
        "#2 · User",
        "#3 · Assistant",
    ]


def test_a_result_whose_call_is_compressed_is_shown_alone():
    entries = [
        entry_record("", role="assistant", kind="tool_call", tool_calls=[call()], summary_source_id="s"),
        entry_record("out", role="tool", kind="tool_result", tool_call_id="c1"),
    ]
    record = SessionRecord("k", entries, [SummaryRecord("s", "A call.", [])])

    assert outline(transcript(record))[2:] == ["#1 · Tool · tool result"]


def test_entries_are_read_a_few_hundred_at_a_time():
    entries = [
        entry_record("", role="assistant", kind="tool_call", tool_calls=[call()]),
        *[entry_record(f"text {number}", role="user") for number in range(998)],
        entry_record("far away", role="tool", kind="tool_result", tool_call_id="c1"),
    ]
    asked = []

    def read(numbers):
        asked.append(set(numbers))
        return {number: entries[number] for number in numbers}

    shapes = [
        as_markdown.Shape(True, "", one.tool_call_id, tuple(made["id"] for made in one.tool_calls)) for one in entries
    ]
    lazy = as_markdown.Entries(shapes, read)

    assert transcript(SessionRecord("k", []), entries=lazy) == transcript(SessionRecord("k", entries))
    assert max(map(len, asked)) == as_markdown.READ_AT_ONCE
    assert sum(map(len, asked)) == len(entries)


def test_system_text_of_a_context_is_fenced():
    parts = [
        as_markdown.Message("system", "MEMORY.md", "# Facts\n\n- tea"),
        as_markdown.Message("assistant", "#3", "Yes.", [call(arguments="not json")]),
    ]

    text = as_markdown.context("cli:main", parts, tokens=1234)

    assert outline(text) == ["Context of cli:main", "1 · System · MEMORY.md", "2 · Assistant · \\#3"]
    assert "2 messages, about 1,234 tokens." in text
    assert "```\nnot json\n```" in text


def test_results_are_blockquotes_with_links():
    text = as_markdown.passages(
        "Search: a|b", [as_markdown.Passage("User #3", "http://hub/w/a/entries/7/", "message", "one\n```\ntwo")]
    )

    assert outline(text) == ["Search: a\\|b", "1 · [User \\#3](<http://hub/w/a/entries/7/>)"]
    assert "> one\n> ```\n> two" in text


def test_each_fact_is_one_list_item():
    facts = [("Deploys go out\n# on Tuesdays", "deploy, ops"), ("```\nopen", ""), ("last", "")]

    tokens = PARSER.parse("".join(as_markdown.grouped_list("Knowledge", [("Facts", facts), ("Empty", [])])))

    assert sum(token.type == "list_item_open" and token.level == 1 for token in tokens) == len(facts)
    assert sum(token.type == "heading_open" and token.level == 0 for token in tokens) == 2


def test_inline_code_uses_more_backticks_than_its_text():
    for text in ("a", "`", "a``b`", json.dumps({"a": "`"})):
        inline = PARSER.parse(as_markdown.code(text))[1]
        assert [(child.type, child.content) for child in inline.children or []] == [("code_inline", text)]

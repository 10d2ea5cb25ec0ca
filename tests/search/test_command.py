"""The search command: JSON output, errors, and safe terminal output."""

from __future__ import annotations

import io
import json
import sys

import pytest
from django.core.management import CommandError, call_command

from knowledge_app.models import KeyValue, Term, TermRelation
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.search import KINDS
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.searches import know, log, observe, say

pytestmark = pytest.mark.django_db
FIELDS = {"kind", "id", "workspace", "session", "position", "score", "snippet", "occurred_at", "text"}


def test_a_result_has_the_documented_fields(workspace, command):
    [entry] = say(workspace, "the white orchid", key="cli:main")
    row = know(workspace, "an orchid is a flower")

    document = command("search", "orchid", "--workspace", "atlas")

    assert document["query"] == "orchid"
    assert [set(one) >= FIELDS for one in document["results"]] == [True, True]
    told = {one["kind"]: one for one in document["results"]}
    wanted = {
        "kind": "entry", "id": entry.pk, "workspace": "atlas", "session": "cli:main", "position": 0,
        "snippet": "the white orchid", "occurred_at": NOW.isoformat(), "text": "the white orchid",
    }  # fmt: skip
    assert {name: told["entry"][name] for name in wanted} == wanted
    assert [told["knowledge"][name] for name in ("id", "session", "position")] == [row.pk, None, None]
    scores = [one["score"] for one in document["results"]]
    assert scores == sorted(scores, reverse=True)


def test_each_input_line_is_a_query_with_its_own_json_document(workspace, monkeypatch, capsys):
    say(workspace, "tea", "cake")
    monkeypatch.setattr(sys, "stdin", io.StringIO("tea\r\n\ncake\nzebra\n"))

    call_command("search", "--stdin", "--in", "entry", "--json")

    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["query"] for one in documents] == ["tea", "", "cake", "zebra"]
    assert [[row["text"] for row in one["results"]] for one in documents] == [["tea"], ["cake", "tea"], ["cake"], []]


def test_kinds_and_the_limit_narrow_the_results(workspace, command):
    say(workspace, "orchid one", "orchid two")
    know(workspace, "orchid")
    observe(workspace, "orchid")

    assert {one["kind"] for one in command("search", "orchid")["results"]} == {"entry", "knowledge", "observation"}
    kinds = {one["kind"] for one in command("search", "orchid", "--in", "entry, knowledge")["results"]}
    assert kinds == {"entry", "knowledge"}
    for limit, count in (("0", 0), ("1", 1), ("3", 3), ("9999", 4), ("-5", 0)):
        assert len(command("search", "orchid", "--limit", limit)["results"]) == count


def test_all_workspaces_are_searched_by_default(workspace, command):
    say(workspace, "orchid")

    assert [one["workspace"] for one in command("search", "orchid")["results"]] == ["atlas"]


def test_match_all_requires_every_word(workspace, command):
    say(workspace, "tea and cake", "tea alone")

    found = command("search", "tea cake", "--all")["results"]

    assert [one["text"] for one in found] == ["tea and cake"]


def test_a_score_is_explained_by_its_terms(workspace, command):
    term, near = (Term.objects.create(workspace=workspace, text=text) for text in ("flower", "orchid"))
    TermRelation.objects.create(term=term, related=near, cosine=0.9)
    say(workspace, "an orchid and an orchid", "tea")

    document = command("search", "flower", "--workspace", "atlas", "--in", "entry", "--explain")

    [result] = document["results"]
    known = {part["term"]: part for part in result["explanation"]["terms"]}
    assert (known["orchid"]["count"], known["orchid"]["rows"], known["orchid"]["added_for"]) == (2, 1, "flower")
    assert (known["flower"]["count"], known["flower"]["score"]) == (0, 0)
    assert document["added"] == {"flower": [{"word": "orchid", "weight": 0.45}]}
    assert command("search", "flower", "--workspace", "atlas", "--no-graph")["results"] == []


def test_newest_first_has_no_scores(workspace, command):
    say(workspace, "tea, tea, tea", timestamp="2025-01-01T00:00:00+00:00")
    say(workspace, "tea of today")

    found = command("search", "tea", "--recency", "newest")["results"]

    assert [(one["text"], one["score"]) for one in found] == [("tea of today", None), ("tea, tea, tea", None)]


def test_decay_follows_grips_formula(workspace, command):
    say(workspace, "tea and tea and tea", timestamp="2025-01-01T00:00:00+00:00")
    say(workspace, "tea of today")

    def first(*options: str) -> str:
        return command("search", "tea", "--now", NOW.isoformat(), *options)["results"][0]["text"]

    assert first() == "tea and tea and tea"
    assert first("--decay", "0.001") == first("--recency", "grip") == "tea of today"
    assert first("--decay", "0") == "tea and tea and tea"


@pytest.fixture
def grip(workspace) -> None:
    document = open_document(workspace, "MEMORY.md")
    text = "# Memory\n\n- [user_preference] likes green tea\n- [learned_fact] tea is grown in Assam\n"
    revise_document(document, text, base=None, reason="r", by=By(PERSON, NOW))
    log(workspace, "User: make tea", occurred_at=None, is_archived=False)
    know(workspace, "tea cools")


@pytest.mark.usefixtures("grip")
def test_grips_own_searches_return_grips_lines(command):
    def lines(mode: str, *options: str) -> list[str]:
        document = command("search", "tea", "--workspace", "atlas", "--mode", mode, *options)
        assert all(set(one) >= FIELDS for one in document["results"])
        return [one["text"] for one in document["results"]]

    assert len(lines("grip-memory")) == 2
    assert len(lines("grip-memory", "--category", "learned_fact")) == 1
    assert len(lines("grip-memory", "--limit", "1")) == 1
    assert lines("grip-history") == ["User: make tea"]
    assert lines("grip-history", "--decay", "0", "--now", "2026-11-21") == ["User: make tea"]
    assert lines("grip-knowledge") == ["tea cools"]


WRONG = [
    (("--workspace", "nowhere"), "not_found"),
    (("--in", "entry,unicorn"), "wrong_arguments"),
    (("--mode", "grip-memory"), "wrong_arguments"),
    (("--now", "soon"), "wrong_arguments"),
    (("--now", "2026-13-41T00:00:00"), "wrong_arguments"),
]


@pytest.mark.parametrize(("arguments", "code"), WRONG)
def test_an_invalid_query_is_one_json_error(workspace, command, arguments, code):
    error = command("search", "tea", *arguments, status=1)["error"]

    assert error["code"] == code
    assert error["message"]


@pytest.mark.parametrize("arguments", [("--recency", "never"), ("--limit", "many"), ("--mode", "x"), ("a", "b")])
def test_unknown_arguments_are_refused(arguments):
    with pytest.raises(CommandError):
        call_command("search", *arguments)


def test_output_contains_no_terminal_control_characters(workspace, capsys):
    say(workspace, "tea \x1b[31mred\x07 \u202egnirts")

    call_command("search", "tea", "--explain")

    shown = capsys.readouterr().out
    assert "\\x1b[31mred\\x07" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_notes_and_empty_results_are_shown(workspace, capsys):
    call_command("search", "kind:unicorn")

    shown = capsys.readouterr().out
    assert "unicorn" in shown
    assert shown.endswith("No results.\n")


def test_a_masked_value_is_not_printed(workspace, command):
    KeyValue.objects.create(workspace=workspace, key="token", value="swordfish", is_secret=True)

    assert "swordfish" not in json.dumps(command("search", "token")["results"])
    assert command("search", "swordfish")["results"] == []


def test_every_kind_is_accepted(workspace, command):
    for kind in KINDS:
        assert command("search", "tea", "--in", kind)["results"] == []

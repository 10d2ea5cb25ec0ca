"""Documents with a separator between facts and a size limit, such as Hermes' MEMORY.md."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents import fact_steps
from knowledge_app.services.documents.editing import bring_back, edit_fact, remove_facts, save_text
from knowledge_app.services.documents.fact_edits import recategorise_facts, withdraw_facts
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.proposals import append_fact, propose_text
from knowledge_app.services.removed_texts import RemovedTexts
from memoryhub.agents.api_tokens import Caller, issue_token
from memoryhub.agents.operations.corrections import correct
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.records import DocumentLimit, DocumentRecord
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.facts import fact_lines
from memoryhub.lib.text.separated import join_entries, split_entries
from memoryhub.runs.review import reject
from memoryhub.sync.exporting import export_workspace
from memoryhub.sync.importing import import_workspace
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
BY_AGENT = By(AGENT, NOW)
TEXT = "Ana likes tea\n- and not coffee\n§\nThe office is in Lisbon\n§\nAna works on Atlas"


def take(workspace, content: str = TEXT, **values) -> MemoryDocument:
    given = {"separator": "§", "limit": DocumentLimit(chars=100)} | values
    record = DocumentRecord("MEMORY.md", content, **given)
    import_document(workspace=workspace, record=record, path="memories/MEMORY.md", now=NOW, dry_run=False)
    return MemoryDocument.objects.select_related("head").get(workspace=workspace)


def text_of(document: MemoryDocument) -> str:
    return MemoryDocument.objects.get(pk=document.pk).head.content


def fact(text: str) -> Fact:
    return Fact.objects.get(died=None, text__startswith=text)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", []),
        ("one", [("one", 1)]),
        ("one\n§\ntwo\nlines", [("one", 1), ("two\nlines", 3)]),
        ("\n one \n § \n\n§\n§\n two\n§", [("one", 2), ("two", 7)]),
    ],
)
def test_a_text_is_split_into_entries(text, entries):
    assert [(entry.text, entry.line) for entry in split_entries(text, "§")] == entries
    joined = join_entries([entry for entry, _ in entries], "§")
    assert [entry.text for entry in split_entries(joined, "§")] == [entry for entry, _ in entries]


def test_an_entry_is_one_fact_even_with_a_list(workspace):
    take(workspace)

    facts = Fact.objects.order_by("line").values_list("text", "line")

    assert list(facts) == [
        ("Ana likes tea\n- and not coffee", 1), ("The office is in Lisbon", 4), ("Ana works on Atlas", 6),
    ]  # fmt: skip
    assert check_memory().broken == []


def test_a_single_entry_is_a_fact(workspace):
    take(workspace, "Ana likes tea")

    assert Fact.objects.get().text == "Ana likes tea"
    assert check_memory().broken == []


def test_a_document_without_a_separator_has_bullets():
    assert [line.text for line in fact_lines("- one § two\n- three")] == ["one § two", "three"]


def test_edits_keep_the_form(workspace):
    document = take(workspace)

    edit_fact(fact("The office"), text="The office is in\nPorto", category="", section="", by=BY)
    remove_facts(document, [fact("Ana likes").pk], by=BY)
    append_fact(document, "Ana has a cat", by=BY)

    assert text_of(document) == "The office is in\nPorto\n§\nAna works on Atlas\n§\nAna has a cat"
    withdraw_facts(document, [fact("Ana works").pk], by=BY)
    bring_back(Fact.objects.get(text="Ana works on Atlas"), by=BY)
    assert text_of(document) == "The office is in\nPorto\n§\nAna has a cat\n§\nAna works on Atlas"
    assert check_memory().broken == []


def test_a_fact_can_repeat_another_one(workspace):
    document = take(workspace, "x\n§\nThe office is in Lisbon")

    assert edit_fact(fact("The office"), text="x", category="", section="", by=BY).line == 3
    assert text_of(document) == "x\n§\nx"


def test_an_entry_cannot_contain_the_separator(workspace):
    document = take(workspace)

    with raises_code("bad_fact"):
        edit_fact(fact("The office"), text="one\n§\ntwo", category="", section="", by=BY)
    with raises_code("bad_category"):
        recategorise_facts(document, [fact("The office").pk], "place", by=BY)
    assert text_of(document) == TEXT


def test_a_text_over_the_limit_is_refused(workspace):
    document = take(workspace)

    with raises_code("text_too_long", match="101 of at most 100 characters"):
        save_text(document, "x" * 101, base_number=1, by=BY, reason="")


def test_the_agents_own_text_may_be_over_the_limit_and_be_shortened(workspace):
    document = take(workspace, "x" * 200)

    save_text(document, "x" * 150, base_number=1, by=BY, reason="")

    assert text_of(document) == "x" * 150


def test_the_limits_of_a_known_document_are_updated(workspace):
    take(workspace)
    document = take(workspace, limit=DocumentLimit(lines=200, byte_count=25_000), is_instructions=True)

    assert (document.char_limit, document.byte_limit, document.line_limit) == (None, 25_000, 200)
    assert document.is_instructions


def test_the_page_warns_before_a_save_that_the_agent_would_cut(workspace, admin_client):
    document = take(workspace, "- one", separator="", limit=DocumentLimit(lines=2))
    url = reverse("documents:edit-document", args=[workspace.slug, document.pk])
    longer = {"text": "- one\n- two\n- three", "base": 1}

    assert "at most 2 lines" in admin_client.get(url).content.decode()
    refused = admin_client.post(url, longer)

    assert refused.status_code == 422
    assert "3 of at most 2 lines" in refused.content.decode()
    assert text_of(document) == "- one"
    assert admin_client.post(url, longer | {"over_limit": "on"}).status_code == 302
    assert text_of(document) == "- one\n- two\n- three"


def test_the_page_refuses_what_the_agent_would_refuse(workspace, admin_client):
    document = take(workspace)
    url = reverse("documents:edit-document", args=[workspace.slug, document.pk])

    response = admin_client.post(url, {"text": "x" * 101, "base": 1, "over_limit": "on"})

    assert response.status_code == 422
    assert "101 of at most 100 characters" in response.content.decode()


def test_another_hub_gets_the_form_and_the_limits(workspace, tmp_path):
    take(workspace)
    note = DocumentRecord("memory/2026-11-22.md", "- a note")
    import_document(workspace=workspace, record=note, path="memory/2026-11-22.md", now=NOW, dry_run=False)
    export_workspace(workspace, tmp_path / "copy", layout="hub", by=BY)

    copy = import_workspace(tmp_path / "copy", by=BY).workspace

    names = ("name", "separator", "char_limit", "line_limit", "head__content")
    assert list(copy.documents.order_by("name").values_list(*names)) == [
        ("MEMORY.md", "§", 100, None, TEXT),
        ("memory/2026-11-22.md", "", None, None, "- a note"),
    ]
    assert check_memory().broken == []


@pytest.mark.parametrize("separator", [" § ", "§\n", "a\nb", " ", "§" * 17])
def test_a_separator_that_is_never_a_line_is_refused(tmp_path, separator):
    (tmp_path / "memoryhub.json").write_text('{"format": "memoryhub", "version": 1, "program": "hub"}')
    (tmp_path / "documents.jsonl").write_text(json.dumps({"name": "MEMORY.md", "separator": separator}))
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "MEMORY.md").write_text(TEXT)

    result = import_workspace(tmp_path, by=BY)

    assert MemoryDocument.objects.get().separator == ""
    assert [problem.outcome for problem in result.tally.problems] == ["rejected"]


@pytest.mark.parametrize("entry", ["Door code:\n4711", "PIN\n4711\nblue door", "Bob smokes"])
@pytest.mark.parametrize("content", [TEXT, "Ana likes tea"])
def test_a_refused_entry_is_held_when_it_comes_again(workspace, content, entry):
    document = take(workspace, content)
    proposed = join_entries([content, entry], "§")
    change = propose_text(document, proposed, base_number=document.head.number, by=BY_AGENT, reason="")
    reject(change, by=BY, user=None, reason="")

    again = append_fact(document, entry, by=BY_AGENT)

    assert again.held is not None
    assert RemovedTexts(workspace).has(entry)
    assert not RemovedTexts(workspace).has("Ana likes tea")


def test_the_earlier_text_of_the_only_entry_is_held_when_it_comes_again(workspace):
    document = take(workspace, "Ana takes the early train")
    edit_fact(fact("Ana takes"), text="Ana takes the late bus", category="", section="", by=BY)

    assert text_of(document) == "Ana takes the late bus"
    assert RemovedTexts(workspace).has("Ana takes the early train")
    assert not RemovedTexts(workspace).has("Ana takes the late bus")


def test_entries_are_compared_if_only_one_text_has_a_separator():
    changes = compare_facts("Ana likes tea", join_entries(["Ana likes tea", "Bob smokes"], "§"))

    assert ([one.text for one in changes.added], changes.removed, changes.old_count) == (["Bob smokes"], [], 1)


@pytest.mark.parametrize(("content", "entry"), [("", "Ana takes the early train"), (TEXT, "Ana has a cat")])
def test_an_agent_proposes_to_change_its_entry_if_a_person_reworded_it(workspace, content, entry):
    document = take(workspace, content)
    append_fact(document, entry, by=BY_AGENT)
    edit_fact(fact(entry), text="Nothing of that", category="", section="", by=BY)
    token, _ = issue_token(workspace, AGENT.name, ("append",), by=BY)

    changed = correct(Caller(token, "mcp"), "fact", fact("Nothing").pk, "Ana takes the express", now=NOW)

    assert changed["status"] == "proposed"
    assert "Nothing of that" in text_of(document)


def test_an_agent_proposes_to_change_its_fact_if_too_many_revisions_came_since(workspace, monkeypatch):
    document = take(workspace, "- tea is hot\n", separator="")
    append_fact(document, "Ana takes the early train", by=BY_AGENT)
    edit_fact(fact("Ana takes"), text="Ana takes the late bus", category="", section="", by=BY)
    token, _ = issue_token(workspace, AGENT.name, ("append",), by=BY)
    monkeypatch.setattr(fact_steps, "MAX_REVISIONS", 3)
    for number in range(4):
        append_fact(document, f"Note {number} about the harbour", by=BY_AGENT)

    changed = correct(Caller(token, "mcp"), "fact", fact("Ana takes").pk, "Ana takes the express", now=NOW)
    own = correct(Caller(token, "mcp"), "fact", fact("Note 3").pk, "Note 3 about the river", now=NOW)

    assert (changed["status"], own["status"]) == ("proposed", "changed")

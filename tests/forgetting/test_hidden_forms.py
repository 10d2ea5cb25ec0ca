"""A person is forgotten however a text writes the name, and isn't brought back by file names and keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge_app.models import MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.key_values import write_value
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.hub_erasure import Person, erase_person, write_receipt
from memoryhub.forgetting.matching import Redaction, find_phrases, phrase_of
from memoryhub.forgetting.person_search import plan_person
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session, Webhook
from tests.forgetting.test_forgetting import BY, forget, holding
from tests.hub import add, open_at

pytestmark = pytest.mark.django_db
NAME = "Bärbel Zwetschke"
PERSON = Redaction(lines=find_phrases([phrase_of(NAME)]))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("by Bärbel\nZwetschke in May\ntea", "[forgotten]\n[forgotten]\ntea"),
        ("- by Bärbel\n  Zwetschke\n- tea", "- [forgotten]\n[forgotten]\n- tea"),
        ("> Bärbel\n> Zwetschke", "[forgotten]\n[forgotten]"),
        ("Bärbel Zwet-\nschke\ntea", "[forgotten]\n[forgotten]\ntea"),
        ("to=B%C3%A4rbel%20Zwetschke&x", "[forgotten]"),
        ("to=b%c3%a4rbel+Zwetschke", "[forgotten]"),
        ("B&auml;rbel&nbsp;Zwetschke", "[forgotten]"),
        ("B&#228;rbel&#x20;Zwetschke", "[forgotten]"),
        ("B=C3=A4rbel Zwetschke", "[forgotten]"),
        ("Bärbel\u200bZwetschke", "[forgotten]"),
        ("Ba\\u0308rbel Zwetschke", "[forgotten]"),
        (json.dumps(json.dumps({"name": NAME})), "[forgotten]"),
        (json.dumps(json.dumps(json.dumps(NAME))), "[forgotten]"),
        ("100%AB and 7 &notanentity; x=FF", "100%AB and 7 &notanentity; x=FF"),
        ("Bärbel and Zwetschke", "Bärbel and Zwetschke"),
    ],
)
def test_escaped_and_wrapped_names_are_recognised(text, left):
    assert PERSON.text(text) == left


def test_documents_named_after_a_person_lose_their_names(workspace):
    for name in ("Bärbel Zwetschke.md", "about Bärbel Zwetschke.md", "BÄRBEL-ZWETSCHKE.md"):
        revise_document(open_document(workspace, name, f"memory/{name}"), "tea\n", base=None, by=BY, reason="r")

    forget(workspace, "person", NAME)

    assert {document.path for document in MemoryDocument.objects.all()} == {""}
    assert holding("zwetschke") == set()


def test_documents_named_after_a_person_in_capitals_are_not_imported_again(tmp_path: Path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    bank = tmp_path / "memory-bank"
    bank.mkdir()
    for name in ("projectbrief.md", "ANNA-QUICKSILVER.md", "QUICKSILVER.md"):
        (bank / name).write_text("- tea in the afternoon\n")
    workspace = import_workspace(tmp_path, by=BY, name="Atlas").workspace

    forget(workspace, "person", "Quicksilver")
    import_workspace(tmp_path, by=BY)

    assert holding("quicksilver") == set()


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_documents_that_the_program_named_keep_their_names(tmp_path: Path, settings, kind):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text("- tea\n")
    (tmp_path / "SOUL.md").write_text("- David Soul\n- coffee\n")
    workspace = import_workspace(tmp_path, by=BY, name="Atlas").workspace

    forget(workspace, kind, "soul")
    (tmp_path / "SOUL.md").write_text("- David Soul\n- coffee\n- water\n")
    import_workspace(tmp_path, by=BY)

    documents = {document.name: document for document in MemoryDocument.objects.select_related("head")}
    assert set(documents) == {"MEMORY.md", "SOUL.md"}
    assert documents["SOUL.md"].path == "SOUL.md"
    assert "- water" in documents["SOUL.md"].head.content
    assert "David Soul" not in documents["SOUL.md"].head.content


def test_ids_of_messages_and_names_of_fields_are_erased(workspace):
    call = {"id": NAME, "type": "function", "function": {"name": "lookup", "arguments": json.dumps({"q": NAME})}}
    rows = [
        {"role": "assistant", "content": "", "tool_calls": [call], NAME: 1},
        {"role": "tool", "tool_call_id": NAME, "content": "tea"},
    ]
    add(open_at(workspace), rows)

    forget(workspace, "person", NAME)

    assert holding("zwetschke") == set()
    said, found = Entry.objects.order_by("position")
    assert said.tool_calls[0]["id"] == found.tool_call_id


def test_a_new_workspace_gets_no_session_or_document_named_after_the_person(workspace, tmp_path: Path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    write_value(workspace, "k", NAME, by=BY)
    person = Person((NAME,))
    receipt = write_receipt(person, expected=plan_person(person).total, reason="", by=BY)
    erase_person(receipt, by=BY)
    head = {"_type": "metadata", "key": f"slack:{NAME}", "last_consolidated": 0, "metadata": {}}
    (tmp_path / "sessions").mkdir()
    (tmp_path / "memory").mkdir()
    (tmp_path / "sessions" / "one.jsonl").write_text(f"{json.dumps(head)}\n")
    (tmp_path / "memory" / "MEMORY.md").write_text(f"- by {NAME}\n- wrapped Bärbel\n  Zwetschke\n- tea\n")

    imported = import_workspace(tmp_path, by=BY, name="Second")

    assert not Session.objects.filter(workspace=imported.workspace).exists()
    texts = MemoryRevision.objects.values_list("content", flat=True)
    assert set(texts) == {"- [forgotten]\n- [forgotten]\n[forgotten]\n- tea\n"}
    assert holding("zwetschke") == set()


def test_a_note_named_after_a_forgotten_person_is_not_imported_again(tmp_path: Path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    for name, title in (("tea.md", "tea"), ("bärbel-zwetschke.md", NAME)):
        (tmp_path / name).write_text(f"---\ntitle: {title}\npermalink: {name[:-3]}\n---\n\n- likes tea\n")
    workspace = import_workspace(tmp_path, by=BY, name="Notes").workspace
    assert MemoryDocument.objects.count() == 2
    forget(workspace, "person", NAME)

    import_workspace(tmp_path, by=BY)

    assert holding("zwetschke") == set()
    assert MemoryDocument.objects.count() == 2


def test_a_preview_names_settings_that_contain_it(workspace):
    workspace.summary_prompt = f"Write as {NAME} does."
    workspace.save()
    Webhook.objects.create(workspace=workspace, url="https://example.org/B%C3%A4rbel-Zwetschke", created_at=BY.at)

    assert plan_forget(workspace, ErasureRequest("person", (NAME,))).left == ["prompt", "webhooks"]

"""Edits of a document that wait for another one are based on what that one wrote."""

from __future__ import annotations

from threading import Event
from time import sleep

import pytest

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents import editing
from knowledge_app.services.documents.editing import edit_fact, remove_facts, save_text
from knowledge_app.services.documents.held_changes import accept_text
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.proposals import propose_text
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON
from tests.races import WAIT, at_once

pytestmark = pytest.mark.django_db(transaction=True)
BY = By(PERSON, NOW)
TEA, CAKE = "Tea is served at four o'clock", "The cake has walnuts in it"
TEXT = f"# Team\n\n- {TEA}\n- {CAKE}\n"


@pytest.fixture
def document(workspace) -> MemoryDocument:
    import_document(
        workspace=workspace, record=DocumentRecord("MEMORY.md", TEXT), path="memory/MEMORY.md", now=NOW, dry_run=False
    )
    return MemoryDocument.objects.get()


def while_another_saves(monkeypatch, document, call):
    """Run a call that begins while another edit, which adds a line, has locked the document; return its result."""
    revise, has_locked = editing.revise_document, Event()

    def pausing(*arguments, **options):
        has_locked.set()
        sleep(WAIT)
        return revise(*arguments, **options)

    def second():
        has_locked.wait(10)
        monkeypatch.setattr(editing, "revise_document", revise)
        return call()

    monkeypatch.setattr(editing, "revise_document", pausing)
    saved, result = at_once(
        lambda: save_text(document, f"{TEXT}- The sugar is in the jar\n", base_number=1, by=BY, reason=""), second
    )
    assert not isinstance(saved, MemoryHubError)
    return result


def head() -> str:
    return MemoryDocument.objects.get().head.content


def fact(text: str) -> Fact:
    return Fact.objects.get(text=text, died=None)


def test_a_fact_is_withdrawn(document, monkeypatch):
    pk = fact(TEA).pk

    assert while_another_saves(monkeypatch, document, lambda: remove_facts(document, [pk], by=BY)) == 1
    assert head() == f"# Team\n\n- {CAKE}\n- The sugar is in the jar\n"


def test_a_fact_is_corrected(document, monkeypatch):
    tea = fact(TEA)
    new = {"text": "Tea is served at five o'clock", "category": "", "section": tea.section}

    assert not isinstance(while_another_saves(monkeypatch, document, lambda: edit_fact(tea, **new, by=BY)), Exception)
    assert head() == f"# Team\n\n- Tea is served at five o'clock\n- {CAKE}\n- The sugar is in the jar\n"


def test_a_text_is_saved(document, monkeypatch):
    new = TEXT.replace("four", "five")

    while_another_saves(monkeypatch, document, lambda: save_text(document, new, base_number=1, by=BY, reason=""))

    assert head() == f"{new}- The sugar is in the jar\n"


def test_a_change_of_the_file_is_merged(document, monkeypatch):
    record = DocumentRecord("MEMORY.md", TEXT.replace("walnuts", "almonds"))
    options = {"record": record, "path": "memory/MEMORY.md", "now": NOW, "dry_run": False}

    while_another_saves(monkeypatch, document, lambda: import_document(workspace=document.workspace, **options))

    waiting = HeldChange.objects.values_list("proposed", flat=True)
    assert all("almonds" in text and "sugar" in text for text in [*waiting, *([] if waiting else [head()])])
    assert "sugar" in head()


def test_an_accepted_change_is_merged(document, monkeypatch):
    propose_text(document, TEXT.replace("walnuts", "almonds"), base_number=1, reason="", by=By(AGENT, NOW))
    change = HeldChange.objects.get()

    while_another_saves(monkeypatch, document, lambda: accept_text(change, change.proposed, by=BY))

    assert head() == TEXT.replace("walnuts", "almonds") + "- The sugar is in the jar\n"

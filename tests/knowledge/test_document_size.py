"""The limit of a memory document's length, and the pages of documents that are stored above it."""

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import (
    bring_back,
    edit_fact,
    restore_revision,
    save_text,
    start_document,
)
from knowledge_app.services.documents.outside_edits import import_document, import_late_text
from knowledge_app.services.documents.proposals import append_fact
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib import document_size
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Membership
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, raises_code
from tests.knowledge.test_pages import FILE

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
TEXT = "# Team\n" + "\n".join(f"- fact {number} of the team" for number in range(40)) + "\n"


@pytest.fixture
def document(workspace, monkeypatch) -> MemoryDocument:
    """Return a document with an oversize first revision and a head just below the limit."""
    document = start_document(workspace, "MEMORY.md")
    save(document, TEXT * 2)
    save(document, TEXT)
    monkeypatch.setattr(document_size, "MAX_DOCUMENT_CHARS", len(TEXT))
    return document


def save(document: MemoryDocument, text: str) -> None:
    revise_document(document, text, base=document.head, by=BY, reason="by hand")


def a_fact(**conditions: object) -> Fact:
    return Fact.objects.filter(**conditions).earliest("id")


WAYS = {
    "page": lambda document: save_text(document, TEXT + "-", base_number=2, by=BY, reason=""),
    "merged": lambda document: save_text(document, TEXT * 2 + "-", base_number=1, by=BY, reason=""),
    "restored": lambda document: restore_revision(document, 1, by=BY),
    "fact": lambda document: append_fact(document, "one more fact of the team", by=BY),
    "reworded fact": lambda _document: edit_fact(
        a_fact(died=None), text="fact 0 of the whole team", category="", section="Team", by=BY
    ),
    "restored fact": lambda _document: bring_back(a_fact(died__isnull=False), by=BY),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_edit_makes_a_document_too_long(document, way):
    with raises_code("text_too_long"):
        WAYS[way](document)

    assert MemoryDocument.objects.get().head.content == TEXT


def test_a_file_that_is_too_long_with_the_hubs_own_lines_is_held(workspace, monkeypatch):
    import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", TEXT), **FILE)
    document = MemoryDocument.objects.get()
    save(document, TEXT.replace("# Team\n", "# Team\n- added in the hub\n"))
    monkeypatch.setattr(document_size, "MAX_DOCUMENT_CHARS", len(TEXT) + 30)

    import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", f"{TEXT}- from the file\n"), **FILE)

    assert "- from the file" in HeldChange.objects.get().proposed
    assert "- from the file" not in MemoryDocument.objects.get().head.content


def test_a_late_text_that_is_too_long_is_held(document):
    import_late_text(document, DocumentRecord("MEMORY.md", TEXT * 3), NOW)

    assert HeldChange.objects.get().proposed == TEXT * 3
    assert MemoryDocument.objects.get().head.content == TEXT


def test_an_oversize_document_can_be_shortened(document, monkeypatch):
    monkeypatch.setattr(document_size, "MAX_DOCUMENT_CHARS", len(TEXT) - 100)

    save(document, TEXT[:-20])

    assert MemoryDocument.objects.get().head.content == TEXT[:-20]


def test_pages_of_an_oversize_document_show_its_beginning(document, viewer, viewer_client, monkeypatch):
    monkeypatch.setattr(document_size, "MAX_DOCUMENT_CHARS", 500)
    monkeypatch.setattr(document_size, "SHOWN_CHARS", 300)
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    slug, pk = document.workspace.slug, document.pk

    def page(name: str, query: str = "") -> str:
        return viewer_client.get(reverse(f"documents:{name}", args=[slug, pk]) + query, follow=True).content.decode()

    for shown in (page("document"), page("document", "?diff=1"), page("compare")):
        assert "Only the beginning is shown" in shown
        assert "- fact 39 of the team" not in shown
    for name in ("edit-document", "blame", "compact"):
        assert "is too long for this page" in page(name)
    fact = Fact.objects.filter(died=None).latest("id")
    assert viewer_client.get(reverse("documents:fact", args=[slug, fact.pk])).status_code == 200


def test_saving_too_long_a_text_keeps_it_in_the_form(document, viewer, viewer_client):
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    url = reverse("documents:edit-document", args=[document.workspace.slug, document.pk])

    response = viewer_client.post(url, {"base": 2, "text": TEXT + "- one more fact\n"})

    assert response.status_code == 422
    assert "A document can have at most" in response.content.decode()
    assert "- one more fact" in response.content.decode()

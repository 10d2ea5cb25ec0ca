"""The pages of a document: one row of tabs, the other documents, revisions, and the source."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents.editing import save_text, start_document
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.memory.test_memory_list import import_text

pytestmark = pytest.mark.django_db
TABS = ["Read", "Facts", "Edit", "History", "Origins", "Compare"]
PAGES = {  # URL name: current tab
    "document": "Read",
    "facts": "Facts",
    "compact": "Facts",
    "edit-document": "Edit",
    "revisions": "History",
    "blame": "Origins",
    "compare": "Compare",
}


@pytest.fixture
def document(workspace) -> MemoryDocument:
    import_text(workspace, "# Team\n- Ana *leads*\n- Bo writes\n")
    save_text(start_document(workspace, "USER.md"), "- tea\n", base_number=0, by=By(PERSON, NOW), reason="")
    return MemoryDocument.objects.get(name="MEMORY.md")


def page(client, name: str, document: MemoryDocument, **query) -> str:
    response = client.get(reverse(f"documents:{name}", args=["atlas", document.pk]), query)
    assert response.status_code == 200
    return response.content.decode()


def tabs(html: str) -> tuple[list[str], list[str]]:
    """Return the labels of the document's tabs, and of the current one."""
    row = re.search(r'<nav class="tabs" aria-label="Views">(.*?)</nav>', html)
    found = re.findall(r"<a ([^>]*)>(\w+)</a>", row[1])
    return [label for _, label in found], [label for values, label in found if "aria-current" in values]


@pytest.mark.parametrize(("name", "current"), PAGES.items())
def test_every_page_has_the_same_tabs_and_leads_to_the_other_documents(name, current, document, editor):
    html = page(editor, name, document)

    assert tabs(html) == (TABS, [current])
    other = reverse("documents:document", args=["atlas", MemoryDocument.objects.get(name="USER.md").pk])
    assert f'href="{other}"' in html


@pytest.mark.parametrize("name", ["document", "facts", "revisions", "blame", "compare"])
def test_viewers_have_every_tab_but_edit(name, document, viewer_client):
    assert tabs(page(viewer_client, name, document))[0] == [tab for tab in TABS if tab != "Edit"]


def test_the_text_is_shown_once_formatted_or_as_source(document, viewer_client):
    formatted, source = (
        page(viewer_client, "document", document),
        page(viewer_client, "document", document, view="source"),
    )

    assert "<em>leads</em>" in formatted
    assert "Ana *leads*" not in formatted
    assert "Ana *leads*" in source
    assert "<em>leads</em>" not in source
    assert 'view=source"' in formatted


def test_the_history_lists_revisions_and_removed_facts(document, editor):
    save_text(document, "# Team\n- Ana *leads*\n", base_number=1, by=By(PERSON, NOW), reason="Bo left")

    html = page(editor, "revisions", document)

    assert html.index("Bo left") < html.index("Imported from disk")
    assert "Removed facts" in html
    assert reverse("documents:return-fact", args=["atlas", Fact.objects.get(text="Bo writes").pk]) in html
    assert "View as of this date" in html
    assert tabs(page(editor, "document", document, revision=1))[1] == ["History"]


def test_the_history_of_a_document_of_another_workspace_is_not_found(document, stranger_client):
    assert stranger_client.get(reverse("documents:revisions", args=["atlas", document.pk])).status_code == 404

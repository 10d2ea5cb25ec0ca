"""Prose in documents, in the memory list."""

import pytest
from django.urls import reverse

from knowledge_app.services.documents.revisions import open_document, revise_document
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.memory.test_memory_list import kinds, page

pytestmark = pytest.mark.django_db
TOPIC = """---
name: pool-limit
type: project
---

The pool limit is 60, not 40.

Ask Ana before you raise it.
"""


@pytest.mark.slow
@pytest.mark.postgres
def test_documents_of_prose_are_listed_with_their_text(workspace, viewer_client):
    document = open_document(workspace, "memory/pool-limit.md")
    revise_document(document, TOPIC, base=None, reason="r", by=By(PERSON, NOW))
    address = reverse("documents:document", args=["atlas", document.pk])

    html = page(viewer_client)

    assert kinds(html) == ["document"]
    row = html.split('<ol class="rows memory-rows">')[1]
    assert f'<a href="{address}"' in row
    assert "The pool limit is 60, not 40." in row
    assert "name: pool-limit" not in row
    assert "Prose <span" in html
    assert kinds(page(viewer_client, kind="document")) == ["document"]
    for query in ({"author": "person"}, {"age": "older"}, {"q": "raise"}):
        assert kinds(page(viewer_client, **query)) == ["document"]
    for query in ({"author": "agent"}, {"pinned": "1"}, {"review": "1"}, {"certainty": "certain"}, {"category": "x"}):
        assert kinds(page(viewer_client, **query)) == []


def test_prose_beside_facts_is_found_unless_a_fact_says_it(workspace, viewer_client):
    document = open_document(workspace, "MEMORY.md")
    revise_document(
        document, "# Pool\n\nAna leads here.\n\n- tea at four\n", base=None, reason="r", by=By(PERSON, NOW)
    )

    assert kinds(page(viewer_client)) == ["memory"]
    assert kinds(page(viewer_client, q="Ana")) == ["document"]
    assert kinds(page(viewer_client, q="tea")) == ["memory"]


def test_documents_of_prose_are_exported_but_not_edited(workspace, editor):
    document = open_document(workspace, "notes.md")
    revision = revise_document(document, "Ana leads here.", base=None, reason="r", by=By(PERSON, NOW))
    box = {"row": f"document:{revision.pk}"}

    answer = editor.post(reverse("export-memory", args=["atlas"]), box | {"format": "jsonl"})
    assert "Ana leads here." in b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
    refused = editor.post(reverse("edit-memory", args=["atlas"]), box | {"action": "withdraw"}, follow=True)
    assert "Documents can&#x27;t be withdrawn." in refused.content.decode()


def test_links_in_lines_are_shown_as_text(workspace, viewer_client):
    document = open_document(workspace, "MEMORY.md")
    text = "- [Pool limit](pool-limit.md) — 60, not 40\n"
    revise_document(document, text, base=None, reason="r", by=By(PERSON, NOW))

    assert "Pool limit — 60, not 40" in page(viewer_client)
    assert "<mark>Pool</mark> limit — 60" in page(viewer_client, q="pool")

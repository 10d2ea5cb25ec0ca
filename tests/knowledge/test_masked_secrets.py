"""Secrets in documents are masked, and revealed to editors with an audit record."""

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, MemoryDocument, SemanticGraph
from knowledge_app.services.documents.editing import start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.graph.export import graph_document
from sessions_app.models import AuditRecord, Membership
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
TEXT = f"# Team\n\n- the deploy token is {SECRET}\n- likes tea\n"


@pytest.fixture
def document(workspace) -> MemoryDocument:
    document = start_document(workspace, "MEMORY.md")
    for text in ("# Team\n", TEXT):
        revise_document(document, text, base=document.head, by=By(PERSON, NOW), reason="by hand")
    add_note(workspace, f"rotated {SECRET}", by=By(PERSON, NOW))
    return document


def pages(document: MemoryDocument) -> list[str]:
    slug = document.workspace.slug
    names = ("document", "facts", "blame", "compare")
    fact = Fact.objects.get(text__contains="deploy")
    return [
        *[reverse(f"documents:{name}", args=[slug, document.pk]) for name in names],
        reverse("documents:document", args=[slug, document.pk]) + "?diff=1",
        reverse("documents:fact", args=[slug, fact.pk]),
        reverse("documents:history", args=[slug]),
        reverse("document-markdown", args=[slug, document.pk]),
        reverse("search", args=[slug]) + "?q=deploy",
        reverse("search", args=[slug]) + "?q=rotated",
    ]


@pytest.mark.slow
@pytest.mark.postgres
def test_viewers_never_see_a_secret(document, viewer_client):
    for page in pages(document):
        shown = viewer_client.get(page).content.decode()
        assert "deploy" in shown or "rotated" in shown, page
        assert SECRET not in shown, page

    reveal = reverse("documents:reveal-document", args=[document.workspace.slug, document.pk])
    assert viewer_client.post(reveal).status_code == 404


def test_editors_reveal_a_secret_with_an_audit_record(document, viewer, viewer_client):
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    slug, pk = document.workspace.slug, document.pk
    ways = [
        lambda: viewer_client.post(reverse("documents:reveal-document", args=[slug, pk])),
        lambda: viewer_client.get(reverse("documents:edit-document", args=[slug, pk])),
        lambda: viewer_client.get(reverse("document-markdown", args=[slug, pk])),
    ]
    assert SECRET not in viewer_client.get(reverse("documents:document", args=[slug, pk])).content.decode()

    for count, way in enumerate(ways, 1):
        assert SECRET in way().content.decode()
        assert AuditRecord.objects.filter(action="document.revealed").count() == count


def test_the_exported_graph_has_no_password(workspace):
    SemanticGraph.objects.create(workspace=workspace, base_url="https://user:pass@models.example/v1?x=a@b")

    assert graph_document(workspace)["meta"]["base_url"] == "https://models.example/v1?x=a@b"

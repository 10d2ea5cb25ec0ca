"""Memory documents by the person whom they are about."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.documents.by_person import documents_by_person
from memoryhub.lib.text.about_person import UNNAMED, person_of
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
TOPIC = "---\nname: tea\ntype: user\n---\n"


@pytest.mark.parametrize(
    ("name", "text", "person"),
    [
        ("USER.md", "# User\n\n- **Name**: Ana Lind\n- **Timezone**: UTC\n", "Ana Lind"),
        ("USER.md", "- **Name:** Ana Lind\n", "Ana Lind"),
        ("USER.md", "The user's name is Ana Lind, and she likes tea.\n", "Ana Lind"),
        ("USER.md", "- **Name**: (your name)\n- **Preferred name:** Ana\n", "Ana"),
        ("USER.md", "- **Name**: [unknown]\n", UNNAMED),
        ("USER.md", "- **Project name**: Atlas\n", UNNAMED),
        ("hermes/memories/USER.md", "likes tea\n§\nName: Ana\n", "Ana"),
        ("memory/tea.md", TOPIC + "Prefers tea.\n", UNNAMED),
        ("memory/tea.md", TOPIC + "Name: Ana\n", "Ana"),
        ("memory/tea.md", TOPIC.replace("user", "project") + "Name: Ana\n", None),
        ("users/12345/MEMORY.md", "- likes tea\n", "12345"),
        ("users/12345/MEMORY.md", "- Name: Ana\n", "Ana"),
        ("codex/people/ana-lind.md", "- likes tea\n", "ana-lind"),
        ("people/README.md", "How this folder works.", None),
        ("MEMORY.md", "- Name: Ana\n", None),
        ("SUPERUSER.md", "- Name: Ana\n", None),
        ("superusers/ana.md", "- likes tea\n", None),
    ],
)
def test_a_document_is_about_the_person_whom_it_names(name, text, person):
    assert person_of(name, text) == person


def document_with(workspace: Workspace, text: str, *, name: str) -> None:
    revise_document(open_document(workspace, name), text, base=None, by=By(PERSON, NOW), reason="")


@pytest.fixture
def team(workspace) -> Workspace:
    other = Workspace.objects.create(slug="forge", name="Forge")
    document_with(workspace, "- **Name**: Ana Lind\n", name="USER.md")
    document_with(other, "- Name: ana lind\n", name="people/ana.md")
    document_with(other, "- likes coffee\n", name="people/bo.md")
    document_with(other, "- likes coffee\n", name="USER.md")
    document_with(other, "- the hub\n", name="MEMORY.md")
    return other


def listed(people) -> list[tuple[str, list[str]]]:
    return [(one.name, [f"{row.workspace.slug}:{row.name}" for row in one.documents]) for one in people]


def test_documents_of_all_workspaces_are_grouped_by_person(team):
    assert listed(documents_by_person(Workspace.objects.all())) == [
        ("Ana Lind", ["atlas:USER.md", "forge:people/ana.md"]),
        ("bo", ["forge:people/bo.md"]),
        ("", ["forge:USER.md"]),
    ]
    assert listed(documents_by_person(Workspace.objects.all(), "LIND")) == [
        ("Ana Lind", ["atlas:USER.md", "forge:people/ana.md"])
    ]


def test_the_page_lists_only_workspaces_that_somebody_may_read(team, viewer_client, admin_client):
    address = reverse("people-documents")

    assert listed(viewer_client.get(address).context["people"]) == [("Ana Lind", ["atlas:USER.md"])]
    page = admin_client.get(address, {"name": "bo"})
    assert listed(page.context["people"]) == [("bo", ["forge:people/bo.md"])]
    document = page.context["people"][0].documents[0]
    assert reverse("documents:document", args=["forge", document.pk]) in page.content.decode()
    assert "No matches" in admin_client.get(address, {"name": "nobody"}).content.decode()


def test_a_correction_of_the_name_moves_a_document(team):
    document = MemoryDocument.objects.get(name="people/bo.md")
    save_text(document, "- Name: Ana Lind\n", base_number=1, by=By(PERSON, NOW), reason="")

    assert [one.name for one in documents_by_person(Workspace.objects.all())] == ["Ana Lind", ""]


def test_the_command_lists_the_same(team, capsys):
    call_command("documents_by_person", "--workspace", "forge", "--name", "ana", "--json")

    assert json.loads(capsys.readouterr().out) == {
        "people": [{"name": "ana lind", "documents": [{"workspace": "forge", "name": "people/ana.md"}]}]
    }

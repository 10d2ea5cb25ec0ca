"""Long documents: the list of facts begins where a link says, and the preview comes after the editor."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from knowledge_app.models import Fact, MemoryDocument
from memoryhub.documents.views.editing import MAX_FIRST_PREVIEW
from sessions_app.models import Membership
from tests.memory.test_memory_list import import_text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("line", [1, 49, 50, 51, 119])
def test_a_link_to_a_fact_leads_to_its_row(workspace, viewer_client, line):
    import_text(workspace, "".join(f"- fact {number}\n" for number in range(120)))
    fact = Fact.objects.get(text=f"fact {line}")
    address = reverse("documents:facts", args=[workspace.slug, fact.document_id])

    link = re.search(rf'href="({address}[^"]*)#fact-{fact.pk}"', viewer_client.get(fact_url(fact)).text)

    page = viewer_client.get(link[1])
    assert f'id="fact-{fact.pk}"' in page.text
    assert page.context["page"].previous_url
    assert "fact=" not in page.context["page"].previous_url


@pytest.mark.parametrize("fact", ["x", "0", "999999999"])
def test_a_link_to_a_missing_fact_shows_the_first_ones(workspace, viewer_client, fact):
    import_text(workspace, "- first\n- second\n")
    address = reverse("documents:facts", args=[workspace.slug, MemoryDocument.objects.get().pk])

    rows = viewer_client.get(address, {"fact": fact}).context["page"].rows

    assert [row.text for row in rows] == ["first", "second"]


def fact_url(fact: Fact) -> str:
    return reverse("documents:fact", args=[fact.workspace.slug, fact.pk])


@pytest.mark.parametrize(("size", "is_later"), [(MAX_FIRST_PREVIEW - 10, False), (MAX_FIRST_PREVIEW + 10, True)])
def test_the_preview_of_a_long_text_comes_after_the_editor(workspace, viewer: User, viewer_client, size, is_later):
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    import_text(workspace, "- *tea*\n" + "- x\n" * (size // 4 - 2))

    address = reverse("documents:edit-document", args=[workspace.slug, MemoryDocument.objects.get().pk])
    html = viewer_client.get(address).text

    assert ("<em>tea</em>" in html) != is_later
    assert ('hx-trigger="load, input' in html) == is_later

"""Pages of long documents: the first lines come with the page, and the browser asks for the rest."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from knowledge_app.models import MemoryDocument
from memoryhub.documents.views.documents import FIRST_LINES
from memoryhub.documents.views.editing import MAX_FIRST_PREVIEW
from sessions_app.models import Membership
from tests.memory.test_memory_list import import_text

pytestmark = pytest.mark.django_db
LAST = 3 * FIRST_LINES // 10
HTMX = {"HX-Request": "true"}


@pytest.fixture
def document(workspace) -> MemoryDocument:
    sections = [
        f"# Part {number}\n\n" + "".join(f"- fact {number}.{line}\n" for line in range(8)) for number in range(LAST)
    ]
    import_text(workspace, "".join(sections))
    return MemoryDocument.objects.get()


def url(name: str, document: MemoryDocument) -> str:
    return reverse(f"documents:{name}", args=[document.workspace.slug, document.pk])


def test_the_rest_of_a_long_document_follows_its_first_sections(document, viewer_client):
    address = url("document", document)
    first = viewer_client.get(address)
    rest_url = f"?from={first.context['next']}"

    assert "fact 0.0" in first.text
    assert f"fact {LAST - 1}.7" not in first.text
    assert f'hx-get="{address}{rest_url}" hx-trigger="load"' in first.text
    assert f'href="#section-{LAST - 1}-part-{LAST - 1}"' in first.text  # the menu has all sections

    rest = viewer_client.get(address + rest_url, headers=HTMX).text

    assert "<html" not in rest
    assert "hx-get" not in rest
    assert shown(first.text) + shown(rest) == [f"Part {number}" for number in range(LAST)]


def shown(html: str) -> list[str]:
    return [part.partition("</h2>")[0] for part in html.split("<h2>") if part.startswith("Part ")]


def test_the_rest_is_a_page_without_a_script(document, viewer_client):
    html = viewer_client.get(url("document", document), {"from": LAST - 1}).text

    assert shown(html) == [f"Part {LAST - 1}"]
    assert "Show the beginning" in html
    assert "Show the rest" not in html
    assert '?view=source"' in html  # of the whole text


@pytest.mark.parametrize("start", [LAST, 10**8, -1, "x"])
def test_a_wrong_start_shows_the_beginning(document, viewer_client, start):
    assert shown(viewer_client.get(url("document", document), {"from": start}).text)[0] == "Part 0"


def test_a_revealed_document_is_whole(document, viewer: User, viewer_client):
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)

    html = viewer_client.post(url("reveal-document", document)).text

    assert shown(html) == [f"Part {number}" for number in range(LAST)]


@pytest.mark.parametrize(("size", "is_later"), [(MAX_FIRST_PREVIEW - 10, False), (MAX_FIRST_PREVIEW + 10, True)])
def test_the_preview_of_a_long_text_comes_after_the_editor(workspace, viewer: User, viewer_client, size, is_later):
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    import_text(workspace, "- *tea*\n" + "- x\n" * (size // 4 - 2))

    html = viewer_client.get(url("edit-document", MemoryDocument.objects.get())).text

    assert ("<em>tea</em>" in html) != is_later
    assert ('hx-trigger="load, input' in html) == is_later

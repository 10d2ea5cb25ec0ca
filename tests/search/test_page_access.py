"""Which workspaces the search page covers, and who may search them."""

from contextlib import nullcontext

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from sessions_app.models import Membership, Workspace
from tests.search.test_pages import fill, page
from tests.searches import know, say

pytestmark = pytest.mark.django_db
PAGES = ["search", "search-count", "search-facets", "complete-search", "saved-searches"]


@pytest.fixture
def other(db) -> Workspace:
    """A workspace that the viewer can't see."""
    return Workspace.objects.create(slug="other", name="Secret project")


def test_all_visible_workspaces_are_searched_at_once(workspace, viewer, viewer_client, other):
    second = Workspace.objects.create(slug="borea", name="Borea")
    Membership.objects.create(workspace=second, user=viewer, role=Membership.Role.VIEWER)
    for each in (workspace, second, other):
        know(each, f"heron of {each.slug}")

    html = page(viewer_client, None, q="heron")

    assert "of atlas" in html
    assert "of borea" in html
    assert "of other" not in html
    assert 'href="/w/borea/"' in html
    assert "/search/export/" in html
    assert 'value="pin"' not in html
    assert 'value="withdraw"' not in html


def test_someone_without_a_workspace_finds_nothing(workspace, stranger_client):
    fill(workspace)

    assert "No matches" in page(stranger_client, None, q="heron")
    assert "No matches" in page(stranger_client, None, "search-count", q="heron")
    assert page(stranger_client, None, "search-facets", q="heron").strip() == ""


def test_hub_operators_search_all_workspaces(workspace, other, admin_client):
    know(workspace, "heron of atlas")
    know(other, "heron of other")

    html = page(admin_client, None, q="heron")

    assert "of atlas" in html
    assert "of other" in html


@pytest.mark.slow
@pytest.mark.postgres
def test_pages_reveal_nothing_about_other_workspaces(workspace, viewer_client, other, monkeypatch):
    """Both contain the same words, so only counts, frequencies and ids could differ."""
    for name in ("ranking", "listing"):  # a busy machine may exceed the time limit, which the page reports
        monkeypatch.setattr(f"memoryhub.search.{name}.time_limit", lambda *_: nullcontext())
    fill(workspace, "heron")
    pages = {
        name: [page(viewer_client, place, name, q="heron", cursor="5", facets="1") for place in (workspace, None)]
        for name in PAGES
    }
    for number in range(5):
        fill(other, f"heron {number}")

    for name, before in pages.items():
        after = [page(viewer_client, place, name, q="heron", cursor="5", facets="1") for place in (workspace, None)]
        assert list(map(plain, after)) == list(map(plain, before)), name


def plain(html: str) -> str:
    """Return a page without its CSRF token and relative times."""
    return "\n".join(line for line in html.split("\n") if "csrf" not in line.lower() and "ago" not in line)


def test_completions_do_not_include_other_workspaces(workspace, viewer_client, other):
    fill(other, "egret")

    for field in ("session:cli", "channel:c", "tag:eg", "source:eg", "author:", "tool:", "role:u", "category:"):
        for place in (workspace, None):
            assert page(viewer_client, place, "complete-search", q=field, cursor=len(field)).strip() == "", field


def test_the_context_of_another_workspace_s_entry_is_not_found(workspace, viewer_client, other):
    foreign = say(other, "heron")[0]

    for slug in (workspace.slug, other.slug):
        assert viewer_client.get(reverse("search-around", args=[slug, foreign.pk])).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_another_persons_workspace_is_not_found(name, workspace, stranger_client):
    assert stranger_client.get(reverse(name, args=[workspace.slug])).status_code == 404


def test_search_requires_a_login(workspace):
    assert Client().get(reverse("search", args=[workspace.slug])).status_code == 302
    assert User.objects.count() == 0

"""Counts, facets and completion on the search page."""

import pytest
from django.urls import reverse

from sessions_app.models import Session, Workspace
from tests.knowledge.test_pages import count_queries
from tests.search.test_pages import fill, page
from tests.searches import say

pytestmark = pytest.mark.django_db


def test_the_count_is_exact_and_offers_select_all(workspace, viewer_client, monkeypatch):
    fill(workspace, count=3)

    html = page(viewer_client, workspace, "search-count", q="heron", kind="knowledge")
    monkeypatch.setattr("memoryhub.search.listing.WINDOW", 2)
    cut = page(viewer_client, workspace, "search-count", q="heron", kind="knowledge")

    assert "<strong>3</strong> matches" in html
    assert 'name="expected" value="3"' in html
    assert "More than 2" in cut
    assert 'name="all"' not in cut


def test_facets_narrow_and_widen(workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, "search-facets", q="heron")
    narrowed = page(viewer_client, workspace, "search-facets", q="category:finding heron")

    assert 'href="/w/atlas/search/?q=category%3Afinding+heron"' in html
    assert 'href="/w/atlas/search/?q=on%3A2026-04+heron"' in html
    assert "April 2026" in html
    assert 'href="/w/atlas/search/?q=heron" aria-current="true"' in narrowed


def test_sessions_show_their_titles(workspace, viewer_client):
    for number, title in enumerate(["Morning digest", "Standup", "Standup", ""]):
        say(workspace, "heron", key=f"slack:{number}")
        Session.objects.filter(key=f"slack:{number}").update(title=title)

    html = page(viewer_client, workspace, "search-facets", q="heron")
    found = page(viewer_client, workspace, q="heron session:slack:0 -session:slack:3")

    assert 'title="Morning digest · slack:0" hx-disable>Morning digest</span>' in html
    assert ">Standup · slack:1</span>" in html
    assert ">Standup · slack:2</span>" in html
    assert ">slack:3</span>" in html
    assert 'title="session:slack:0" hx-disable>session:Morning digest</span>' in found
    assert 'title="-session:slack:3" hx-disable>-session:slack:3</span>' in found
    assert "session: Morning digest" in found


def test_titles_of_other_workspaces_are_not_shown(workspace, viewer_client):
    say(workspace, "heron", key="slack:0")
    other = Workspace.objects.create(slug="other", name="Other")
    say(other, "heron", key="slack:0")
    Session.objects.filter(workspace=other).update(title="Private matters")

    for place in (workspace, None):
        assert "Private" not in page(viewer_client, place, "search-facets", q="heron")
        assert "Private" not in page(viewer_client, place, q="heron session:slack:0")


def test_session_titles_take_one_query(workspace, viewer_client):
    url = f"{reverse('search-facets', args=[workspace.slug])}?q=heron"
    say(workspace, "heron", key="slack:0")
    one = count_queries(viewer_client, url)

    for number in range(1, 8):
        say(workspace, "heron", key=f"slack:{number}")
    Session.objects.update(title="Morning digest")

    assert count_queries(viewer_client, url) == one


def test_without_scripts_count_and_facets_come_with_the_page(workspace, viewer_client):
    fill(workspace)

    assert 'href="/w/atlas/search/?q=heron&amp;facets=1"' in page(viewer_client, workspace, q="heron")
    html = page(viewer_client, workspace, q="heron", facets="1")
    assert "</strong> matches" in html
    assert "April 2026" in html


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("categ", "category:"),
        ("kind:know", "knowledge"),
        ("session:cli:he", "cli:heron"),
        ("channel:c", "cli"),
        ("role:us", "user"),
        ("tag:he", "heron"),
        ("source:from", "from heron"),
        ("category:fin", "finding"),
        ("after:tod", "today"),
    ],
)
def test_typed_text_is_completed(typed, offered, workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, "complete-search", q=typed, cursor=len(typed))

    assert f'<span class="mono" dir="auto">{offered}</span>' in html


def test_a_chosen_completion_replaces_the_typed_text(workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, "complete-search", q="a source:from b", cursor=13)

    assert 'data-text="a source:&quot;from heron&quot; b"' in html
    assert 'data-cursor="21"' in html


def test_nothing_is_offered_inside_a_phrase(workspace, viewer_client):
    assert page(viewer_client, workspace, "complete-search", q='"session', cursor="nonsense").strip() == ""

"""Counts, facets and completion on the search page."""

import pytest

from tests.search.test_pages import fill, page

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

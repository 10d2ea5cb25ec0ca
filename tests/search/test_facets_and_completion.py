"""Counts, facets and completion on the search page."""

from datetime import date
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.lib.search.query import parse
from memoryhub.search import Scope
from memoryhub.search.listing import facets
from memoryhub.search.month_counts import by_month
from memoryhub.search.months import count_by_month
from sessions_app.models import Entry, Session, Workspace
from tests.hub import NOW
from tests.knowledge.test_pages import count_queries
from tests.query_counts import queries_apart_from_limits
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


def test_a_message_of_the_first_centuries_is_in_a_month(workspace, viewer_client):
    say(workspace, "heron", timestamp="0800-12-25T10:00:00Z")

    html = page(viewer_client, workspace, "search-facets", q="heron")

    assert "q=on%3A0800-12+heron" in html


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


def _months(client, place, **query):
    found = client.get(f"/w/{place.slug}/search/", query).context["months"]
    return found and (found["chart"].columns, found["chart"].values, unquote(found["links"].open))


def test_a_histogram_shows_matches_by_month_and_narrows_to_one(workspace, viewer_client):
    for month, count in ((1, 2), (2, 1), (5, 1)):
        for number in range(count):
            say(workspace, "heron", key=f"slack:{month}-{number}", timestamp=f"2026-{month:02}-09T10:00:00Z")

    columns, values, target = _months(viewer_client, workspace, q="heron kind:entry")
    assert [(column.first.month, value[0]) for column, value in zip(columns, values, strict=True)] == [
        (1, 2),
        (2, 1),
        (5, 1),
    ]
    assert target == "/w/atlas/search/?q=on:MONTH+heron+kind:entry"

    columns, values, target = _months(viewer_client, workspace, q="on:2026-02 heron kind:entry")
    assert values == ((0, 2), (1, 0), (0, 1))
    assert target == "/w/atlas/search/?q=on:MONTH+heron+kind:entry"
    for query in ({"part": "1"}, {"q": "absent"}):
        assert _months(viewer_client, workspace, **{"q": "heron", **query}) is None


def test_matches_by_month_take_one_query(workspace):
    fill(workspace, count=2)
    scope, query = Scope((workspace.pk,), own_sessions=True), parse("heron", now=NOW)

    with CaptureQueriesContext(connection) as queries:
        months = count_by_month(scope, query, kinds=("entry", "knowledge"))

    assert months == {date(2026, 4, 1): 4}
    assert len(queries_apart_from_limits(queries)) == 1


def test_months_are_those_of_the_readers_time_zone(workspace):
    for number, minute in enumerate((10, 14, 16)):  # before, before and after midnight in Kathmandu
        say(workspace, "heron", key=f"slack:{number}", timestamp=f"2026-04-30T18:{minute}:30Z")
    scope, query = Scope((workspace.pk,), own_sessions=True), parse("heron", now=NOW)

    with timezone.override("Asia/Kathmandu"):
        months = count_by_month(scope, query, kinds=("entry",))
        values = facets(scope, query, kinds=("entry",))["month"]

    assert months == {date(2026, 4, 1): 2, date(2026, 5, 1): 1}
    assert [(one.value, one.count) for one in values] == [("2026-05", 1), ("2026-04", 2)]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL knows the months of a time zone")
def test_the_matches_of_a_month_are_counted_in_the_database(workspace):
    for number in range(12):
        say(workspace, "heron", key=f"slack:{number}", timestamp=f"2026-04-{number + 10}T18:{number + 10}:30Z")

    rows = Entry.objects.annotate(month=by_month("occurred_at")).values("month").annotate(matches=Count("pk"))

    assert [(row["month"], row["matches"]) for row in rows.order_by()] == [("2026-04", 12)]


def test_months_that_take_too_long_are_left_out_and_the_page_says_so(workspace, viewer_client, monkeypatch):
    fill(workspace)
    monkeypatch.setattr("memoryhub.search.months.time_limit", Mock(side_effect=SearchTooSlow("slow")))
    page = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": "heron"})

    assert "Matches by month aren't shown: counting them took too long." in page.content.decode()
    assert "whole=1" in page.context["whole_url"]


def test_facets_of_a_filtered_search_count_the_newest_matches(workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.search.listing.WINDOW", 2)
    for number, role in enumerate(("user", "assistant", "assistant")):
        say(workspace, f"crane {number}", role=role)

    found = facets(Scope((workspace.pk,)), parse("crane after:2020-01-01", now=NOW), kinds=["entry"])

    assert [(one.value, one.count) for one in found["role"]] == [("assistant", 2)]

"""Best results list at most three messages of a session."""

import pytest

from sessions_app.models import Session
from tests.search.test_pages import page
from tests.searches import know, say, search

pytestmark = pytest.mark.django_db


def test_only_the_best_messages_of_a_session_are_listed(workspace, viewer_client):
    say(workspace, *[f"heron {number}" for number in range(5)], key="slack:0")
    Session.objects.update(title="Morning digest")
    say(workspace, *["heron"] * 4)
    know(workspace, "heron")

    html = page(viewer_client, workspace, q="heron")

    assert html.count('class="search-title"') == 3 + 4 + 1
    assert html.count("5 messages in <bdi>Morning digest</bdi>") == 1
    assert 'href="/w/atlas/search/?q=session%3Aslack%3A0+heron" hx-disable>Show all</a>' in html


def test_a_session_filter_and_newest_first_list_all_messages(workspace, viewer_client):
    say(workspace, *[f"heron {number}" for number in range(5)], key="slack:0")

    for query in ({"q": "heron session:slack:0"}, {"q": "heron", "sort": "newest"}):
        html = page(viewer_client, workspace, **query)
        assert html.count('class="search-title"') == 5
        assert "Show all" not in html
    assert len(search("heron", workspace).hits) == 5


@pytest.mark.slow
@pytest.mark.postgres
def test_pages_of_grouped_results_follow_each_other(workspace, viewer_client):
    for number in range(15):
        say(workspace, *[f"heron {number} {part}" for part in "abcd"], key=f"slack:{number}")
    url, seen = f"/w/{workspace.slug}/search/?q=heron", []

    while url:
        found = viewer_client.get(url).context
        seen += [(row.key, row.where, bool(row.session_url)) for row in found["results"].rows]
        url = found["next_url"]

    assert len({key for key, _, _ in seen}) == len(seen) == 45
    assert len({where for _, where, has_link in seen if has_link}) == 15

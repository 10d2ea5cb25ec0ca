from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from knowledge_app.models import KeyValue, Term
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.rows.importing import import_cached_responses, import_key_values
from memoryhub.graph.neighbours import import_graph
from memoryhub.lib.http.pagination import encode_cursor
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    GraphRecord,
    KeyValueRecord,
    TermRecord,
)
from memoryhub.search import KINDS
from sessions_app.models import Membership, Workspace
from tests.hub import NOW
from tests.knowledge.test_pages import HOSTILE, count_queries
from tests.markup import live_markup
from tests.searches import know, log, observe, say

pytestmark = pytest.mark.django_db
FILE = {"path": "file", "now": NOW, "dry_run": False}


def fill(workspace: Workspace, text: str = "heron", count: int = 1) -> None:
    """Create rows of every kind except summaries that contain a word."""
    names = [f"{text} {number}" for number in range(count)]
    say(workspace, *names, key=f"cli:{text[:20]}")
    for name in names:
        know(workspace, name, tags=[text[:40]], source=f"from {text}"[:90])
        observe(workspace, name, source=text[:40])
        log(workspace, name)
    import_key_values(workspace, [KeyValueRecord(name, name) for name in names], **FILE)
    import_cached_responses(
        workspace, [CachedResponseRecord(name, name, name, name, NOW, NOW) for name in names], **FILE
    )
    lines = "\n".join(f"- {name}" for name in names)
    import_document(
        workspace=workspace, record=DocumentRecord("MEMORY.md", f"# About {text}\n{text}\n{lines}"), **FILE
    )


def page(client: Client, workspace: Workspace | None, name: str = "search", *, htmx: bool = False, **query) -> str:
    """Return the search page of a workspace, or of the whole hub for None."""
    url = reverse(name, args=[workspace.slug]) if workspace else reverse(f"hub-{name}")
    response = client.get(url, query, headers={"HX-Request": "true"} if htmx else {})
    assert response.status_code == 200
    return response.content.decode()


def test_results_of_every_kind_link_to_their_rows(workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, q="heron")

    for row, name in (
        (workspace.entries.get(), "sessions:entry"),
        (workspace.knowledge_entries.get(), "knowledge:knowledge-entry"),
        (workspace.observations.get(), "knowledge:observation"),
        (workspace.key_values.get(), "knowledge:key-value"),
        (workspace.cached_responses.get(), "knowledge:cached-response"),
        (workspace.documents.get(), "documents:document"),
        (workspace.facts.get(), "documents:fact"),
    ):
        assert reverse(name, args=[workspace.slug, row.pk]) in html
    assert "<mark>heron</mark> 0" in html
    assert f"#history-{workspace.history_entries.get().pk}" in html


@pytest.mark.slow
@pytest.mark.postgres
def test_every_link_of_a_result_opens(workspace, viewer_client):
    fill(workspace)
    html = page(viewer_client, workspace, q="heron")
    links = {part.split('"')[0] for part in html.split('class="search-title" href="')[1:]}

    assert len(links) == 9
    assert {viewer_client.get(link, follow=True).status_code for link in links} == {200}


@pytest.mark.slow
@pytest.mark.postgres
def test_invalid_parameters_fall_back_to_defaults(workspace, viewer_client):
    fill(workspace)
    day = datetime(2026, 1, 1)  # noqa: DTZ001
    given = [
        {"kind": "nonsense", "match": "?", "sort": "upwards", "mode": "grep", "decay": "NaN", "after": "%%%"},
        {"decay": "-1", "after": encode_cursor(["a", "b", "c", "d"]), "sort": "grip"},
        {"after": encode_cursor([0.5, "entry", 1, day]), "part": "x"},
        {"after": encode_cursor([day, "entry", 1]), "sort": "newest"},
        {"after": encode_cursor([NOW, 3, "x"]), "sort": "newest"},
    ]

    for query in given:
        assert "<mark>heron</mark>" in page(viewer_client, workspace, q="heron", **query), query


@pytest.mark.slow
@pytest.mark.postgres
def test_any_text_is_a_valid_search(workspace, viewer_client):
    fill(workspace)

    for text in ("\x00", '"', "((", "kind:", "-", "OR OR", "'; drop table", "x" * 3000, "נחל 見出し"):
        for name in ("search", "search-count", "search-facets"):
            assert page(viewer_client, workspace, name, q=text, facets="1"), (text, name)


def test_kind_and_filters_narrow_the_results(workspace, viewer_client):
    fill(workspace)

    chosen = page(viewer_client, workspace, q="heron", kind="knowledge")
    typed = page(viewer_client, workspace, q="heron kind:observation")

    assert chosen.count("<li data-row") == 1
    assert 'id="hit-knowledge-' in chosen
    assert typed.count("<li data-row") == 1
    assert 'id="hit-observation-' in typed


def test_only_kinds_that_the_workspace_has_are_offered(workspace, viewer_client):
    say(workspace, "The harbour opens at six")

    def offered(query: str) -> list[str]:
        form = viewer_client.get(f"/w/atlas/search/?{query}").context["form"]
        return [name for name, _ in form.fields["kind"].choices]

    assert offered("q=harbour") == ["", "entry", "session"]
    assert offered("q=harbour&kind=cached") == ["", "entry", "session", "cached"]
    hub = viewer_client.get("/search/?q=harbour").context["form"]
    assert len(hub.fields["kind"].choices) == 1 + len(KINDS)


def test_an_active_filter_can_be_removed(workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, q="heron kind:knowledge -category:lesson", sort="newest")

    assert 'href="/w/atlas/search/?q=heron+-category%3Alesson&amp;sort=newest"' in html
    assert 'href="/w/atlas/search/?q=heron+kind%3Aknowledge&amp;sort=newest"' in html


def test_match_all_requires_every_word(workspace, viewer_client):
    know(workspace, "heron and egret")
    know(workspace, "heron alone")

    assert "alone" in page(viewer_client, workspace, q="heron egret")
    assert "alone" not in page(viewer_client, workspace, q="heron egret", match="all")


@pytest.mark.slow
@pytest.mark.postgres
def test_pages_follow_each_other_without_gap_or_repeat(workspace, viewer_client):
    for number in range(45):
        know(workspace, f"heron {number}", created_at=NOW - timedelta(hours=number))

    for sort in ("best", "newest", "grip"):
        seen: list[str] = []
        url = f"{reverse('search', args=[workspace.slug])}?q=heron&sort={sort}"
        while url:
            html = viewer_client.get(url).content.decode()
            seen += [part.split('"')[0] for part in html.split('<li data-row id="')[1:]]
            ahead = html.split('rel="next" href="')[1:]
            url = ahead[0].split('"')[0].replace("&amp;", "&") if ahead else ""
        assert len(seen) == len(set(seen)) == 45, sort


def test_pages_continue_newest_first_after_the_best(workspace, viewer_client, monkeypatch):
    monkeypatch.setattr("memoryhub.search.views.search.MOST", 3)
    for number in range(3):
        know(workspace, f"heron {number}")

    assert "Newest first" in page(viewer_client, workspace, q="heron")


def test_typing_returns_the_results_fragment_with_the_last_word_as_prefix(workspace, viewer_client):
    fill(workspace)
    url = reverse("search", args=[workspace.slug])

    typed = viewer_client.get(url, {"q": "hero", "part": "1"}, headers={"HX-Request": "true"})
    sent = viewer_client.get(url, {"q": "heron", "sort": "best", "kind": ""}, headers={"HX-Request": "true"})

    assert "<html" not in typed.content.decode()
    assert "<mark>heron</mark>" in typed.content.decode()
    assert typed["HX-Replace-Url"] == "/w/atlas/search/?q=hero"
    assert sent["HX-Push-Url"] == "/w/atlas/search/?q=heron"


def test_links_keep_the_prefix_search(workspace, viewer_client):
    for number in range(25):
        know(workspace, f"heron {number}")

    html = page(viewer_client, workspace, q="hero", part="1")

    assert "part=1&amp;after=" in html
    assert "search/export/?q=hero&amp;part=1" in html


def test_an_empty_result_suggests_where_else_to_look(workspace, viewer_client):
    html = page(viewer_client, workspace, q="absent words", match="all", kind="knowledge")

    assert "No matches" in html
    assert 'href="/search/?q=absent+words&amp;kind=knowledge&amp;match=all"' in html
    assert "All kinds" in html


def test_an_empty_query_shows_the_syntax(workspace, viewer_client):
    html = page(viewer_client, workspace)

    assert "Search tips" in html
    assert 'href="/w/atlas/search/?q=kind%3Amemory%2Cknowledge"' in html


def test_every_example_parses_without_notes(workspace, viewer_client):
    html = page(viewer_client, workspace)
    links = [part.split('"')[0] for part in html.split('<dt><a href="')[1:]]

    assert len(links) == 8
    for link in links:
        assert "search-note" not in viewer_client.get(link.replace("&amp;", "&")).content.decode()


def test_the_parsed_query_is_shown(workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, q="heron -egret kind:plant")

    assert "not: egret" in html
    assert "kind: &quot;plant&quot; is not one of entry" in html


def test_a_result_explains_its_score(workspace, viewer_client):
    say(workspace, "heron heron", "nothing", key="cli:one")

    html = page(viewer_client, workspace, q="heron", kind="entry")

    assert "Why this result" in html
    assert '<td class="num">2×</td>' in html
    assert "next to a match" in html


def test_expansions_are_shown_and_can_be_turned_off(workspace, viewer_client):
    know(workspace, "a small egret")
    terms = [TermRecord("heron", [1.0, 0.0], ["egret"]), TermRecord("egret", [0.9, 0.4], ["heron"])]
    import_graph(workspace=workspace, graph=GraphRecord("p", "m", "", 2, None, "", terms), **FILE)
    assert Term.objects.count() == 2

    html = page(viewer_client, workspace, q="heron")

    assert 'title="related to heron' in html
    assert "related to heron" in html
    assert 'href="/w/atlas/search/?q=heron&amp;graph=0"' in html
    assert "No matches" in page(viewer_client, workspace, q="heron", graph="0")


def test_the_context_of_a_result_can_be_expanded(workspace, viewer_client):
    entries = say(workspace, *(f"word {number}" for number in range(20)), key="cli:one")
    url = reverse("search-around", args=[workspace.slug, entries[10].pk])

    html = viewer_client.get(url, {"q": "word"}, headers={"HX-Request": "true"}).content.decode()
    more = viewer_client.get(url, {"span": "50"}, headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in html
    assert [f"</mark> {number}<" in html for number in (6, 7, 13, 14)] == [False, True, True, False]
    assert "span=8" in html
    assert "word 0" in more
    assert "Show more" not in more
    assert viewer_client.get(url)["Location"] == reverse("sessions:entry", args=[workspace.slug, entries[10].pk])


def test_a_masked_value_is_neither_found_nor_shown(workspace, viewer_client):
    import_key_values(workspace, [KeyValueRecord("github_token", "s3cret-value")], **FILE)
    assert KeyValue.objects.get().is_secret

    assert "No matches" in page(viewer_client, workspace, q="s3cret-value")
    html = page(viewer_client, workspace, q="github_token")
    assert "s3cret" not in html
    assert "masked" in html


@pytest.mark.parametrize(
    ("mode", "shown"),
    [("grip-memory", "MEMORY.md, line 3"), ("grip-history", "HISTORY.md #"), ("grip-knowledge", "Knowledge")],
)
def test_grip_modes_show_what_grip_would_return(mode, shown, workspace, viewer_client):
    fill(workspace)

    html = page(viewer_client, workspace, q="heron", mode=mode)

    assert shown in html
    assert "The same in MemoryHub&#x27;s ranking" in html or "Use MemoryHub's ranking" in html
    assert f'href="/w/atlas/search/?q=heron&amp;kind={mode.removeprefix("grip-")}"' in html
    links = {part.split('"')[0] for part in html.split('class="search-title" href="')[1:]}
    assert {viewer_client.get(link).status_code for link in links} == {200}


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("name", ["search", "search-facets", "search-count"])
def test_pages_make_the_same_queries_for_few_rows_and_many(name, workspace, viewer, viewer_client):
    full = Workspace.objects.create(slug="borea", name="Borea")
    Membership.objects.create(workspace=full, user=viewer, role=Membership.Role.VIEWER)
    fill(workspace, count=10)
    fill(full, count=20)

    def counts(place: Workspace) -> list[int]:
        url = f"{reverse(name, args=[place.slug])}?q=heron"
        return [
            count_queries(viewer_client, url + rest)
            for rest in ("+kind:knowledge,key_value", "&kind=entry", "&kind=knowledge&sort=newest")
        ]

    assert counts(workspace) == counts(full)


@pytest.mark.slow
@pytest.mark.postgres
def test_stored_markup_is_escaped(workspace, viewer, viewer_client, admin_client):
    fill(workspace, HOSTILE)
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    entry = workspace.entries.first()

    for query in ({"q": "xss"}, {"q": HOSTILE}, {"q": "xss", "sort": "newest"}, {"q": "img", "mode": "grip-memory"}):
        for name in ("search", "search-facets"):
            assert live_markup(page(viewer_client, workspace, name, facets="1", **query)) == []
    assert live_markup(page(admin_client, None, q="xss", facets="1")) == []
    for text in ("session:", "tag:", "source:"):
        assert live_markup(page(viewer_client, workspace, "complete-search", q=text, cursor=len(text))) == []
    around = viewer_client.get(
        reverse("search-around", args=[workspace.slug, entry.pk]), headers={"HX-Request": "true"}
    )
    assert live_markup(around.content.decode()) == []


def test_the_top_bar_searches_the_current_workspace(workspace, viewer_client):
    assert (
        'action="/w/atlas/search/"' in viewer_client.get(reverse("workspace", args=[workspace.slug])).content.decode()
    )
    assert 'action="/search/"' in viewer_client.get("/").content.decode()
    assert 'href="/w/atlas/search/?kind=history"' in viewer_client.get("/w/atlas/history/").content.decode()


def test_dates_use_the_displayed_time_zone(workspace, viewer_client, settings):
    know(workspace, "heron late", created_at=datetime(2026, 4, 1, 20, tzinfo=UTC))
    settings.TIME_ZONE = "Pacific/Auckland"

    assert "late" in page(viewer_client, workspace, q="heron on:2026-04-02")
    assert "No matches" in page(viewer_client, workspace, q="heron on:2026-04-01")

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from memoryhub.lib.layouts.records import SessionRecord, SummaryRecord
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.importing import import_conversation
from tests.query_counts import count_queries
from tests.records import entry_record, session_record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def take(workspace: Workspace, record: SessionRecord, path: str = "file") -> Session:
    import_conversation(workspace=workspace, record=record, path=path, now=NOW, dry_run=False)
    return Session.objects.get(workspace=workspace, key=record.key)


def call(identity: str, minute: int, arguments: str = '{"path": "a.txt"}'):
    function = {"name": "read_file", "arguments": arguments}
    calls = [{"id": identity, "type": "function", "function": function}]
    return entry_record("", minute=minute, role="assistant", kind="tool_call", tool_calls=calls)


def result(identity: str, minute: int, content: str):
    return entry_record(
        content, minute=minute, role="tool", kind="tool_result", tool_call_id=identity, name="read_file"
    )


PAGES = ["workspace", "workspace-imports", "workspace-files", "sessions:list", "sessions:statistics"]


@pytest.mark.parametrize("name", PAGES)
def test_page_of_an_empty_workspace_works(name, workspace, viewer_client):
    assert viewer_client.get(reverse(name, args=[workspace.slug])).status_code == 200


def test_filters_are_offered_once_there_is_something_to_filter(workspace, viewer_client):
    address = reverse("sessions:list", args=[workspace.slug])
    assert 'id="id_q"' not in viewer_client.get(address).content.decode()
    assert 'id="id_q"' not in viewer_client.get(reverse("memory", args=[workspace.slug])).content.decode()

    session = take(workspace, session_record("The harbour opens at six"))
    Session.objects.filter(pk=session.pk).update(archived_at=NOW)

    assert 'id="id_q"' in viewer_client.get(address).content.decode()


@pytest.mark.parametrize("name", PAGES)
def test_page_needs_a_login(name, workspace):
    response = Client().get(reverse(name, args=[workspace.slug]))

    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


@pytest.mark.parametrize("name", PAGES)
def test_workspace_of_another_user_is_not_found(name, workspace, stranger_client):
    assert stranger_client.get(reverse(name, args=[workspace.slug])).status_code == 404


@pytest.mark.parametrize(
    "name", ["sessions:detail", "session-context", "sessions:session-statistics", "sessions:entry"]
)
def test_row_of_another_workspace_is_not_found(name, workspace, viewer_client):
    other = Workspace.objects.create(slug="other", name="Other")
    session = take(other, session_record("secret"))
    pk = Entry.objects.get().pk if name == "sessions:entry" else session.pk

    for number in (pk, 10_000_000):
        assert viewer_client.get(reverse(name, args=[workspace.slug, number])).status_code == 404
    assert viewer_client.get(reverse(name, args=["other", pk])).status_code == 404


@pytest.mark.slow
@pytest.mark.postgres
def test_lists_make_the_same_queries_for_few_rows_and_many(workspace, viewer_client):
    urls = [reverse(name, args=[workspace.slug]) for name in PAGES]
    for number in range(3):
        take(workspace, session_record("a", "b", key=f"cli:{number}"), f"file {number}")
    few = [count_queries(viewer_client, url) for url in urls]

    for number in range(3, 40):
        take(workspace, session_record("a", "b", key=f"cli:{number}"), f"file {number}")

    assert [count_queries(viewer_client, url) for url in urls] == few


def test_a_long_transcript_makes_no_more_queries_than_a_short_one(workspace, viewer_client):
    short = take(workspace, session_record(*["a"] * 5, key="cli:short"), "1")
    long = take(workspace, session_record(*["a"] * 250, key="cli:long"), "2")
    urls = [reverse("sessions:detail", args=[workspace.slug, session.pk]) for session in (short, long)]

    assert count_queries(viewer_client, urls[0]) == count_queries(viewer_client, urls[1])


def page(client: Client, session: Session, query: str = "") -> str:
    response = client.get(reverse("sessions:detail", args=[session.workspace.slug, session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_tool_call_is_shown_with_its_result(workspace, viewer_client):
    record = SessionRecord(
        "cli:x", [entry_record("read it", minute=0), call("c1", 1), result("c1", 2, "the file's text")]
    )

    html = page(viewer_client, take(workspace, record))

    assert html.count('class="turn"') == 2
    assert "the file&#x27;s text" in html
    assert "read_file" in html


def test_result_beyond_the_page_is_shown_with_its_call(workspace, viewer_client):
    entries = [entry_record(str(i), minute=i) for i in range(99)]
    record = SessionRecord("cli:x", [*entries, call("c1", 99), result("c1", 100, "beyond the end")])

    html = page(viewer_client, take(workspace, record), "?from=0")

    assert "beyond the end" in html


def test_call_without_a_result_says_so(workspace, viewer_client):
    assert "No result" in page(viewer_client, take(workspace, SessionRecord("cli:x", [call("c1", 0)])))


def test_a_result_is_shown_with_its_own_call_only(workspace, viewer_client):
    calls = [call("c2", 0, '{"path": "b.txt"}'), call("c1", 1)]
    html = page(viewer_client, take(workspace, SessionRecord("cli:x", [*calls, result("c1", 2, "the text of a")])))

    assert html.index("No result") < html.index("the text of a")


def test_pointer_is_drawn_at_its_position(workspace, viewer_client):
    html = page(viewer_client, take(workspace, session_record("one", "two", "three", pointer=2)))

    assert html.index("two") < html.index("Consolidated up to here") < html.index("three")


def test_a_pointer_between_a_call_and_its_result_is_drawn_before_the_next_turn(workspace, viewer_client):
    record = SessionRecord(
        "cli:x",
        [entry_record("q", minute=0), call("c1", 1), result("c1", 2, "r"), entry_record("end", minute=3)],
        pointer=2,
    )

    html = page(viewer_client, take(workspace, record))

    assert html.count("Consolidated up to here") == 1
    assert html.index("read_file") < html.index("Consolidated up to here") < html.index("<p>end</p>")


def test_epochs_are_shown_separately(workspace, viewer_client):
    take(workspace, session_record("old words"))
    session = take(workspace, session_record("new words"))

    assert "new words" in page(viewer_client, session)
    assert "old words" in page(viewer_client, session, "?epoch=0")
    assert "Session restarted" in page(viewer_client, session)


def test_summarised_entries_are_shown_under_their_summary(workspace, viewer_client):
    record = SessionRecord(
        "s",
        [entry_record("long ago", minute=0, source_id="e", summary_source_id="s1"), entry_record("now", minute=1)],
        [SummaryRecord("s1", "what was said", ["e"], token_count=3, original_token_count=30)],
    )

    html = page(viewer_client, take(workspace, record))

    assert html.index("what was said") < html.index("Show 1 turn") < html.index("long ago") < html.index("<p>now</p>")


def test_entry_url_redirects_to_its_place(workspace, viewer_client):
    session = take(workspace, session_record(*[f"line {i}" for i in range(250)]))
    entry = Entry.objects.get(position=120)

    response = viewer_client.get(reverse("sessions:entry", args=[workspace.slug, entry.pk]))

    assert response["Location"] == f"/w/atlas/sessions/{session.pk}/?epoch=0&from=100#entry-{entry.pk}"
    assert f'id="entry-{entry.pk}"' in page(viewer_client, session, "?epoch=0&from=100")


@pytest.mark.parametrize("query", ["?from=-1", "?from=x", "?from=99999999999", "?epoch=7", "?epoch=%00"])
def test_transcript_accepts_odd_parameters(query, workspace, viewer_client):
    page(viewer_client, take(workspace, session_record("a")), query)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_list_filters_and_pages_by_key(workspace, viewer_client):
    for number in range(60):
        channel = "mail" if number == 7 else "cli"
        take(workspace, session_record("a", key=f"{channel}:{number:02}"), f"file {number}")
    url = reverse("sessions:list", args=[workspace.slug])

    first = viewer_client.get(url, {"sort": "key"}).content.decode()
    filtered = viewer_client.get(url, {"q": "mail"}).content.decode()

    assert "cli:00" in first
    assert "cli:55" not in first
    assert "mail:07" in filtered
    assert "cli:00" not in filtered


def test_htmx_request_returns_only_the_list(workspace, viewer_client):
    response = viewer_client.get(reverse("sessions:list", args=[workspace.slug]), headers={"HX-Request": "true"})

    assert response.content.decode().lstrip().startswith('<div id="session-list"')
    assert "HX-Request" in response["Vary"]


def test_the_context_page_shows_what_was_left_out(workspace, viewer_client):
    session = take(workspace, SessionRecord("cli:x", [entry_record("q", minute=0), call("c1", 1)]))

    html = viewer_client.get(reverse("session-context", args=[workspace.slug, session.pk])).content.decode()

    assert "a tool call without all its results" in html


HOSTILE = "</title><script>window.__xss=1</script><img src=x onerror=alert(1)>"


@pytest.mark.slow
@pytest.mark.postgres
def test_stored_markup_is_escaped(workspace, viewer_client):
    record = session_record(HOSTILE, HOSTILE, key=f"cli:{HOSTILE}", title=HOSTILE, summary_text=HOSTILE)
    session = take(workspace, record)
    urls = [reverse(name, args=[workspace.slug]) for name in PAGES]
    urls += [
        reverse(name, args=[workspace.slug, session.pk])
        for name in ("sessions:detail", "session-context", "sessions:session-statistics")
    ]

    for url in urls:
        html = viewer_client.get(url).content.decode()
        assert "<script>window" not in html
        assert "<img src=x" not in html


def test_summary_over_several_days_is_shown_once(workspace, viewer_client):
    entries = [entry_record(str(i), minute=i * 1440, source_id=f"e{i}", summary_source_id="s1") for i in range(3)]
    summary = SummaryRecord("s1", "three days in short", ["e0", "e1", "e2"], token_count=3, original_token_count=30)

    html = page(viewer_client, take(workspace, SessionRecord("s", entries, [summary])))

    assert html.count("three days in short") == 1
    assert "Show 3 turns" in html


def test_entry_dates_use_the_displayed_time_zone(workspace, viewer_client, settings):
    session = take(workspace, SessionRecord("s", [entry_record("late", minute=15 * 60 + 30)]))  # 23:30 UTC
    settings.TIME_ZONE = "Asia/Tokyo"

    html = page(viewer_client, session)

    assert "Monday 2 March 2026" in html
    assert ">08:30<" in html


def test_context_page_respects_the_budget_and_shows_the_text_form(workspace, viewer_client):
    session = take(workspace, session_record(*[f"word {i} " * 20 for i in range(20)]))
    address = reverse("session-context", args=[workspace.slug, session.pk])

    page = viewer_client.get(address, {"max_tokens": 200, "form": "text"})

    assert "=== Recent Conversation ===" in page.content.decode()
    assert page.context["context"].tokens <= 200
    assert "over the token budget" in page.content.decode()


def test_statistics_over_months_are_titled_by_week(workspace, viewer_client):
    entries = [entry_record("hello there", minute=day * 1440, source_id=f"e{day}") for day in (0, 90)]
    take(workspace, SessionRecord("s", entries))

    html = viewer_client.get(reverse("sessions:statistics", args=[workspace.slug])).content.decode()

    assert html.count("Tokens by week") == 3  # heading, image and table
    assert "by week of writing (UTC)" in html
    assert '<th scope="col">Week</th>' in html
    assert "Tokens by day" not in html

"""Sessions that agents' programs started themselves are left out of searches and of automatic extraction."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memoryhub.runs import extract
from memoryhub.runs.extract import request_if_due
from memoryhub.search import Scope, find
from memoryhub.search.filters import own_sessions_sql
from sessions_app.models import Session, Workspace
from tests.api.conftest import caller, token_for
from tests.hub import NOW, add, open_at
from tests.searches import asked, say, texts

pytestmark = pytest.mark.django_db
OWN = ("dream:20260301-070000", "heartbeat", "cron:9f2c41d7")


@pytest.fixture
def atlas(workspace) -> Workspace:
    for key in ("cli:main", *OWN):
        say(workspace, f"The crane of {key}", key=key)
    return workspace


def test_searches_leave_own_sessions_out_unless_the_query_names_them(atlas):
    assert texts("crane", atlas) == texts("crane") == ["The crane of cli:main"]
    assert texts("crane channel:cron", atlas) == ["The crane of cron:9f2c41d7"]
    assert texts("crane session:heartbeat", atlas) == ["The crane of heartbeat"]
    assert texts("dream", atlas, kinds=["session"]) == []
    assert texts("-crane", atlas, kinds=["entry"]) == []


def test_many_own_sessions_make_no_longer_queries(atlas):
    """Databases limit the number of values in a query."""
    with CaptureQueriesContext(connection) as few:
        texts("crane", atlas)
    for number in range(100):
        open_at(atlas, f"dream:{number}")
    with CaptureQueriesContext(connection) as many:
        found = texts("crane", atlas)

    assert found == ["The crane of cli:main"]
    assert written(many) < written(few) + 100


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a plan of SQLite")
@pytest.mark.parametrize("keys", [(1,), (1, 2), None])
def test_whether_there_are_own_sessions_is_looked_up_in_indexes(atlas, keys):
    sql, params = own_sessions_sql(keys)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        plan = [step for *_, step in cursor.fetchall() if "sessions_app_session" in step]

    assert len(plan) == 2
    assert all("workspace_id=? AND" in step for step in plan)


@pytest.mark.parametrize("key", ["dream:1", "heartbeat", "cron:x", "cli:dream"])
def test_own_sessions_are_recognised_by_channel_or_key(workspace, key):
    say(workspace, "The crane", key=key)

    expected = ["The crane"] if key == "cli:dream" else []
    assert texts("crane", workspace) == texts("crane") == expected
    assert find(Scope(()), asked("crane"), now=NOW).hits == []


def written(queries: CaptureQueriesContext) -> int:
    return sum(len(query["sql"]) for query in queries)


@pytest.mark.parametrize("own", [False, True])
def test_every_interface_can_include_own_sessions(atlas, viewer_client, command, own):
    api = caller(token_for(atlas))
    page = viewer_client.get(reverse("search", args=["atlas"]), {"q": "crane", "own": "1" if own else ""})
    rest = api("GET", f"/search?query=crane&own_sessions={'true' if own else 'false'}").json()["results"]
    found = command("search", "crane", "--workspace", "atlas", *(["--own-sessions"] if own else []))["results"]

    expected = {"cli:main", *OWN} if own else {"cli:main"}
    assert {row["session"] for row in rest if row["kind"] == "entry"} == expected
    assert {row["session"] for row in found if row["kind"] == "entry"} == expected
    assert ("heartbeat" in page.content.decode().split('id="search-results"')[1]) == own


def test_lists_mark_own_sessions(atlas, viewer_client):
    page = viewer_client.get(reverse("sessions:list", args=["atlas"])).content.decode()
    sessions = caller(token_for(atlas))("GET", "/sessions").json()["items"]

    assert page.count("Agent&#x27;s own conversation") + page.count("Agent's own conversation") == len(OWN)
    assert {row["key"] for row in sessions if row["own"]} == set(OWN)


def test_extraction_leaves_own_sessions_out(workspace, monkeypatch):
    monkeypatch.setattr(extract, "extraction_model", lambda _workspace: "a model")
    Workspace.objects.update(auto_extract=True)
    for key in ("cli:main", *OWN):
        add(open_at(workspace, key), [{"role": "assistant", "content": "x" * 60}])

    runs = [request_if_due(session, NOW) for session in Session.objects.select_related("workspace")]

    assert [run.session.key for run in runs if run] == ["cli:main"]

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from knowledge_app.models import Concern
from memoryhub.backups.create import hub_version
from memoryhub.demo import write_demo
from memoryhub.inbox.attention_rows import SHOWN_ROWS as SHOWN_ITEMS
from memoryhub.models import AccessRecord, ApiToken, Job
from memoryhub.sync.found_folders import found_folders
from sessions_app.models import ImportReport, Run, Session, Webhook, WebhookDelivery, Workspace
from tests.hub import add, client_of, open_at, turn
from tests.memory.test_memory_list import import_text
from tests.query_counts import count_queries
from tests.searches import know, log

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    return client_of(User.objects.create_superuser("ops"))


def make_needy(slug: str) -> Workspace:
    workspace = Workspace.objects.create(slug=slug, name=slug.capitalize(), path=f"/{slug}", auto_compress=False)
    workspace.unavailable_since = timezone.now()
    workspace.max_tokens = 5
    workspace.save()
    session = open_at(workspace)
    add(session, turn(1))
    Run.objects.create(workspace=workspace, session=session, kind="consolidation", status="parked")
    ImportReport.objects.create(workspace=workspace, path=f"/{slug}", status="failed", error="It is locked.")
    now = timezone.now()
    Job.objects.create(workspace=workspace, kind="export", status="failed", error="It is full.", finished_at=now)
    hook = Webhook.objects.create(workspace=workspace, url="https://hooks.example/")
    WebhookDelivery.objects.create(webhook=hook, record_id=1, status="failed", tried_at=now)
    for kind in ("secret", "stale"):
        Concern.objects.create(
            workspace=workspace, kind=kind, table="facts", object_id=1, what="it", fingerprint=kind
        )
    token = ApiToken.objects.create(workspace=workspace, name="a", prefix=slug, token_hash="h", created_by="o")
    AccessRecord.objects.create(
        workspace=workspace, token=token, actor_kind="agent", actor_name="a", via="rest", action="x.read", row_count=1
    )
    return workspace


@pytest.mark.slow
@pytest.mark.postgres
def test_the_home_page_makes_the_same_queries_for_two_and_twelve_workspaces(operator):
    for number in range(2):
        make_needy(f"agent-{number}")
    operator.get("/")
    few = [count_queries(operator, url) for url in ("/", "/w/agent-0/")]
    for number in range(2, 12):
        make_needy(f"agent-{number}")

    assert [count_queries(operator, url) for url in ("/", "/w/agent-0/")] == few
    assert few[0] <= 30


def test_the_home_page_shows_the_most_urgent_and_links_to_the_rest(operator):
    for number in range(4):
        make_needy(f"agent-{number}")

    first = operator.get("/")
    page = first.content.decode()
    everything = operator.get("/?needs=all").content.decode()

    assert first.context["attention_count"] == 4 * 8
    assert page.count('id="need-') == SHOWN_ITEMS
    assert f'<a href="?needs=all">and {4 * 8 - SHOWN_ITEMS} more</a>' in page
    assert everything.count('id="need-') == 4 * 8
    assert "of 5 tokens" in page
    assert '<strong class="over">' in page


def test_the_home_page_counts_the_facts_of_each_workspace(operator, workspace):
    import_text(workspace, "- Ana leads\n- Ben builds\n")

    assert "<span>2 facts</span>" in operator.get("/").content.decode()


def test_every_attention_item_links_to_a_page(operator):
    make_needy("agent")

    needs = operator.get("/?needs=all").context["attention_items"]

    kinds = {"secret", "folder", "parked", "import", "job", "webhook", "budget", "concerns"}
    assert {need.kind for need in needs} == kinds
    assert [operator.get(need.url).status_code for need in needs] == [200] * 8


def test_a_viewer_sees_figures_but_no_attention_items(viewer_client, workspace):
    Run.objects.create(workspace=workspace, kind="scan", status="parked")
    make_needy("foreign")

    for url in ("/", "/w/atlas/"):
        page = viewer_client.get(url).content.decode()
        assert "Nothing needs attention." in page
        assert "Atlas" in page
        assert "Foreign" not in page


def test_the_overview_shows_only_its_own_attention_items(editor, workspace):
    Run.objects.create(workspace=workspace, kind="scan", status="parked")
    make_needy("foreign")

    page = editor.get("/w/atlas/").content.decode()

    assert page.count('id="need-') == 1
    assert "failed repeatedly. Retry or dismiss it." in page


def test_sessions_in_the_archive_are_not_counted_as_the_list_does_not_show_them(operator, workspace):
    open_at(workspace, "cli:kept")
    Session.objects.filter(pk=open_at(workspace, "cli:gone").pk).update(archived_at=timezone.now())

    home = operator.get("/").context
    overview = operator.get("/w/atlas/").context

    [(_, health, parts)] = home["rows"]
    assert [parts["session_total"], health.figures.sessions, overview["health"].figures.sessions] == [1, 1, 1]


@pytest.fixture
def own_home(tmp_path, monkeypatch, settings):
    """A home folder with a Grip agent, a link to another agent, and folders that aren't agents'."""
    monkeypatch.setenv("HOME", str(tmp_path / "olga"))
    settings.MEMORYHUB_ROOTS = [tmp_path]
    pilot = write_demo(tmp_path / "agents", today=date(2026, 3, 20))["Pilot"]
    (tmp_path / "olga" / ".local").mkdir(parents=True)
    pilot.rename(tmp_path / "olga" / ".grip")
    (tmp_path / "olga" / ".nanobot").symlink_to(tmp_path / "agents" / "atlas")
    (tmp_path / "olga" / ".local" / "grid").mkdir()
    (tmp_path / "olga" / ".agterm").write_text("not a folder")
    return tmp_path / "olga"


def test_the_home_page_of_an_empty_hub_explains_the_first_steps(operator, own_home):
    page = operator.get("/").content.decode()

    assert '<input type="hidden" name="path" value="~/.grip">' in page
    assert "~/.nanobot" not in page
    assert "~/.local/grid" not in page
    assert "Open the demo" in page
    assert "Connect a model" in page
    assert "Summaries are made by rule" in page
    assert "Nothing needs attention" not in page


def test_the_empty_home_page_says_what_to_do_first(operator, stranger_client):
    page = operator.get("/").content.decode()
    assert "Welcome to MemoryHub" in page
    assert page.index("First, bring in an agent") < page.index("Then</h2>") < page.index("Connect a model")
    assert page.count("button primary") == 1
    assert "Welcome" not in stranger_client.get("/").content.decode()

    operator.post("/demo/")

    page = operator.get("/").content.decode()
    assert "The demo is being created" in page
    assert 'action="/demo/"' not in page
    assert page.count("The demo is being created") == 1  # goes away with the first workspace


def test_an_open_first_page_is_loaded_again_with_the_first_workspace(operator):
    live = {"path": "/?first=1", "headers": {"HX-Request": "true"}}
    assert 'hx-get="?first=1"' in operator.get("/").text
    assert 'hx-get="?first=1"' in operator.get(**live).text

    Workspace.objects.create(slug="new", name="New")

    assert operator.get(**live).headers["HX-Refresh"] == "true"
    assert "first=1" not in operator.get("/").text
    assert operator.get("/?first=1").url == "/"


def test_a_connected_model_is_named_on_the_empty_home_page(operator, settings):
    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = "https://models.example/v1", "small"

    page = operator.get("/").content.decode()

    assert "https://models.example/v1" in page
    assert "Not connected" not in page


def test_only_hub_operators_see_folders(stranger_client, own_home):
    assert "~/.grip" not in stranger_client.get("/").content.decode()


def test_found_folders_are_below_the_roots_and_say_where_they_were_imported(operator, own_home, settings):
    workspace = Workspace.objects.create(slug="pilot", name="Pilot", path=str(own_home / ".grip"))

    [found] = found_folders()
    assert (found.path, found.program, found.workspace) == ("~/.grip", "Grip", workspace)
    assert found.file_count > 5
    assert "Imported as Pilot" in operator.get("/import/").content.decode()

    settings.MEMORYHUB_ROOTS = [own_home / "elsewhere"]
    assert found_folders() == []


def test_columns_without_a_value_are_hidden(operator, workspace):
    assert "Tokens saved" not in operator.get("/").content.decode()

    make_needy("busy")
    page = operator.get("/").content.decode()

    assert [name in page for name in ("Largest context", "reads, 7 days", "Consolidations, 30 days")] == [True] * 3
    assert "Tokens saved" not in page


def test_the_home_page_draws_how_each_workspace_grew(operator, workspace):
    for days in (30, 1):
        add(open_at(workspace, f"cli:{days}"), turn(1), now=timezone.now() - timedelta(days=days))

    page = operator.get("/").content.decode()

    assert f'aria-label="Messages of {workspace.name} over the last 12 weeks"' in page
    assert 'class="chart spark"' in page


def test_an_open_home_page_refreshes_itself(operator, workspace):
    whole = operator.get("/").content.decode()
    part = operator.get("/", headers={"HX-Request": "true"}).content.decode()

    assert 'id="desk" class="overview" data-live=""' in whole
    assert part.lstrip().startswith('<div id="desk"')
    assert "<h1" not in part


def test_every_page_has_a_help_menu_with_the_version(viewer_client, admin_client):
    menus = []
    for client in (viewer_client, admin_client):
        html = client.get("/account/").content.decode()
        menus.append(html.partition('aria-label="Help"')[2].partition("</details>")[0])

    for menu in menus:
        assert 'href="/api/v1/docs/"' in menu
        assert "Keyboard shortcuts" in menu
        assert f"MemoryHub {hub_version()}" in menu
    assert [('href="/design/"' in menu) for menu in menus] == [False, True]
    assert 'aria-label="Help"' not in Client().get("/login/").content.decode()


def test_one_of_a_kind_is_in_the_singular(operator, workspace):
    know(workspace, "The harbour opens at six")
    log(workspace, "The harbour opened")

    page = operator.get("/").content.decode()

    assert "<span>1 history entry</span>" in page
    assert "<span>1 knowledge entry</span>" in page

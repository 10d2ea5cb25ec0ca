import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.dashboard.navigation import OVERVIEW_KEY, SECTIONS
from memoryhub.dashboard.palette import share_rows
from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.models import AccessRecord
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, open_at
from tests.pseudo import CODE, pages_in_brackets
from tests.query_counts import queries_apart_from_limits

pytestmark = pytest.mark.django_db


def rows(client, **asked):
    response = client.get(reverse("palette"), asked, headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response.content.decode()


def learn(workspace: Workspace, text: str) -> int:
    return add_knowledge(workspace, text, category="learned_fact", by=By(PERSON, NOW)).entry.pk


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Atlas of others")


def test_the_same_text_of_another_tenant_is_never_offered(workspace, other, viewer_client):
    own, foreign = learn(workspace, "Herons fish at dawn"), learn(other, "Herons fish at dawn")
    open_at(workspace, "cli:herons"), open_at(other, "cli:herons-too")

    for at_hand in ({}, {"workspace": "atlas"}):
        html = rows(viewer_client, q="heron", **at_hand)

        assert f"/w/atlas/knowledge/{own}/" in html
        assert f"/knowledge/{foreign}/" not in html
        assert "cli:herons" in html
        assert "cli:herons-too" not in html
    assert "Atlas of others" not in rows(viewer_client, q="atlas")


def test_a_foreign_workspace_answers_like_a_missing_one(other, viewer_client):
    assert viewer_client.get(reverse("palette"), {"workspace": "other"}).status_code == 404


@pytest.mark.parametrize(
    ("person", "offered"),
    [
        ("viewer_client", []),
        ("editor", ["New conversation"]),
        ("admin_client", ["New conversation", "Make a backup"]),
    ],
)
def test_commands_are_those_that_the_person_may_use(workspace, request, person, offered):
    html = rows(request.getfixturevalue(person), q="conversation", workspace="atlas")
    html += rows(request.getfixturevalue(person), q="backup", workspace="atlas")

    assert [label for label in ("New conversation", "Make a backup") if label in html] == offered


def test_commands_are_forms_with_a_csrf_token(workspace, editor):
    html = rows(editor, q="consolidate", workspace="atlas")

    assert f'method="post" action="{reverse("consolidate-due", args=["atlas"])}"' in html
    assert "csrfmiddlewaretoken" in html


def test_the_current_session_has_its_commands(workspace, editor):
    session = open_at(workspace)
    here = reverse("sessions:detail", args=["atlas", session.pk])

    html = rows(editor, q="compress", workspace="atlas", here=here)

    assert reverse("compress-session", args=["atlas", session.pk]) in html
    assert "Compress this session" not in rows(
        editor, q="compress", workspace="atlas", here=here.replace("atlas", "x")
    )


def test_twelve_rows_at_most_in_few_queries(workspace, admin_client):
    for number in range(30):
        learn(workspace, f"Session {number} was about herons")
        open_at(workspace, f"cli:session-{number}")
    with CaptureQueriesContext(connection) as captured:
        html = rows(admin_client, q="session", workspace="atlas")

    assert html.count('role="option"') == 12
    assert len(queries_apart_from_limits(captured)) <= 30


def test_a_slow_lookup_does_not_affect_the_others(workspace, viewer_client, monkeypatch):
    monkeypatch.setattr("memoryhub.dashboard.palette.MILLISECONDS", 0)
    learn(workspace, "Herons fish at dawn")

    def late(*_args):
        raise SearchTooSlow("late")

    monkeypatch.setattr("memoryhub.dashboard.palette.time_limit", late)

    assert "Herons fish" in rows(viewer_client, q="heron", workspace="atlas")


@pytest.mark.parametrize("text", ["", " ", "a", "\x00", '"', "kind:", "(((", "x" * 5000, "%", "ünï", "<b>"])
def test_any_text_has_an_answer(workspace, viewer_client, text):
    assert "<b>" not in rows(viewer_client, q=text, workspace="atlas")


def test_without_a_script_it_is_a_page_of_links(workspace, viewer_client):
    html = viewer_client.get(reverse("palette"), {"q": "knowledge", "workspace": "atlas"}).content.decode()

    assert "<h1>Go to</h1>" in html
    assert 'role="option"' not in html
    assert reverse("knowledge:knowledge", args=["atlas"]) in html


def test_searching_for_the_typed_text_uses_its_last_word_as_a_prefix(workspace, viewer_client):
    learnt = learn(workspace, "Herons fish at dawn")
    address = re.search(r'href="([^"]*/search/[^"]*)"', rows(viewer_client, q="hero", workspace="atlas"))

    html = viewer_client.get(unescape(address[1])).content.decode()

    assert f'href="/w/atlas/knowledge/{learnt}/"' in html
    assert "<mark>Herons</mark>" in html
    assert AccessRecord.objects.get().action == "search.read"  # sent, though not to its end


def test_every_section_has_a_unique_key_in_every_language(workspace, admin_client):
    with pages_in_brackets():
        html = admin_client.get(reverse("workspace", args=["atlas"]), headers={"accept-language": CODE})
    keys = re.findall(r'data-go="([^"]*)"', html.content.decode())

    assert keys == [OVERVIEW_KEY, *(section.key for section in SECTIONS)]
    assert len({*keys}) == len(keys)
    assert {len(key) for key in keys} == {1}
    assert re.findall(r"<kbd>g</kbd> <kbd>(.+?)</kbd>", html.content.decode()) == keys


def test_rows_are_shared_between_groups():
    assert share_rows([[1] * 9, [2] * 9, [3]], 7) == [[1, 1, 1], [2, 2, 2], [3]]
    assert share_rows([[], [1]], 7) == [[], [1]]

"""The pages for tokens, and the Connect page with its wait for the first call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryhub.agents.api_tokens import authenticate, issue_token, revoke_token
from memoryhub.agents.views import KINDS
from memoryhub.models import ApiToken
from sessions_app.models import AuditRecord, Membership
from sessions_app.services.access_log import log_access, seen_rows
from sessions_app.services.audit import Actor, By
from tests.hub import NOW, PERSON, client_of, member, url
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
WISH = {"name": "pilot", "scopes": ["read", "append"], "days": "30", "per_minute": "600"}


@pytest.fixture
def operator(workspace) -> Client:
    return client_of(member(workspace, "olga", Membership.Role.OPERATOR))


def issue(workspace, name="pilot", now=None, **values):
    return issue_token(workspace, name, ["read"], by=By(PERSON, now or timezone.now()), **values)


def test_a_new_token_is_shown_only_in_the_response_that_creates_it(workspace, operator):
    response = operator.post(url("new-token"), WISH)

    text = response.context["text"]
    assert authenticate(text, via="rest", now=timezone.now()).actor.name == "pilot"
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert text in response.content.decode()
    for page in ("agents", "connect", "new-token", "activity", "access"):
        assert text not in operator.get(url(page)).content.decode()
    assert all(text not in str(login.get_decoded()) for login in LoginSession.objects.all())
    assert text not in str(cache._cache)
    assert text not in response.request["PATH_INFO"]


def test_the_snippets_contain_the_token_and_the_address(workspace, operator, settings):
    settings.MEMORYHUB_URL = "https://hub.example"

    response = operator.post(url("new-token"), WISH)

    html = response.content.decode()
    assert html.count(response.context["text"]) == 16
    assert "https://hub.example/api/v1/entries" in html
    assert live_markup(html) == []


def test_a_local_hub_is_shown_with_the_request_s_address(workspace, viewer_client):
    html = viewer_client.get(url("connect"), headers={"host": "localhost:9000"}).content.decode()

    assert "http://localhost:9000/api/v1/context" in html
    assert "Bearer mh_…" in html


@pytest.mark.parametrize(
    "change", [{"name": ""}, {"scopes": []}, {"scopes": ["admin"]}, {"days": "7"}, {"per_minute": "0"}]
)
def test_an_invalid_form_creates_no_token(workspace, operator, change):
    assert operator.post(url("new-token"), WISH | change).status_code == 422
    assert not ApiToken.objects.exists()


def test_the_form_reports_a_name_in_use(workspace, operator):
    issue(workspace)

    response = operator.post(url("new-token"), WISH)

    assert response.status_code == 422
    assert "already has a valid token" in response.content.decode()


@pytest.mark.parametrize(("days", "ends"), [("30", 30), ("365", 365), ("", None)])
def test_the_form_sets_the_expiry(workspace, operator, days, ends):
    operator.post(url("new-token"), WISH | {"days": days})

    token = ApiToken.objects.get()
    assert (token.expires_at - token.created_at if token.expires_at else None) == (
        timedelta(days=ends) if ends else None
    )


def test_only_operators_create_and_revoke_tokens(workspace, editor, viewer_client):
    token, _ = issue(workspace)

    for client in (editor, viewer_client):
        for page in (url("agents"), url("new-token"), url("revoke-token", token.pk)):
            assert client.get(page).status_code == 404
            assert client.post(page, WISH).status_code == 404
        assert "Create token" not in client.get(url("connect")).content.decode()
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_revoking_asks_for_confirmation_and_is_audited(workspace, operator):
    token, _ = issue(workspace)

    assert "Revoke token pilot?" in operator.get(url("revoke-token", token.pk)).content.decode()
    assert not AuditRecord.objects.filter(action="token.revoked").exists()
    page = operator.post(url("revoke-token", token.pk), follow=True).content.decode()

    assert "Token pilot revoked." in page
    assert AuditRecord.objects.get(action="token.revoked").actor_name == "olga"


def test_the_list_shows_each_token_s_state(workspace, operator):
    soon = timezone.now() + timedelta(days=3)
    living, _ = issue(workspace, expires_at=soon)
    revoked, _ = issue(workspace, "gone")
    revoke_token(revoked, by=By(PERSON, timezone.now()))
    issue(workspace, "over", now=NOW, expires_at=NOW + timedelta(days=1))
    log_access(
        workspace,
        "knowledge.read",
        seen_rows("knowledge", [1]),
        by=By(PERSON, timezone.now()),
        via="rest",
        token=living,
    )

    page = operator.get(url("agents"))
    shown = {one.token.name: one for one in operator.get(url("agents"), {"state": "all"}).context["tokens"]}

    assert [one.token.name for one in page.context["tokens"]] == ["pilot"]
    assert {name: one.state for name, one in shown.items()} == {
        "pilot": "living", "gone": "revoked", "over": "ended",
    }  # fmt: skip
    assert (shown["pilot"].ends_soon, shown["pilot"].reading_count) == (True, 1)
    assert "soon: " in page.content.decode()


def test_a_token_of_a_deactivated_person_is_marked(workspace, operator):
    User.objects.create_user("gone", is_active=False)
    for name, maker in (("left", Actor("person", "gone")), ("made by script", Actor("command", "gone"))):
        issue_token(workspace, name, ["read"], by=By(maker, timezone.now()))
    issue(workspace)

    page = operator.get(url("agents"))

    assert {one.token.name: one.is_maker_off for one in page.context["tokens"]} == {
        "left": True, "made by script": False, "pilot": False,
    }  # fmt: skip
    assert page.content.decode().count(">deactivated<") == 1


def test_the_number_of_queries_does_not_depend_on_the_number_of_tokens(workspace, operator):
    counts = []
    for first in (0, 10):
        for number in range(first, first + 10):
            issue(workspace, f"agent {number}")
        with CaptureQueriesContext(connection) as captured:
            operator.get(url("agents"))
        counts.append(len(captured))

    assert counts[0] == counts[1]


def test_an_empty_list_explains_tokens(workspace, operator):
    assert "No tokens yet" in operator.get(url("agents")).content.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_each_protocol_has_an_address(workspace, viewer_client, kind):
    html = viewer_client.get(url("connect"), {"kind": kind}).content.decode()

    assert f'id="{kind}" open' in html
    assert html.count(" open>") == 1


def test_the_connect_page_waits_for_the_token_s_first_call(workspace, viewer_client):
    token, text = issue(workspace)
    asked = {"since": int(timezone.now().timestamp()), "token": token.pk}

    assert viewer_client.get(url("first-call"), asked).status_code == 204
    authenticate(text, via="rest", now=timezone.now())
    log_access(
        workspace,
        "context.read",
        seen_rows("summaries", [1, 2]),
        by=By(PERSON, timezone.now() + timedelta(seconds=1)),
        via="rest",
        token=token,
    )
    answer = viewer_client.get(url("first-call"), asked)

    assert answer.status_code == 286
    assert "First call arrived: read the context of 2 parts" in answer.content.decode()
    assert "By pilot" in answer.content.decode()


def test_the_connect_page_only_waits_once_there_is_a_token(workspace, viewer_client):
    before = viewer_client.get(url("connect")).content.decode()
    token, _ = issue(workspace)
    after = viewer_client.get(url("connect")).content.decode()
    revoke_token(token, by=By(PERSON, timezone.now()))
    revoked = viewer_client.get(url("connect")).content.decode()

    assert ["Waiting for the first call" in page for page in (before, after, revoked)] == [False, True, False]
    assert [url("first-call") in page for page in (before, after, revoked)] == [False, True, False]
    assert "has no valid token" in before


def test_without_a_token_any_call_of_the_workspace_counts(workspace, viewer_client):
    _, text = issue(workspace)
    since = int(timezone.now().timestamp())
    authenticate(text, via="rest", now=timezone.now())

    assert viewer_client.get(url("first-call"), {"since": since}).status_code == 286
    assert viewer_client.get(url("first-call"), {"since": since + 60}).status_code == 204


def test_polling_stops_after_ten_minutes(workspace, viewer_client):
    answer = viewer_client.get(url("first-call"), {"since": int(timezone.now().timestamp()) - 601})

    assert answer.status_code == 286
    assert "No call in ten minutes" in answer.content.decode()


def test_a_token_of_another_workspace_reveals_nothing(workspace, viewer_client):
    other = type(workspace).objects.create(slug="other", name="Other")
    token, text = issue(other)
    authenticate(text, via="rest", now=timezone.now())

    assert viewer_client.get(url("first-call"), {"since": 1, "token": token.pk}).status_code == 286
    assert "pilot" not in viewer_client.get(url("first-call"), {"since": 1}).content.decode()


def test_an_empty_workspace_links_to_the_connect_page(workspace, viewer_client):
    for page in ("workspace", "sessions:list", "activity", "access"):
        assert f'href="{url("connect")}"' in viewer_client.get(url(page)).content.decode()

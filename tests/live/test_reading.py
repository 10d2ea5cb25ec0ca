"""What streams of open pages are told, and whom."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.test import Client
from django.utils import timezone

from memoryhub.live.reading import read_news
from memoryhub.live.streams import News
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import record
from tests.hub import AGENT, NOW, By, open_at

pytestmark = pytest.mark.django_db


def session_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def person_of(client: Client) -> int:
    return int(client.session["_auth_user_id"])


def news_for(client: Client, since: News, due: bool = False) -> News:
    session = session_of(client)
    return read_news(since.known, {session: person_of(client)}, [session] if due else [])


@pytest.fixture
def before(workspace: Workspace) -> News:
    open_at(workspace)
    return read_news(None, {}, ())


def test_without_changes_one_query_is_run(before, viewer_client, django_assert_num_queries):
    people = {session_of(viewer_client): person_of(viewer_client)}

    with django_assert_num_queries(1):
        news = read_news(before.known, people, ())

    assert (news.told, news.ended) == ({}, set())


def test_members_and_operators_are_told_of_a_change(before, workspace, viewer_client, admin_client):
    open_at(workspace, "cli:second")

    for client in (viewer_client, admin_client):
        assert news_for(client, before).told == {session_of(client): {workspace.pk}}


def test_other_workspaces_are_not_mentioned(before, workspace, stranger_client, viewer_client):
    hidden = Workspace.objects.create(slug="hidden", name="Hidden")
    open_at(workspace, "cli:second")
    open_at(hidden)

    assert news_for(stranger_client, before).told == {}
    assert news_for(viewer_client, before).told == {session_of(viewer_client): {workspace.pk}}


def test_a_member_who_loses_the_role_is_told_nothing_more(before, workspace, viewer_client):
    Membership.objects.filter(user=person_of(viewer_client)).delete()
    open_at(workspace, "cli:second")

    assert news_for(viewer_client, before).told == {}


def test_a_heartbeat_is_told_without_workspaces(before, viewer_client):
    news = news_for(viewer_client, before, due=True)

    assert news.told == {session_of(viewer_client): set()}
    assert news.ended == set()


@pytest.mark.parametrize("how", ["signed out", "expired", "deactivated"])
@pytest.mark.parametrize("is_due", [True, False])
def test_ended_sessions_are_found_when_they_would_be_told_something(before, workspace, viewer_client, how, is_due):
    session, person = session_of(viewer_client), person_of(viewer_client)
    if how == "signed out":
        viewer_client.logout()
    elif how == "expired":
        LoginSession.objects.filter(session_key=session).update(expire_date=timezone.now() - timedelta(seconds=1))
    else:
        User.objects.filter(pk=person).update(is_active=False)
    if not is_due:
        open_at(workspace, "cli:second")

    assert read_news(before.known, {session: person}, [session] if is_due else []).ended == {session}


def test_a_session_from_before_a_new_password_has_ended_at_its_heartbeat(before, viewer_client):
    session, person = session_of(viewer_client), person_of(viewer_client)
    assert read_news(before.known, {session: person}, [session]).ended == set()
    user = User.objects.get(pk=person)
    user.set_password("another long password")
    user.save()

    assert read_news(before.known, {session: person}, [session]).ended == {session}


def test_records_of_the_hub_itself_are_told_nobody(before, admin_client):
    record(By(AGENT, NOW), "account.made", "user", 1, "Made")

    assert news_for(admin_client, before).told == {}


def test_a_record_that_is_committed_late_is_noticed(before, workspace, viewer_client):
    # PostgreSQL assigns ids before commit: a record may appear below one that was seen.
    late = AuditRecord.objects.latest("id").pk
    seen = News(before.known - {late} | {late + 1}, {})

    assert news_for(viewer_client, seen).told == {session_of(viewer_client): {workspace.pk}}


def test_the_first_record_of_a_hub_is_noticed(db, admin_client, workspace):
    before = read_news(None, {}, ())
    assert before.known == frozenset()

    open_at(workspace)

    assert news_for(admin_client, before).told == {session_of(admin_client): {workspace.pk}}

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Template
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import HistoryEntry
from memoryhub.accounts.locale import follow_the_reader
from memoryhub.models import Preferences
from sessions_app.models import AuditRecord
from tests.hub import open_at

pytestmark = pytest.mark.django_db
LATE = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)


def save(client, **wanted):
    return client.post(reverse("preferences"), {"theme": "", "time_zone": "", "language": ""} | wanted)


def html_tag(client, path="/") -> str:
    return re.search(r"<html[^>]*>", client.get(path).content.decode())[0]


def test_the_chosen_theme_is_rendered(viewer_client, client):
    assert "data-theme" not in html_tag(viewer_client)

    assert save(viewer_client, theme="dark", letter_keys="on").status_code == 302

    assert 'data-theme="dark"' in html_tag(viewer_client)
    assert AuditRecord.objects.get().action == "preferences.changed"
    assert "data-theme" not in html_tag(client, reverse("login"))


def test_the_theme_switch_redirects_to_local_urls_only(viewer_client):
    url = reverse("set-theme")

    assert viewer_client.post(url, {"theme": "light", "back": "/w/atlas/?page=2"})["Location"] == "/w/atlas/?page=2"
    assert viewer_client.post(url, {"theme": "pink", "back": "//evil.example/"})["Location"] == reverse("preferences")
    assert Preferences.objects.get().theme == "light"


def test_the_language_is_offered_only_if_there_are_two(viewer, viewer_client, settings):
    Preferences.objects.create(user=viewer, language="de")
    settings.LANGUAGES = [("en", "English")]

    alone = viewer_client.get(reverse("preferences")).content.decode()
    save(viewer_client, theme="dark")
    settings.LANGUAGES = [("en", "English"), ("de", "German")]
    several = viewer_client.get(reverse("preferences")).content.decode()

    assert 'name="language"' not in alone
    assert 'name="language"' in several
    assert Preferences.objects.get().language == "de"


def test_unchanged_preferences_are_not_recorded(viewer_client):
    save(viewer_client, theme="light")
    save(viewer_client, theme="light")

    assert AuditRecord.objects.count() == 1


@pytest.mark.parametrize("name", ["Atlantis", "../etc/passwd", "Europe", "x" * 65])
def test_an_unknown_time_zone_is_refused(viewer_client, name):
    response = save(viewer_client, time_zone=name)

    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()


def test_times_are_shown_in_the_users_zone(workspace, viewer_client):
    HistoryEntry.objects.create(
        workspace=workspace, position=0, content="Late", occurred_at=LATE, occurred_at_text="x", source_hash="x"
    )
    url = reverse("documents:history", args=["atlas"])
    assert "10 Mar 2026" in viewer_client.get(url).content.decode()

    viewer_client.cookies["zone"] = "Asia/Tokyo"
    assert "11 Mar 2026" in viewer_client.get(url).content.decode()

    save(viewer_client, time_zone="America/New_York", letter_keys="on")
    assert "10 Mar 2026" in viewer_client.get(url).content.decode()


def test_the_page_says_whether_the_browser_sets_the_zone(viewer_client):
    viewer_client.cookies["zone"] = "Asia/Tokyo"
    url = reverse("preferences")
    assert "Times are shown in Asia/Tokyo, as set by your browser" in viewer_client.get(url).content.decode()

    save(viewer_client, time_zone="America/New_York")
    assert "Times are shown in America/New_York." in viewer_client.get(url).content.decode()


def test_search_dates_use_the_users_zone(workspace, viewer_client):
    session = open_at(workspace)
    type(session).objects.filter(pk=session.pk).update(updated_at=LATE, created_at=LATE)
    url = reverse("search", args=["atlas"])
    asked = {"q": "kind:session before:2026-03-11"}
    assert session.key in viewer_client.get(url, asked).content.decode()

    viewer_client.cookies["zone"] = "Asia/Tokyo"

    assert session.key not in viewer_client.get(url, asked).content.decode()


@pytest.mark.parametrize("cookie", ["", "Atlantis", "../../etc/passwd", "a\x00b", "Europe"])
def test_an_invalid_zone_cookie_is_ignored(client, settings, cookie):
    settings.TIME_ZONE = "UTC"
    request = RequestFactory().get("/")
    request.COOKIES["zone"] = cookie
    request.user = type("Nobody", (), {"is_authenticated": False})()

    assert follow_the_reader(lambda request: request.reading.zone)(request) == "UTC"


def test_anonymous_requests_run_no_query(django_assert_num_queries):
    request = RequestFactory().get("/")
    request.COOKIES["zone"] = "Asia/Tokyo"
    request.user = AnonymousUser()
    with django_assert_num_queries(0):
        assert follow_the_reader(lambda request: request.reading.zone)(request) == "Asia/Tokyo"


def test_single_key_shortcuts_can_be_turned_off(viewer_client):
    assert "data-keys" not in html_tag(viewer_client)

    save(viewer_client)
    assert 'data-keys="off"' in html_tag(viewer_client)

    save(viewer_client, letter_keys="on")
    assert "data-keys" not in html_tag(viewer_client)


def test_pages_are_compact_if_chosen(viewer_client):
    save(viewer_client, is_compact="on")
    assert 'data-density="compact"' in html_tag(viewer_client)

    save(viewer_client)
    assert "data-density" not in html_tag(viewer_client)


def test_moments_are_rendered_in_the_users_zone():
    with timezone.override("Asia/Tokyo"):
        html = Template("{{ at|moment }} {{ none|moment }}").render(Context({"at": LATE, "none": None}))

    assert html == (
        '<time datetime="2026-03-11T08:30:00+09:00" title="11 Mar 2026, 08:30:00 JST">11 Mar 2026, 08:30:00</time> —'
    )

"""Signing in, and the pages of a user's password and sign-ins."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memoryhub.accounts import middleware
from memoryhub.accounts.attempt_limits import MAX_PER_NAME, count_attempt, delete_expired_attempts, is_known_browser
from memoryhub.accounts.sign_ins import change_password, delete_ended, record_visit
from memoryhub.accounts.user_agents import browser_label
from memoryhub.models import FailedAttempts, Invitation, SignIn
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.accounts.test_people_pages import PASSWORD
from tests.hub import PERSON

pytestmark = pytest.mark.django_db
NEW = "an even calmer sea 43"
CHANGE = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0 Safari/537.36"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
    "Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def vera(db, monkeypatch) -> User:
    monkeypatch.setattr(middleware, "record_visit", record_visit)
    return User.objects.create_user("vera", password=PASSWORD)


def browser(agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    """Return a browser in which vera is signed in."""
    client = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    assert client.post("/login/", {"username": "vera", "password": PASSWORD}).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_sign_ins_list_browser_and_address(vera):
    browser(address="192.0.2.7")
    client = browser(SAFARI, "192.0.2.8")

    html = client.get(reverse("sign-ins")).content.decode()

    assert "Firefox on Linux" in html
    assert "Safari on iPhone" in html
    assert html.index("192.0.2.8") < html.index("192.0.2.7")  # the current one first
    assert html.count("this browser") == 1


def test_the_address_is_not_read_from_a_forgeable_header(vera):
    client = browser()
    client.get("/", headers={"x-forwarded-for": "203.0.113.5"})

    assert SignIn.objects.get().address == "192.0.2.7"


def test_visits_are_saved_every_five_minutes_without_queries_in_between(vera):
    with time_machine.travel("2026-04-01T12:00:00Z", tick=False) as clock:
        client = browser()
        clock.shift(timedelta(minutes=4))
        with CaptureQueriesContext(connection) as between:
            client.get(reverse("hub-changes"))
        asked = [
            query["sql"] for query in between if "memoryhub_signin" in query["sql"]
        ]  # the next request clears them
        seen_between = SignIn.objects.get().seen_at
        clock.shift(timedelta(minutes=2))
        cache.clear()  # locmem's clock is frozen, too
        client.get(reverse("hub-changes"))

        assert asked == []
        assert timezone.now() - seen_between == timedelta(minutes=6)
        assert SignIn.objects.get().seen_at == timezone.now()


def test_another_process_does_not_save_the_same_visit(vera):
    client = browser()
    before = SignIn.objects.get().seen_at
    cache.clear()

    client.get("/")

    assert SignIn.objects.get().seen_at == before


def test_a_sign_in_follows_its_sessions_new_key(vera):
    client = browser()
    made = SignIn.objects.get()

    client.post(reverse("password"), CHANGE)

    kept = SignIn.objects.get()
    assert (kept.pk, kept.created_at) == (made.pk, made.created_at)
    assert kept.session_key == client.session.session_key != made.session_key


def test_signing_out_deletes_the_sign_in(vera):
    client = browser()
    assert client.get("/")["Cache-Control"] == "no-store"  # the back button shows no cached page

    response = client.post("/logout/", follow=True)

    assert not SignIn.objects.exists()
    assert "You're signed out" in response.content.decode()
    assert client.get("/")["Location"] == "/login/?next=/"


def test_the_login_page_mentions_an_ended_session(vera):
    client = browser()
    LoginSession.objects.all().delete()

    response = client.get("/", follow=True)

    assert response.redirect_chain == [("/login/?next=/&ended=1", 302)]
    assert "You've been signed out" in response.content.decode()
    assert not SignIn.objects.exists()


def test_changing_the_password_signs_out_other_browsers(vera):
    here, elsewhere = browser(), browser(CHROME)
    Invitation.objects.create(user=vera, token_hash="x", created_by="olga", expires_at=timezone.now())

    response = here.post(reverse("password"), CHANGE)

    assert response.status_code == 302
    assert is_in(here)
    assert not is_in(elsewhere)
    assert Invitation.objects.get().revoked_at is not None
    record = AuditRecord.objects.get()
    assert (record.action, record.actor_name) == ("account.password_changed", "vera")
    assert NEW not in f"{vars(record)}"


def test_changing_the_password_deletes_other_sessions(vera):
    here, _elsewhere = browser(), browser(CHROME)
    key = here.session.session_key

    change_password(vera, NEW, keep=key, by=By(PERSON, timezone.now()))

    assert [one.session_key for one in LoginSession.objects.all()] == [key]
    assert [one.session_key for one in SignIn.objects.all()] == [key]


def test_a_session_is_listed_for_its_current_user_only(vera):
    key = browser().session.session_key
    other = User.objects.create_user("edda")

    record_visit(other.pk, key, browser=FIREFOX, address="192.0.2.9", now=timezone.now())

    assert list(SignIn.objects.values_list("user", "session_key")) == [(other.pk, key)]


def test_changing_the_password_needs_the_old_one_and_is_rate_limited(vera):
    client = browser()
    wrong = [client.post(reverse("password"), CHANGE | {"old_password": "guess"}) for _ in range(10)]

    slowed = client.post(reverse("password"), CHANGE)

    assert {response.status_code for response in [*wrong, slowed]} == {422}
    assert "Too many failed attempts" in slowed.content.decode()
    assert User.objects.get().check_password(PASSWORD)


def test_a_weak_new_password_is_refused(vera):
    weak = {"new_password1": "1234", "new_password2": "1234"}

    assert browser().post(reverse("password"), CHANGE | weak).status_code == 422
    assert User.objects.get().check_password(PASSWORD)


def test_ending_one_sign_in(vera):
    here, elsewhere = browser(), browser(CHROME)
    other = SignIn.objects.get(session_key=elsewhere.session.session_key)

    here.post(reverse("end-sign-in", args=[other.pk]))

    assert not is_in(elsewhere)
    assert is_in(here)
    assert AuditRecord.objects.get().action == "account.signed_out"


def test_users_cannot_end_sign_ins_of_others(vera, admin_client):
    client = browser()

    assert admin_client.post(reverse("end-sign-in", args=[SignIn.objects.get().pk])).status_code == 404
    assert is_in(client)


def test_signing_out_elsewhere_ends_unlisted_sessions_too(vera):
    here, noted, unnoted, stranger = browser(), browser(), browser(), Client()
    SignIn.objects.filter(session_key=unnoted.session.session_key).delete()
    stranger.force_login(User.objects.create_user("sam"))

    here.post(reverse("end-other-sign-ins"))

    assert [is_in(client) for client in (here, noted, unnoted, stranger)] == [True, False, False, True]


def test_expired_sessions_and_their_sign_ins_are_deleted(vera):
    gone, living = browser(), browser()
    LoginSession.objects.filter(session_key=gone.session.session_key).update(expire_date=timezone.now())

    delete_ended(timezone.now())

    assert [row.session_key for row in SignIn.objects.all()] == [living.session.session_key]
    assert LoginSession.objects.count() == 1


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_signing_in_redirects_to_local_urls_only(target, vera, client):
    page = client.get("/login/", {"next": target})
    response = client.post("/login/", {"username": "vera", "password": PASSWORD, "next": target})

    assert target not in page.content.decode()
    assert response["Location"] == "/"


def test_deactivated_and_unknown_users_get_the_same_error(vera, client):
    User.objects.update(is_active=False)

    right = client.post("/login/", {"username": "vera", "password": PASSWORD}).context["form"].non_field_errors()
    unknown = client.post("/login/", {"username": "nobody", "password": PASSWORD}).context["form"].non_field_errors()

    assert right == unknown


def test_failed_attempts_are_limited_by_address(vera, client):
    for number in range(10):
        client.post("/login/", {"username": f"name{number}", "password": "guess"})

    answer = {"username": "vera", "password": PASSWORD}
    here = client.post("/login/", answer, headers={"x-forwarded-for": "203.0.113.5"})
    elsewhere = client.post("/login/", answer, REMOTE_ADDR="192.0.2.9")

    assert "Too many failed attempts" in here.content.decode()
    assert elsewhere.status_code == 302


WRONG = {"username": "vera", "password": "guess"}
RIGHT = {"username": "vera", "password": PASSWORD}


def test_failed_attempts_do_not_lock_a_person_out(vera, client):
    for _ in range(11):
        client.post("/login/", WRONG, REMOTE_ADDR="203.0.113.5")

    assert client.post("/login/", RIGHT, REMOTE_ADDR="203.0.113.5").status_code == 200
    assert client.post("/login/", RIGHT, REMOTE_ADDR="192.0.2.9").status_code == 302


def test_a_known_browser_is_let_through(vera, client):
    known = browser()
    known.post("/logout/")
    for _ in range(11):
        client.post("/login/", WRONG)

    assert client.post("/login/", RIGHT).status_code == 200
    assert known.post("/login/", RIGHT).status_code == 302


def test_a_known_browser_has_a_limit_of_its_own(vera):
    known = browser()
    known.post("/logout/")

    for _ in range(10):
        known.post("/login/", WRONG)

    assert "Too many failed attempts" in known.post("/login/", RIGHT).content.decode()


def test_right_passwords_are_not_limited(vera):
    assert {Client().post("/login/", RIGHT).status_code for _ in range(11)} == {302}


def test_the_right_password_is_no_pardon_for_wrong_ones(vera):
    for _ in range(9):
        Client().post("/login/", WRONG)

    assert Client().post("/login/", RIGHT).status_code == 302
    Client().post("/login/", WRONG)
    assert "Too many failed attempts" in Client().post("/login/", RIGHT).content.decode()


@pytest.mark.parametrize("cookie", ["", "forged", "forged.", f"forged.{'0' * 64}"])
def test_a_forged_cookie_marks_no_known_browser(cookie, vera, client):
    client.cookies["browser"] = cookie
    for _ in range(10):
        client.post("/login/", WRONG)

    assert client.post("/login/", RIGHT).status_code == 200


def test_a_cookie_of_another_user_or_password_marks_no_known_browser(vera):
    cookie = browser().cookies["browser"].value
    assert is_known_browser(vera, cookie)

    vera.set_password(NEW)
    assert not is_known_browser(vera, cookie)
    assert not is_known_browser(User.objects.create_user("edda"), cookie)


def test_attempts_are_limited_by_name_from_many_addresses(vera, client):
    for number in range(MAX_PER_NAME):
        assert count_attempt({f"address {number}": 10, "name vera": MAX_PER_NAME}, timezone.now())

    assert client.post("/login/", RIGHT).status_code == 200


def test_a_limit_reached_with_a_wrong_clock_ends_with_its_correction():
    now, limits = timezone.now(), {"name vera": 2}
    assert [count_attempt(limits, now + timedelta(days=400)) for _ in range(3)] == [True, True, False]

    assert [count_attempt(limits, now) for _ in range(3)] == [True, True, False]


def test_addresses_of_an_ipv6_network_are_counted_together(vera, client):
    for number in range(10):
        client.post("/login/", WRONG, REMOTE_ADDR=f"2001:db8::{number:x}")

    assert client.post("/login/", RIGHT, REMOTE_ADDR="2001:db8::ffff").status_code == 200
    assert client.post("/login/", RIGHT, REMOTE_ADDR="2001:db8:0:1::1").status_code == 302


def test_all_processes_count_together_and_counts_expire(vera, client):
    for _ in range(10):
        client.post("/login/", WRONG)
    cache.clear()  # as in another process

    assert client.post("/login/", RIGHT).status_code == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert client.post("/login/", RIGHT).status_code == 302
        delete_expired_attempts(timezone.now() + timedelta(seconds=61))
    assert not FailedAttempts.objects.exists()


def test_concurrent_attempts_are_counted_before_checking(vera, monkeypatch):
    made = []

    def hash_slowly(*_request, **_credentials):
        made.append(1)
        if len(made) < 12:
            Client().post("/login/", {"username": "vera", "password": "guess"})  # a concurrent attempt

    monkeypatch.setattr("django.contrib.auth.forms.authenticate", hash_slowly)
    Client().post("/login/", {"username": "vera", "password": "guess"})

    assert len(made) == 10


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (CHROME, "Chrome on Windows"),
        (SAFARI, "Safari on iPhone"),
        (f"{CHROME} Edg/128.0", "Edge on Windows"),
        ("curl/8.5.0", "curl"),
        ("<b>x</b>/1", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_browser_labels(agent, words):
    assert browser_label(agent) == words


def test_an_anonymous_session_is_no_sign_in(db, client, monkeypatch):
    visits = []
    monkeypatch.setattr(middleware, "record_visit", lambda *visit, **_details: visits.append(visit))
    session = client.session
    session["language"] = "de"
    session.save()

    response = client.get("/login/")

    assert (response.status_code, visits, "browser" in response.cookies) == (200, [], False)

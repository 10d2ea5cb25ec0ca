"""Two-factor authentication: setting it up, signing in with it, losing it, requiring it."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from memoryhub.account_models import RecoveryCode, SecondFactor
from memoryhub.accounts.invitations import make_reset_link
from memoryhub.accounts.second_factor import has_second_factor, matching_step, new_secret, reset, turn_on, use_code
from memoryhub.lib.database.encrypted_text import decrypt_text
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By
from tests.accounts.test_people_pages import PASSWORD
from tests.hub import PERSON, client_of, raises_code

pytestmark = pytest.mark.django_db
PAGE = "/account/second-factor/"


@pytest.fixture
def secret(vera) -> str:
    """The secret of Vera's app."""
    made = new_secret()
    turn_on(vera, made, 0, keep=None, by=By(PERSON, timezone.now()))
    return made


def app_code(secret: str, **shift: int) -> str:
    """Return what the app shows at a shifted time."""
    at = timezone.now() + timedelta(**shift)
    totp = TOTP(base64.b32decode(secret), 6, SHA1(), 30)  # noqa: S303  what all apps use
    return totp.generate(int(at.timestamp())).decode()


def with_password(client: Client | None = None, **fields: str) -> Client:
    """Return a client that has given Vera's password."""
    client = client or Client()
    response = client.post("/login/", {"username": "vera", "password": PASSWORD} | fields)
    assert response.headers["Location"] == "/login/code/"
    return client


def is_signed_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def actions() -> list[str]:
    return list(AuditRecord.objects.order_by("id").values_list("action", flat=True))


def test_a_code_of_rfc_6238_is_accepted():
    secret = base64.b32encode(b"12345678901234567890").decode()

    assert matching_step(secret, "081804", datetime.fromtimestamp(1111111109, UTC)) == 37037036
    assert matching_step(secret, "081805", datetime.fromtimestamp(1111111109, UTC)) is None


def test_it_is_set_up_with_the_password_and_the_first_code(vera, clock):
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        client.post("/login/", {"username": "vera", "password": PASSWORD})
    page = here.get(PAGE).content.decode()
    secret = re.search(r"\b[A-Z2-7]{32}\b", page)[0]
    assert here.get(PAGE).content.decode().count(secret) == 1
    assert "data:image/svg" in page

    for wrong in ({"code": app_code(secret), "password": "guess"}, {"code": "000000", "password": PASSWORD}):
        assert here.post(PAGE, wrong).status_code == 422
        assert not has_second_factor(vera)
    done = here.post(PAGE, {"code": app_code(secret), "password": PASSWORD})

    codes = re.search(r'id="codes"[^>]*>([^<]+)', done.content.decode())[1].split()
    assert len(set(codes)) == 10
    assert is_signed_in(here)
    assert not is_signed_in(elsewhere)
    stored = SecondFactor.objects.get()
    assert secret not in stored.secret
    assert decrypt_text(stored.secret, context=f"second factor {vera.pk}") == secret
    assert not set(RecoveryCode.objects.values_list("code_hash", flat=True)) & {
        code.replace("-", "") for code in codes
    }
    assert actions() == ["account.second_factor_on"]
    assert codes[0] not in here.get(PAGE).content.decode()


def test_the_code_that_set_it_up_does_not_sign_in(vera):
    here = client_of(vera)
    secret = re.search(r"\b[A-Z2-7]{32}\b", here.get(PAGE).content.decode())[0]
    here.post(PAGE, {"code": app_code(secret), "password": PASSWORD})

    assert with_password().post("/login/code/", {"code": app_code(secret)}).status_code == 422


def test_signing_in_needs_the_code(vera, secret):
    client = with_password(next="/account/sign-ins/")

    assert not is_signed_in(client)
    done = client.post("/login/code/", {"code": f" {app_code(secret)[:3]} {app_code(secret)[3:]}"})

    assert done.headers["Location"] == "/account/sign-ins/"
    assert is_signed_in(client)


@pytest.mark.parametrize(
    "path", ["/", "/account/second-factor/", "/people/", "/oauth/authorize?client_id=x", "/admin/", "/api/v1/docs/"]
)
@pytest.mark.parametrize("known_browser", [False, True])
def test_the_password_alone_opens_nothing(path, known_browser, vera, secret):
    User.objects.update(is_superuser=True, is_staff=True)
    client = Client()
    if known_browser:  # which keeps its own cookie when it signs out
        with_password(client).post("/login/code/", {"code": app_code(secret, seconds=-30)})
        client.post("/logout/")

    chain = with_password(client).get(path, follow=True).redirect_chain

    assert chain[-1][0].startswith("/login/?")
    assert "_auth_user_id" not in client.session
    assert (
        client.post("/admin/login/", {"username": "vera", "password": PASSWORD})
        .headers["Location"]
        .startswith("/login/")
    )
    assert not is_signed_in(client)


def test_each_step_has_a_new_session_key(vera, secret):
    client = Client()
    client.cookies["sessionid"] = "a" * 32  # given by an attacker
    keys = ["a" * 32, with_password(client).session.session_key]

    client.post("/login/code/", {"code": app_code(secret)})
    keys.append(client.session.session_key)

    assert len(set(keys)) == 3
    stale = Client()
    stale.cookies["sessionid"] = keys[1]
    assert not is_signed_in(stale)


def test_another_host_is_no_next_page(vera, secret):
    client = with_password(next="https://evil.example/")

    assert client.post("/login/code/", {"code": app_code(secret)}).headers["Location"] == "/"


def test_a_code_works_once(vera, secret, clock):
    code = app_code(secret)
    assert with_password().post("/login/code/", {"code": code}).status_code == 302

    assert with_password().post("/login/code/", {"code": code}).status_code == 422
    assert with_password().post("/login/code/", {"code": app_code(secret, seconds=-30)}).status_code == 422
    clock.shift(30)
    assert with_password().post("/login/code/", {"code": app_code(secret)}).status_code == 302


@pytest.mark.parametrize("shift", [-90, 90])
def test_an_old_or_future_code_is_refused(shift, vera, secret):
    assert with_password().post("/login/code/", {"code": app_code(secret, seconds=shift)}).status_code == 422


def test_a_recovery_code_works_once(vera, secret):
    code = turn_on(vera, secret, 0, keep=None, by=By(PERSON, timezone.now()))[3]
    other = User.objects.create_user("otto")

    assert not use_code(other, code, by=By(PERSON, timezone.now()))
    assert with_password().post("/login/code/", {"code": f" {code.upper()} "}).status_code == 302
    assert with_password().post("/login/code/", {"code": code}).status_code == 422
    assert RecoveryCode.objects.filter(user=vera).count() == 9
    assert actions()[-1] == "account.recovery_code_used"


def test_guessing_codes_is_rate_limited(vera, secret, clock):
    client = with_password()
    refused = [client.post("/login/code/", {"code": f"{n:06}"}).content.decode() for n in range(5)]

    slowed = with_password().post("/login/code/", {"code": app_code(secret)})

    assert not any("Too many" in text for text in refused)
    assert "Too many failed attempts" in slowed.content.decode()
    clock.shift(61)
    assert client.post("/login/code/", {"code": app_code(secret)}).status_code == 302


@pytest.mark.slow
def test_guessing_slowly_is_limited_too(vera, secret, clock):
    answers = []
    for n in range(21):
        answers.append(with_password().post("/login/code/", {"code": f"{n:06}"}).content.decode())
        clock.shift(61)

    assert ["in an hour" in text for text in answers] == [False] * 20 + [True]
    assert with_password().post("/login/code/", {"code": app_code(secret)}).status_code == 422
    clock.shift(3600)
    assert with_password().post("/login/code/", {"code": app_code(secret)}).status_code == 302


def test_the_second_step_ends(vera, secret, clock):
    late, deactivated, changed = with_password(), with_password(), with_password()
    clock.shift(601)
    assert late.post("/login/code/", {"code": app_code(secret)}).headers["Location"] == "/login/"
    clock.shift(-601)
    User.objects.update(is_active=False)
    assert deactivated.post("/login/code/", {"code": app_code(secret)}).headers["Location"] == "/login/"
    vera.is_active = True
    vera.set_password("another calm sea 44")
    vera.save()
    assert changed.post("/login/code/", {"code": app_code(secret)}).headers["Location"] == "/login/"
    assert Client().get("/login/code/").headers["Location"] == "/login/"


def test_a_reset_link_does_not_replace_the_code(vera, secret):
    _, token = make_reset_link(vera, by=By(Actor("command", "people"), timezone.now()))
    new = {"new_password1": "another calm sea 44", "new_password2": "another calm sea 44"}
    client = Client()

    assert client.post(f"/invitation/{token}/", new).headers["Location"] == "/login/code/"
    assert not is_signed_in(client)
    client.post("/login/code/", {"code": app_code(secret)})
    assert is_signed_in(client)


@pytest.mark.parametrize("path", ["codes/", "off/"])
def test_changes_need_the_password(path, vera, secret):
    client = client_of(vera)
    before = set(RecoveryCode.objects.values_list("code_hash", flat=True))

    assert client.post(PAGE + path, {"password": "guess"}).status_code == 422
    assert set(RecoveryCode.objects.values_list("code_hash", flat=True)) == before
    assert has_second_factor(vera)
    client.post(PAGE + path, {"password": PASSWORD})

    assert not set(RecoveryCode.objects.values_list("code_hash", flat=True)) & before
    assert has_second_factor(vera) is (path == "codes/")


def test_a_password_that_ends_with_a_space_confirms_changes(vera, secret):
    vera.set_password("a calm sea ")
    vera.save()
    client = client_of(vera)

    client.post(f"{PAGE}off/", {"password": "a calm sea "})

    assert not has_second_factor(vera)


@pytest.mark.parametrize("path", ["codes/", "off/"])
def test_without_a_password_changes_need_a_code(path, vera, secret):
    vera.set_unusable_password()
    vera.save()
    client = client_of(vera)
    before = set(RecoveryCode.objects.values_list("code_hash", flat=True))
    assert "Authentication code" in client.get(PAGE).content.decode()

    for wrong in ({}, {"password": ""}, {"code": "000000"}):
        assert client.post(PAGE + path, wrong).status_code == 422
    assert set(RecoveryCode.objects.values_list("code_hash", flat=True)) == before
    assert has_second_factor(vera)
    client.post(PAGE + path, {"code": app_code(secret)})

    assert not set(RecoveryCode.objects.values_list("code_hash", flat=True)) & before
    assert has_second_factor(vera) is (path == "codes/")


def test_guessing_codes_of_changes_is_rate_limited(vera, secret):
    vera.set_unusable_password()
    vera.save()
    client = client_of(vera)
    for n in range(5):
        client.post(PAGE + "off/", {"code": f"{n:06}"})

    assert "Too many failed attempts" in client.post(PAGE + "off/", {"code": app_code(secret)}).content.decode()
    assert has_second_factor(vera)


def test_operators_reset_it_for_others(vera, secret, admin_client, admin_user):
    url = f"/people/{vera.pk}/reset-second-factor/"
    assert "Reset two-factor authentication" in admin_client.get(f"/people/{vera.pk}/").content.decode()

    admin_client.post(url)

    assert not has_second_factor(vera)
    assert not RecoveryCode.objects.exists()
    assert actions()[-1] == "account.second_factor_reset"
    turn_on(admin_user, new_secret(), 0, keep=None, by=By(PERSON, timezone.now()))
    Client().post(url)
    operator = client_of(admin_user)
    operator.post(f"/people/{admin_user.pk}/reset-second-factor/")
    assert has_second_factor(admin_user)


def test_the_command_lets_the_last_operator_in(vera, secret):
    User.objects.update(is_superuser=True)

    call_command("people", "reset-second-factor", "vera")

    assert Client().post("/login/", {"username": "vera", "password": PASSWORD}).headers["Location"] == "/"


def test_one_cannot_reset_ones_own_by_the_service(vera, secret):
    with raises_code("own_account"):
        reset(vera, by=By(Actor("person", "vera"), timezone.now()))


def test_it_can_be_required_of_everybody(vera, settings):
    settings.MEMORYHUB_REQUIRE_SECOND_FACTOR = True
    client = Client()
    client.post("/login/", {"username": "vera", "password": PASSWORD})

    assert client.get("/").headers["Location"] == PAGE
    assert client.get("/", headers={"HX-Request": "true"}).headers["HX-Redirect"] == PAGE
    page = client.get(PAGE).content.decode()
    assert "requires two-factor authentication" in page
    secret = re.search(r"\b[A-Z2-7]{32}\b", page)[0]
    client.post(PAGE, {"code": app_code(secret), "password": PASSWORD})
    assert client.get("/").status_code == 200
    assert Client().get("/api/v1/openapi.json").status_code == 401


def test_a_different_secret_key_accepts_no_code(vera, secret, settings):
    code = app_code(secret)
    settings.SECRET_KEY = "another key of at least fifty characters, for this test only"

    assert not use_code(vera, code, by=By(PERSON, timezone.now()))

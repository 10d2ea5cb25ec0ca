"""Adding, renaming and removing passkeys, and losing them."""

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from memoryhub.account_models import Passkey
from memoryhub.accounts import passkeys as flow
from memoryhub.accounts.invitations import make_reset_link
from memoryhub.accounts.second_factor import new_secret, turn_on
from sessions_app.services.audit import Actor, By
from tests.accounts.passkey_flow import (
    FAILED,
    LATE,
    actions,
    added,
    arrive,
    browser,
    options,
    refused,
    signed_in,
    who,
)
from tests.accounts.test_people_pages import PASSWORD
from tests.accounts.test_second_factor import app_code
from tests.authenticator import Authenticator
from tests.hub import PERSON

pytestmark = pytest.mark.django_db


def test_a_passkey_is_added_with_the_password(vera):
    client, device = signed_in(vera), Authenticator()
    assert "Add a passkey" in client.get("/account/sign-ins/").content.decode()
    assert client.get("/account/passkeys/add/").status_code == 200
    asking = "/account/passkeys/options/"
    for wrong, words in (({"name": "", "password": PASSWORD}, "required"), ({"name": "a", "password": "b"}, "wrong")):
        assert refused(client.post(asking, wrong), words)
    assert refused(client.post("/account/passkeys/add/", {"credential": "{}"}), LATE)

    assert added(client, device).json() == {"next": "/account/sign-ins/"}

    stored = Passkey.objects.get()
    assert (stored.user, stored.name, stored.host, stored.used_at) == (vera, "Laptop", "localhost", None)
    page = client.get("/account/sign-ins/").content.decode()
    assert ("Laptop" in page, "You can now sign in with it" in page) == (True, True)
    assert actions() == ["account.passkey_added"]


def test_the_options_ask_for_a_verified_person_and_a_new_device(device, vera):
    asked = options(signed_in(vera), "/account/passkeys/options/", name="b", password=PASSWORD)

    assert asked["authenticatorSelection"]["residentKey"] == "required"
    assert asked["authenticatorSelection"]["userVerification"] == "required"
    assert [one["id"] for one in asked["excludeCredentials"]] == [Passkey.objects.get().credential_id]
    assert (asked["rp"]["id"], asked["user"]["id"], asked["timeout"]) == ("localhost", device.handle, 300_000)
    assert options(browser())["userVerification"] == "required"


def test_changes_need_the_password(device, vera):
    client, page = signed_in(vera), f"/account/passkeys/{Passkey.objects.get().pk}/"
    assert "Laptop" in client.get(page).content.decode()

    assert client.post(page, {"name": "Phone", "password": "guess"}).status_code == 422
    assert client.post(page + "remove/", {"password": "guess"}).status_code == 422
    assert Passkey.objects.get().name == "Laptop"
    client.post(page, {"name": " Phone ", "password": PASSWORD})
    assert Passkey.objects.get().name == "Phone"
    client.post(page + "remove/", {"password": PASSWORD})

    assert not Passkey.objects.exists()
    assert refused(arrive(device), FAILED)
    assert actions() == ["account.passkey_added", "account.passkey_renamed", "account.passkey_removed"]


def test_without_a_password_changes_need_a_code(device, vera):
    secret = new_secret()
    turn_on(vera, secret, 0, keep=None, by=By(PERSON, timezone.now()))
    vera.set_unusable_password()
    vera.save()
    client, page = signed_in(vera), f"/account/passkeys/{Passkey.objects.get().pk}/"

    for wrong in ({}, {"password": ""}, {"code": "000000"}):
        assert client.post(page + "remove/", wrong).status_code == 422
        assert client.post("/account/passkeys/options/", {"name": "b"} | wrong).status_code == 422
    client.post(page + "remove/", {"code": app_code(secret)})

    assert not Passkey.objects.exists()


def test_nobody_sees_or_changes_those_of_others(device):
    other = signed_in(User.objects.create_superuser("otto", password=PASSWORD))
    page = f"/account/passkeys/{Passkey.objects.get().pk}/"

    assert other.get(page).status_code == 404
    for path in (page, page + "remove/"):
        assert other.post(path, {"name": "b", "password": PASSWORD}).status_code == 404
    assert Passkey.objects.get().name == "Laptop"


def test_a_passkey_belongs_to_one_account(device):
    otto = User.objects.create_user("otto", password=PASSWORD)

    assert refused(added(signed_in(otto), device), "already registered")
    assert Passkey.objects.get().user.username == "vera"


def test_their_number_is_limited(device, vera, monkeypatch):
    monkeypatch.setattr(flow, "MAX_PASSKEYS", 2)
    one, two = signed_in(vera), signed_in(vera)
    asked = [options(client, "/account/passkeys/options/", name="b", password=PASSWORD) for client in (one, two)]

    assert one.post("/account/passkeys/add/", {"credential": Authenticator().create(asked[0])}).status_code == 200
    late = two.post("/account/passkeys/add/", {"credential": Authenticator().create(asked[1])})
    assert refused(late, "Remove one first")
    again = {"name": "c", "password": PASSWORD}
    assert refused(one.post("/account/passkeys/options/", again), "Remove one first")


def test_a_new_password_keeps_them_and_ends_sessions(device, vera):
    client = browser()
    arrive(device, client)
    _, token = make_reset_link(vera, by=By(Actor("command", "people"), timezone.now()))
    new = {"new_password1": "another calm sea 44", "new_password2": "another calm sea 44"}
    browser().post(f"/invitation/{token}/", new)

    assert who(client) == ""
    assert arrive(device).status_code == 200


def test_operators_remove_those_of_others(device, vera, admin_client, admin_user):
    url = f"/people/{vera.pk}/remove-passkeys/"
    assert "1 passkey." in admin_client.get(f"/people/{vera.pk}/").content.decode()
    signed_in(vera).post(url)
    assert Passkey.objects.exists()

    admin_client.post(url)

    assert not Passkey.objects.exists()
    assert actions()[-1] == "account.passkeys_removed"
    Passkey.objects.create(user=admin_user, name="a")
    admin_client.post(f"/people/{admin_user.pk}/remove-passkeys/")
    assert Passkey.objects.exists()
    call_command("people", "remove-passkeys", admin_user.username)
    assert not Passkey.objects.exists()

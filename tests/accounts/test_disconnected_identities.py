"""What was disconnected from an account stays so, until its person connects it again."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryhub.account_models import Identity
from memoryhub.accounts import oidc
from sessions_app.services.audit import By
from tests.accounts.test_oidc import arrive, connected, who
from tests.accounts.test_people_pages import PASSWORD
from tests.hub import PERSON
from tests.oidc_provider import VERA

pytestmark = pytest.mark.django_db


@pytest.fixture
def vera() -> User:
    return User.objects.create_user("vera", email="vera@example.org", password=PASSWORD)


def disconnected(user: User) -> User:
    assert oidc.disconnect(user, by=By(PERSON, timezone.now())) == 1
    return user


@pytest.mark.parametrize("subject", ["v-1", "v-2"])
@pytest.mark.parametrize("domains", [[], ["example.org"]])
def test_an_address_does_not_connect_what_was_disconnected(subject, domains, provider, vera, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = domains
    arrive(provider, Client())
    disconnected(vera)
    provider.user = VERA | {"sub": subject}
    client = Client()

    assert arrive(provider, client).status_code == 403
    assert (who(client), User.objects.count()) == ("", 1)


def test_a_disconnected_identity_finds_nobody_with_another_address(provider, vera, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org"]
    disconnected(connected(vera, provider))
    otto = User.objects.create_user("otto", email="otto@example.org")

    for email in (otto.email, "new@example.org"):
        provider.user = VERA | {"email": email}
        assert arrive(provider, Client()).status_code == 403
    assert User.objects.count() == 2


def test_an_address_connects_no_second_account(provider, vera):
    arrive(provider, Client())
    User.objects.filter(pk=vera.pk).update(email="vera.new@example.org")
    User.objects.create_user("nina", email="vera@example.org")
    provider.user = VERA | {"sub": "n-1"}

    assert arrive(provider, Client()).status_code == 403


def test_an_identity_is_connected_again_only_by_its_person(provider, vera):
    disconnected(connected(vera, provider))
    client = Client()
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    assert "Connect with" in client.get("/account/sign-ins/").content.decode()

    arrive(provider, client)
    client.post("/account/sign-ins/connect/", {"password": PASSWORD})

    again = Client()
    arrive(provider, again)
    assert who(again) == "vera"
    assert list(Identity.objects.values_list("ended_at", flat=True)) == [None]


def test_people_who_disconnected_before_the_upgrade_are_remembered(provider, vera):
    identity = connected(vera, provider).identities.get()
    disconnected(vera)
    Identity.objects.all().delete()  # as it was then
    import_module("memoryhub.migrations.0013_ended_identities").keep_disconnected(apps, None)

    assert Identity.objects.get(ended_at__isnull=False).issuer == identity.issuer
    assert arrive(provider, Client()).status_code == 403

"""What a provider says about a person may be nonsense, and a browser may begin again and again."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryhub.account_models import Identity
from tests.accounts.test_oidc import arrive

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("local", ["", "a b", "a\x00b", "a\x1b[31mb", "<b>"])
def test_what_is_no_address_gives_no_account(local, provider, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["corp.example"]
    provider.user |= {"email": f"{local}@corp.example"}

    assert arrive(provider, Client()).status_code == 403
    assert not User.objects.exists()


def test_a_subject_with_control_characters_is_refused(provider):
    User.objects.create_user("vera", email="vera@example.org")
    provider.user |= {"sub": "v\x00-1"}

    assert "Signing in failed" in arrive(provider, Client()).content.decode()
    assert not Identity.objects.exists()


def test_a_session_keeps_the_latest_begun_sign_ins(provider):
    User.objects.create_user("vera", email="vera@example.org")
    client = Client()
    sent = [client.get("/login/oidc/").headers["Location"] for _ in range(7)]

    assert len([key for key in client.session.keys() if key.startswith("_state")]) == 5  # noqa: SIM118
    assert client.get(provider.authorize(sent[1])).status_code == 403
    assert client.get(provider.authorize(sent[2])).status_code == 302

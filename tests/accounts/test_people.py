"""The people command, and concurrent changes of operators."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from memoryhub.accounts.people import remove_operator
from memoryhub.agents.api_tokens import issue_token
from memoryhub.lib.errors import Refused
from memoryhub.management.serve_address import address_for_links, publish_address
from memoryhub.models import Invitation
from sessions_app.models import AuditRecord, Membership
from sessions_app.services.audit import Actor, By
from tests.hub import NOW


@pytest.mark.django_db
def test_the_command_invites_lists_and_changes_people(workspace, viewer, command, client):
    made = command("people", "invite", "Ed", "atlas=editor", "--days", "1")
    listed = command("people")
    changed = command("people", "roles", "vera", "atlas=none", "--hub-operator", "yes")

    assert client.get(made["link"].removeprefix("http://127.0.0.1:8765")).status_code == 200
    vera = listed["people"][0]
    assert (vera["name"], vera["is_hub_operator"], vera["roles"]) == ("vera", False, {"atlas": "viewer"})
    assert listed["invitations"][0]["roles"] == {"atlas": "editor"}
    assert "link" not in listed["invitations"][0]
    assert changed["people"][0]["roles"] == {}
    assert changed["people"][0]["is_hub_operator"]
    assert {record.actor_kind for record in AuditRecord.objects.all()} == {"command"}


@pytest.mark.django_db
def test_the_command_creates_a_reset_link_for_the_only_operator(admin_user, command, client):
    made = command("people", "reset-link", "admin")

    page = client.get(made["link"].removeprefix("http://127.0.0.1:8765"))

    assert page.status_code == 200
    assert Invitation.objects.get().user == admin_user


@pytest.mark.django_db
def test_the_command_lists_or_revokes_tokens_of_a_deactivated_user(workspace, viewer, command):
    issue_token(workspace, "pilot", ["read"], by=By(Actor("person", "vera"), timezone.now()))

    left = command("people", "deactivate", "vera")["living_tokens"]
    revoked = command("people", "deactivate", "vera", "--revoke-tokens")["living_tokens"]

    assert [(token["workspace"], token["name"]) for token in left] == [("atlas", "pilot")]
    assert revoked == []
    assert AuditRecord.objects.get(action="token.revoked").actor_kind == "command"


@pytest.fixture
def home(settings, tmp_path):
    """Return the home of a hub without MEMORYHUB_URL."""
    settings.MEMORYHUB_HOME, settings.GIVEN_SETTINGS = tmp_path, frozenset()
    return tmp_path


@pytest.mark.django_db
def test_links_use_the_address_that_the_hub_listens_on(home, admin_user, command):
    with publish_address("http://127.0.0.1:9000"):
        while_it_runs = command("people", "reset-link", "admin")["link"]
    afterwards = command("people", "reset-link", "admin")["link"]

    assert while_it_runs.startswith("http://127.0.0.1:9000/invitation/")
    assert afterwards.startswith("http://127.0.0.1:8765/invitation/")
    assert list(home.iterdir()) == []


def test_memoryhub_url_takes_precedence(home, settings):
    settings.GIVEN_SETTINGS, settings.MEMORYHUB_URL = frozenset({"MEMORYHUB_URL"}), "https://hub.example"

    with publish_address("http://127.0.0.1:9000"):
        assert address_for_links() == "https://hub.example"


def test_the_address_of_a_killed_hub_is_ignored(home, settings):
    (home / "address").write_text("http://127.0.0.1:9000")

    assert address_for_links() == settings.MEMORYHUB_URL


def test_the_first_of_two_hubs_keeps_its_address(home):
    with publish_address("http://127.0.0.1:9000"):
        with publish_address("http://127.0.0.1:9001"):
            beside = address_for_links()
        after = address_for_links()

    assert (beside, after) == ("http://127.0.0.1:9000", "http://127.0.0.1:9000")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("deactivate", "admin"), "last_operator"),
        (("roles", "admin", "--hub-operator", "no"), "last_operator"),
        (("activate", "nobody"), "not_found"),
        (("roles", "admin", "atlas=god"), "bad_role"),
        (("roles", "admin", "nowhere=viewer"), "not_found"),
        (("invite", "Ed"), "bad_invitation"),
        (("deactivate",), "name_missing"),
    ],
)
def test_command_errors(arguments, code, workspace, admin_user, command):
    assert command("people", *arguments, status=1)["error"]["code"] == code
    assert not Membership.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_operators_cannot_remove_each_other_concurrently():
    pair = [User.objects.create_superuser(name) for name in ("olga", "oskar")]
    start = Barrier(2)

    def remove(own: User, other: User) -> bool:
        start.wait()
        try:
            return remove_operator(other, by=By(Actor("person", own.username), NOW))
        except Refused as error:
            return error.code != "last_operator"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(remove, pair, reversed(pair)))

    assert sorted(done) == [False, True]
    assert User.objects.filter(is_superuser=True).count() == 1

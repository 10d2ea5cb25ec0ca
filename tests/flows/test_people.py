"""People by command; two operators who remove each other at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection

from memoryhub.flows.people import LastOperator, remove_operator
from memoryhub.models import Invitation
from sessions_app.models import AuditRecord, Membership
from sessions_app.services.audit import Actor
from tests.hub import NOW


@pytest.mark.django_db
def test_a_person_is_invited_listed_and_changed_by_command(workspace, viewer, command, client):
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
def test_the_only_operator_who_forgot_their_password_gets_a_link_by_command(admin_user, command, client):
    made = command("people", "reset-link", "admin")

    page = client.get(made["link"].removeprefix("http://127.0.0.1:8765"))

    assert page.status_code == 200
    assert Invitation.objects.get().user == admin_user


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
def test_what_a_command_cannot_do_it_says(arguments, code, workspace, admin_user, command):
    assert command("people", *arguments, status=1)["error"]["code"] == code
    assert not Membership.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_who_remove_each_other_at_once_one_stays():
    pair = [User.objects.create_superuser(name) for name in ("olga", "oskar")]
    start = Barrier(2)

    def remove(own: User, other: User) -> bool:
        start.wait()
        try:
            return remove_operator(other, actor=Actor("person", own.username), now=NOW)
        except LastOperator:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(remove, pair, reversed(pair)))

    assert sorted(done) == [False, True]
    assert User.objects.filter(is_superuser=True).count() == 1

"""The pages of invitation and reset links."""

from __future__ import annotations

import io
import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memoryhub.accounts import invitations
from memoryhub.accounts.people import deactivate, remove_operator
from memoryhub.models import Invitation
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import Actor, By
from tests.accounts.test_people_pages import PASSWORD, role_of, signed_in
from tests.hub import PERSON, member

pytestmark = pytest.mark.django_db
ANSWERS = {"username": "ed", "password1": PASSWORD, "password2": PASSWORD}
NEW = "an even calmer sea 43"


@pytest.fixture
def olga() -> User:
    return User.objects.create_superuser("olga")


def link(workspace: Workspace | None, role: str = "editor", *, actor: Actor = PERSON, **options) -> str:
    roles = {workspace: role} if workspace else {}
    at = options.pop("now", timezone.now())
    options = {"is_operator": False, "days": 7} | options
    _, token = invitations.invite(name="Ed", roles=roles, by=By(actor, at), **options)
    return reverse("invitation", args=[token])


def reset_link(user: User) -> str:
    return reverse("invitation", args=[invitations.make_reset_link(user, by=By(PERSON, timezone.now()))[1]])


def test_a_new_user_accepts_an_invitation(workspace, olga, client):
    url = link(workspace)

    page = client.get(url)
    response = client.post(url, ANSWERS)

    assert "Atlas: Editor" in page.content.decode()
    assert response["Location"] == "/w/atlas/"
    assert client.get(response["Location"]).status_code == 200
    ed = User.objects.get(username="ed")
    assert (role_of(ed, workspace), ed.is_superuser) == ("editor", False)
    assert list(AuditRecord.objects.order_by("id").values_list("action", "actor_name", "workspace")) == [
        ("person.invited", "olga", workspace.pk),
        ("account.created", "ed", None),
        ("person.joined", "ed", workspace.pk),
    ]


def test_an_existing_user_accepts_an_invitation_and_keeps_a_higher_role(workspace, olga, viewer, viewer_client):
    higher, lower = link(workspace, "editor"), link(workspace, "viewer")

    joined = viewer_client.post(higher)
    nothing_new = viewer_client.post(lower)

    assert joined["Location"] == "/w/atlas/"
    assert "You already have this access" in nothing_new.content.decode()
    assert role_of(viewer, workspace) == "editor"
    assert Invitation.objects.filter(used_at=None).count() == 1
    assert set(User.objects.values_list("username", flat=True)) == {"olga", "vera"}


def test_a_link_can_invite_a_hub_operator(olga, client):
    response = client.post(link(None, is_operator=True), ANSWERS)

    assert response["Location"] == "/"
    assert User.objects.get(username="ed").is_superuser


def test_a_weak_password_or_taken_name_does_not_use_up_the_link(workspace, olga, client):
    url = link(workspace)
    weak = {"password1": "1234", "password2": "1234"}

    for wrong in (weak, {"username": "OLGA"}, {"password2": "another one 77"}):
        assert client.post(url, ANSWERS | wrong).status_code == 422

    assert client.get(url).status_code == 200
    assert User.objects.count() == 1


def test_password_errors_are_shown_at_the_first_field(workspace, olga, viewer, client):
    for url, field in ((link(workspace), "password"), (reset_link(viewer), "new_password")):
        weak = {"username": "ed", f"{field}1": "1234", f"{field}2": "1234"}

        response = client.post(url, weak)

        assert list(response.context["form"].errors) == [f"{field}1"]
        described = f'aria-describedby="id_{field}1_helptext id_{field}1_error"'
        assert described in response.content.decode()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: Invitation.objects.update(used_at=timezone.now()), "already used"),
        (lambda: Invitation.objects.update(expires_at=timezone.now()), "has expired"),
        (lambda: Invitation.objects.update(revoked_at=timezone.now()), "was revoked"),
        (lambda: Workspace.objects.filter(slug="atlas").delete(), "was deleted"),
        (lambda: Invitation.objects.all().delete(), "Part of it may be missing"),
        (lambda: User.objects.filter(username="olga").update(is_active=False), "may not invite people any more"),
        (lambda: User.objects.filter(username="olga").update(is_superuser=False), "may not invite people any more"),
    ],
)
def test_an_ended_link_says_why(end, words, workspace, olga, client):
    url = link(workspace)
    end()

    for response in (client.get(url), client.post(url, ANSWERS)):
        assert response.status_code == 410
        assert words in response.content.decode()
    assert not User.objects.filter(username="ed").exists()


def test_a_former_operator_cannot_use_their_own_link(workspace, olga):
    owen = member(workspace, "owen", "operator")
    url = link(workspace, "operator", actor=Actor("person", "owen"))
    Membership.objects.all().delete()

    response = signed_in("owen").post(url)

    assert response.status_code == 410
    assert role_of(owen, workspace) == ""


def test_a_link_creates_one_account_in_concurrent_requests(workspace, olga, monkeypatch):
    url = link(workspace)
    make = User.objects.create_user

    def overtaken(**values: str) -> User:  # the second request runs between the first one's read and write
        monkeypatch.setattr(User.objects, "create_user", make)
        answers = {"username": "quick", "password1": PASSWORD, "password2": PASSWORD}
        assert Client().post(url, answers).status_code == 410
        return make(**values)

    monkeypatch.setattr(User.objects, "create_user", overtaken)
    response = Client().post(url, ANSWERS)

    assert response.status_code == 302
    assert set(User.objects.values_list("username", flat=True)) == {"olga", "ed"}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the order of two writers is made by hand")
def test_a_link_used_after_it_was_read_is_refused(workspace, olga, monkeypatch):
    url = link(workspace)
    read = invitations.find_invitation

    def spent_meanwhile(token, now):
        found = read(token, now)
        Invitation.objects.update(used_at=now)
        return found

    monkeypatch.setattr(invitations, "find_invitation", spent_meanwhile)
    response = Client().post(url, ANSWERS)

    assert response.status_code == 410
    assert not User.objects.filter(username="ed").exists()


def test_joining_needs_a_csrf_token(workspace, olga):
    client = Client(enforce_csrf_checks=True)

    assert client.post(link(workspace), ANSWERS).status_code == 403
    assert not User.objects.filter(username="ed").exists()


def test_open_links_are_not_logged(workspace, olga):
    (handler,) = [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]
    log, url = io.StringIO(), link(workspace)
    usual = handler.setStream(log)

    Client().post(url, ANSWERS | {"password1": "1234"})
    Client(enforce_csrf_checks=True).post(url, ANSWERS)
    handler.setStream(usual)

    assert log.getvalue().count("/invitation/…/") == 2
    assert url not in log.getvalue()


def test_the_old_password_works_until_the_reset_link_is_used(viewer, olga, client):
    viewer.set_password(PASSWORD)
    viewer.save()
    elsewhere = Client()
    elsewhere.login(username="vera", password=PASSWORD)
    url = reset_link(viewer)

    assert elsewhere.get("/").status_code == 200
    assert "vera" in client.get(url).content.decode()
    response = client.post(url, {"new_password1": NEW, "new_password2": NEW})

    assert response["Location"] == "/"
    assert client.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert User.objects.get(pk=viewer.pk).check_password(NEW)
    assert client.post(url, {"new_password1": PASSWORD, "new_password2": PASSWORD}).status_code == 410


def test_a_new_reset_link_revokes_the_older_one(viewer, olga, client):
    older = reset_link(viewer)
    newer = reset_link(viewer)

    assert client.get(older).status_code == 410
    assert client.get(newer).status_code == 200


def test_deactivated_users_cannot_use_reset_links(viewer, olga, client, admin_client):
    url = reset_link(viewer)
    User.objects.filter(pk=viewer.pk).update(is_active=False)

    assert client.get(url).status_code == 410
    assert admin_client.post(reverse("reset-link", args=[viewer.pk]))["Location"] == reverse(
        "person", args=[viewer.pk]
    )
    assert Invitation.objects.count() == 1


def test_a_reset_link_from_a_former_operator_does_not_work(viewer, olga, client):
    User.objects.create_superuser("other")
    url = reset_link(viewer)
    remove_operator(olga, by=By(Actor("person", "other"), timezone.now()))

    assert client.get(url).status_code == 410


def test_deactivating_revokes_reset_links(viewer, olga):
    reset_link(viewer)

    deactivate(viewer, by=By(PERSON, timezone.now()))

    assert Invitation.objects.get().revoked_at is not None


@pytest.mark.parametrize("days", [1, 7, 30])
def test_a_link_expires_after_the_chosen_days(days, workspace, olga, client):
    end = timezone.now() - timedelta(days=days)
    living, ended = (link(workspace, days=days, now=end + timedelta(hours=shift)) for shift in (1, -1))

    assert [client.get(url).status_code for url in (living, ended)] == [200, 410]

"""The pages of accounts, roles and members, and their access control."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memoryhub.accounts import invitations
from memoryhub.accounts.people import deactivate, remove_operator
from memoryhub.accounts.views import invitations as people_invitations
from memoryhub.agents.api_tokens import issue_token
from memoryhub.models import ApiToken, Invitation
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import NOW, PERSON, client_of, raises_code

pytestmark = pytest.mark.django_db
PASSWORD = "a calm sea 42"


def signed_in(username: str, **flags: bool) -> Client:
    return client_of(User.objects.get_or_create(username=username, defaults=flags)[0])


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Secret project")


@pytest.fixture
def owen(workspace) -> Client:
    """Return an operator of the workspace who is no hub operator."""
    client = signed_in("owen")
    Membership.objects.create(workspace=workspace, user=User.objects.get(username="owen"), role="operator")
    return client


def wish(user: User, workspace: Workspace, was: str, role: str) -> dict[str, str]:
    return {f"was-{user.pk}-{workspace.pk}": was, f"role-{user.pk}-{workspace.pk}": role}


def role_of(user: User, workspace: Workspace) -> str:
    return Membership.objects.filter(user=user, workspace=workspace).values_list("role", flat=True).first() or ""


def invited(name: str, *workspaces: Workspace, is_operator: bool = False) -> Invitation:
    roles = dict.fromkeys(workspaces, "viewer")
    return invitations.invite(name=name, roles=roles, is_operator=is_operator, days=1, by=By(PERSON, timezone.now()))[
        0
    ]


def test_the_list_shows_active_people_with_their_roles(workspace, viewer, admin_client):
    User.objects.create_user("gone", is_active=False)

    html = admin_client.get(reverse("people")).content.decode()
    everybody = admin_client.get(reverse("people"), {"state": "all"}).content.decode()

    assert "Atlas: Viewer" in html
    assert "hub operator" in html
    assert ">gone<" not in html
    assert ">gone<" in everybody


def test_the_list_is_filtered_by_name_and_workspace(workspace, other, viewer, admin_client):
    def shown(**params: str) -> set[str]:
        return {user.username for user in admin_client.get(reverse("people"), params).context["page"].rows}

    assert shown(q="VER") == {"vera"}
    assert shown(workspace="atlas") == {"vera"}
    assert shown(workspace="other") == set()
    assert shown(state="operators") == {"admin"}


def test_the_list_runs_the_same_queries_for_one_person_and_twenty(workspace, viewer, admin_client):
    admin_client.get(reverse("people"))
    counts = []
    for names in ([], [f"p{number}" for number in range(20)]):
        people = User.objects.bulk_create(User(username=name) for name in names)
        Membership.objects.bulk_create(Membership(workspace=workspace, user=user, role="viewer") for user in people)
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(reverse("people"))
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_one_form_changes_many_roles(workspace, other, viewer, admin_client):
    edda = User.objects.create_user("edda")
    wishes = wish(viewer, workspace, "viewer", "editor") | wish(edda, other, "", "operator")

    response = admin_client.post(reverse("people-roles"), wishes | wish(edda, workspace, "", ""))

    assert response.status_code == 302
    assert (role_of(viewer, workspace), role_of(edda, other), role_of(edda, workspace)) == ("editor", "operator", "")
    told = AuditRecord.objects.filter(action="person.role_changed").order_by("id")
    assert [(record.workspace, record.text, record.detail) for record in told] == [
        (other, "edda is now operator", {"role": "operator", "was": ""}),
        (workspace, "vera is now editor", {"role": "editor", "was": "viewer"}),
    ]


def test_a_role_changed_in_the_meantime_is_not_overwritten(workspace, viewer, admin_client):
    page = wish(viewer, workspace, "viewer", "editor")
    Membership.objects.update(role="operator")

    response = admin_client.post(reverse("people-roles"), page)

    assert response.status_code == 422
    assert "in the meantime" in response.content.decode()
    assert role_of(viewer, workspace) == "operator"


def test_removing_a_role_takes_effect_at_once(workspace, viewer, viewer_client, admin_client):
    admin_client.post(reverse("person", args=[viewer.pk]), wish(viewer, workspace, "viewer", ""))

    assert viewer_client.get(reverse("workspace", args=["atlas"])).status_code == 404
    assert AuditRecord.objects.get(action="person.removed").text == "vera has no access any more"


def test_deactivating_ends_sessions_and_activating_restores_roles(workspace, viewer, admin_client):
    vera = signed_in("vera")
    vera.get("/")

    admin_client.post(reverse("deactivate-person", args=[viewer.pk]))
    after = vera.get(reverse("workspace", args=["atlas"]))
    poll = vera.get(reverse("hub-changes"))
    admin_client.post(reverse("activate-person", args=[viewer.pk]))

    assert after["Location"].startswith("/login/?next=/w/atlas/")
    assert poll.status_code == 286
    assert vera.get("/").status_code == 302  # the session was deleted
    assert role_of(viewer, workspace) == "viewer"
    assert list(AuditRecord.objects.order_by("id").values_list("action", flat=True)) == [
        "account.deactivated",
        "account.activated",
    ]


def given_tokens(maker: str, *workspaces: Workspace, kind: str = "person") -> list[ApiToken]:
    by = By(Actor(kind, maker), timezone.now())
    return [issue_token(one, f"agent of {kind} {maker}", ["read"], by=by)[0] for one in workspaces]


def test_deactivating_can_revoke_tokens(workspace, other, viewer, admin_client):
    made = given_tokens("vera", workspace, other)
    spared = [*given_tokens("olga", workspace), *given_tokens("vera", workspace, kind="command")]

    page = admin_client.get(reverse("person", args=[viewer.pk])).content.decode()
    admin_client.post(reverse("deactivate-person", args=[viewer.pk]), {"revokes_tokens": "on"})

    assert "vera created 2 valid tokens" in page
    assert page.count("<bdi>agent of person vera</bdi>") == 2
    assert [one for one in made if not ApiToken.objects.get(pk=one.pk).revoked_at] == []
    assert [one for one in spared if ApiToken.objects.get(pk=one.pk).revoked_at] == []
    told = AuditRecord.objects.filter(action="token.revoked").values_list("actor_name", "workspace__slug")
    assert set(told) == {("admin", "atlas"), ("admin", "other")}


def test_tokens_of_a_deactivated_user_can_be_revoked_later(workspace, viewer, admin_client):
    (token,) = given_tokens("vera", workspace)
    url = reverse("deactivate-person", args=[viewer.pk])

    admin_client.post(url)
    left = ApiToken.objects.get(pk=token.pk).revoked_at
    page = admin_client.get(reverse("person", args=[viewer.pk])).content.decode()
    admin_client.post(url, {"revokes_tokens": "on"})

    assert left is None
    assert "vera created 1 valid token" in page
    assert "Revoke these tokens" in page
    assert ApiToken.objects.get(pk=token.pk).revoked_at
    assert AuditRecord.objects.filter(action="account.deactivated").count() == 1


def test_a_refused_deactivation_revokes_no_tokens(workspace, admin_user):
    (token,) = given_tokens("admin", workspace)

    with raises_code("last_operator"):
        deactivate(admin_user, by=By(Actor("command", "people"), timezone.now()), revokes_tokens=True)

    assert ApiToken.objects.get(pk=token.pk).revoked_at is None


def test_an_open_page_of_a_deactivated_user_redirects_to_the_login(workspace, viewer, viewer_client):
    viewer_client.get("/")
    deactivate(viewer, by=By(PERSON, NOW))

    response = viewer_client.get(
        reverse("sessions:list", args=["atlas"]),
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/w/atlas/?q=1"},
    )

    assert response.status_code == 200
    assert response["HX-Redirect"] == "/login/?next=%2Fw%2Fatlas%2F%3Fq%3D1&ended=1"
    assert response.content == b""


@pytest.mark.parametrize(
    ("sender", "next_page"),
    [
        ("http://testserver/inbox/?item=change-1", "%2Finbox%2F%3Fitem%3Dchange-1"),
        ("https://elsewhere.example/inbox/", "/inbox/decide/"),
        ("http://testserver//elsewhere.example/inbox/", "/inbox/decide/"),
        ("", "/inbox/decide/"),
    ],
)
def test_after_a_form_that_a_signed_out_person_sent_they_return_to_its_page(client, db, sender, next_page):
    response = client.post("/inbox/decide/", headers={"Referer": sender})

    assert response["Location"] == f"/login/?next={next_page}&ended=1"


def test_the_last_operator_cannot_be_removed(admin_user):
    command = Actor("command", "people")

    for change in (deactivate, remove_operator):
        with raises_code("last_operator"):
            change(admin_user, by=By(command, NOW))
    User.objects.create_superuser("olga", is_active=False)
    with raises_code("last_operator"):
        deactivate(admin_user, by=By(command, NOW))

    admin_user.refresh_from_db()
    assert admin_user.is_active
    assert admin_user.is_superuser
    assert not AuditRecord.objects.exists()


def test_operators_cannot_change_their_own_permissions(admin_user, admin_client, workspace):
    User.objects.create_superuser("olga")

    for name in ("deactivate-person", "remove-operator"):
        admin_client.post(reverse(name, args=[admin_user.pk]))
    admin_client.post(reverse("person", args=[admin_user.pk]), wish(admin_user, workspace, "", "operator"))

    admin_user.refresh_from_db()
    assert admin_user.is_active
    assert admin_user.is_superuser
    assert role_of(admin_user, workspace) == ""


def test_making_and_removing_hub_operators(viewer, admin_client):
    admin_client.post(reverse("make-operator", args=[viewer.pk]))
    was_operator = User.objects.get(pk=viewer.pk).is_superuser
    admin_client.post(reverse("remove-operator", args=[viewer.pk]))

    assert was_operator
    assert not User.objects.get(pk=viewer.pk).is_superuser
    assert list(AuditRecord.objects.order_by("id").values_list("action", "actor_name")) == [
        ("account.operator_made", "admin"),
        ("account.operator_removed", "admin"),
    ]


def test_a_workspace_operator_sees_only_its_members(workspace, other, viewer, owen, admin_user):
    Membership.objects.create(workspace=other, user=User.objects.create_user("olivia"), role="viewer")
    Membership.objects.create(workspace=workspace, user=admin_user, role="viewer")
    invited("Both", workspace, other)
    invited("Boss", workspace, is_operator=True)

    html = owen.get(reverse("workspace-people", args=["atlas"])).content.decode()

    assert "vera" in html
    assert not [word for word in ("olivia", ">admin<", "Secret project", "Both", "Boss") if word in html]


def test_a_workspace_operator_changes_and_removes_its_members(workspace, viewer, owen):
    url = reverse("workspace-people", args=["atlas"])

    owen.post(url, wish(viewer, workspace, "viewer", "editor"))
    raised = role_of(viewer, workspace)
    owen.post(url, wish(viewer, workspace, "editor", ""))

    assert raised == "editor"
    assert role_of(viewer, workspace) == ""


def test_forged_forms_of_a_workspace_operator_are_refused(workspace, other, viewer, owen, admin_user):
    me = User.objects.get(username="owen")
    Membership.objects.create(workspace=workspace, user=admin_user, role="viewer")
    forged = (
        wish(me, other, "", "operator")  # another workspace
        | wish(viewer, other, "", "viewer")
        | wish(admin_user, workspace, "viewer", "")  # a hub operator
        | wish(me, workspace, "operator", "viewer")  # own account
        | wish(viewer, workspace, "viewer", "superuser")  # no role
    )

    owen.post(reverse("workspace-people", args=["atlas"]), forged)
    owen.post(
        reverse("workspace-invite", args=["atlas"]),
        {
            "name": "me",
            "days": "7",
            f"role-{workspace.pk}": "viewer",
            f"role-{other.pk}": "operator",
            "is_operator": "on",
        },
    )

    assert set(Membership.objects.values_list("user__username", "workspace__slug", "role")) == {
        ("owen", "atlas", "operator"), ("vera", "atlas", "viewer"), ("admin", "atlas", "viewer")
    }  # fmt: skip
    made = Invitation.objects.get()
    assert not made.is_operator
    assert [role.workspace for role in made.roles.all()] == [workspace]


@pytest.mark.parametrize(
    "name", ["deactivate-person", "activate-person", "make-operator", "remove-operator", "reset-link", "person"]
)
def test_only_hub_operators_can_change_accounts(name, workspace, viewer, owen):
    for client in (owen, signed_in("vera")):
        answers = [client.post(reverse(name, args=[pk])) for pk in (viewer.pk, 999_999)]  # whether it exists or not
        assert [answer.status_code for answer in answers] == [403, 403]

    viewer.refresh_from_db()
    assert (viewer.is_active, viewer.is_superuser, Invitation.objects.count()) == (True, False, 0)


def test_an_invitation_of_another_workspace_cannot_be_revoked(workspace, other, owen):
    made = invited("Ed", other)

    response = owen.post(reverse("workspace-revoke-invitation", args=["atlas", made.pk]))

    assert response.status_code == 404
    made.refresh_from_db()
    assert made.revoked_at is None


def test_an_invitation_needs_a_name_role_and_lifetime(workspace, admin_client):
    complete = {"name": "Ed", "days": "7", f"role-{workspace.pk}": "viewer"}

    for wrong in ({"name": " "}, {"days": "3650"}, {f"role-{workspace.pk}": ""}, {f"role-{workspace.pk}": "god"}):
        assert admin_client.post(reverse("invite"), complete | wrong).status_code == 422

    assert not Invitation.objects.exists()


def test_workspaces_can_be_searched_when_inviting(workspace, other, admin_client, monkeypatch):
    monkeypatch.setattr(people_invitations, "MAX_WORKSPACES", 1)
    url = f"{reverse('invite')}?named=secret"

    first = admin_client.get(reverse("invite")).content.decode()
    found = admin_client.get(url).content.decode()
    admin_client.post(url, {"name": "Ed", "days": "7", f"role-{other.pk}": "viewer"})

    assert "Role in Secret project" not in first
    assert "Role in Secret project" in found
    assert [role.workspace for role in Invitation.objects.get().roles.all()] == [other]


def test_a_revoked_invitation_leaves_the_list(workspace, admin_client):
    made = invited("Edward", workspace)
    before = admin_client.get(reverse("people")).content.decode()

    admin_client.post(reverse("revoke-invitation", args=[made.pk]))

    assert "Edward" in before
    assert [one.invitation.name for one in admin_client.get(reverse("people")).context["invitations"]] == []
    assert AuditRecord.objects.get(action="person.invitation_revoked").workspace == workspace


def test_a_link_is_shown_once_and_only_its_hash_is_stored(workspace, admin_client):
    response = admin_client.post(
        reverse("invite"),
        {"name": "Ed", "days": "30", f"role-{workspace.pk}": "editor"},
        headers={"host": "localhost"},
    )
    token = response.context["link"].rstrip("/").rpartition("/")[2]

    assert response.context["link"].startswith("http://localhost/invitation/")
    assert response["Cache-Control"] == "no-store"
    assert token not in admin_client.get(reverse("people")).content.decode()
    made = Invitation.objects.get()
    assert made.expires_at - made.created_at == timedelta(days=30)
    assert not [value for value in vars(made).values() if token in str(value)]
    assert not [record for record in AuditRecord.objects.all() if token in f"{record.text}{record.detail}"]


def test_a_command_is_not_confused_with_a_user_of_the_same_name(admin_user):
    User.objects.create_superuser("people")

    assert deactivate(User.objects.get(username="people"), by=By(Actor("command", "people"), NOW))
    with raises_code("own_account"):
        deactivate(admin_user, by=By(Actor("person", "admin"), NOW))

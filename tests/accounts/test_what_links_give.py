"""The services of invitation and reset links."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from memoryhub.accounts.invitations import (
    InvitationEnded,
    choose_new_password,
    find_invitation,
    gives_more,
    invitations_into,
    invite,
    join_as_known,
    join_as_new,
    make_reset_link,
    open_invitations,
    revoke,
)
from memoryhub.accounts.people import RoleChange, change_roles
from memoryhub.models import Invitation
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import NOW, PERSON, member, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


@pytest.fixture(autouse=True)
def olga() -> User:
    return User.objects.create_superuser("olga")


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Other")


def link(roles: dict[Workspace, str], *, name: str = "Ed", days: int = 7, is_operator: bool = False, by: By = BY):
    return invite(name=name, roles=roles, is_operator=is_operator, days=days, by=by)


def operator_of(*workspaces: Workspace) -> By:
    user = User.objects.create_user("owen")
    for workspace in workspaces:
        Membership.objects.create(workspace=workspace, user=user, role="operator")
    return By(Actor("person", "owen"), NOW)


@pytest.mark.parametrize(
    ("operates_both", "is_operator", "is_valid"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_workspace_operators_can_only_invite_to_their_workspaces(
    workspace, other, operates_both, is_operator, is_valid
):
    by = operator_of(workspace, other) if operates_both else operator_of(workspace)
    _, token = link({workspace: "viewer", other: "viewer"}, is_operator=is_operator, by=by)

    if is_valid:
        assert find_invitation(token, NOW).is_valid
    else:
        with pytest.raises(InvitationEnded):
            find_invitation(token, NOW)


def test_links_from_editors_are_invalid(workspace):
    by = operator_of(workspace)
    Membership.objects.update(role="editor")

    with pytest.raises(InvitationEnded):
        find_invitation(link({workspace: "viewer"}, by=by)[1], NOW)


def test_a_link_is_valid_until_the_second_that_its_days_are_over(workspace):
    invitation, token = link({workspace: "viewer"}, days=1)
    end = NOW + timedelta(days=1)

    assert invitation.expires_at == end
    assert find_invitation(token, end - timedelta(seconds=1)).invitation == invitation
    assert list(open_invitations(end - timedelta(seconds=1))) == [invitation]
    assert list(open_invitations(end)) == []
    with pytest.raises(InvitationEnded):
        find_invitation(token, end)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"name": "  "}, "bad_invitation"),
        ({"name": "x" * 101}, "bad_invitation"),
        ({"days": 2}, "bad_invitation"),
        ({"roles": {}}, "bad_invitation"),
        ({"roles": "owner"}, "bad_role"),
    ],
)
def test_invalid_invitations_are_refused(workspace, values, code):
    roles = values.pop("roles", "viewer")

    with raises_code(code):
        link({workspace: roles} if roles else {}, **values)
    assert not Invitation.objects.exists()
    assert link({workspace: "viewer"}, name="x" * 100)


def test_a_reset_link_grants_no_account_or_role(workspace):
    vera = User.objects.create_user("vera")
    _, token = make_reset_link(vera, by=BY)

    with pytest.raises(InvitationEnded):
        join_as_new(token, username="ed", password="calm", now=NOW)
    with pytest.raises(InvitationEnded):
        join_as_known(token, vera, now=NOW)
    assert not User.objects.filter(username="ed").exists()
    assert choose_new_password(token, "calm", now=NOW) == vera


def test_an_invitation_cannot_reset_a_password(workspace):
    _, token = link({workspace: "viewer"})

    with pytest.raises(InvitationEnded):
        choose_new_password(token, "calm", now=NOW)
    assert join_as_new(token, username="ed", password="calm", now=NOW).has_usable_password()
    with pytest.raises(InvitationEnded):
        join_as_new(token, username="eva", password="calm", now=NOW)


def test_revoking_an_open_link_is_recorded(workspace):
    invitation, token = link({workspace: "viewer"})

    assert revoke(invitation, by=BY)
    assert not revoke(invitation, by=BY)
    assert AuditRecord.objects.filter(action="person.invitation_revoked", workspace=workspace).count() == 1
    with pytest.raises(InvitationEnded):
        join_as_new(token, username="ed", password="calm", now=NOW)


def test_a_used_link_cannot_be_revoked(workspace):
    invitation, token = link({workspace: "viewer"})
    join_as_new(token, username="ed", password="calm", now=NOW)

    assert list(open_invitations(NOW)) == []
    assert not revoke(invitation, by=BY)
    assert not AuditRecord.objects.filter(action="person.invitation_revoked").exists()


def test_a_link_raises_roles_and_never_lowers_them(workspace, other):
    vera = member(workspace, "vera", "editor")
    _, token = link({workspace: "viewer", other: "editor"})

    join_as_known(token, vera, now=NOW)

    roles = Membership.objects.filter(user=vera).values_list("workspace", "role")
    assert dict(roles) == {workspace.pk: "editor", other.pk: "editor"}


def test_workspaces_without_a_role_are_left_out(workspace, other):
    _, token = link({workspace: "viewer", other: ""})

    join_as_new(token, username="ed", password="calm", now=NOW)

    assert list(Membership.objects.values_list("workspace", "role")) == [(workspace.pk, "viewer")]


def test_members_pages_list_only_invitations_to_their_workspace(workspace, other):
    mine, _ = link({workspace: "viewer"})
    link({workspace: "viewer", other: "viewer"})
    link({other: "viewer"})
    link({workspace: "viewer"}, is_operator=True)

    assert list(invitations_into(workspace, NOW)) == [mine]


@pytest.mark.parametrize(
    ("has", "gives", "more"),
    [("", "viewer", True), ("viewer", "editor", True), ("editor", "editor", False), ("editor", "viewer", False)],
)
def test_gives_more_only_if_a_role_is_higher(workspace, has, gives, more):
    vera = User.objects.create_user("vera")
    if has:
        Membership.objects.create(workspace=workspace, user=vera, role=has)
    shown = find_invitation(link({workspace: gives})[1], NOW)

    assert gives_more(shown, vera) == more
    assert not gives_more(shown, User.objects.get(username="olga"))


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ({"was": "editor", "role": "viewer"}, "roles_changed"),
        ({"was": "", "role": "owner"}, "bad_role"),
        ({"workspace": 0, "was": "", "role": "viewer"}, "roles_changed"),
    ],
)
def test_roles_are_changed_all_or_none(workspace, other, second, code):
    vera = User.objects.create_user("vera")
    fine = RoleChange(vera.pk, workspace.pk, "", "viewer")

    with raises_code(code):
        change_roles([fine, RoleChange(**{"user": vera.pk, "workspace": other.pk} | second)], by=BY)
    assert not Membership.objects.exists()
    assert change_roles([fine, RoleChange(vera.pk, other.pk, "", "")], by=BY) == 1
    assert Membership.objects.get().role == "viewer"

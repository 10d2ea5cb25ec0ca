"""What a link gives, to whom, and until when: at its service, where no page stands before it."""

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
from tests.hub import NOW, PERSON, raises_code

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
    ("operates_both", "is_operator", "is_good"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_an_operator_of_workspaces_gives_those_and_nothing_else(
    workspace, other, operates_both, is_operator, is_good
):
    by = operator_of(workspace, other) if operates_both else operator_of(workspace)
    _, token = link({workspace: "viewer", other: "viewer"}, is_operator=is_operator, by=by)

    if is_good:
        assert find_invitation(token, NOW).is_good
    else:
        with pytest.raises(InvitationEnded):
            find_invitation(token, NOW)


def test_an_editor_s_link_is_no_good(workspace):
    by = operator_of(workspace)
    Membership.objects.update(role="editor")

    with pytest.raises(InvitationEnded):
        find_invitation(link({workspace: "viewer"}, by=by)[1], NOW)


def test_a_link_is_good_until_the_second_that_its_days_are_over(workspace):
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
def test_an_invitation_that_says_too_little_or_too_much_is_not_made(workspace, values, code):
    roles = values.pop("roles", "viewer")

    with raises_code(code):
        link({workspace: roles} if roles else {}, **values)
    assert not Invitation.objects.exists()
    assert link({workspace: "viewer"}, name="x" * 100)


def test_a_link_to_a_new_password_gives_neither_an_account_nor_a_role(workspace):
    vera = User.objects.create_user("vera")
    _, token = make_reset_link(vera, by=BY)

    with pytest.raises(InvitationEnded):
        join_as_new(token, username="ed", password="calm", now=NOW)
    with pytest.raises(InvitationEnded):
        join_as_known(token, vera, now=NOW)
    assert not User.objects.filter(username="ed").exists()
    assert choose_new_password(token, "calm", now=NOW) == vera


def test_an_invitation_changes_nobody_s_password_and_stays_good(workspace):
    _, token = link({workspace: "viewer"})

    with pytest.raises(InvitationEnded):
        choose_new_password(token, "calm", now=NOW)
    assert join_as_new(token, username="ed", password="calm", now=NOW).has_usable_password()
    with pytest.raises(InvitationEnded):
        join_as_new(token, username="eva", password="calm", now=NOW)


def test_only_a_link_that_could_still_be_used_is_revoked_and_that_is_recorded(workspace):
    invitation, token = link({workspace: "viewer"})

    assert revoke(invitation, by=BY)
    assert not revoke(invitation, by=BY)
    assert AuditRecord.objects.filter(action="person.invitation_revoked", workspace=workspace).count() == 1
    with pytest.raises(InvitationEnded):
        join_as_new(token, username="ed", password="calm", now=NOW)


def test_a_used_link_is_not_revoked_any_more(workspace):
    invitation, token = link({workspace: "viewer"})
    join_as_new(token, username="ed", password="calm", now=NOW)

    assert list(open_invitations(NOW)) == []
    assert not revoke(invitation, by=BY)
    assert not AuditRecord.objects.filter(action="person.invitation_revoked").exists()


def test_a_link_into_two_workspaces_raises_one_role_and_lowers_none(workspace, other):
    vera = User.objects.create_user("vera")
    Membership.objects.create(workspace=workspace, user=vera, role="editor")
    _, token = link({workspace: "viewer", other: "editor"})

    join_as_known(token, vera, now=NOW)

    roles = Membership.objects.filter(user=vera).values_list("workspace", "role")
    assert dict(roles) == {workspace.pk: "editor", other.pk: "editor"}


def test_a_workspace_without_a_chosen_role_is_not_in_the_link(workspace, other):
    _, token = link({workspace: "viewer", other: ""})

    join_as_new(token, username="ed", password="calm", now=NOW)

    assert list(Membership.objects.values_list("workspace", "role")) == [(workspace.pk, "viewer")]


def test_members_pages_list_links_into_their_workspace_alone(workspace, other):
    mine, _ = link({workspace: "viewer"})
    link({workspace: "viewer", other: "viewer"})
    link({other: "viewer"})
    link({workspace: "viewer"}, is_operator=True)

    assert list(invitations_into(workspace, NOW)) == [mine]


@pytest.mark.parametrize(
    ("has", "gives", "more"),
    [("", "viewer", True), ("viewer", "editor", True), ("editor", "editor", False), ("editor", "viewer", False)],
)
def test_a_link_gives_more_only_where_its_role_is_higher(workspace, has, gives, more):
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
def test_of_many_roles_all_are_changed_or_none(workspace, other, second, code):
    vera = User.objects.create_user("vera")
    fine = RoleChange(vera.pk, workspace.pk, "", "viewer")

    with raises_code(code):
        change_roles([fine, RoleChange(**{"user": vera.pk, "workspace": other.pk} | second)], by=BY)
    assert not Membership.objects.exists()
    assert change_roles([fine, RoleChange(vera.pk, other.pk, "", "")], by=BY) == 1
    assert Membership.objects.get().role == "viewer"

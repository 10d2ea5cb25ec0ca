"""The page that invites people: one role for all workspaces, exceptions, and the filter."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memoryhub.accounts.views import invitations as invite_page
from memoryhub.models import Invitation
from sessions_app.models import Membership, Workspace
from tests.accounts.test_people_pages import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Secret project")


def invite_from_page(client, **values):
    return client.post(reverse("invite"), {"name": "Ed", "days": "7"} | values)


def granted() -> dict[str, str]:
    return {one.workspace.slug: one.role for one in Invitation.objects.get().roles.select_related("workspace")}


def test_one_choice_invites_to_all_workspaces_with_exceptions(workspace, other, admin_client, monkeypatch):
    monkeypatch.setattr(invite_page, "MAX_WORKSPACES", 1)
    third = Workspace.objects.create(slug="third", name="Third")
    exceptions = {f"role-{other.pk}": "none", f"role-{third.pk}": "editor"}

    invite_from_page(admin_client, everywhere="viewer", **exceptions)

    assert granted() == {"atlas": "viewer", "third": "editor"}


def test_the_form_offers_viewer_in_the_only_workspace(workspace, admin_client):
    form = admin_client.get(reverse("invite")).context["form"]
    offered = {field.html_name: field.value() or "" for field in form if field.name not in ("name", "is_operator")}

    invite_from_page(admin_client, **offered)

    assert granted() == {"atlas": "viewer"}


def test_the_form_says_that_a_role_in_some_workspace_is_needed(workspace, other, admin_client):
    page = admin_client.get(reverse("invite")).content.decode()

    assert '<option value="" selected>Only in some workspaces, see below</option>' in page
    assert '<details class="fold" id="exceptions" open>' in page
    assert admin_client.post(reverse("invite"), {"name": "Ed", "days": "7"}).status_code == 422


def test_exceptions_alone_give_roles_in_their_workspaces_only(workspace, other, admin_client):
    assert invite_from_page(admin_client, **{f"role-{other.pk}": "none"}).status_code == 422

    invite_from_page(admin_client, **{f"role-{workspace.pk}": "editor"})

    assert granted() == {"atlas": "editor"}


def test_the_filter_keeps_what_was_entered_and_chosen(workspace, other, admin_client, monkeypatch):
    monkeypatch.setattr(invite_page, "MAX_UNFILTERED", 1)
    entered = {"everywhere": "viewer", f"role-{workspace.pk}": "editor"}

    page = invite_from_page(admin_client, filter="1", named="secret", **entered)

    assert (page.status_code, Invitation.objects.count()) == (200, 0)
    form = page.context["form"]
    assert form.workspaces == [workspace, other]
    assert {name: form[name].value() for name in ("name", "everywhere", f"role-{workspace.pk}")} == {
        "name": "Ed", "everywhere": "viewer", f"role-{workspace.pk}": "editor",
    }  # fmt: skip
    assert '<details class="fold" id="exceptions" open>' in page.content.decode()
    assert 'id="exceptions">' in admin_client.get(reverse("invite")).content.decode()


@pytest.mark.parametrize(
    ("sent", "creates"),
    [
        ({"named": "secret", "listed": ""}, False),
        ({"named": "secret", "listed": "secret"}, True),
        ({"named": "secret", "listed": "", "create": "1"}, True),
    ],
)
def test_enter_filters_only_after_a_change_of_the_filter(workspace, other, admin_client, sent, creates):
    invite_from_page(admin_client, everywhere="viewer", **sent)

    assert Invitation.objects.exists() == creates


def test_an_operator_of_a_workspace_can_t_invite_to_all(workspace, other):
    owen = signed_in("owen")
    Membership.objects.create(workspace=workspace, user=User.objects.get(username="owen"), role="operator")
    values = {"name": "Ed", "days": "7", "everywhere": "editor", f"role-{workspace.pk}": "viewer"}

    owen.post(reverse("workspace-invite", args=["atlas"]), values)

    assert granted() == {"atlas": "viewer"}

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from memoryhub.accounts import passkeys, people, second_factor
from memoryhub.accounts.invitations import DAYS, OpenInvitation, invite, make_reset_link, open_invitations, with_roles
from memoryhub.agents.api_tokens import tokens_of
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.serve_address import address_for_links
from memoryhub.models import ApiToken, Invitation
from sessions_app.models import Membership
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "people")
ACTIONS = (
    "list",
    "invite",
    "roles",
    "deactivate",
    "activate",
    "reset-link",
    "reset-second-factor",
    "remove-passkeys",
)


class Command(JsonCommand):
    help = "Manage accounts, roles and invitations. A link is printed only once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do")
        parser.add_argument(
            "name", nargs="?", default="", help="the account's name; for invite: a name for the invitation"
        )
        parser.add_argument(
            "roles", nargs="*", metavar="WORKSPACE=ROLE", help="ROLE is viewer, editor, operator or none"
        )
        parser.add_argument(
            "--hub-operator", choices=("yes", "no"), help="for invite and roles: operator of the whole hub"
        )
        parser.add_argument(
            "--revoke-tokens", action="store_true", help="for deactivate: also revoke the tokens they created"
        )
        parser.add_argument(
            "--days", type=int, choices=DAYS, default=7, help="for invite: how many days the link is valid"
        )

    def run(self, *, action: str, name: str, **options: Any) -> dict[str, Any]:
        now = timezone.now()
        if action == "list":
            return {"people": _documents(User.objects.all()), "invitations": _open(now)}
        if not name:
            raise Invalid(f"A name is required: people {action} NAME.", code="name_missing")
        if action == "invite":
            made, token = invite(
                name=name,
                roles=people.parse_roles(options["roles"], find_workspace),
                is_operator=options["hub_operator"] == "yes",
                days=options["days"],
                by=By(COMMAND, now),
            )
            return _link(made, token)
        user = people.find_person(name)
        if action == "reset-link":
            return _link(*make_reset_link(user, by=By(COMMAND, now)))
        _change(user, action, options, now)
        changed = _documents(User.objects.filter(pk=user.pk))
        return {"people": changed, "living_tokens": [_token(one) for one in tokens_of(user.username, now)]}

    def show(self, result: dict[str, Any]) -> None:
        for one in result.get("people", []):
            roles = ", ".join(f"{workspace}={role}" for workspace, role in one["roles"].items()) or "no workspace"
            may = "hub operator" if one["is_hub_operator"] else roles
            seen = f"{one['last_seen_at']:%Y-%m-%d %H:%M}" if one["last_seen_at"] else "never"
            self.line(f"{one['name']}: {may}, last seen {seen}{'' if one['is_active'] else ', deactivated'}")
            if result.get("living_tokens") and not one["is_active"]:
                tokens = ", ".join(f"{token['name']} in {token['workspace']}" for token in result["living_tokens"])
                self.line(f"  valid tokens they created: {tokens} (--revoke-tokens revokes them)")
        for one in result.get("invitations", []):
            self.line(f"invited: {one['name']}, until {one['expires_at']:%Y-%m-%d %H:%M}")
        if "link" in result:
            self.line(f"  {result['link']}")
            self.line(f"  The link is shown only once and is valid until {result['expires_at']:%Y-%m-%d %H:%M}.")


def _change(user: User, action: str, options: dict[str, Any], now: datetime) -> None:
    if action == "deactivate":
        people.deactivate(user, by=By(COMMAND, now), revokes_tokens=options["revoke_tokens"])
    elif action == "activate":
        people.activate(user, by=By(COMMAND, now))
    elif action == "reset-second-factor":
        second_factor.reset(user, by=By(COMMAND, now))
    elif action == "remove-passkeys":
        passkeys.remove_all(user, by=By(COMMAND, now))
    else:
        wanted = people.parse_roles(options["roles"], find_workspace)
        had = people.roles_of([user], list(wanted))
        changes = [
            people.RoleChange(user.pk, workspace.pk, had.get((user.pk, workspace.pk), ""), role)
            for workspace, role in wanted.items()
        ]
        people.change_roles(changes, by=By(COMMAND, now))
        if options["hub_operator"]:
            change = people.make_operator if options["hub_operator"] == "yes" else people.remove_operator
            change(user, by=By(COMMAND, now))


def _documents(users: Any) -> list[dict[str, Any]]:
    users = list(users.annotate(seen_at=Coalesce(Max("sign_ins__seen_at"), "last_login")).order_by("username"))
    roles: dict[int, dict[str, str]] = {user.pk: {} for user in users}
    held = Membership.objects.filter(user__in=users).order_by("workspace__slug")
    for user, slug, role in held.values_list("user", "workspace__slug", "role"):
        roles[user][slug] = role
    return [
        {
            "name": user.username,
            "is_hub_operator": user.is_superuser,
            "is_active": user.is_active,
            "roles": roles[user.pk],
            "last_seen_at": user.seen_at,
        }
        for user in users
    ]


def _token(token: ApiToken) -> dict[str, str]:
    return {"workspace": token.workspace.slug, "name": token.name, "prefix": token.prefix}


def _open(now: datetime) -> list[dict[str, Any]]:
    return [_invitation(one) for one in with_roles(list(open_invitations(now).order_by("id")))]


def _invitation(one: OpenInvitation) -> dict[str, Any]:
    return {
        "name": one.invitation.name,
        "is_hub_operator": one.invitation.is_operator,
        "is_reset_link": one.invitation.user_id is not None,
        "roles": {role.workspace.slug: role.role for role in one.roles},
        "created_by": one.invitation.created_by,
        "expires_at": one.invitation.expires_at,
    }


def _link(invitation: Invitation, token: str) -> dict[str, Any]:
    link = f"{address_for_links()}{reverse('invitation', args=[token])}"
    return {"name": invitation.name, "link": link, "expires_at": invitation.expires_at}

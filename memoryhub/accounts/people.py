"""Roles in workspaces, hub operators, and deactivated accounts.

There is always an active hub operator, and nobody can change their own permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from memoryhub.accounts.sign_ins import end_sessions, open_reset_links
from memoryhub.agents.api_tokens import revoke_tokens_of
from memoryhub.lib.errors import Conflict, Invalid, NotFound, Refused
from sessions_app.models import Membership, Workspace
from sessions_app.services.audit import Actor, By, record

RANKS = {"": 0, Membership.Role.VIEWER: 1, Membership.Role.EDITOR: 2, Membership.Role.OPERATOR: 3}


@dataclass(frozen=True)
class RoleChange:
    """A new role of a user in a workspace, both by id; "" means none. ``was``: the role that the page showed."""

    user: int
    workspace: int
    was: str
    role: str


def find_person(username: str) -> User:
    """Return a user by name. Raises NotFound."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no user {username!r}. See `people list`.")
    return user


def usernames_like(name: str) -> list[str]:
    """Return the user name that is equal to ``name``, or else those that differ only in the case of ASCII letters.

    Names with other letters must be equal: some of those equal ASCII ones when case is ignored.
    """
    if not name.isascii() or not name.isprintable():
        return [name]
    similar = User.objects.filter(username__iexact=name).values_list("username", flat=True)
    names = [found for found in similar if found.isascii() and found.lower() == name.lower()]
    return [name] if name in names else names


def roles_of(users: Sequence[User], workspaces: Sequence[Workspace]) -> dict[tuple[int, int], str]:
    """Return roles by user id and workspace id."""
    rows = Membership.objects.filter(user__in=users, workspace__in=workspaces)
    return {(user, workspace): role for user, workspace, role in rows.values_list("user", "workspace", "role")}


@transaction.atomic
def change_roles(changes: Sequence[RoleChange], *, by: By) -> int:
    """Change all roles or none; return the number of changes. Raises Conflict, Refused, Invalid."""
    wanted = [change for change in changes if change.role != change.was]
    keys = {change.user for change in wanted}
    people = {user.pk: user for user in User.objects.select_for_update().filter(pk__in=keys).order_by("pk")}
    workspaces = Workspace.objects.in_bulk({change.workspace for change in wanted})
    for change in wanted:
        if change.user not in people or change.workspace not in workspaces:
            raise Conflict(
                gettext("A user or workspace was deleted. Nothing was saved. Reload the page."),
                code="roles_changed",
            )
        _change_role(people[change.user], workspaces[change.workspace], change, by=by)
    return len(wanted)


def _change_role(user: User, workspace: Workspace, change: RoleChange, *, by: By) -> None:
    refuse_oneself(user, by.actor)
    membership = Membership.objects.filter(user=user, workspace=workspace).first()
    if (membership.role if membership else "") != change.was:
        message = gettext(
            "The role of %(person)s in %(workspace)s has changed in the meantime. Nothing was saved. Reload the page."
        )
        raise Conflict(message % {"person": user.username, "workspace": workspace.name}, code="roles_changed")
    if change.role not in RANKS:
        raise no_such_role()
    if change.role:
        Membership.objects.update_or_create(user=user, workspace=workspace, defaults={"role": change.role})
    elif membership:
        membership.delete()
    record(
        by,
        "person.role_changed" if change.role else "person.removed",
        "user",
        user.pk,
        f"{user.username} is now {change.role}" if change.role else f"{user.username} has no access any more",
        workspace=workspace,
        detail={"role": change.role, "was": change.was},
    )


def no_such_role() -> Invalid:
    """Return the error for an unknown role."""
    return Invalid(
        gettext("Choose one of the roles %(roles)s.") % {"roles": ", ".join(Membership.Role.values)}, code="bad_role"
    )


def raise_role(user: User, workspace: Workspace, role: str) -> None:
    """Give a user a role unless they have a higher one, in the caller's transaction."""
    locked = Membership.objects.select_for_update()
    membership, is_new = locked.get_or_create(user=user, workspace=workspace, defaults={"role": role})
    if not is_new and RANKS[role] > RANKS[membership.role]:
        Membership.objects.filter(pk=membership.pk).update(role=role)


@transaction.atomic
def deactivate(user: User, *, by: By, revokes_tokens: bool = False) -> bool:
    """Deactivate an account and end its sessions. Raises Refused.

    ``revokes_tokens``: also revoke the tokens that the user created, even if the account is already deactivated.
    """

    def switch_off(person: User) -> None:
        person.is_active = False
        end_sessions(person)
        open_reset_links(person).update(revoked_at=by.at)

    words = f"{user.username} was deactivated and signed out everywhere"
    is_changed = _change(user, _is_active, switch_off, "account.deactivated", words, by=by)
    revoked_count = revoke_tokens_of(user.username, by=by) if revokes_tokens else 0
    return is_changed or revoked_count > 0


def activate(user: User, *, by: By) -> bool:
    """Activate an account, with its former roles and password."""

    def switch_on(person: User) -> None:
        person.is_active = True

    words = f"{user.username} was activated"
    return _change(user, lambda person: not person.is_active, switch_on, "account.activated", words, by=by)


def make_operator(user: User, *, by: By) -> bool:
    """Make a user a hub operator. Raises Refused."""

    def promote(person: User) -> None:
        person.is_superuser = person.is_staff = True

    words = f"{user.username} is now a hub operator"
    return _change(user, lambda person: not person.is_superuser, promote, "account.operator_made", words, by=by)


def remove_operator(user: User, *, by: By) -> bool:
    """Make a user no hub operator any more; roles in workspaces stay. Raises Refused."""

    def demote(person: User) -> None:
        person.is_superuser = person.is_staff = False

    words = f"{user.username} is no hub operator any more"
    return _change(user, _is_operator, demote, "account.operator_removed", words, by=by)


def is_last_operator(user: User) -> bool:
    """Return whether a user is the only active hub operator."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    return user.is_superuser and user.is_active and not others.exists()


def _is_active(person: User) -> bool:
    return person.is_active


def _is_operator(person: User) -> bool:
    return person.is_superuser


@transaction.atomic
def _change(
    user: User, is_needed: Callable[[User], bool], change: Callable[[User], None], action: str, words: str, *, by: By
) -> bool:
    """Change an account if ``is_needed``; return whether it was changed.

    The account and all hub operators are locked in the order of their ids, so two operators who remove each other
    concurrently can't both succeed.
    """
    refuse_oneself(user, by.actor)
    operators = Q(is_superuser=True, is_active=True)
    locked = {
        row.pk: row for row in User.objects.select_for_update().filter(Q(pk=user.pk) | operators).order_by("pk")
    }
    person = locked[user.pk]
    if not is_needed(person):
        return False
    was_operator = person.is_superuser and person.is_active
    change(person)
    if was_operator and not any(row.is_superuser and row.is_active for row in locked.values()):
        message = gettext("%(name)s is the last hub operator. Make somebody else a hub operator first.")
        raise Refused(message % {"name": user.username}, code="last_operator")
    person.save(update_fields=["is_active", "is_superuser", "is_staff"])
    record(by, action, "user", person.pk, words)
    return True


def refuse_oneself(user: User, actor: Actor) -> None:
    """Raise Refused if a person changes their own account."""
    if actor.kind == "person" and actor.name == user.username:
        raise Refused(gettext("You can't change your own permissions. Ask another operator."), code="own_account")


def parse_roles(pairs: Sequence[str], find: Callable[[str], Workspace]) -> Mapping[Workspace, str]:
    """Parse WORKSPACE=ROLE pairs; the role "none" becomes "". Raises Invalid, NotFound."""
    roles: dict[Workspace, str] = {}
    for pair in pairs:
        name, _, role = pair.rpartition("=")
        role = "" if role == "none" else role
        if not name or role not in RANKS:
            raise Invalid(
                f"Write WORKSPACE=ROLE with one of {', '.join(Membership.Role.values)}, none; not {pair!r}.",
                code="bad_role",
            )
        roles[find(name)] = role
    return roles

"""Links by which people get in: to an account of their own with its roles, or to a new password. No mail is sent.

A link's token is in it alone; the hub keeps a hash. It is good once, for some days, until somebody revokes it, and
only while who made it may still give what it gives.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.people import RANKS, no_such_role, raise_role, roles_of
from memoryhub.accounts.sign_ins import change_password, open_links_to
from memoryhub.lib.errors import Conflict, Gone, Invalid
from memoryhub.lib.validation import clean_text
from memoryhub.models import Invitation, InvitedRole
from sessions_app.models import Membership, Workspace
from sessions_app.services.audit import Actor, By, record

DAYS = (1, 7, 30)
MAX_NAME = 100
RESET_DAYS = 1
ASK_AGAIN = _("Ask whoever sent it for a new one.")
SIGN_IN_OR_ASK = _("If it was you, sign in with the name and password that you chose; else ask for a new one.")


class InvitationEnded(Gone):
    """A link that lets nobody in, or no more."""

    code = "invitation_ended"


class BadInvitation(Invalid):
    """An invitation that can't be made as asked for."""

    code = "bad_invitation"


class NameTaken(Conflict):
    """Somebody has this name already."""

    code = "name_taken"


@dataclass(frozen=True)
class OpenInvitation:
    """An invitation that can still be used, and whether who made it may still give what it gives."""

    invitation: Invitation
    roles: Sequence[InvitedRole]
    is_good: bool


def invite(
    *, name: str, roles: Mapping[Workspace, str], is_operator: bool, days: int, by: By
) -> tuple[Invitation, str]:
    """Make an invitation; return it and its link's token, which is kept nowhere. Raises BadInvitation, Invalid."""
    name = clean_text(" ".join(name.split()))
    given = {workspace: role for workspace, role in roles.items() if role}
    if not 0 < len(name) <= MAX_NAME:
        raise BadInvitation(gettext("Say who it is for, in 1 to %(most)d characters.") % {"most": MAX_NAME})
    if days not in DAYS:
        days_there_are = ", ".join(map(str, DAYS))
        raise BadInvitation(gettext("A link is good for %(days)s days.") % {"days": days_there_are})
    if not given and not is_operator:
        raise BadInvitation(gettext("Choose a role in one workspace at least: else there is nothing to do here."))
    if set(given.values()) - set(Membership.Role.values):
        raise no_such_role()
    with transaction.atomic():
        invitation, token = _make(name, days, by, is_operator=is_operator)
        for workspace, role in given.items():
            InvitedRole.objects.create(invitation=invitation, workspace=workspace, role=role)
            words = f"{name} was invited as {role}"
            record(by, "person.invited", "invitation", invitation.pk, words, workspace=workspace)
        if is_operator:
            words = f"{name} was invited as an operator of the hub"
            record(by, "account.invited", "invitation", invitation.pk, words)
    return invitation, token


@transaction.atomic
def make_reset_link(user: User, *, by: By) -> tuple[Invitation, str]:
    """Make a link to a new password, good for a day; earlier ones end. The password works on until it is used."""
    if not user.is_active:
        said = gettext("%(name)s is deactivated: activate them first.")
        raise BadInvitation(said % {"name": user.username})
    open_links_to(user).update(revoked_at=by.at)
    invitation, token = _make(user.username[:MAX_NAME], RESET_DAYS, by, user=user)
    words = f"A link to a new password was made for {user.username}"
    record(by, "account.reset_link_made", "user", user.pk, words)
    return invitation, token


def _make(
    name: str, days: int, by: By, *, is_operator: bool = False, user: User | None = None
) -> tuple[Invitation, str]:
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        token_hash=_hash(token),
        name=name,
        is_operator=is_operator,
        user=user,
        created_by=_maker_name(by.actor),
        created_at=by.at,
        expires_at=by.at + timedelta(days=days),
    )
    return invitation, token


def _maker_name(actor: Actor) -> str:
    """Return how an invitation names who made it; no person's name has a space."""
    return actor.name if actor.kind == "person" else f"{actor.kind} {actor.name}"


@transaction.atomic
def revoke(invitation: Invitation, *, by: By) -> bool:
    """End an invitation at once; tell whether it could still be used."""
    if not Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None).update(revoked_at=by.at):
        return False
    words = f"The invitation of {invitation.name} was revoked"
    for role in invitation.roles.select_related("workspace"):
        record(by, "person.invitation_revoked", "invitation", invitation.pk, words, workspace=role.workspace)
    if invitation.is_operator or invitation.user_id:
        record(by, "account.invitation_revoked", "invitation", invitation.pk, words)
    return True


def open_invitations(now: datetime) -> QuerySet[Invitation]:
    """Return the invitations that nobody used, revoked or let expire."""
    return Invitation.objects.filter(used_at=None, revoked_at=None, expires_at__gt=now)


def invitations_into(workspace: Workspace, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations that are for one workspace and nothing else."""
    alone = open_invitations(now).filter(is_operator=False, user=None, roles__workspace=workspace)
    return alone.exclude(roles__in=InvitedRole.objects.exclude(workspace=workspace))


def with_roles(invitations: Sequence[Invitation]) -> list[OpenInvitation]:
    """Return invitations with what they give, and whether they would still be taken: four queries for all."""
    by_invitation: dict[int, list[InvitedRole]] = {one.pk: [] for one in invitations}
    for role in InvitedRole.objects.filter(invitation__in=invitations).select_related("workspace").order_by("id"):
        by_invitation[role.invitation_id].append(role)
    names = {one.created_by for one in invitations}
    makers = {user.username: user for user in User.objects.filter(username__in=names, is_active=True)}
    operated: dict[int, set[int]] = {user.pk: set() for user in makers.values()}
    held = Membership.objects.filter(user__in=makers.values(), role=Membership.Role.OPERATOR)
    for user, workspace in held.values_list("user", "workspace"):
        operated[user].add(workspace)
    return [
        OpenInvitation(one, by_invitation[one.pk], _may_give(one, by_invitation[one.pk], makers, operated))
        for one in invitations
    ]


def _may_give(
    invitation: Invitation,
    roles: Sequence[InvitedRole],
    makers: Mapping[str, User],
    operated: Mapping[int, set[int]],
) -> bool:
    if " " in invitation.created_by:  # a command: who runs those may do everything
        return True
    maker = makers.get(invitation.created_by)
    if maker is None or maker.is_superuser:
        return maker is not None
    is_small = not invitation.is_operator and invitation.user_id is None
    return is_small and {role.workspace_id for role in roles} <= operated[maker.pk]


def find_invitation(token: str, now: datetime) -> OpenInvitation:
    """Return the invitation of a link. Raises InvitationEnded, which says why and what to do."""
    invitation = Invitation.objects.select_related("user").filter(token_hash=_hash(token)).first()
    if invitation is None:
        raise InvitationEnded(_or_ask(gettext("This link is none of this hub's: part of it may be missing.")))
    shown = with_roles([invitation])[0]
    for is_so, words in _endings(shown, now):
        if is_so:
            raise InvitationEnded(words)
    return shown


def _endings(shown: OpenInvitation, now: datetime) -> list[tuple[bool, str]]:
    one = shown.invitation
    gives_nothing = not shown.roles and not one.is_operator and one.user is None
    is_off = one.user is not None and not one.user.is_active
    return [
        (one.used_at is not None, _used_already()),
        (one.revoked_at is not None, _or_ask(gettext("This link was taken back."))),
        (one.expires_at <= now, _or_ask(gettext("The time of this link is over."))),
        (gives_nothing, _or_ask(gettext("The workspace that this link was for is gone."))),
        (is_off, gettext("This account is deactivated. Ask an operator of the hub.")),
        (
            not shown.is_good,
            gettext("Who sent this link may not invite any more. Ask an operator of the hub for a new one."),
        ),
    ]


def _or_ask(sentence: str) -> str:
    return f"{sentence} {ASK_AGAIN}"


def _used_already() -> str:
    said = gettext("This link was used already.")
    return f"{said} {SIGN_IN_OR_ASK}"


def gives_more(shown: OpenInvitation, user: User) -> bool:
    """Tell whether an invitation would give somebody anything that they don't have."""
    if user.is_superuser:
        return False
    has = roles_of([user], [role.workspace for role in shown.roles])
    return shown.invitation.is_operator or any(
        RANKS[role.role] > RANKS[has.get((user.pk, role.workspace_id), "")] for role in shown.roles
    )


def join_as_new(token: str, *, username: str, password: str, now: datetime) -> User:
    """Make the invited account with its roles, and spend the link. Raises InvitationEnded, NameTaken."""
    try:
        with transaction.atomic():
            shown = _spend(token, username, now)
            if shown.invitation.user is not None:
                raise InvitationEnded(_or_ask(gettext("This link leads to a new password, not to an account.")))
            user = User.objects.create_user(username=username, password=password)
            words = f"{username} made their account, invited by {shown.invitation.created_by}"
            record(By(Actor("person", username), now), "account.created", "user", user.pk, words)
            _give(user, shown, now)
    except IntegrityError as error:
        raise NameTaken(gettext("Somebody took this name just now: choose another one.")) from error
    return user


@transaction.atomic
def join_as_known(token: str, user: User, *, now: datetime) -> None:
    """Give somebody who has an account what a link gives; no role gets lower. Raises InvitationEnded."""
    shown = _spend(token, user.username, now)
    if shown.invitation.user is not None:
        raise InvitationEnded(_or_ask(gettext("This link leads to a new password, and gives nothing else.")))
    _give(user, shown, now)


@transaction.atomic
def choose_new_password(token: str, password: str, *, now: datetime) -> User:
    """Give the person of a reset link another password, and sign them out everywhere. Raises InvitationEnded."""
    invitation = find_invitation(token, now).invitation
    if invitation.user is None:
        raise InvitationEnded(_or_ask(gettext("This link leads to an account, not to a new password.")))
    user = User.objects.select_for_update().get(username=invitation.user.username)
    _spend(token, user.username, now)
    change_password(user, password, keep=None, by=By(Actor("person", user.username), now))
    return user


def _spend(token: str, username: str, now: datetime) -> OpenInvitation:
    """Take the link for one person: of two at once the second hears that it was used."""
    shown = find_invitation(token, now)
    unused = Invitation.objects.filter(pk=shown.invitation.pk, used_at=None, revoked_at=None)
    if not unused.update(used_at=now, used_by=username):
        raise InvitationEnded(_used_already())
    return shown


def _give(user: User, shown: OpenInvitation, now: datetime) -> None:
    by = By(Actor("person", user.username), now)
    for role in shown.roles:
        raise_role(user, role.workspace, role.role)
        words = f"{user.username} joined as {role.role}, invited by {shown.invitation.created_by}"
        record(by, "person.joined", "user", user.pk, words, workspace=role.workspace)
    if shown.invitation.is_operator and not user.is_superuser:
        user.is_superuser = user.is_staff = True
        user.save(update_fields=["is_superuser", "is_staff"])
        words = f"{user.username} is an operator of the hub now, invited by {shown.invitation.created_by}"
        record(by, "account.operator_made", "user", user.pk, words)


def _hash(token: str) -> str:
    return salted_hmac("memoryhub.invitation", token, algorithm="sha256").hexdigest()

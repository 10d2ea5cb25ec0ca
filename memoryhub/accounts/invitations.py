"""Invitation and password reset links. The hub doesn't send mail.

The hub stores only a hash of a link's token. A link works once, until it expires or is revoked, and only while its
creator may still grant what it grants.
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
from memoryhub.accounts.sign_ins import change_password, open_reset_links
from memoryhub.lib.errors import Conflict, Gone, Invalid
from memoryhub.lib.validation import clean_text
from memoryhub.models import Invitation, InvitedRole
from sessions_app.models import Membership, Workspace
from sessions_app.services.audit import Actor, By, record

DAYS = (1, 7, 30)
MAX_NAME = 100
RESET_DAYS = 1
ASK_AGAIN = _("Ask for a new one.")
SIGN_IN_OR_ASK = _("If you used it, sign in with the name and password that you chose. Otherwise ask for a new one.")


class InvitationEnded(Gone):
    """The link doesn't work, or not any more."""

    code = "invitation_ended"


class BadInvitation(Invalid):
    """The invitation is invalid."""

    code = "bad_invitation"


class NameTaken(Conflict):
    """The user name is taken."""

    code = "name_taken"


@dataclass(frozen=True)
class OpenInvitation:
    """An open invitation. ``is_valid``: whether its creator may still grant its roles."""

    invitation: Invitation
    roles: Sequence[InvitedRole]
    is_valid: bool


def invite(
    *, name: str, roles: Mapping[Workspace, str], is_operator: bool, days: int, by: By
) -> tuple[Invitation, str]:
    """Create an invitation; return it and its token, which isn't stored. Raises BadInvitation, Invalid."""
    name = clean_text(" ".join(name.split()))
    granted = {workspace: role for workspace, role in roles.items() if role}
    if not 0 < len(name) <= MAX_NAME:
        raise BadInvitation(gettext("Enter a name of 1 to %(most)d characters.") % {"most": MAX_NAME})
    if days not in DAYS:
        allowed_days = ", ".join(map(str, DAYS))
        raise BadInvitation(gettext("Choose %(days)s days.") % {"days": allowed_days})
    if not granted and not is_operator:
        raise BadInvitation(gettext("Choose a role in at least one workspace."))
    if set(granted.values()) - set(Membership.Role.values):
        raise no_such_role()
    with transaction.atomic():
        invitation, token = _create(name, days, by, is_operator=is_operator)
        for workspace, role in granted.items():
            InvitedRole.objects.create(invitation=invitation, workspace=workspace, role=role)
            words = f"{name} was invited as {role}"
            record(by, "person.invited", "invitation", invitation.pk, words, workspace=workspace)
        if is_operator:
            words = f"{name} was invited as a hub operator"
            record(by, "account.invited", "invitation", invitation.pk, words)
    return invitation, token


@transaction.atomic
def make_reset_link(user: User, *, by: By) -> tuple[Invitation, str]:
    """Create a password reset link for a day; earlier ones end. The present password works until the link is used."""
    if not user.is_active:
        message = gettext("%(name)s is deactivated. Activate the account first.")
        raise BadInvitation(message % {"name": user.username})
    open_reset_links(user).update(revoked_at=by.at)
    invitation, token = _create(user.username[:MAX_NAME], RESET_DAYS, by, user=user)
    words = f"A password reset link was created for {user.username}"
    record(by, "account.reset_link_made", "user", user.pk, words)
    return invitation, token


def _create(
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
    """Return the creator's name as stored; only names that aren't people's contain a space."""
    return actor.name if actor.kind == "person" else f"{actor.kind} {actor.name}"


@transaction.atomic
def revoke(invitation: Invitation, *, by: By) -> bool:
    """Revoke an invitation; return whether it was unused."""
    if not Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None).update(revoked_at=by.at):
        return False
    words = f"The invitation of {invitation.name} was revoked"
    for role in invitation.roles.select_related("workspace"):
        record(by, "person.invitation_revoked", "invitation", invitation.pk, words, workspace=role.workspace)
    if invitation.is_operator or invitation.user_id:
        record(by, "account.invitation_revoked", "invitation", invitation.pk, words)
    return True


def open_invitations(now: datetime) -> QuerySet[Invitation]:
    """Return the invitations that aren't used, revoked or expired."""
    return Invitation.objects.filter(used_at=None, revoked_at=None, expires_at__gt=now)


def invitations_into(workspace: Workspace, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations to this workspace only."""
    alone = open_invitations(now).filter(is_operator=False, user=None, roles__workspace=workspace)
    return alone.exclude(roles__in=InvitedRole.objects.exclude(workspace=workspace))


def with_roles(invitations: Sequence[Invitation]) -> list[OpenInvitation]:
    """Return invitations with their roles and validity, in four queries."""
    by_invitation: dict[int, list[InvitedRole]] = {one.pk: [] for one in invitations}
    for role in InvitedRole.objects.filter(invitation__in=invitations).select_related("workspace").order_by("id"):
        by_invitation[role.invitation_id].append(role)
    names = {one.created_by for one in invitations}
    makers = {user.username: user for user in User.objects.filter(username__in=names, is_active=True)}
    operated: dict[int, set[int]] = {user.pk: set() for user in makers.values()}
    memberships = Membership.objects.filter(user__in=makers.values(), role=Membership.Role.OPERATOR)
    for user, workspace in memberships.values_list("user", "workspace"):
        operated[user].add(workspace)
    return [
        OpenInvitation(one, by_invitation[one.pk], _may_grant(one, by_invitation[one.pk], makers, operated))
        for one in invitations
    ]


def _may_grant(
    invitation: Invitation,
    roles: Sequence[InvitedRole],
    makers: Mapping[str, User],
    operated: Mapping[int, set[int]],
) -> bool:
    if " " in invitation.created_by:  # a command, which may grant everything
        return True
    maker = makers.get(invitation.created_by)
    if maker is None or maker.is_superuser:
        return maker is not None
    is_workspace_only = not invitation.is_operator and invitation.user_id is None
    return is_workspace_only and {role.workspace_id for role in roles} <= operated[maker.pk]


def find_invitation(token: str, now: datetime) -> OpenInvitation:
    """Return the invitation of a link. Raises InvitationEnded."""
    invitation = Invitation.objects.select_related("user").filter(token_hash=_hash(token)).first()
    if invitation is None:
        raise InvitationEnded(_and_ask_again(gettext("This link isn't valid. Part of it may be missing.")))
    shown = with_roles([invitation])[0]
    for applies, message in _end_reasons(shown, now):
        if applies:
            raise InvitationEnded(message)
    return shown


def _end_reasons(shown: OpenInvitation, now: datetime) -> list[tuple[bool, str]]:
    one = shown.invitation
    grants_nothing = not shown.roles and not one.is_operator and one.user is None
    is_off = one.user is not None and not one.user.is_active
    return [
        (one.used_at is not None, _already_used()),
        (one.revoked_at is not None, _and_ask_again(gettext("This link was revoked."))),
        (one.expires_at <= now, _and_ask_again(gettext("This link has expired."))),
        (grants_nothing, _and_ask_again(gettext("The workspace of this link was deleted."))),
        (is_off, gettext("This account is deactivated. Ask a hub operator.")),
        (
            not shown.is_valid,
            gettext("The sender of this link may not invite people any more. Ask a hub operator for a new one."),
        ),
    ]


def _and_ask_again(sentence: str) -> str:
    return f"{sentence} {ASK_AGAIN}"


def _already_used() -> str:
    sentence = gettext("This link was already used.")
    return f"{sentence} {SIGN_IN_OR_ASK}"


def gives_more(shown: OpenInvitation, user: User) -> bool:
    """Return whether an invitation grants a user anything new."""
    if user.is_superuser:
        return False
    has = roles_of([user], [role.workspace for role in shown.roles])
    return shown.invitation.is_operator or any(
        RANKS[role.role] > RANKS[has.get((user.pk, role.workspace_id), "")] for role in shown.roles
    )


def join_as_new(token: str, *, username: str, password: str | None, now: datetime) -> User:
    """Create the invited account; without a password, for sign-in elsewhere. Raises InvitationEnded, NameTaken."""
    try:
        with transaction.atomic():
            shown = _use_link(token, username, now)
            if shown.invitation.user is not None:
                raise InvitationEnded(_and_ask_again(gettext("This link is for resetting a password.")))
            user = User.objects.create_user(username=username, password=password)
            words = f"{username} created an account, invited by {shown.invitation.created_by}"
            record(By(Actor("person", username), now), "account.created", "user", user.pk, words)
            _grant(user, shown, now)
    except IntegrityError as error:
        raise NameTaken(gettext("This name is already taken. Choose another one.")) from error
    return user


@transaction.atomic
def join_as_known(token: str, user: User, *, now: datetime) -> None:
    """Grant the roles of an invitation to an existing account; never lower a role. Raises InvitationEnded."""
    shown = _use_link(token, user.username, now)
    if shown.invitation.user is not None:
        raise InvitationEnded(_and_ask_again(gettext("This link is for resetting a password.")))
    _grant(user, shown, now)


@transaction.atomic
def choose_new_password(token: str, password: str, *, now: datetime) -> User:
    """Set the new password of a reset link, and sign the user out everywhere. Raises InvitationEnded."""
    invitation = find_invitation(token, now).invitation
    if invitation.user is None:
        raise InvitationEnded(_and_ask_again(gettext("This link is an invitation, not for resetting a password.")))
    user = User.objects.select_for_update().get(username=invitation.user.username)
    _use_link(token, user.username, now)
    change_password(user, password, keep=None, by=By(Actor("person", user.username), now))
    return user


def _use_link(token: str, username: str, now: datetime) -> OpenInvitation:
    """Mark a link as used; of two concurrent requests, the second one fails."""
    shown = find_invitation(token, now)
    unused = Invitation.objects.filter(pk=shown.invitation.pk, used_at=None, revoked_at=None)
    if not unused.update(used_at=now, used_by=username):
        raise InvitationEnded(_already_used())
    return shown


def _grant(user: User, shown: OpenInvitation, now: datetime) -> None:
    by = By(Actor("person", user.username), now)
    for role in shown.roles:
        raise_role(user, role.workspace, role.role)
        words = f"{user.username} joined as {role.role}, invited by {shown.invitation.created_by}"
        record(by, "person.joined", "user", user.pk, words, workspace=role.workspace)
    if shown.invitation.is_operator and not user.is_superuser:
        user.is_superuser = user.is_staff = True
        user.save(update_fields=["is_superuser", "is_staff"])
        words = f"{user.username} is now a hub operator, invited by {shown.invitation.created_by}"
        record(by, "account.operator_made", "user", user.pk, words)


def _hash(token: str) -> str:
    return salted_hmac("memoryhub.invitation", token, algorithm="sha256").hexdigest()

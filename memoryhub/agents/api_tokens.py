"""Tokens that agents use for REST and MCP: issue, revoke, authenticate."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.agents.oauth.delegation import connection_of, is_usable, operated_by
from memoryhub.lib.database import db_retry
from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.errors import Invalid, Refused
from memoryhub.models import ApiToken, IdempotentCall, ReadGrant
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import Actor, By, record

SCOPES = {  # no scope allows approving, pinning, deleting, creating tokens or changing settings
    "read": _("read, search and recall everything in the workspace"),
    "append": _("add messages, history, knowledge and observations; cache responses; propose changes to documents"),
    "edit": _("write key-values and documents, edit knowledge, clear and import sessions"),
    "consolidate": _("request compression, consolidation and extraction, which may cost money"),
}
DEFAULT_SCOPES = ("read", "append", "edit")
PER_MINUTE = 600
MAX_PER_MINUTE = 60_000
LAST_USED_PRECISION = timedelta(seconds=10)  # precision of last_used_at
IDEMPOTENCY_LIFETIME = timedelta(days=1)  # lifetime of an idempotency key
MAX_NAME = 100
BEARER_HINT = "Send a token of this hub as 'Authorization: Bearer mh_…'."
_SHAPE = re.compile(r"(mh_[0-9a-f]{10})_[A-Za-z0-9_-]{43}")
_BY_PREFIX = PreparedRows(
    1,
    lambda prefix: (
        ApiToken.objects.select_related("workspace", "connection__user")
        .annotate(reads_others=Exists(ReadGrant.objects.filter(token=OuterRef("pk"), ended_at=None)))
        .filter(prefix=prefix)
    ),
)


class NotAuthenticated(Refused):
    """The token is missing or not valid."""

    code = "not_authenticated"
    status = 401


class BadToken(Invalid):
    """The options of a new token are invalid."""

    code = "bad_token"


@dataclass(frozen=True)
class Caller:
    """An authenticated agent. ``via``: rest or mcp."""

    token: ApiToken
    via: str

    @property
    def workspace(self) -> Workspace:
        return self.token.workspace

    @cached_property
    def readable(self) -> list[Workspace]:
        """Return the workspaces that the token may read, its own first."""
        if not getattr(self.token, "reads_others", True):
            return [self.workspace]
        connection = connection_of(self.token)
        allowed = Workspace.objects if connection is None else operated_by(connection.user)
        shared = allowed.filter(read_grants__token=self.token, read_grants__ended_at=None)
        return [self.workspace, *shared.order_by("slug")]

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.token.name)


def issue_token(
    workspace: Workspace,
    name: str,
    scopes: Collection[str],
    *,
    by: By,
    expires_at: datetime | None = None,
    per_minute: int = PER_MINUTE,
    reads: Collection[Workspace] = (),
) -> tuple[ApiToken, str]:
    """Create a token; return its row and its text, which isn't stored. Raises BadToken.

    ``reads``: other workspaces that it may read too.
    """
    name = " ".join(name.split())
    _check(name, scopes, expires_at, per_minute, by.at)
    if workspace in reads or (reads and "read" not in scopes):
        raise BadToken(gettext("A token may read other workspaces only, and only with the scope read."))
    prefix, text = new_text()
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                workspace=workspace,
                name=name,
                prefix=prefix,
                token_hash=token_hash(text),
                scopes=[scope for scope in SCOPES if scope in scopes],
                per_minute=per_minute,
                created_by=by.actor.name[:200],
                created_at=by.at,
                expires_at=expires_at,
            )
            summary = f"Token {prefix} created with {', '.join(token.scopes)}"
            record(by, "token.made", "token", token.pk, summary, workspace=workspace)
            for other in reads:
                ReadGrant.objects.get_or_create(token=token, workspace=other)
                summary = f"Token {prefix} of {workspace.slug} may read this workspace"
                record(by, "token.read_granted", "token", token.pk, summary, workspace=other)
    except IntegrityError as error:
        message = gettext(
            "This workspace already has a valid token named %(name)s. Revoke it, or choose another name."
        )
        raise BadToken(message % {"name": name}) from error
    return token, text


def new_text() -> tuple[str, str]:
    """Return the prefix and the text of a new token."""
    prefix = f"mh_{secrets.token_hex(5)}"
    return prefix, f"{prefix}_{secrets.token_urlsafe(32)}"


def _check(name: str, scopes: Collection[str], expires_at: datetime | None, per_minute: int, now: datetime) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise BadToken(gettext("Enter a name of 1 to %(most)s characters.") % {"most": MAX_NAME})
    if not scopes or set(scopes) - SCOPES.keys():
        known = {"scopes": ", ".join(SCOPES)}
        raise BadToken(gettext("Choose at least one of the scopes %(scopes)s.") % known)
    if expires_at is not None and expires_at <= now:
        raise BadToken(gettext("Choose an expiry time in the future."))
    if not 0 < per_minute <= MAX_PER_MINUTE:
        raise BadToken(gettext("Allow between 1 and %(most)s calls a minute.") % {"most": f"{MAX_PER_MINUTE:,}"})


@transaction.atomic
def revoke_token(token: ApiToken, *, by: By) -> bool:
    """Revoke a token; return whether it wasn't revoked before."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=by.at):
        return False
    summary = f"Token {token.prefix} revoked"
    record(by, "token.revoked", "token", token.pk, summary, workspace=token.workspace)
    return True


@transaction.atomic
def end_read_grant(grant: ReadGrant, *, by: By) -> bool:
    """Stop a token of another workspace from reading; return whether it could until now."""
    if not ReadGrant.objects.filter(pk=grant.pk, ended_at=None).update(ended_at=by.at):
        return False
    summary = f"Token {grant.token.prefix} may no longer read this workspace"
    record(by, "token.read_ended", "token", grant.token_id, summary, workspace=grant.workspace)
    return True


@transaction.atomic
def revoke_tokens_of(creator: str, *, by: By) -> int:
    """Revoke all valid tokens that this person created, in every workspace; return their number."""
    return sum(revoke_token(token, by=by) for token in tokens_of(creator, by.at))


def valid_tokens(now: datetime) -> Q:
    """Return the condition for tokens that are neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def tokens_of(creator: str, now: datetime) -> QuerySet[ApiToken]:
    """Return the valid tokens that this person created, ordered by workspace."""
    made = ApiToken.objects.filter(valid_tokens(now), created_by=creator).exclude(pk__in=_created_by_command(creator))
    return made.select_related("workspace").order_by("workspace__name", "name", "id")


def with_deactivated_creator(tokens: Collection[ApiToken]) -> set[int]:
    """Return the ids of tokens whose creator is deactivated."""
    names = {token.created_by for token in tokens}
    deactivated = set(User.objects.filter(username__in=names, is_active=False).values_list("username", flat=True))
    found = {token.pk for token in tokens if token.created_by in deactivated}
    return found - set(_created_by_command(*deactivated)) if found else found


def _created_by_command(*names: str) -> list[int]:
    """Return the ids of tokens created by a command, which may be run under the same name as an account."""
    made = AuditRecord.objects.filter(action="token.made", object_kind="token", actor_name__in=names)
    return [int(key) for key in made.exclude(actor_kind="person").values_list("object_id", flat=True)]


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header. Raises NotAuthenticated."""
    kind, _, text = authorization.partition(" ")
    if kind.lower() != "bearer":
        raise NotAuthenticated(BEARER_HINT)
    return text.strip()


def authenticate(text: str, *, via: str, now: datetime) -> Caller:
    """Return the caller with this token. Raises NotAuthenticated."""
    token = find_token(text)
    if token is None:
        raise NotAuthenticated(BEARER_HINT)
    is_over = token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now)
    connection = connection_of(token)
    if is_over or (connection is not None and not is_usable(connection, token.workspace, via=via, now=now)):
        raise NotAuthenticated("This token is revoked or expired. Ask a workspace operator for a new one.")
    if token.last_used_at is None or now - token.last_used_at >= LAST_USED_PRECISION:
        db_retry.try_write(lambda: ApiToken.objects.filter(pk=token.pk).update(last_used_at=now), "token's last use")
    return Caller(token, via)


def find_token(text: str) -> ApiToken | None:
    """Return the token with this text, valid or not. ``reads_others``: whether it has grants, without a query."""
    shape = _SHAPE.fullmatch(text)
    token = _BY_PREFIX.first(shape[1]) if shape else None
    return token if token is not None and hmac.compare_digest(token.token_hash, token_hash(text)) else None


def require(caller: Caller, scope: str) -> None:
    """Raise Refused if the caller's token lacks a scope."""
    if scope not in caller.token.scopes:
        raise Refused(f"This token lacks the scope {scope} ({SCOPES[scope]}).", code="scope_missing", scope=scope)


def delete_old_calls(now: datetime) -> None:
    """Delete expired idempotency keys."""
    IdempotentCall.objects.filter(created_at__lt=now - IDEMPOTENCY_LIFETIME).delete()


def token_hash(text: str) -> str:
    return salted_hmac("memoryhub.token", text, algorithm="sha256").hexdigest()

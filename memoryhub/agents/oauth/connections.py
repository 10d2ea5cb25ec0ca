"""OAuth connections: the code that a permission gives, its exchange for tokens, and their renewal and end."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from memoryhub.agents.api_tokens import find_token, issue_token, new_text, revoke_token, token_hash
from memoryhub.agents.oauth.delegation import connection_of, is_delegated, operated_by, resource_url
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Refused
from memoryhub.models import ApiToken, OAuthClient, OAuthConnection
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By, record

CODE_LIFETIME = timedelta(minutes=1)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)  # since the last refresh
_REFRESH = re.compile(r"mhr_([0-9a-f]{32})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Tokens:
    """The texts of new tokens, which aren't stored."""

    access: str
    refresh: str
    scopes: list[str]


@db_retry.retried
@transaction.atomic
def connect(
    client: OAuthClient,
    user: User,
    workspace: Workspace,
    scopes: Collection[str],
    *,
    redirect_uri: str,
    code_challenge: str,
    now: datetime,
    reads: Collection[Workspace] = (),
) -> str:
    """Store a person's permission and return its code. It replaces earlier ones of this client. Raises Refused."""
    wanted = {workspace.pk, *(other.pk for other in reads)}
    if operated_by(user).filter(pk__in=wanted).count() < len(wanted):
        raise Refused(gettext("Only operators of a workspace can connect clients to it."))
    by = By(Actor("person", user.get_username()), now)
    mine = OAuthConnection.objects.filter(user=user, token__workspace=workspace, token__revoked_at=None)
    for old in mine.filter(Q(client=client) | Q(token__expires_at__lte=now)).select_related("token__workspace"):
        revoke_token(old.token, by=by)
    name = _free_name(client.name, workspace, user)
    token, _ = issue_token(workspace, name, scopes, by=by, expires_at=now + CODE_LIFETIME, reads=reads)
    code = secrets.token_urlsafe(32)
    OAuthConnection.objects.create(
        token=token,
        client=client,
        user=user,
        resource=resource_url(),
        redirect_uri=redirect_uri,
        code_hash=_hash(code),
        code_challenge=code_challenge,
        code_expires_at=now + CODE_LIFETIME,
        refresh_key=secrets.token_hex(16),
    )
    summary = f"{client.name} allowed to use this workspace over MCP as {name}"
    record(by, "oauth.allowed", "token", token.pk, summary, workspace=workspace)
    return code


def _free_name(name: str, workspace: Workspace, user: User) -> str:
    """Return the client's name, with a number if another agent of the workspace has or had it.

    Somebody who connects a client again gets the same name again.
    """
    tokens = ApiToken.objects.filter(workspace=workspace)
    taken = set(tokens.exclude(connection__user=user, revoked_at__isnull=False).values_list("name", flat=True))
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def find_code(client_id: str, code: str, now: datetime) -> OAuthConnection | None:
    """Return the connection of a client's code that wasn't used. A used one ends its connection."""
    connection = _connections(client_id).filter(code_hash=_hash(code)).first()
    if connection is not None and connection.code_used_at is not None:
        _end_reused(connection, "authorization code", now)
        return None
    return connection if connection is not None and _is_alive(connection, now) else None


def redeem(connection: OAuthConnection, now: datetime) -> Tokens | None:
    """Exchange a code for tokens; None if it was just used, which ends the connection."""
    unused = OAuthConnection.objects.filter(pk=connection.pk, code_used_at=None, code_expires_at__gt=now)
    return _new_tokens(connection, unused, "authorization code", now, code_used_at=now)


def find_refresh_token(client_id: str, text: str, now: datetime) -> OAuthConnection | None:
    """Return the connection of a client's present refresh token. An earlier one ends its connection."""
    shape = _REFRESH.fullmatch(text)
    connection = _connections(client_id).filter(refresh_key=shape[1]).first() if shape else None
    if connection is None or not connection.refresh_hash:
        return None
    if not hmac.compare_digest(connection.refresh_hash, _hash(text)):
        _end_reused(connection, "refresh token", now)
        return None
    return connection if _is_alive(connection, now) else None


def refresh(connection: OAuthConnection, now: datetime) -> Tokens | None:
    """Replace both tokens; None if the refresh token was just used, which ends the connection."""
    unused = OAuthConnection.objects.filter(pk=connection.pk, refresh_hash=connection.refresh_hash)
    return _new_tokens(connection, unused, "refresh token", now)


def end_connection(client_id: str, text: str, now: datetime) -> bool:
    """Revoke a client's connection by its access or refresh token; return whether there was one."""
    token = find_token(text)
    connection = connection_of(token) if token else None
    if connection is None or connection.client.client_id != client_id:
        connection = find_refresh_token(client_id, text, now)
    return connection is not None and _revoke(connection, now)


def _connections(client_id: str) -> QuerySet[OAuthConnection]:
    related = ("client", "user", "token__workspace")
    return OAuthConnection.objects.filter(client__client_id=client_id).select_related(*related)


def _is_alive(connection: OAuthConnection, now: datetime) -> bool:
    token = connection.token
    is_valid = token.revoked_at is None and token.expires_at is not None and now < token.expires_at
    return is_valid and connection.resource == resource_url() and is_delegated(connection, token.workspace)


@db_retry.retried
def _new_tokens(
    connection: OAuthConnection, unused: QuerySet[OAuthConnection], what: str, now: datetime, **used: datetime
) -> Tokens | None:
    """Store new tokens if ``unused`` still has the connection, in one step, so that concurrent calls exclude."""
    prefix, access = new_text()
    new_refresh = f"mhr_{connection.refresh_key}_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        values = {"refresh_hash": _hash(new_refresh), "access_expires_at": now + ACCESS_LIFETIME, **used}
        tokens = ApiToken.objects.filter(pk=connection.token_id, revoked_at=None)
        is_new = bool(unused.filter(token__in=tokens).update(**values))
        if is_new:
            text = {"prefix": prefix, "token_hash": token_hash(access), "expires_at": now + REFRESH_LIFETIME}
            tokens.update(**text)
    if not is_new:
        _end_reused(connection, what, now)
        return None
    return Tokens(access, new_refresh, connection.token.scopes)


def _end_reused(connection: OAuthConnection, what: str, now: datetime) -> None:
    """Revoke a connection whose code or refresh token was used twice: one of the users isn't the client."""
    if _revoke(connection, now):
        summary = f"{connection.token.name} was disconnected: its {what} was used twice"
        by = By(Actor("agent", connection.token.name), now)
        record(by, "oauth.reused", "token", connection.token_id, summary, workspace=connection.token.workspace)


@db_retry.retried
def _revoke(connection: OAuthConnection, now: datetime) -> bool:
    return revoke_token(connection.token, by=By(Actor("agent", connection.token.name), now))


def _hash(text: str) -> str:
    return salted_hmac("memoryhub.oauth", text, algorithm="sha256").hexdigest()

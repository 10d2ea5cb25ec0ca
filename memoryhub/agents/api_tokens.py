"""What agents show to REST and MCP: made by operators, shown once, checked at every call."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib import db_retry
from memoryhub.lib.errors import Invalid, LimitExceeded, Refused
from memoryhub.models import ApiToken, IdempotentCall
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import Actor, By, record

SCOPES = {  # what each lets an agent do; none lets it approve, pin, delete, make tokens or change settings
    "read": _("see, search and recall what the workspace holds"),
    "append": _("add entries, history, knowledge and observations; keep responses; propose changes of documents"),
    "edit": _("write key-values and documents, correct knowledge, clear and import sessions"),
    "consolidate": _("ask for compression, consolidation and extraction, which may cost money"),
}
DEFAULT_SCOPES = ("read", "append", "edit")
PER_MINUTE = 600
MOST_PER_MINUTE = 60_000
NOTED_EVERY = timedelta(seconds=10)  # how exactly the last use is known
KEPT_CALLS = timedelta(days=1)  # how long an idempotency key is remembered
MAX_NAME = 100
SHOW_ONE = "Send the token of this hub as 'Authorization: Bearer mh_…'."
_SHAPE = re.compile(r"(mh_[0-9a-f]{10})_[A-Za-z0-9_-]{43}")


class NotAuthenticated(Refused):
    """There is no token, or none that is good any more."""

    code = "not_authenticated"
    status = 401


class TooManyCalls(LimitExceeded):
    """More calls in a minute than the token is good for; ``retry_after`` are seconds to wait."""

    code = "too_many_calls"
    status = 429


class BadToken(Invalid):
    """A token that can't be made as asked for."""

    code = "bad_token"


@dataclass(frozen=True)
class Caller:
    """An agent at the door: its token, and which door (``via``: rest or mcp)."""

    token: ApiToken
    via: str

    @property
    def workspace(self) -> Workspace:
        return self.token.workspace

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
) -> tuple[ApiToken, str]:
    """Make a token; return its row and its text, which is kept nowhere. Raises BadToken."""
    name = " ".join(name.split())
    _check(name, scopes, expires_at, per_minute, by.at)
    prefix = f"mh_{secrets.token_hex(5)}"
    text = f"{prefix}_{secrets.token_urlsafe(32)}"
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                workspace=workspace,
                name=name,
                prefix=prefix,
                token_hash=_hash(text),
                scopes=[scope for scope in SCOPES if scope in scopes],
                per_minute=per_minute,
                created_by=by.actor.name[:200],
                created_at=by.at,
                expires_at=expires_at,
            )
            words = f"Token {prefix} made for {', '.join(token.scopes)}"
            record(by, "token.made", "token", token.pk, words, workspace=workspace)
    except IntegrityError as error:
        words = gettext("A token named %(name)s is in use here: revoke it first, or take another name.")
        raise BadToken(words % {"name": name}) from error
    return token, text


def _check(name: str, scopes: Collection[str], expires_at: datetime | None, per_minute: int, now: datetime) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise BadToken(gettext("Give the agent a name of 1 to %(most)s characters.") % {"most": MAX_NAME})
    if not scopes or set(scopes) - SCOPES.keys():
        known = {"scopes": ", ".join(SCOPES)}
        raise BadToken(gettext("Choose among the scopes %(scopes)s; one at least.") % known)
    if expires_at is not None and expires_at <= now:
        raise BadToken(gettext("Let the token end at a time to come."))
    if not 0 < per_minute <= MOST_PER_MINUTE:
        raise BadToken(gettext("Allow 1 to %(most)s calls a minute.") % {"most": f"{MOST_PER_MINUTE:,}"})


@transaction.atomic
def revoke_token(token: ApiToken, *, by: By) -> bool:
    """End a token at once; tell whether it was still good."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=by.at):
        return False
    words = f"Token {token.prefix} revoked"
    record(by, "token.revoked", "token", token.pk, words, workspace=token.workspace)
    return True


@transaction.atomic
def revoke_tokens_of(maker: str, *, by: By) -> int:
    """End all tokens that a person of this name made and that are good, in every workspace; return how many."""
    return sum(revoke_token(token, by=by) for token in tokens_of(maker, by.at))


def living_tokens(now: datetime) -> Q:
    """Return the condition of tokens that are good."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def tokens_of(maker: str, now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens that a person of this name made and that are good, with their workspaces, by its name."""
    made = ApiToken.objects.filter(living_tokens(now), created_by=maker).exclude(pk__in=_made_by_command(maker))
    return made.select_related("workspace").order_by("workspace__name", "name", "id")


def makers_off(tokens: Collection[ApiToken]) -> set[int]:
    """Return the keys of those tokens whose maker is deactivated. One query, two where there are any."""
    names = {token.created_by for token in tokens}
    off = set(User.objects.filter(username__in=names, is_active=False).values_list("username", flat=True))
    found = {token.pk for token in tokens if token.created_by in off}
    return found - set(_made_by_command(*off)) if found else found


def _made_by_command(*names: str) -> list[int]:
    """Return the keys of tokens that no person made: a command may have the same name as somebody."""
    made = AuditRecord.objects.filter(action="token.made", object_kind="token", actor_name__in=names)
    return [int(key) for key in made.exclude(actor_kind="person").values_list("object_id", flat=True)]


def shown_token(authorization: str) -> str:
    """Return the token in an Authorization header. Raises NotAuthenticated where there is none."""
    kind, _, text = authorization.partition(" ")
    if kind.lower() != "bearer":
        raise NotAuthenticated(SHOW_ONE)
    return text.strip()


def authenticate(text: str, *, via: str, now: datetime) -> Caller:
    """Return who shows a token. Raises NotAuthenticated, in the same words whatever is wrong with an unknown one."""
    shape = _SHAPE.fullmatch(text)
    token = ApiToken.objects.select_related("workspace").filter(prefix=shape[1]).first() if shape else None
    if token is None or not hmac.compare_digest(token.token_hash, _hash(text)):
        raise NotAuthenticated(SHOW_ONE)
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        raise NotAuthenticated("This token has ended: ask an operator of the hub for a new one.")
    if token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY:
        db_retry.try_write(
            lambda: ApiToken.objects.filter(pk=token.pk).update(last_used_at=now), "a token's last use"
        )
    return Caller(token, via)


def require(caller: Caller, scope: str) -> None:
    """Raise Refused where a token isn't good for something."""
    if scope not in caller.token.scopes:
        raise Refused(
            f"This token may not {SCOPES[scope]}: that takes the scope {scope}.", code="scope_missing", scope=scope
        )


def spend_call(caller: Caller, now: datetime) -> None:
    """Count a call against the token's limit, minute by minute and in this process. Raises TooManyCalls."""
    minute = int(now.timestamp() // 60)
    counter = f"calls:{caller.token.pk}:{minute}"
    cache.add(counter, 0, 120)
    if cache.incr(counter) > caller.token.per_minute:
        wait = 60 - int(now.timestamp() % 60)
        words = f"This token is good for {caller.token.per_minute:,} calls a minute: go on in {wait} seconds."
        raise TooManyCalls(words, retry_after=wait)


def forget_old_calls(now: datetime) -> None:
    """Forget idempotency keys that nobody sends again."""
    IdempotentCall.objects.filter(created_at__lt=now - KEPT_CALLS).delete()


def _hash(text: str) -> str:
    return salted_hmac("memoryhub.token", text, algorithm="sha256").hexdigest()

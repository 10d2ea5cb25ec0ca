"""Sign-in with an OpenID Connect provider. Authlib does the protocol: PKCE, state, nonce, and the ID token's checks.

The provider's name for a person is the pair of issuer and subject. An e-mail address only counts if it is verified,
and ASCII: other letters can equal ASCII ones when case is ignored, such as the Kelvin sign and k.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from memoryhub.account_models import Identity
from memoryhub.lib.errors import Conflict, MemoryHubError
from sessions_app.services.audit import Actor, By, record

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
SECONDS = 5  # for each answer of the provider
LEEWAY_SECONDS = 60  # for clocks that differ
MAX_SUBJECT, MAX_EMAIL = 255, 150
STATE_KEYS, MAX_BEGUN = "_state_oidc_", 5  # how Authlib names what a session keeps of each begun sign-in
DESCRIPTION_SECONDS = 3600  # after which the provider's description and keys are read again
_ADDRESS = re.compile(r"[\w!#$%&'*+./=?^`{|}~-]+@[\w.-]+", re.ASCII)
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class SignInFailed(MemoryHubError):
    """The provider's answer can't be used."""

    code, status = "sign_in_failed", 403


class AlreadyConnected(Conflict):
    """The identity belongs to an account, or the account has another identity of the provider."""

    code = "already_connected"


@dataclass(frozen=True)
class Proved:
    """What the provider says about a person. ``email``: "" unless it is verified. ``name``: a suggestion."""

    issuer: str
    subject: str
    email: str
    name: str


def provider_name() -> str:
    """Return the provider's host, for labels; "" without a provider."""
    return urlsplit(settings.MEMORYHUB_OIDC_ISSUER).netloc


def begin(request: HttpRequest, callback: str, next_url: str) -> str:
    """Return the provider's address to which the person is sent. The session remembers what was asked."""
    try:
        client = _client()
        asked = client.create_authorization_url(callback)
    except _expected_errors() as error:
        raise _failed(error) from error
    client.save_authorize_data(request, redirect_uri=callback, next=next_url, **asked)
    begun = [key for key in request.session.keys() if key.startswith(STATE_KEYS)]  # noqa: SIM118
    for key in sorted(begun, key=lambda key: request.session[key]["exp"])[:-MAX_BEGUN]:
        del request.session[key]
    return str(asked["url"])


def finish(request: HttpRequest) -> tuple[Proved, str]:
    """Check the provider's answer; return what it proves, and the next page. Raises SignInFailed."""
    try:
        client = _client()
        state = client.framework.get_state_data(request.session, request.GET.get("state"))
        options = {"iss": {"essential": True, "value": client.server_metadata["issuer"]}}
        options["aud"] = {"essential": True, "value": settings.MEMORYHUB_OIDC_CLIENT_ID}
        token = client.authorize_access_token(request, claims_options=options, leeway=LEEWAY_SECONDS)
        claims = dict(token["userinfo"])
        if "email" not in claims and "userinfo_endpoint" in client.server_metadata:
            more = client.userinfo(token=token)
            claims = {**more, **claims} if more.get("sub") == claims["sub"] else claims
        return _proved(claims), str(state["next"])
    except _expected_errors() as error:
        raise _failed(error) from error


def _proved(claims: dict[str, Any]) -> Proved:
    email = str(claims.get("email") or "").strip() if claims.get("email_verified") is True else ""
    is_usable = len(email) <= MAX_EMAIL and _ADDRESS.fullmatch(email)
    subject = str(claims["sub"])
    if not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
        raise ValueError("a subject of that length or with such characters")
    email = email.lower() if is_usable else ""
    return Proved(str(claims["iss"]), subject, email, str(claims.get("preferred_username") or email))


def _expected_errors() -> tuple[type[Exception], ...]:
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError
    from requests import RequestException

    return AuthlibBaseError, JoseError, RequestException, ValueError, KeyError, TypeError


def _failed(error: Exception) -> SignInFailed:
    """Return an error that says what failed, without anything secret."""
    given = str(getattr(error, "error", "") or "")
    reason = given if re.fullmatch("[a-z_]{1,40}", given) else type(error).__name__  # the address can say anything
    return SignInFailed(gettext("Signing in failed (%(reason)s). Try again.") % {"reason": reason})


def _client() -> Any:
    credentials = settings.MEMORYHUB_OIDC_CLIENT_ID, settings.MEMORYHUB_OIDC_CLIENT_SECRET
    return _client_of(settings.MEMORYHUB_OIDC_ISSUER, *credentials, int(time.time() // DESCRIPTION_SECONDS))


@lru_cache(maxsize=2)
def _client_of(issuer: str, client_id: str, secret: str, _period: int) -> Any:
    """Return Authlib's client, after reading the provider's description.

    Only asymmetric signatures are accepted: Authlib would accept "none" from a provider that lists it.
    """
    from authlib.integrations.django_client import OAuth

    wanted = {"scope": "openid profile email", "code_challenge_method": "S256", "default_timeout": SECONDS}
    client = OAuth().register(
        "oidc",
        client_id=client_id,
        client_secret=secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs=wanted,
    )
    described = client.load_server_metadata()
    if str(described.get("issuer")).rstrip("/") != issuer:
        raise ValueError("another issuer")
    allowed = {"https", urlsplit(issuer).scheme}  # http only for a provider on this machine
    if any(urlsplit(str(described.get(name))).scheme not in allowed for name in ENDPOINTS):
        raise ValueError("an endpoint without TLS")
    offered = described.get("id_token_signing_alg_values_supported", ["RS256"])
    described["id_token_signing_alg_values_supported"] = sorted(ALGORITHMS.intersection(offered))
    return client


@transaction.atomic
def find_person(proved: Proved, now: datetime) -> User | None:
    """Return the person with this identity, also a deactivated one.

    The first time, a verified e-mail address finds the only person with that address, who is then connected; with an
    address of MEMORYHUB_OIDC_DOMAINS, somebody unknown gets an account without roles. A disconnected identity finds
    nobody.
    """
    known = Identity.objects.filter(issuer=proved.issuer, subject=proved.subject)
    identity = known.filter(ended_at=None).select_related("user").first()
    if identity or not proved.email or known.exists():
        return identity.user if identity else None
    same = [user for user in User.objects.filter(email__iexact=proved.email) if user.email.isascii()]
    if same:
        if len(same) > 1 or not same[0].is_active or _has_connected(same[0], proved):
            return None
        connect(same[0], proved, by=By(Actor("person", same[0].username), now))
        return same[0]
    if proved.email.rpartition("@")[2] not in settings.MEMORYHUB_OIDC_DOMAINS:
        return None
    return _create(proved, now)


def _has_connected(user: User, proved: Proved) -> bool:
    """Return whether the person or the address was ever connected: it may have been given to somebody else since."""
    spellings = [proved.issuer, f"{proved.issuer}/", proved.issuer.removesuffix("/")]
    ever = Identity.objects.filter(issuer__in=spellings)
    return ever.filter(Q(user=user) | Q(email=proved.email)).exists()


def _create(proved: Proved, now: datetime) -> User | None:
    if User.objects.filter(username__iexact=proved.email).exists():
        return None
    try:
        with transaction.atomic():
            user = User.objects.create_user(username=proved.email, email=proved.email)
    except IntegrityError:
        return None
    by = By(Actor("person", user.username), now)
    words = f"{user.username} was signed in by {provider_name()} and got an account"
    record(by, "account.created", "user", user.pk, words)
    connect(user, proved, by=by)
    return user


def connect(user: User, proved: Proved, *, by: By) -> None:
    """Let somebody sign in as this person from now on. Raises AlreadyConnected."""
    try:
        with transaction.atomic():
            Identity.objects.filter(
                user=user, issuer=proved.issuer, subject=proved.subject, ended_at__isnull=False
            ).delete()
            Identity.objects.create(
                user=user, issuer=proved.issuer, subject=proved.subject, email=proved.email, created_at=by.at
            )
    except IntegrityError as error:
        raise AlreadyConnected(gettext("This sign-in is already connected to an account.")) from error
    words = f"{user.username} can sign in with {urlsplit(proved.issuer).netloc}"
    record(by, "account.identity_connected", "user", user.pk, words)


def identities_of(user: User) -> QuerySet[Identity]:
    """Return a person's identities at the present provider, not at an earlier one."""
    issuer = settings.MEMORYHUB_OIDC_ISSUER
    return user.identities.filter(issuer__in=[issuer, f"{issuer}/"], ended_at=None)


@transaction.atomic
def disconnect(user: User, *, by: By) -> int:
    """End a person's identities, which then only their own connecting brings back; return their number."""
    count = Identity.objects.filter(user=user, ended_at=None).update(ended_at=by.at)
    if count:
        words = f"{user.username} can't sign in with a provider any more"
        record(by, "account.identity_removed", "user", user.pk, words)
    return count

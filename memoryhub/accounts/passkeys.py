"""Passkeys (WebAuthn). The package fido2 checks what authenticators answer: challenge, origin, signature.

A passkey is stored on the device and is only used after the device has checked the person, so it counts as password
and second factor.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import secrets
import struct
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from memoryhub.account_models import Passkey
from memoryhub.accounts.people import refuse_oneself
from memoryhub.agents.hub_url import LOOPBACK
from memoryhub.lib.errors import Conflict, LimitExceeded, MemoryHubError
from sessions_app.services.audit import Actor, By, record

if TYPE_CHECKING:
    from fido2.server import Fido2Server

MAX_PASSKEYS = 20  # of a person
MAX_ANSWER = 20_000  # characters
MAX_ID_BYTES = 1023  # as in the standard
HANDLE_BYTES = 32
REGISTRATION = ("clientDataJSON", "attestationObject")
SIGN_IN = ("clientDataJSON", "authenticatorData", "signature", "userHandle")
# The package raises these for answers that no authenticator sends.
_MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


class PasskeyRefused(MemoryHubError):
    """The answer of the browser proves nothing."""

    code, status = "passkey_refused", 403


@dataclass(frozen=True)
class Site:
    """Where passkeys work. ``host``: the relying party's id. ``origin``: of the pages."""

    host: str
    origin: str


def find_site(request: HttpRequest) -> Site | None:
    """Return where passkeys work: at MEMORYHUB_URL with TLS, or on localhost if that names only this machine.

    Return None if they can't: without the package, without TLS, or at an address without a name.
    """
    if importlib.util.find_spec("fido2") is None:
        return None
    address = urlsplit(settings.MEMORYHUB_URL)
    if address.hostname in LOOPBACK:
        address = urlsplit(request.build_absolute_uri("/"))
        is_usable = address.hostname == "localhost"
    else:
        is_usable = address.scheme == "https" and _has_name(address)
    return Site(address.hostname or "", _origin(address)) if is_usable else None


def _has_name(address: SplitResult) -> bool:
    try:
        ipaddress.ip_address(address.hostname or "")
    except ValueError:
        return bool(address.hostname)
    return False


def _origin(address: SplitResult) -> str:
    """Return an origin as browsers write it, without the usual port."""
    usual = {"https": 443, "http": 80}[address.scheme]
    port = f":{address.port}" if address.port not in (None, usual) else ""
    return f"{address.scheme}://{address.hostname}{port}"


def passkeys_of(user: User) -> QuerySet[Passkey]:
    return user.passkeys.order_by("created_at", "id")


def is_in_use(site: Site) -> bool:
    """Return whether anybody has a passkey for a site."""
    return Passkey.objects.filter(host=site.host).exists()


def ask_for_registration(user: User, site: Site) -> dict[str, Any]:
    """Return the options for a new passkey, with a new challenge. Raises LimitExceeded."""
    from fido2 import webauthn
    from fido2.utils import websafe_decode

    known = list(user.passkeys.filter(host=site.host))
    _refuse_too_many(user)
    handle = websafe_decode(known[0].handle) if known else secrets.token_bytes(HANDLE_BYTES)
    options, _ = _server(site).register_begin(
        webauthn.PublicKeyCredentialUserEntity(name=user.username, display_name=user.username, id=handle),
        [_descriptor(passkey) for passkey in known],
        resident_key_requirement=webauthn.ResidentKeyRequirement.REQUIRED,
        user_verification=webauthn.UserVerificationRequirement.REQUIRED,
    )
    return dict(options.public_key)


def _descriptor(passkey: Passkey) -> Any:
    from fido2 import webauthn
    from fido2.utils import websafe_decode

    kind = webauthn.PublicKeyCredentialType.PUBLIC_KEY
    return webauthn.PublicKeyCredentialDescriptor(type=kind, id=websafe_decode(passkey.credential_id))


def _refuse_too_many(user: User) -> None:
    if user.passkeys.count() >= MAX_PASSKEYS:
        words = gettext("You have %(count)s passkeys. Remove one first.") % {"count": MAX_PASSKEYS}
        raise LimitExceeded(words, code="too_many_passkeys")


@transaction.atomic
def register(user: User, site: Site, asked: dict[str, str], answer: str, *, by: By) -> Passkey:
    """Store a new passkey. Raises PasskeyRefused, LimitExceeded, Conflict.

    ``asked``: the challenge and handle of the options, and the name of the passkey.
    """
    credential = _new_credential(site, asked["challenge"], answer)
    User.objects.select_for_update().get(pk=user.pk)
    _refuse_too_many(user)
    try:
        with transaction.atomic():
            made = Passkey.objects.create(
                user=user,
                name=asked["name"],
                host=site.host,
                handle=asked["handle"],
                created_at=by.at,
                **credential,
            )
    except IntegrityError as error:
        raise Conflict(gettext("This passkey is already registered."), code="passkey_known") from error
    record(by, "account.passkey_added", "user", user.pk, f"{user.username} added the passkey {made.name}")
    return made


def _new_credential(site: Site, challenge: str, answer: str) -> dict[str, Any]:
    """Check an answer to options; return the values that it has for a passkey. Raises PasskeyRefused."""
    from fido2.utils import websafe_encode

    try:
        read = _read(answer, REGISTRATION)
        server = _server(site)
        data = server.register_complete(_state(challenge), read)
        found = data.credential_data
        offered = {one.alg for one in server.allowed_algorithms}
        if found is None or found.public_key.get(3) not in offered or len(found.credential_id) > MAX_ID_BYTES:
            raise ValueError("a credential that was not asked for")
        return {
            "credential_id": websafe_encode(found.credential_id),
            "credential": websafe_encode(found),
            "sign_count": data.counter,
        }
    except _MALFORMED as error:
        raise PasskeyRefused(gettext("The passkey couldn't be added. Try again.")) from error


def ask_for_sign_in(site: Site) -> dict[str, Any]:
    """Return the options for signing in with any passkey of the site, with a new challenge."""
    from fido2.webauthn import UserVerificationRequirement

    options, _ = _server(site).authenticate_begin(user_verification=UserVerificationRequirement.REQUIRED)
    return dict(options.public_key)


def claimed_passkey(site: Site, answer: str) -> Passkey | None:
    """Return the passkey that an answer names. It proves nothing yet."""
    try:
        named = _read(answer, SIGN_IN)["rawId"]
    except _MALFORMED:
        return None
    return Passkey.objects.filter(host=site.host, credential_id=named).select_related("user").first()


def check_sign_in(site: Site, passkey: Passkey | None, challenge: str, answer: str, *, now: datetime) -> Passkey:
    """Return the passkey, if an answer proves that its person is here. Raises PasskeyRefused."""
    if passkey is None or not passkey.user.is_active:
        raise _not_signed_in()
    try:
        count = _checked_count(site, passkey, challenge, answer)
    except _MALFORMED as error:
        raise _not_signed_in() from error
    _use(passkey, count, now)
    return passkey


def _checked_count(site: Site, passkey: Passkey, challenge: str, answer: str) -> int:
    from fido2.utils import websafe_decode
    from fido2.webauthn import AttestedCredentialData, AuthenticationResponse

    read = _read(answer, SIGN_IN)
    credential = AttestedCredentialData(websafe_decode(passkey.credential))
    _server(site).authenticate_complete(_state(challenge), [credential], read)
    response = AuthenticationResponse.from_dict(read).response
    if response.user_handle != websafe_decode(passkey.handle):
        raise ValueError("another person")
    return response.authenticator_data.counter


def _use(passkey: Passkey, count: int, now: datetime) -> None:
    """Store the counter, which must have grown unless the authenticator has none. Raises PasskeyRefused."""
    lower = {"sign_count__lt": count} if count else {"sign_count": 0}
    if Passkey.objects.filter(pk=passkey.pk, **lower).update(sign_count=count, used_at=now):
        return
    user = passkey.user
    words = f"The passkey {passkey.name} of {user.username} was refused, because its counter shows that a copy exists"
    record(By(Actor("person", user.username), now), "account.passkey_refused", "user", user.pk, words)
    raise PasskeyRefused(gettext("A copy of this passkey seems to exist. Sign in with your password, and remove it."))


def _not_signed_in() -> PasskeyRefused:
    return PasskeyRefused(gettext("Signing in with this passkey failed. Try again, or use your password."))


@transaction.atomic
def rename(passkey: Passkey, name: str, *, by: By) -> None:
    words = f"{passkey.user.username} renamed the passkey {passkey.name} to {name}"
    passkey.name = name
    passkey.save(update_fields=["name"])
    record(by, "account.passkey_renamed", "user", passkey.user_id, words)


@transaction.atomic
def remove(passkey: Passkey, *, by: By) -> None:
    """Remove one of one's own passkeys."""
    passkey.delete()
    words = f"{passkey.user.username} removed the passkey {passkey.name}"
    record(by, "account.passkey_removed", "user", passkey.user_id, words)


@transaction.atomic
def remove_all(user: User, *, by: By) -> bool:
    """Remove somebody else's passkeys; return whether there were any. Raises Refused."""
    refuse_oneself(user, by.actor)
    count, _ = Passkey.objects.filter(user=user).delete()
    if count:
        words = f"All passkeys of {user.username} were removed"
        record(by, "account.passkeys_removed", "user", user.pk, words, detail={"count": count})
    return count > 0


def _server(site: Site) -> Fido2Server:
    from fido2.server import Fido2Server
    from fido2.webauthn import PublicKeyCredentialRpEntity

    party = PublicKeyCredentialRpEntity(name="MemoryHub", id=site.host)
    return Fido2Server(party, verify_origin=lambda origin: origin == site.origin)


def _state(challenge: str) -> dict[str, str]:
    return {"challenge": challenge, "user_verification": "required"}


def _read(answer: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the parts of a browser's answer that are checked, all of them text. Raises one of _MALFORMED.

    The package would take a number for the length of a value, and allocate it.
    """
    from fido2.utils import websafe_decode

    if len(answer) > MAX_ANSWER:
        raise ValueError("a long answer")
    given = json.loads(answer)
    found = {"id": given["id"], "rawId": given["rawId"]}
    response = {name: given["response"][name] for name in names}
    client = json.loads(websafe_decode(_text(response["clientDataJSON"])))
    for value in (*found.values(), *response.values(), client["challenge"]):
        _text(value)
    if client.get("crossOrigin", False) is not False:
        raise ValueError("a page inside another one")
    return found | {"response": response}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value

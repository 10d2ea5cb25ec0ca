"""Programs that registered themselves for OAuth."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from memoryhub.agents.oauth.redirects import destination, parse_redirect
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Invalid
from memoryhub.models import OAuthClient

MAX_NAME = 80
MAX_REDIRECTS = 10
MAX_UNUSED = 1000  # registrations that nobody has allowed
UNUSED_LIFETIME = timedelta(days=1)
REGISTRATIONS_PER_MINUTE = 10  # from one address
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")  # PostgreSQL refuses to look for NUL


class BadRedirect(Invalid):
    """A redirect URI isn't allowed."""

    code = "invalid_redirect_uri"


@db_retry.retried
@transaction.atomic
def register_client(client_id: str, name: str, redirect_uris: Sequence[str], now: datetime) -> OAuthClient:
    """Store a client. Beyond MAX_UNUSED, the oldest unused registrations are deleted. Raises BadRedirect."""
    if not 0 < len(redirect_uris) <= MAX_REDIRECTS:
        raise BadRedirect(f"Register 1 to {MAX_REDIRECTS} redirect URIs.")
    urls = [parse_redirect(one) for one in redirect_uris]
    known = [url for url in urls if url is not None]
    if len(known) < len(urls):
        raise BadRedirect("A redirect URI must use https, http to this machine, or a program's own scheme.")
    shown = clean_name(name) or destination(known[0]) or "MCP client"
    client = OAuthClient.objects.create(
        client_id=client_id, name=shown[:MAX_NAME], redirect_uris=known, created_at=now
    )
    unused = OAuthClient.objects.filter(connections=None).order_by("-id").values_list("pk", flat=True)
    if surplus := list(unused[MAX_UNUSED : MAX_UNUSED + 100]):
        OAuthClient.objects.filter(pk__in=surplus, connections=None).delete()
    return client


def clean_name(name: str) -> str:
    """Return a name without control and formatting characters, which could hide or reorder what people read."""
    kept = "".join(" " if char.isspace() else char for char in name[: 4 * MAX_NAME])
    visible = "".join(char for char in kept if unicodedata.category(char)[0] != "C")
    return " ".join(visible.split())[:MAX_NAME].strip()


def find_client(client_id: str) -> OAuthClient | None:
    return OAuthClient.objects.filter(client_id=client_id).first() if _ID.fullmatch(client_id) else None


def delete_unused_clients(now: datetime) -> None:
    """Delete registrations that nobody allowed in time."""
    OAuthClient.objects.filter(created_at__lt=now - UNUSED_LIFETIME, connections=None).delete()

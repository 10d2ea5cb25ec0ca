"""Add passkeys and sign in with them, as browsers do."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import AuditRecord
from tests.accounts.test_people_pages import PASSWORD
from tests.authenticator import Authenticator

START = datetime(2026, 4, 1, 12, tzinfo=UTC)
FAILED, LATE, TOO_MANY = "passkey failed", "took too long", "Too many failed attempts"


def browser() -> Client:
    return Client(headers={"host": "localhost"})


def signed_in(user: User) -> Client:
    client = browser()
    client.force_login(user)
    return client


def options(client: Client, path: str = "/login/passkey/options/", **fields: str) -> dict:
    answer = client.post(path, fields)
    assert answer.status_code == 200, answer.content
    return answer.json()["options"]


def added(client: Client, device: Authenticator, name: str = "Laptop", **fields: str):
    """Add a passkey as Vera, and return the hub's answer."""
    asked = options(client, "/account/passkeys/options/", name=name, **({"password": PASSWORD} | fields))
    return client.post("/account/passkeys/add/", {"credential": device.create(asked)})


def arrive(device: Authenticator, client: Client | None = None, **fields: str):
    """Sign in with a device; return the hub's answer."""
    client = client or browser()
    return client.post("/login/passkey/", {"credential": device.sign(options(client))} | fields)


def who(client: Client) -> str:
    response = client.get("/account/")
    return response.context["user"].username if response.status_code == 200 else ""


def refused(answer, words: str) -> bool:
    return answer.status_code == 422 and words in answer.json()["message"]


def actions() -> list[str]:
    return list(AuditRecord.objects.order_by("id").values_list("action", flat=True))

"""Sign-in behind an authenticating proxy, and attempts to name oneself."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import runpy
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import uvicorn
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from memoryhub import asgi
from memoryhub.accounts.invitations import invite
from memoryhub.lib.http.proxy_header import PEER, PERSON, take_person
from memoryhub.management import http_server
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By
from tests.accounts.test_people_pages import PASSWORD

ROOT = Path(__file__).resolve().parent.parent.parent
PROXY = "10.0.0.2"


@pytest.fixture
def behind(settings):
    """A hub behind a proxy. Each client reads the settings when it is made."""
    settings.MEMORYHUB_PROXY_HEADER = "remote-user"
    settings.MEMORYHUB_PROXY_ADDRESSES = [ipaddress.ip_network(text) for text in (PROXY, "fd00::/64", "127.0.0.2")]
    settings.AUTHENTICATION_BACKENDS = [settings.PASSWORD_BACKEND, "memoryhub.accounts.proxy.ProxyBackend"]
    return settings


def named(name: str) -> dict[str, object]:
    """Return what memoryhub.asgi passes to Django."""
    return {"asgi.scope": {PERSON: name}}


def page(client: Client, name: str = "", path: str = "/account/"):
    return client.get(path, **named(name))


# The header of a request


@pytest.mark.parametrize("peer", [PROXY, f"::ffff:{PROXY}", "fd00::7"])
def test_the_proxy_names_the_person(peer, behind):
    headers = [(b"host", b"hub"), (b"remote-user", " José ".encode())]

    assert take_person(headers, peer) == ([(b"host", b"hub")], "José")


@pytest.mark.parametrize("peer", ["10.0.0.3", "127.0.0.1", "::1", "fd00:0:0:1::7", "", "proxy", "10.0.0.2.evil"])
def test_nobody_else_does(peer, behind):
    assert take_person([(b"Remote-User", b"vera")], peer) == ([], "")


@pytest.mark.parametrize(
    "headers",
    [
        [(b"remote-user", b"vera"), (b"remote-user", b"olga")],
        [(b"remote-user", b"vera"), (b"Remote-User", b"vera")],
        [(b"remote-user", b"")],
        [(b"remote-user", b"  ")],
        [],
    ],
)
def test_an_empty_or_repeated_header_names_nobody(headers, behind):
    assert take_person(headers, PROXY) == ([], "")


@pytest.mark.parametrize(
    "space", ["\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", "\x85", "\x1f", "\N{ZERO WIDTH SPACE}"]
)
def test_other_spaces_are_part_of_a_name(space, behind):
    assert take_person([(b"remote-user", f"vera{space}".encode())], PROXY) == ([], f"vera{space}")


def test_without_the_setting_the_header_is_like_any_other(settings):
    assert take_person([(b"remote-user", b"vera")], PROXY) == ([(b"remote-user", b"vera")], "")


@pytest.mark.parametrize(
    "name", [b"Remote_User", b"remote_user", b"REMOTE-USER", b"http_remote_user", b"x-remote-user"]
)
@pytest.mark.parametrize("peer", [PROXY, "10.0.0.3"])
def test_other_spellings_reach_django_as_no_name(name, peer, behind, monkeypatch):
    async def django(scope, receive, send) -> None:
        reached.append(scope)

    reached: list[dict[str, object]] = []
    monkeypatch.setattr(asgi, "_django", django)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(name, b"vera")], "state": {PEER: peer}}
    asyncio.run(asgi.application({**scope, PERSON: "vera"}, None, None))

    is_given = name == b"REMOTE-USER" and peer == PROXY
    assert reached[0][PERSON] == ("vera" if is_given else "")
    assert not [pair for pair in reached[0]["headers"] if pair[0].lower() in (b"remote-user", b"remote_user")]


@pytest.fixture
def address(behind) -> Iterator[tuple[str, int]]:
    """A web server that trusts X-Forwarded-For, as one behind a TLS proxy does, and answers with the name."""

    async def app(scope, receive, send) -> None:
        _, person = take_person(scope["headers"], scope["state"][PEER])
        text = f"{person or 'nobody'} at {scope['client'][0]}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text})

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(http_server.server_config(app, lifespan="off", proxy_headers=True))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.mark.parametrize(
    ("origin", "forwarded_for", "answer"),
    [
        ("127.0.0.1", PROXY, f"nobody at {PROXY}"),  # X-Forwarded-For doesn't make anybody the proxy
        ("127.0.0.1", "", "nobody at 127.0.0.1"),
        ("127.0.0.2", "198.51.100.7", "vera at 127.0.0.2"),
    ],
)
def test_only_the_address_of_the_connection_counts(address, origin, forwarded_for, answer):
    connection = http.client.HTTPConnection(*address, source_address=(origin, 0), timeout=10)
    connection.request("GET", "/", headers={"Remote-User": "vera", "X-Forwarded-For": forwarded_for})

    assert connection.getresponse().read().decode() == answer
    connection.close()


# What Django does with the name


@pytest.mark.django_db
def test_a_known_person_is_signed_in_as_long_as_the_proxy_says_so(behind):
    User.objects.create_user("vera", password=PASSWORD)
    User.objects.create_user("otto")
    client = Client()

    assert b"vera" in page(client, "vera").content
    assert page(client, "otto").context["user"].username == "otto"
    assert page(client).headers["Location"].startswith("/login/")


@pytest.mark.django_db
def test_a_password_does_not_make_somebody_else_of_a_person(behind):
    User.objects.create_superuser("olga", password=PASSWORD)
    User.objects.create_user("vera")
    client = Client()
    client.post("/login/", {"username": "olga", "password": PASSWORD})

    assert page(client).context["user"].username == "olga"  # not through the proxy
    assert page(client, "vera").context["user"].username == "vera"
    client.post("/logout/")
    client.post("/login/", {"username": "olga", "password": PASSWORD})
    assert page(client, "nobody").status_code == 403
    assert page(client).headers["Location"].startswith("/login/")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["nina", "a/b", "two words", "x" * 151, "vera\x00", "vera,olga", "vera\xa0"])
def test_unknown_people_see_a_page_and_get_no_account(name, behind):
    User.objects.create_user("vera")

    response = page(Client(), name, path="/")

    assert response.status_code == 403
    assert "You have no account here" in response.content.decode()
    assert User.objects.count() == 1
    assert Client().get("/health/", **named(name)).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("creates", [False, True])
def test_the_case_of_a_name_makes_no_difference(creates, behind):
    behind.MEMORYHUB_PROXY_CREATES_PEOPLE = creates
    User.objects.create_user("vera.k")
    client = Client()

    for name in ("vera.k", "Vera.K", "VERA.K"):
        assert page(client, name).context["user"].username == "vera.k"
        assert page(Client(), name).context["user"].username == "vera.k"
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_a_name_that_could_mean_several_people_means_nobody(behind):
    behind.MEMORYHUB_PROXY_CREATES_PEOPLE = True
    for name in ("vera", "Vera"):
        User.objects.create_user(name)
    client = Client()

    assert page(client, "Vera").context["user"].username == "Vera"
    assert page(client, "vera").context["user"].username == "vera"
    assert page(client, "VERA").status_code == 403
    assert page(client).status_code == 302
    assert User.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("kim", "\N{KELVIN SIGN}im"),
        ("\N{KELVIN SIGN}im", "kim"),
        ("assa", "a\N{LATIN SMALL LETTER LONG S}sa"),
        ("jos\xe9", "JOS\xc9"),
        ("vera", "vera\N{COMBINING DOT ABOVE}"),
        ("a_c", "abc"),
    ],
)
def test_names_that_only_look_alike_are_other_people(stored, given, behind):
    User.objects.create(username=stored)

    assert page(Client(), given).status_code == 403


@pytest.mark.django_db
def test_a_deactivated_person_stays_out(behind):
    vera = User.objects.create_user("vera")
    client = Client()
    assert page(client, "vera").status_code == 200
    User.objects.filter(pk=vera.pk).update(is_active=False)

    assert page(client, "vera").status_code == 403
    assert page(Client(), "vera").status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["nina", "admin", "root"])
def test_new_people_get_an_account_without_rights_if_the_hub_says_so(name, behind):
    behind.MEMORYHUB_PROXY_CREATES_PEOPLE = True

    assert page(Client(), name).status_code == 200
    assert page(Client(), name, path="/people/").status_code in (403, 404)
    assert page(Client(), "a/b").status_code == 403
    created = User.objects.get()
    assert (created.username, created.is_superuser, created.is_staff) == (name, False, False)
    assert not created.has_usable_password()
    assert not created.memberships.exists()
    assert list(AuditRecord.objects.values_list("action", "actor_name")) == [("account.created", name)]


@pytest.mark.django_db
def test_headers_and_variables_that_did_not_come_through_the_check_are_ignored(behind):
    User.objects.create_user("vera")

    for forged in ({"HTTP_REMOTE_USER": "vera"}, {"REMOTE_USER": "vera"}, {"asgi.scope": {}, "REMOTE_USER": "vera"}):
        assert Client().get("/account/", **forged).status_code == 302


@pytest.mark.django_db
def test_without_the_setting_nobody_is_signed_in(client):
    User.objects.create_user("vera")

    assert page(client, "vera").status_code == 302


@pytest.mark.django_db
def test_an_invited_person_gets_an_account_with_the_name_that_the_proxy_gave(behind, admin_user):
    by = By(Actor("person", admin_user.username), timezone.now())
    _, token = invite(name="Nina", roles={}, is_operator=True, days=1, by=by)
    client = Client()
    shown = page(client, "nina", path=f"/invitation/{token}/")

    assert "password" not in shown.content.decode()
    client.post(f"/invitation/{token}/", {"username": "olga"}, **named("nina"))
    assert page(client, "nina", path="/people/").status_code == 200
    assert set(User.objects.values_list("username", flat=True)) == {admin_user.username, "nina"}
    assert not User.objects.get(username="nina").has_usable_password()


# Settings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"MEMORYHUB_PROXY_HEADER": "Remote-User"}, "needs MEMORYHUB_PROXY_ADDRESSES"),
        ({"MEMORYHUB_PROXY_HEADER": "Remote_User", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, "name of a header"),
        (
            {"MEMORYHUB_PROXY_HEADER": "Remote-User", "MEMORYHUB_PROXY_ADDRESSES": "proxy"},
            "MEMORYHUB_PROXY_ADDRESSES:",
        ),
        ({"MEMORYHUB_PROXY_HEADER": "Remote-User", "MEMORYHUB_PROXY_ADDRESSES": "0.0.0.0/0"}, "all addresses"),
        ({"MEMORYHUB_PROXY_HEADER": "Remote-User", "MEMORYHUB_PROXY_ADDRESSES": f"{PROXY}, ::1"}, ""),
        ({"MEMORYHUB_PROXY_HEADER": "X-Forwarded-User", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, ""),
        ({"MEMORYHUB_PROXY_HEADER": "Authorization", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, "can't be authorization"),
        ({"MEMORYHUB_PROXY_HEADER": "cookie", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, "can't be cookie"),
        ({"MEMORYHUB_PROXY_HEADER": "X-Forwarded-For", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, "can't be"),
        ({"MEMORYHUB_PROXY_HEADER": "Accept-Language", "MEMORYHUB_PROXY_ADDRESSES": PROXY}, "can't be"),
    ],
)
def test_unsafe_settings_stop_the_start(given, said, tmp_path, monkeypatch):
    for name, value in (given | {"MEMORYHUB_HOME": str(tmp_path), "DATABASE_URL": ""}).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ImproperlyConfigured, match=said) if said else nullcontext():
        runpy.run_path(str(ROOT / "memoryhub" / "settings.py"))

from __future__ import annotations

import socket
from collections.abc import Callable

import httpx2
import pytest
from pytest_httpserver import HTTPServer

from memoryhub.lib import safe_http
from memoryhub.lib.safe_http import AddressRefused, BodyTooLarge, check_url, open_client

PUBLIC = "93.184.215.14"


@pytest.fixture
def names(monkeypatch) -> Callable[..., list[str]]:
    """Resolve host names to the given addresses, and return the list of looked-up names."""
    look_up, asked = socket.getaddrinfo, []

    def give(**addresses: list[str]) -> list[str]:
        def found(host, port, *rest, **options):
            if (plain := str(host).removesuffix(".example")) not in addresses:
                return look_up(host, port, *rest, **options)
            asked.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses[plain]]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        return asked

    return give


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_host_with_one_private_address_is_refused(names, inside, is_first):
    names(two=[inside, PUBLIC] if is_first else [PUBLIC, inside])

    with pytest.raises(AddressRefused):
        check_url("https://two.example/")


def test_a_public_host_is_allowed(names):
    names(one=[PUBLIC])

    check_url("https://one.example/")


def test_the_checked_address_is_the_one_connected_to(names, httpserver: HTTPServer):
    httpserver.expect_request("/", headers={"Host": f"hook.example:{httpserver.port}"}).respond_with_data("here")
    asked = names(hook=["127.0.0.1"])

    with open_client(allowed={f"hook.example:{httpserver.port}"}, deadline_seconds=20) as client:
        assert client.get(f"http://hook.example:{httpserver.port}/").text == "here"

    assert asked == ["hook.example"]


@pytest.mark.parametrize(
    "host", ["2002:7f00:1::", "64:ff9b::7f00:1", "::ffff:10.0.0.1", "::", "ff02::1", "fe80::1%1"]
)
def test_private_addresses_are_recognised_in_every_notation(host):
    with pytest.raises(AddressRefused):
        check_url(f"http://[{host}]/")


@pytest.mark.parametrize(
    "url", ["https://user@one.example", "https://:password@one.example", f"https://{'a' * 64}.example"]
)
def test_urls_with_a_password_or_invalid_host_are_refused(url, names):
    names(one=[PUBLIC])

    with pytest.raises(AddressRefused):
        check_url(url)


def ask(httpserver: HTTPServer, *, deadline_seconds: float = 20) -> httpx2.Response:
    place = f"{httpserver.host}:{httpserver.port}"
    with open_client(allowed={place}, deadline_seconds=deadline_seconds) as client:
        return client.get(f"http://{place}/")


def test_a_reply_of_exactly_the_limit_is_read(httpserver, monkeypatch):
    monkeypatch.setattr(safe_http, "MAX_BODY_BYTES", 10)
    httpserver.expect_oneshot_request("/").respond_with_data("x" * 10)
    assert ask(httpserver).text == "x" * 10

    httpserver.expect_oneshot_request("/").respond_with_data("x" * 11)
    with pytest.raises(BodyTooLarge):
        ask(httpserver)


def test_a_redirect_is_not_followed(httpserver):
    httpserver.expect_request("/").respond_with_data("", status=302, headers={"Location": "http://10.0.0.1/"})

    assert ask(httpserver).status_code == 302


def test_no_request_is_sent_after_the_deadline(httpserver):
    with pytest.raises(httpx2.TimeoutException):
        ask(httpserver, deadline_seconds=0)

    assert httpserver.log == []

"""The files in deploy/: the container has what the settings that it passes on need."""

from __future__ import annotations

import asyncio
import re
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from memoryhub.asgi import application

ROOT = Path(settings.BASE_DIR)


def locked(name: str) -> dict[str, str]:
    """Return the version of each package in a lock file."""
    found = re.findall(r"^([a-z0-9-]+)(?:\[.*?\])?==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
    return dict(found)


def test_the_image_has_the_optional_packages():
    installed = re.search(r"--requirement requirements/(\S+)", (ROOT / "deploy" / "Dockerfile").read_text())[1]

    assert {"authlib", "fido2", "prometheus-client", "psycopg", "redis", "requests"} <= locked(installed).keys()
    assert locked("serve.txt").items() <= locked(installed).items() <= locked("dev.txt").items()


@pytest.mark.parametrize("service", ["hub", "worker"])
def test_compose_passes_on_the_settings_of_signing_in(service):
    names = set(re.findall(r"\"(MEMORYHUB_\w+)\"", (ROOT / "memoryhub" / "settings.py").read_text()))
    about = {name for name in names if re.search("_OIDC_|_PROXY_|_SIGN_IN_|_FACTOR$", name)}
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())

    passed = compose["services"][service]["environment"]

    assert len(about) >= 9
    assert {name: passed[name].partition(":-")[0] for name in about} == {name: f"${{{name}" for name in about}


@pytest.mark.parametrize("name", ["memoryhub", "memoryhub-worker"])
def test_systemd_keeps_starting_while_the_database_is_away(name):
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(ROOT / "deploy" / f"{name}.service")
    limit_seconds, limit = 10, 5  # systemd gives up after so many starts in so many seconds

    assert unit["Service"]["Restart"] == "on-failure"
    assert int(unit["Service"]["RestartSec"]) * (limit - 1) > limit_seconds


def test_haproxy_asks_the_hubs_for_what_needs_no_database():
    hubs = (ROOT / "deploy" / "cluster" / "haproxy.cfg").read_text().partition("listen hubs")[2]
    path, host = re.search(r"http-check send meth GET uri (\S+) ver HTTP/1.1 hdr Host (\S+)", hubs).groups()
    headers = [(b"host", host.encode())]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, "scheme": "http"}
    sent = []

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(application(scope, None, send))

    assert sent[0]["status"] == int(re.search(r"http-check expect status (\d+)", hubs)[1])

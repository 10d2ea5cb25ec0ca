from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from django.contrib.auth.models import User
from pytest_httpserver import HTTPServer

from tests.accounts.passkey_flow import START, added, signed_in
from tests.accounts.test_people_pages import PASSWORD
from tests.authenticator import Authenticator
from tests.oidc_provider import Provider, provider_of_hub


@pytest.fixture
def provider(httpserver: HTTPServer, settings) -> Iterator[Provider]:
    with provider_of_hub(httpserver, settings) as made:
        yield made


@pytest.fixture
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def vera(clock) -> User:
    return User.objects.create_user("vera", password=PASSWORD)


@pytest.fixture
def device(vera) -> Authenticator:
    """Vera's device, with a passkey."""
    made = Authenticator()
    added(signed_in(vera), made)
    return made

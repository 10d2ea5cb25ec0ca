"""Every text of every page is translatable: a pseudo-language puts each one in brackets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client, RequestFactory

from memoryhub.accounts.locale import follow_the_reader
from memoryhub.models import Passkey, Preferences, SavedSearch, SignIn
from sessions_app.models import AuditRecord, Workspace
from tests.api.conftest import one_connection
from tests.hub import client_of
from tests.pseudo import CODE, OPEN, Brackets, given_to_translators, pages_in_brackets, untranslated
from tests.whole_site.roles import PAGES
from tests.whole_site.test_authorisation import atlas, filled  # noqa: F401  a fixture
from tests.whole_site.test_login_required import routes

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="words are of no database"),
]


SIGNS_OUT = ("logout", "end-sign-ins")
NO_GETTEXT = shutil.which("xgettext") is None and not os.environ.get("CI")


@pytest.fixture(scope="module")
def translatable(tmp_path_factory) -> set[str]:
    return given_to_translators(tmp_path_factory.mktemp("messages"))


@pytest.fixture
def brackets() -> Iterator[Brackets]:
    with pages_in_brackets() as brackets:
        yield brackets


@pytest.fixture
def reader(brackets) -> Client:
    """Somebody who may see everything, and reads in brackets."""
    olga = User.objects.create_superuser("olga")
    Preferences.objects.create(user=olga, language=CODE)
    return client_of(olga)


def told(client: Client, method: str, url: str) -> list[str]:
    """Return the words of an answer that could not be translated; files and what programs read have none."""
    point = transaction.savepoint()
    response = getattr(client, method)(url)
    is_page = not response.streaming and response.get("Content-Type", "").startswith("text/html")
    found = untranslated(response.content.decode()) if is_page else []
    with one_connection():
        response.close()
    stored = AuditRecord.objects.filter(text__contains=OPEN).values_list("text", flat=True)
    found += [f"stored in the reader's language: {text}" for text in stored]
    transaction.savepoint_rollback(point)
    return found


def asked(method: str, workspace: Workspace) -> Iterator[str]:
    for name, pattern in routes():
        if PAGES[name][method == "post"] not in ("-", "nobody") and name not in SIGNS_OUT:
            yield filled(name, pattern, workspace)


@pytest.mark.slow
@pytest.mark.skipif(NO_GETTEXT, reason="GNU gettext is not installed")
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_word_of_every_page_can_be_translated(method, reader, brackets, atlas, translatable):  # noqa: F811
    SavedSearch.objects.create(user=User.objects.get(), workspace=atlas, name="a", is_shared=True)
    SavedSearch.objects.create(user=User.objects.get(), name="a")
    SignIn.objects.get_or_create(user=User.objects.get(), session_key="a" * 32)
    Passkey.objects.create(user=User.objects.get(), name="a")

    found = {url: told(reader, method, url) for url in asked(method, atlas)}

    assert {url: places for url, places in found.items() if places} == {}
    assert brackets.asked - translatable == set()


@pytest.mark.parametrize(
    ("path", "language"), [("/", CODE), ("/api/v1/docs/", CODE), ("/api/v1/sessions", "en"), ("/mcp", "en")]
)
def test_agents_are_answered_in_english_whoever_is_signed_in(reader, path, language):
    request = RequestFactory().get(path)
    request.user = User.objects.get()

    assert follow_the_reader(lambda request: request.reading.language)(request) == language


def test_the_check_finds_untranslatable_text():
    assert untranslated("<p>⟦Sessions⟧ 12</p><p>Sessions</p>") == ["p.: Sessions"]
    assert untranslated("<title>ada · Pool</title><b dir='auto'>ada</b>") == ["title: Pool"]
    assert untranslated('<p>⟦Of <a title="a" href="/">atlas</a> and⟧</p><b dir="auto">ada</b>') == []
    assert untranslated('<input type="submit" value="Save"><a aria-label="Open">⟦x⟧</a>') == [
        "input[value]: Save",
        "a[aria-label]: Open",
    ]

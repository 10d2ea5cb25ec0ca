import json
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError, OperationalError, connection
from django.test import Client
from django.utils import timezone

from knowledge_app.models import HistoryEntry
from memoryhub.agents.api_tokens import issue_token, revoke_token
from memoryhub.agents.operations.memory import append_history
from memoryhub.models import ApiToken
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By
from tests.api.conftest import OLGA, caller, token_for

pytestmark = pytest.mark.django_db
BODY = {"session": "cli:main", "entries": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize("text", ["", "nonsense", "mh_0123456789_" + "a" * 43])
def test_invalid_tokens_get_401(workspace, text):
    answer = caller(text)("GET", "/sessions")

    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "not_authenticated"


def test_login_cookies_do_not_authenticate(admin_client):
    assert admin_client.get("/api/v1/sessions").status_code == 401
    assert admin_client.post("/api/v1/entries", BODY, content_type="application/json").status_code == 401


def test_revoked_and_expired_tokens_are_refused(workspace):
    now = timezone.now()
    revoked, revoked_text = issue_token(workspace, "one", ["read"], by=By(OLGA, now))
    revoke_token(revoked, by=By(OLGA, now))
    expired, expired_text = issue_token(
        workspace, "two", ["read"], by=By(OLGA, now), expires_at=now + timedelta(days=1)
    )
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=now - timedelta(seconds=1))

    assert caller(revoked_text)("GET", "/me").status_code == 401
    assert caller(expired_text)("GET", "/me").status_code == 401


def test_a_read_token_cannot_write(workspace):
    answer = caller(token_for(workspace, "read"))("POST", "/entries", BODY)

    assert (answer.status_code, answer.json()["code"], answer.json()["scope"]) == (403, "scope_missing", "append")
    assert not Session.objects.exists()


def test_rows_of_another_workspace_are_not_found(workspace, agent):
    agent("POST", "/entries", BODY)
    pk = Session.objects.get().pk
    stranger = caller(token_for(Workspace.objects.create(slug="other", name="Other")))

    foreign, missing = stranger("GET", f"/sessions/{pk}"), stranger("GET", f"/sessions/{pk + 1}")

    assert foreign.status_code == missing.status_code == 404
    assert foreign.json()["detail"].replace(str(pk), "") == missing.json()["detail"].replace(str(pk + 1), "")
    assert stranger("GET", "/sessions").json()["items"] == []


def test_the_rate_limit_answers_429_with_retry_after(workspace):
    _, text = issue_token(workspace, "eager", ["read"], by=By(OLGA, timezone.now()), per_minute=2)
    call = caller(text)

    answers = [call("GET", "/me") for _ in range(6)]  # two minutes at most

    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 0 < int(refused["Retry-After"]) <= 60
    cache.clear()
    assert call("GET", "/me").status_code == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"session": "a", "entries": [{"role": "user", "content": NaN}]}', {}, 400),
        (b"{", {}, 400),
        (b"[" * 5000, {}, 400),
        (b'{"key": "cli:a", "colour": 1}', {}, 422),
        (b'{"key": ""}', {}, 422),
        (b'{"key": "a"}', {"Content-Encoding": "gzip"}, 415),
        (b'{"key": "a"}', {"Idempotency-Key": "k" * 201}, 400),
        (b'{"key": "a"}', {"Content-Length": str(11 * 2**20)}, 413),
    ],
)
def test_malformed_bodies_are_refused(agent, body, headers, status):
    answer = agent("POST", "/sessions", body, **headers)

    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert not Session.objects.exists()


def test_form_data_is_refused(workspace):
    token = token_for(workspace)

    answer = Client().post("/api/v1/sessions", {"key": "a"}, headers={"Authorization": f"Bearer {token}"})

    assert (answer.status_code, answer.json()["code"]) == (415, "body_not_json")


def test_unstorable_characters_are_stored_as_escapes(agent):
    answer = agent(
        "POST", "/entries", b'{"session": "a\\u0000", "entries": [{"role": "user", "content": "\\ud800"}]}'
    )

    assert answer.status_code == 201
    assert Session.objects.get().key == "a\\u0000"


def test_the_body_is_read_before_the_transaction_begins(workspace):
    class Arriving(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            depths.append(len(connection.savepoint_ids))
            return super().read(size)

    depths: list[int] = []
    outside = len(connection.savepoint_ids)
    body = json.dumps(BODY).encode()
    token = {"Authorization": f"Bearer {token_for(workspace)}"}

    environ = {
        "wsgi.input": Arriving(body),
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json",
    }

    answer = Client().generic("POST", "/api/v1/entries", headers=token, **environ)

    assert answer.status_code == 201
    assert set(depths) == {outside}


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("GET", "/search", None, "query"),
        ("GET", "/value", None, "key"),
        ("POST", "/history", {}, "text"),
        ("POST", "/extract", [], "body"),
    ],
)
def test_a_missing_value_is_named(agent, method, path, body, field):
    answer = agent(method, path, body) if body is not None else agent(method, path)

    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, field)


def test_a_busy_database_answers_503(agent, monkeypatch):
    def busy(*_args: object, **_values: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("memoryhub.api.memory.operations.append_history", busy)

    answer = agent("POST", "/history", {"text": "Moved"})

    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "busy", "5")


def test_a_call_is_retried_when_another_created_the_row_first(agent, monkeypatch):
    def second(*args: Any, **values: Any) -> Any:
        if not tries:
            tries.append(1)
            raise IntegrityError("another call was first")
        return append_history(*args, **values)

    tries: list[int] = []
    monkeypatch.setattr("memoryhub.api.memory.operations.append_history", second)

    assert agent("POST", "/history", {"text": "Moved"}).status_code == 201
    assert HistoryEntry.objects.count() == 1


def test_unknown_addresses_and_methods_get_problem_documents(agent):
    strict = Client(enforce_csrf_checks=True)
    unknown = [agent("GET", "/nothing"), strict.post("/api/v1/nothing"), strict.post("/api/v1/sessions/")]
    wrong, description = (
        agent("DELETE", "/sessions"),
        strict.post("/api/v1/openapi.json", content_type="application/json"),
    )

    assert [(answer.status_code, answer.json()["code"]) for answer in unknown] == [(404, "no_such_address")] * 3
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert (description.status_code, description.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in wrong["Allow"]


def test_the_openapi_document_requires_a_login_or_token(workspace, client, admin_client):
    token = token_for(workspace, "read")

    assert client.get("/api/v1/openapi.json").status_code == 401
    assert caller(token)("GET", "/openapi.json").json()["openapi"] == "3.1.0"
    page = admin_client.get("/api/v1/docs/").content.decode()
    assert "/api/v1/entries" in page
    assert page.count("The token lacks the scope") == 1  # errors are explained once, operations link to them
    assert client.get("/api/v1/docs/").status_code == 302


def test_unexpected_errors_get_a_problem_document(workspace, monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("secret inside")

    monkeypatch.setattr("memoryhub.agents.operations.queries.answer", fail)
    client = Client(raise_request_exception=False)

    answer = client.get("/api/v1/search?query=a", headers={"Authorization": f"Bearer {token_for(workspace)}"})

    assert (answer.status_code, answer.json()["code"]) == (500, "unexpected")
    assert b"secret" not in answer.content

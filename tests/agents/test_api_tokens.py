"""Tokens: storage, scopes, expiry, revocation and rate limit."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError

from memoryhub.agents.api_tokens import (
    SCOPES,
    BadToken,
    NotAuthenticated,
    authenticate,
    delete_old_calls,
    issue_token,
    require,
    revoke_token,
)
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.forget import forget
from memoryhub.models import AccessRecord, ApiToken, IdempotentCall
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.access_log import log_access, seen_rows
from sessions_app.services.audit import Actor, By
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db


def issue(workspace, name="atlas", scopes=("read", "append"), **values):
    return issue_token(workspace, name, scopes, by=By(PERSON, NOW), **values)


def test_a_token_is_stored_as_prefix_and_hmac(workspace):
    token, text = issue(workspace)

    assert re.fullmatch(r"mh_[0-9a-f]{10}_[A-Za-z0-9_-]{43}", text)
    kept = " ".join(str(value) for value in ApiToken.objects.values_list()[0])
    assert text not in kept
    assert text.removeprefix(f"{token.prefix}_") not in kept
    assert len(token.token_hash) == 64


def test_no_record_contains_the_token(workspace):
    _, text = issue(workspace)

    told = AuditRecord.objects.get(action="token.made")
    assert text[14:] not in f"{told.text} {told.detail} {told.object_id}"


def test_a_valid_token_identifies_agent_and_workspace(workspace):
    _, text = issue(workspace, "  the   pilot ")

    caller = authenticate(text, via="rest", now=NOW)

    assert (caller.workspace, caller.actor.kind, caller.actor.name) == (workspace, "agent", "the pilot")
    assert ApiToken.objects.get().last_used_at == NOW


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + "~", lambda text: text[:20], lambda _text: "", str.upper]
)
def test_a_malformed_token_is_refused(workspace, change):
    _, text = issue(workspace)

    with pytest.raises(NotAuthenticated, match="Send a token"):
        authenticate(change(text), via="rest", now=NOW)


def test_a_known_prefix_with_another_secret_is_refused(workspace):
    token, _ = issue(workspace)

    with pytest.raises(NotAuthenticated, match="Send a token"):
        authenticate(f"{token.prefix}_{'a' * 43}", via="rest", now=NOW)


def test_an_expired_token_is_refused(workspace):
    _, text = issue(workspace, expires_at=NOW + timedelta(days=1))

    assert authenticate(text, via="rest", now=NOW + timedelta(hours=23))
    with pytest.raises(NotAuthenticated, match="revoked or expired"):
        authenticate(text, via="rest", now=NOW + timedelta(days=1))


def test_revoking_takes_effect_at_once_and_frees_the_name(workspace):
    token, text = issue(workspace)

    assert revoke_token(token, by=By(PERSON, NOW))
    assert not revoke_token(token, by=By(PERSON, NOW))

    with pytest.raises(NotAuthenticated):
        authenticate(text, via="rest", now=NOW)
    assert AuditRecord.objects.filter(action="token.revoked").count() == 1
    assert issue(workspace)


def test_valid_tokens_of_a_workspace_have_different_names(workspace):
    issue(workspace)

    with pytest.raises(BadToken, match="already has a valid token"):
        issue(workspace)
    assert issue(Workspace.objects.create(slug="other", name="Other"))
    assert AuditRecord.objects.filter(action="token.made").count() == 2


@pytest.mark.parametrize(
    "wish",
    [
        {"name": " "},
        {"name": "x" * 101},
        {"scopes": []},
        {"scopes": ["read", "admin"]},
        {"expires_at": NOW},
        {"per_minute": 0},
        {"per_minute": 60_001},
    ],
)
def test_invalid_options_create_no_token(workspace, wish):
    with pytest.raises(BadToken):
        issue(workspace, **wish)
    assert not ApiToken.objects.exists()


def test_a_missing_scope_is_named(workspace):
    _, text = issue(workspace)
    caller = authenticate(text, via="rest", now=NOW)

    require(caller, "append")
    with raises_code("scope_missing") as refused:
        require(caller, "edit")
    assert refused.value.details == {"scope": "edit"}


def test_idempotency_keys_expire_after_a_day(workspace):
    token, _ = issue(workspace)
    for key, hours in (("old", 25), ("new", 23)):
        made_at = NOW - timedelta(hours=hours)
        IdempotentCall.objects.create(
            token=token, idempotency_key=key, request_hash="x", status=201, answer={}, created_at=made_at
        )

    delete_old_calls(NOW)

    assert IdempotentCall.objects.get().idempotency_key == "new"


def test_every_scope_is_documented():
    text = (Path(settings.BASE_DIR) / "docs" / "agents.md").read_text()

    for scope, meaning in SCOPES.items():
        assert f"| `{scope}` | {meaning} |" in text


def test_the_command_prints_the_text_once(command, workspace):
    made = command("token", "make", "atlas", "pilot", "--scopes", "read, append", "--days", "30")
    listed = command("token", "list", "atlas")
    revoked = command("token", "revoke", "atlas", "pilot")

    text = made["token"]
    assert made["tokens"][0]["scopes"] == ["read", "append"]
    assert text not in str(listed)
    assert listed["tokens"][0]["prefix"] == text[:13]
    assert revoked["tokens"][0]["revoked_at"]
    assert command("token", "list", "atlas")["tokens"] == []


def test_the_command_reports_errors(command, workspace):
    assert command("token", "make", "atlas", "x", "--scopes", "all", status=1)["error"]["code"] == "bad_token"
    assert command("token", "revoke", "atlas", "nobody", status=1)["error"]["code"] == "not_found"


def test_forgetting_a_person_renames_their_tokens_which_stay_valid(workspace):
    _, text = issue(workspace, "Zebra's laptop")
    issue(workspace, "Zebra's desk")
    token = authenticate(text, via="rest", now=NOW).token
    IdempotentCall.objects.create(
        token=token, idempotency_key="k", request_hash="x", status=200, answer={"text": "Zebra waits"}
    )
    log_access(workspace, "a.b", seen_rows("knowledge", [1]), by=By(Actor("agent", token.name), NOW), via="rest")
    wish = ErasureRequest("person", ("Zebra",))

    forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="", by=By(PERSON, NOW))

    assert [name.rstrip("0123456789") for name in ApiToken.objects.values_list("name", flat=True)] == [
        "forgotten-"
    ] * 2
    assert authenticate(text, via="rest", now=NOW).token == token
    assert IdempotentCall.objects.get().answer == {"text": "[forgotten]"}
    assert AccessRecord.objects.get().actor_name == "[forgotten]"


def test_authentication_works_while_the_database_is_busy(workspace, monkeypatch, caplog):
    def busy(*_args: object, **_values: object) -> None:
        raise OperationalError("database is locked")

    token, text = issue(workspace)
    monkeypatch.setattr("django.db.models.query.QuerySet.update", busy)

    assert authenticate(text, via="rest", now=NOW).token == token
    assert "last use couldn't be recorded" in caplog.text

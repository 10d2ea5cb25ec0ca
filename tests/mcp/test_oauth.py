"""OAuth as clients use it: metadata, registration, tokens, their renewal, misuse and revocation."""

import asyncio
import json
import logging
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from memoryhub.agents.api_tokens import revoke_token
from memoryhub.models import ApiToken, OAuthClient, OAuthConnection, ReadGrant
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import By
from tests.agents.oauth_flow import CALLBACK, HUB, VERIFIER, a_client, allow, an_operator, sent_back, signed_in, wish
from tests.api.conftest import caller, token_for
from tests.hub import PERSON
from tests.mcp.conftest import call, web
from tests.mcp.test_transport import problem
from tests.mcp.test_transport import send as send_mcp
from tests.searches import know

pytestmark = pytest.mark.usefixtures("one_connection")
METADATA = "/.well-known/oauth-protected-resource/mcp"


def send(method, path, content=b"", **headers):
    async def run():
        async with web() as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, content=content, headers=named)

    return asyncio.run(run())


def post(path, **fields):
    return send("POST", path, urlencode(fields), Content_Type="application/x-www-form-urlencoded")


def register(**metadata):
    return send("POST", "/oauth/register", json.dumps(metadata), Content_Type="application/json")


@pytest.fixture
def client():
    return a_client()


@pytest.fixture
def user(workspace):
    return an_operator(workspace)


@pytest.fixture
def code(user, client):
    return sent_back(allow(signed_in(user), wish(client)))["code"]


def redeem(client, given, **changes):
    sent = {"grant_type": "authorization_code", "code": given, "client_id": client.client_id}
    sent |= {"redirect_uri": CALLBACK, "code_verifier": VERIFIER, "resource": f"{HUB}/mcp"}
    return post("/oauth/token", **(sent | changes))


def refresh(client, token, **changes):
    sent = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client.client_id}
    return post("/oauth/token", **(sent | changes))


@pytest.fixture
def tokens(client, code):
    return redeem(client, code).json()


def works(access):
    return send_mcp(Authorization=f"Bearer {access}").status_code == 200


def refusal(response):
    return response.status_code, response.json()["error"]


def test_a_refused_call_leads_to_the_metadata():
    challenge = send_mcp().headers["WWW-Authenticate"]
    resource = send("GET", METADATA).json()
    server = send("GET", "/.well-known/oauth-authorization-server").json()

    assert f'resource_metadata="{HUB}{METADATA}"' in challenge
    assert resource["resource"] == f"{HUB}/mcp"
    assert resource["authorization_servers"] == [server["issuer"]] == [HUB]
    assert resource["scopes_supported"] == ["read", "append", "edit"]
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["authorization_endpoint"] == f"{HUB}/oauth/authorize/"


def test_addresses_are_those_of_a_public_hub_whatever_the_request_says(settings):
    settings.MEMORYHUB_URL = "https://hub.example.org"
    settings.ALLOWED_HOSTS = ["hub.example.org", "127.0.0.1"]
    settings.SECURE_SSL_REDIRECT = True

    metadata = send(
        "GET", METADATA, Host="hub.example.org", X_Forwarded_Proto="https", X_Forwarded_Host="evil.example"
    )

    assert metadata.json()["resource"] == "https://hub.example.org/mcp"
    assert "evil" not in metadata.text
    assert problem(send("GET", METADATA, Host="evil.example")) == (421, "unknown_host")
    assert problem(send("GET", METADATA, Host="hub.example.org")) == (403, "https_needed")


def test_a_client_registers_without_a_secret():
    response = register(
        client_name="Claude", redirect_uris=[CALLBACK], token_endpoint_auth_method="client_secret_post"
    )

    assert response.status_code == 201
    assert response.json()["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in response.json()
    assert response.headers["Cache-Control"] == "no-store"
    assert OAuthClient.objects.get().client_id == response.json()["client_id"]


@pytest.mark.parametrize("uris", [["javascript://x/%0aalert(1)"], [CALLBACK] * 11, []])
def test_bad_registrations_are_refused(uris):
    response = register(client_name="X", redirect_uris=uris)

    assert response.status_code == 400
    assert response.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")
    assert not OAuthClient.objects.exists()


def test_registrations_are_limited_in_size_and_number(within_a_minute):
    assert send("POST", "/oauth/register", b" " * 20_000).status_code == 413
    answers = [register(client_name="X", redirect_uris=[CALLBACK]).status_code for _ in range(12)]
    slowed = register(client_name="X", redirect_uris=[CALLBACK])

    assert set(answers) == {201, 429}
    assert answers.count(201) == 10
    assert int(slowed.headers["Retry-After"]) > 0
    assert OAuthClient.objects.count() == 10


@pytest.mark.slow
def test_requests_for_tokens_are_limited(client, within_a_minute):
    answers = {refresh(client, "x").status_code for _ in range(61)}

    assert answers == {400, 429}


@pytest.mark.parametrize("path", [METADATA, "/oauth/token", "/oauth/register", "/oauth/revoke"])
def test_other_methods_and_origins_are_refused(path):
    assert problem(send("PUT", path)) == (405, "method_not_allowed")
    assert problem(send("POST", path, Origin="https://evil.example")) == (403, "foreign_origin")


def test_a_code_becomes_tokens_which_act_as_the_client(workspace, client, tokens):
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "read append")
    remembered = call(tokens["access_token"], "memory_remember", content="The harbour opens at dawn")

    assert not remembered.is_error
    assert AuditRecord.objects.filter(actor_kind="agent", actor_name="Claude").exists()
    refused = call(tokens["access_token"], "memory_write", key="colour", value="blue")
    assert refused.content[0].text.startswith("scope_missing")


def test_only_hashes_are_stored(client, code, tokens):
    stored = str([vars(row) for model in (ApiToken, OAuthConnection) for row in model.objects.all()])

    for text in (code, tokens["access_token"], tokens["refresh_token"]):
        assert text not in stored


def test_a_token_is_only_valid_for_mcp(tokens):
    assert caller(tokens["access_token"])("GET", "/documents").status_code == 401


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 64}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "https://claude.example/other"}, "invalid_request"),
        ({"redirect_uri": ""}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"client_id": "id-of-Other"}, "invalid_grant"),
        ({"client_id": "unknown"}, "invalid_client"),
        ({"client_id": "\0"}, "invalid_client"),
        ({"code": "\0"}, "invalid_grant"),
        ({"code": "wrong"}, "invalid_grant"),
        ({"grant_type": "password"}, "invalid_request"),
    ],
)
def test_a_code_is_bound_to_what_it_was_given_for(changes, error, client, code):
    a_client("Other")

    assert refusal(redeem(client, code, **changes))[1] == error
    assert not OAuthConnection.objects.exclude(code_used_at=None).exists()


def test_a_code_used_twice_ends_the_connection(client, code, tokens):
    assert works(tokens["access_token"])

    assert refusal(redeem(client, code)) == (400, "invalid_grant")
    assert not works(tokens["access_token"])
    assert refusal(refresh(client, tokens["refresh_token"])) == (400, "invalid_grant")
    assert AuditRecord.objects.get(action="oauth.reused").actor_name == "Claude"


def test_a_code_expires_after_a_minute(client, code):
    before = timezone.now() - timedelta(seconds=61)
    ApiToken.objects.update(expires_at=before)
    OAuthConnection.objects.update(code_expires_at=before)

    assert refusal(redeem(client, code)) == (400, "invalid_grant")


def test_refresh_tokens_rotate(client, tokens):
    renewed = refresh(client, tokens["refresh_token"]).json()

    assert works(renewed["access_token"])
    assert not works(tokens["access_token"])
    assert renewed["refresh_token"] != tokens["refresh_token"]
    assert renewed["scope"] == "read append"
    assert ApiToken.objects.count() == 1


def test_a_refresh_token_used_twice_ends_the_connection(client, tokens):
    renewed = refresh(client, tokens["refresh_token"]).json()

    assert refusal(refresh(client, tokens["refresh_token"])) == (400, "invalid_grant")
    assert not works(renewed["access_token"])
    assert refusal(refresh(client, renewed["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_token_is_bound_to_its_client_scopes_and_resource(client, tokens):
    mine = tokens["refresh_token"]

    assert refusal(refresh(a_client("Other"), mine)) == (400, "invalid_grant")
    assert refusal(refresh(client, mine, scope="read edit")) == (400, "invalid_scope")
    assert refusal(refresh(client, mine, resource="https://other.example/mcp")) == (400, "invalid_target")
    assert refusal(refresh(client, tokens["access_token"])) == (400, "invalid_grant")
    assert works(tokens["access_token"])


def test_access_tokens_expire_after_an_hour_and_refresh_tokens_after_thirty_days(client, tokens):
    OAuthConnection.objects.update(access_expires_at=timezone.now())
    assert not works(tokens["access_token"])
    renewed = refresh(client, tokens["refresh_token"]).json()
    assert works(renewed["access_token"])

    ApiToken.objects.update(expires_at=timezone.now())
    assert refusal(refresh(client, renewed["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_client_revokes_its_connection(kind, client, tokens):
    other = a_client("Other")

    assert post("/oauth/revoke", token=tokens[kind], client_id=other.client_id).status_code == 200
    assert works(tokens["access_token"])
    assert post("/oauth/revoke", token=tokens[kind], client_id=client.client_id).status_code == 200
    assert not works(tokens["access_token"])
    assert refusal(refresh(client, tokens["refresh_token"])) == (400, "invalid_grant")
    assert post("/oauth/revoke", token="unknown", client_id=client.client_id).status_code == 200
    assert post("/oauth/revoke", token=tokens[kind], client_id="unknown").status_code == 401


@pytest.mark.slow
def test_a_client_cannot_revoke_api_tokens(workspace, client):
    token = token_for(workspace)

    assert post("/oauth/revoke", token=token, client_id=client.client_id).status_code == 200
    assert works(token)


def lose_role(user):
    Membership.objects.update(role="editor")


def lose_membership(user):
    Membership.objects.all().delete()


def deactivated(user):
    user.is_active = False
    user.save()


def deleted(user):
    user.delete()


def revoked(user):
    revoke_token(ApiToken.objects.get(), by=By(PERSON, timezone.now()))


@pytest.mark.parametrize("end", [lose_role, lose_membership, deactivated, deleted, revoked])
def test_a_connection_ends_with_what_it_stands_on(end, user, client, tokens):
    assert works(tokens["access_token"])

    end(user)

    assert not works(tokens["access_token"])
    assert refusal(refresh(client, tokens["refresh_token"])) == (400, "invalid_grant")
    assert caller(tokens["access_token"])("GET", "/documents").status_code == 401


@pytest.mark.parametrize("end", [lose_role, deactivated, deleted, revoked])
def test_a_code_ends_with_what_it_stands_on(end, user, client, code):
    end(user)

    assert refusal(redeem(client, code)) == (400, "invalid_grant")


def test_a_token_of_another_address_of_the_hub_is_refused(client, tokens, settings):
    settings.MEMORYHUB_URL = "http://localhost:9000"

    assert not works(tokens["access_token"])
    assert refusal(refresh(client, tokens["refresh_token"])) == (400, "invalid_grant")


def test_other_workspaces_stay_closed_and_shared_ones_follow_the_role(workspace, user, client):
    team = Workspace.objects.create(slug="team", name="Team")
    hidden = Workspace.objects.create(slug="hidden", name="Hidden")
    role = Membership.objects.create(workspace=team, user=user, role="operator")
    answer = sent_back(allow(signed_in(user), wish(client), reads=["team"]))
    access = redeem(client, answer["code"]).json()["access_token"]

    def reads(word):
        return word in call(access, "memory_search", query="harbour").content[0].text

    know(team, "The harbour is in the team's notes")
    know(hidden, "The harbour is in the hidden notes")
    know(workspace, "The harbour is in our own notes")
    assert ReadGrant.objects.count() == 1
    assert (reads("own"), reads("team"), reads("hidden")) == (True, True, False)
    role.delete()
    assert (reads("own"), reads("team")) == (True, False)


def test_parameters_must_be_in_the_body_and_there_once(client, code, caplog):
    caplog.set_level(logging.DEBUG)
    sent = {"grant_type": "authorization_code", "code": code, "client_id": client.client_id}
    sent |= {"redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    form = {"Content_Type": "application/x-www-form-urlencoded"}

    twice = f"{urlencode(sent)}&client_id=id-of-Other"
    assert refusal(send("POST", "/oauth/token", twice, **form)) == (400, "invalid_request")
    assert send("POST", f"/oauth/token?{urlencode(sent)}", b"", **form).status_code in (400, 401)
    assert refusal(send("POST", "/oauth/token", json.dumps(sent), Content_Type="application/json"))[0] == 400
    tokens = redeem(client, code).json()
    assert problem(send_mcp(path=f"/mcp?access_token={tokens['access_token']}")) == (401, "not_authenticated")
    secrets = (code, tokens["access_token"].split("_", 2)[2], tokens["refresh_token"])
    ours = [
        record.getMessage() for record in caplog.records if record.name.startswith(("memoryhub", "mcp", "django"))
    ]
    assert not [text for text in ours for secret in secrets[1:] if secret in text]


def test_a_database_fault_is_reported(monkeypatch, client):
    def broken(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memoryhub.mcp.oauth.find_client", broken)

    assert problem(refresh(client, "x")) == (507, "disk_full")

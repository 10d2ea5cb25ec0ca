"""OAuth 2.1 for MCP clients: metadata, registration, tokens and revocation, next to Django like MCP itself.

The SDK reads, checks and answers the requests. ``memoryhub.agents.oauth`` stores what they are about, and has the
authorization endpoint, which is a page. Clients are public: they have no secrets, but use PKCE.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenErrorResponse, TokenHandler
from mcp.server.auth.json_response import PydanticJSONResponse
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import AuthorizationCode, RefreshToken, RegistrationError, TokenError, TokenErrorCode
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import Response

from memoryhub.agents.api_tokens import DEFAULT_SCOPES, SCOPES
from memoryhub.agents.call_limits import TooManyCalls, spend
from memoryhub.agents.hub_url import MCP_PATH, address_at, is_resource
from memoryhub.agents.oauth.clients import REGISTRATIONS_PER_MINUTE, BadRedirect, find_client, register_client
from memoryhub.agents.oauth.connections import (
    ACCESS_LIFETIME,
    Tokens,
    end_connection,
    find_code,
    find_refresh_token,
    redeem,
    refresh,
)
from memoryhub.lib.database.faults import fault_of
from memoryhub.lib.http.networks import network_of
from memoryhub.mcp.calls import in_thread
from memoryhub.mcp.transport import RESOURCE_METADATA, Refused, check_origin, read_headers, refuse, uncached
from memoryhub.models import OAuthConnection

MAX_BODY = 16 * 2**10
TOKENS_PER_MINUTE = 60  # requests for tokens and revocations from one address
AUTHORIZE, TOKEN, REGISTER, REVOKE = (f"/oauth/{name}" for name in ("authorize/", "token", "register", "revoke"))
FORM = "application/x-www-form-urlencoded"
PUBLIC = "none"  # how clients authenticate
GRANTS = ["authorization_code", "refresh_token"]
logger = logging.getLogger(__name__)


class Code(AuthorizationCode):
    connection: Any


class Renewal(RefreshToken):
    connection: Any


class Provider:
    """What the SDK's handlers need of ``OAuthAuthorizationServerProvider``. Database work runs in threads."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        client = await in_thread(lambda: find_client(client_id))
        if client is None:
            return None
        uris = [AnyUrl(uri) for uri in client.redirect_uris]
        return OAuthClientInformationFull(
            client_id=client_id, redirect_uris=uris, token_endpoint_auth_method=PUBLIC, grant_types=GRANTS
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        client_info.client_secret = client_info.client_secret_expires_at = None  # RFC 7591 lets the server choose
        client_info.token_endpoint_auth_method, client_info.grant_types = PUBLIC, GRANTS
        uris = [str(uri) for uri in client_info.redirect_uris or []]
        name, now = client_info.client_name or "", timezone.now()
        try:
            await in_thread(lambda: register_client(client_info.client_id, name, uris, now))
        except BadRedirect as error:
            raise RegistrationError("invalid_redirect_uri", error.message) from error

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> Code | None:
        now = timezone.now()
        found = await in_thread(lambda: find_code(client.client_id, authorization_code, now))
        if found is None:
            return None
        return Code(
            code=authorization_code,
            scopes=found.token.scopes,
            expires_at=found.code_expires_at.timestamp(),
            client_id=client.client_id,
            code_challenge=found.code_challenge,
            redirect_uri=AnyUrl(found.redirect_uri),
            redirect_uri_provided_explicitly=True,
            connection=found,
        )

    async def exchange_authorization_code(self, _client: OAuthClientInformationFull, code: Code) -> OAuthToken:
        return await _exchange(redeem, code.connection)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> Renewal | None:
        now = timezone.now()
        found = await in_thread(lambda: find_refresh_token(client.client_id, refresh_token, now))
        if found is None:
            return None
        scopes = found.token.scopes
        return Renewal(token=refresh_token, client_id=client.client_id, scopes=scopes, connection=found)

    async def exchange_refresh_token(
        self, _client: OAuthClientInformationFull, renewal: Renewal, _scopes: list[str]
    ) -> OAuthToken:
        """Renew both tokens, with all scopes that the person allowed, as the answer says."""
        return await _exchange(refresh, renewal.connection)


PROVIDER: Any = Provider()


async def _exchange(exchange: Callable[..., Tokens | None], connection: OAuthConnection) -> OAuthToken:
    tokens = await in_thread(lambda: exchange(connection, timezone.now()))
    if tokens is None:
        raise TokenError("invalid_grant", "it was used before")
    return OAuthToken(
        access_token=tokens.access,
        expires_in=int(ACCESS_LIFETIME.total_seconds()),
        scope=" ".join(tokens.scopes),
        refresh_token=tokens.refresh,
    )


async def server_metadata(_request: Request, base: str) -> Response:
    """RFC 8414."""
    metadata = {
        "issuer": base,
        "authorization_endpoint": base + AUTHORIZE,
        "token_endpoint": base + TOKEN,
        "registration_endpoint": base + REGISTER,
        "revocation_endpoint": base + REVOKE,
        "scopes_supported": list(SCOPES),
        "grant_types_supported": GRANTS,
        "token_endpoint_auth_methods_supported": [PUBLIC],
        "revocation_endpoint_auth_methods_supported": [PUBLIC],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    return PydanticJSONResponse(OAuthMetadata.model_validate(metadata))


async def resource_metadata(_request: Request, base: str) -> Response:
    """RFC 9728."""
    metadata = {
        "resource": base + MCP_PATH,
        "authorization_servers": [base],
        "scopes_supported": list(DEFAULT_SCOPES),
        "resource_name": "MemoryHub",
    }
    return PydanticJSONResponse(ProtectedResourceMetadata.model_validate(metadata))


async def register(request: Request, _base: str) -> Response:
    """RFC 7591."""
    return await RegistrationHandler(PROVIDER, ClientRegistrationOptions(enabled=True)).handle(request)


async def token(request: Request, base: str) -> Response:
    """The token endpoint of RFC 6749. The SDK doesn't look at ``resource`` (RFC 8707)."""
    form = await _form(request)
    if form is None:
        return _refusal("invalid_request", "Send every parameter once, as a form.")
    if not is_resource(form.get("resource", ""), base):
        return _refusal("invalid_target", "This server only issues tokens for its own MCP endpoint.")
    response: Response = await TokenHandler(PROVIDER, ClientAuthenticator(PROVIDER)).handle(request)
    return response


async def revoke(request: Request, _base: str) -> Response:
    """RFC 7009. The SDK's handler demands a client secret."""
    form = await _form(request)
    if form is None or "token" not in form:
        return _refusal("invalid_request", "Send every parameter once, as a form, with a token.")
    try:
        client = await ClientAuthenticator(PROVIDER).authenticate_request(request)
    except AuthenticationError as error:
        return _refusal("invalid_client", error.message, status=401)
    await in_thread(lambda: end_connection(client.client_id, form["token"], timezone.now()))
    return Response()


def _refusal(code: TokenErrorCode, detail: str, status: int = 400) -> Response:
    return PydanticJSONResponse(TokenErrorResponse(error=code, error_description=detail), status_code=status)


async def _form(request: Request) -> dict[str, str] | None:
    """Return the parameters of a request for tokens; None if one is repeated or the body isn't a form."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return None
    pairs = parse_qsl((await request.body()).decode("latin-1"), keep_blank_values=True)
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


Endpoint = Callable[[Request, str], Awaitable[Response]]
ENDPOINTS: dict[str, tuple[str, int, Endpoint]] = {  # by path: the method, and the requests a minute from one address
    RESOURCE_METADATA: ("GET", 0, resource_metadata),
    RESOURCE_METADATA + MCP_PATH: ("GET", 0, resource_metadata),
    "/.well-known/oauth-authorization-server": ("GET", 0, server_metadata),
    TOKEN: ("POST", TOKENS_PER_MINUTE, token),
    REGISTER: ("POST", REGISTRATIONS_PER_MINUTE, register),
    REVOKE: ("POST", TOKENS_PER_MINUTE, revoke),
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request for one of ENDPOINTS, whose body is complete."""
    try:
        response = await _respond(scope, receive)
    except Refused as refused:
        await refuse(refused, send)
    except (DatabaseError, InterfaceError, OSError) as error:
        fault = fault_of(error)
        if fault is None:
            raise
        logger.warning("%s during an OAuth request: %s", fault.code, error)
        await refuse(Refused(fault.status, fault.code, fault.message), send)
    else:
        await response(scope, receive, uncached(send))


async def _respond(scope: Any, receive: Any) -> Response:
    """Raises Refused."""
    headers = read_headers(scope)
    check_origin(headers, scope.get("scheme", "http"))
    method, limit, endpoint = ENDPOINTS[scope["path"]]
    if scope["method"] != method:
        raise Refused(405, "method_not_allowed", f"Use {method}.", allow=method)
    request = Request(scope, receive)
    if limit:
        address = network_of(request.client.host if request.client else "")
        try:
            await in_thread(lambda: spend(f"{scope['path']}:{address}", limit, timezone.now()))
        except TooManyCalls as error:
            raise Refused.too_many(error) from error
    return await endpoint(request, address_at(headers["host"], settings.MEMORYHUB_URL))

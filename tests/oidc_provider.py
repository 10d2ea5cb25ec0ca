"""A real OpenID Connect provider, made of Authlib's server side, that can also be told to cheat."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import requests
from authlib.common.security import generate_token
from authlib.oauth2 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jws, jwt
from joserfc.jwk import OctKey, RSAKey
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memoryhub.accounts import oidc

CLIENT, SECRET = "hub", "s3cret-of-the-hub"
CALLBACK = "/login/oidc/callback/"
VERA = {"sub": "v-1", "email": "Vera@example.org", "email_verified": True, "preferred_username": "vera.v"}


@cache
def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class Client(SimpleNamespace):
    """The hub, as it is registered."""

    def get_client_id(self) -> str:
        return CLIENT

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, uri: str) -> bool:
        return uri == self.callback

    def check_client_secret(self, secret: str) -> bool:
        return secret == SECRET

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, kind: str) -> bool:
        return kind == "authorization_code"


class AskedRequest(OAuth2Request):
    args = form = None  # properties of the base class

    def __init__(self, request: Request) -> None:
        super().__init__(request.method, request.url, headers=request.headers)
        self.payload = BasicOAuth2Payload({**request.args.to_dict(), **request.form.to_dict()})
        self.args, self.form = request.args, request.form


class Code(SimpleNamespace):
    def get_redirect_uri(self) -> str:
        return str(self.redirect_uri)

    def get_scope(self) -> str:
        return str(self.scope)

    def get_nonce(self) -> str:
        return str(self.nonce)

    def get_nothing(self) -> None:
        return None

    get_auth_time = get_acr = get_amr = get_nothing


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]

    def save_authorization_code(self, code: str, request: AskedRequest) -> None:
        asked = request.payload.data
        fields = ("redirect_uri", "scope", "nonce", "code_challenge", "code_challenge_method")
        self.server.codes[code] = Code(code=code, user=request.user, **{name: asked[name] for name in fields})

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        return self.server.codes.get(code)

    def delete_authorization_code(self, code: Code) -> None:
        del self.server.codes[code.code]

    def authenticate_user(self, code: Code) -> dict[str, Any]:
        return code.user


class Token(OpenIDCode):
    def __init__(self, provider: Provider) -> None:
        super().__init__(require_nonce=True)
        self.provider = provider

    def exists_nonce(self, nonce: str, request: AskedRequest) -> bool:
        return any(code.nonce == nonce for code in self.provider.codes.values())

    def resolve_client_private_key(self, client: Client) -> RSAKey:
        return new_key("first")

    def get_encode_header(self, client: Client) -> dict[str, str]:
        return {"alg": "RS256", "kid": "first"}

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        return {"iss": self.provider.issuer, "aud": CLIENT, "exp": int(time.time()) + 300}

    def generate_user_info(self, user: dict[str, Any], scope: str) -> dict[str, Any]:
        return user

    def encode_id_token(self, token: dict[str, Any], request: AskedRequest) -> str:
        return self.provider.cheat(super().encode_id_token(token, request))


class Provider(AuthorizationServer):
    """``user``: the claims of whoever signs in. ``cheat``: replaces an ID token. ``described``: more metadata."""

    def __init__(self, http: HTTPServer) -> None:
        super().__init__()
        self.issuer = http.url_for("").rstrip("/")
        self.callback = f"http://testserver{CALLBACK}"
        self.codes: dict[str, Code] = {}
        self.user: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        self.described: dict[str, Any] = {}
        self.cheat: Callable[[str], str] = lambda token: token
        self.register_token_generator("default", self._new_token)
        self.register_grant(CodeGrant, [CodeChallenge(required=True), Token(self)])
        http.expect_request("/.well-known/openid-configuration").respond_with_handler(self._describe)
        http.expect_request("/authorize").respond_with_handler(self._authorize)
        http.expect_request("/keys").respond_with_handler(self._keys)
        http.expect_request("/token", method="POST").respond_with_handler(self.create_token_response)
        http.expect_request("/userinfo").respond_with_handler(lambda _request: self._json(self.user))

    def authorize(self, address: str) -> str:
        """Sign in the user at the address to which the hub sent them; return the address that leads back."""
        return requests.get(address, allow_redirects=False, timeout=10).headers["Location"]

    def _authorize(self, request: Request) -> Response:
        self.asked.append(request.args.to_dict())
        asked = AskedRequest(request)
        response: Response = self.create_authorization_response(asked, self.user, self.get_authorization_grant(asked))
        return response

    def _describe(self, _request: Request) -> Response:
        where = {name: f"{self.issuer}/{path}" for name, path in ENDPOINTS.items()}
        algorithms = {"id_token_signing_alg_values_supported": ["RS256"]}
        return self._json({"issuer": self.issuer, **where, **algorithms, **self.described})

    def _keys(self, _request: Request) -> Response:
        return self._json({"keys": [new_key("first").as_dict(private=False)]})

    def _json(self, document: dict[str, Any]) -> Response:
        return Response(json.dumps(document), mimetype="application/json")

    def _new_token(self, *, scope: str, **_asked: Any) -> dict[str, Any]:
        return {"token_type": "Bearer", "access_token": generate_token(20), "expires_in": 300, "scope": scope}

    def query_client(self, client_id: str) -> Client | None:
        return Client(callback=self.callback) if client_id == CLIENT else None

    def save_token(self, token: dict[str, Any], request: AskedRequest) -> None:
        """The token is used at once."""

    def send_signal(self, name: str, *args: Any, **values: Any) -> None:
        """Nobody listens."""

    def create_oauth2_request(self, request: Request) -> AskedRequest:
        return AskedRequest(request)

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Response:
        return Response(json.dumps(body), status, headers, mimetype="application/json")


ENDPOINTS = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "jwks_uri": "keys",
    "userinfo_endpoint": "userinfo",
}


def claims_of(token: str) -> dict[str, Any]:
    return json.loads(jws.extract_compact(token.encode()).payload)


def signed(claims: dict[str, Any], key: Any = None, **header: str) -> str:
    """Return an ID token with these claims, signed with the provider's key if there is no other one."""
    header = {"alg": "RS256", "kid": "first", **header}
    return jwt.encode(header, claims, key or new_key("first"), algorithms=[header["alg"]])


def changed(**claims: Any) -> Callable[[str], str]:
    """Return a way to cheat that changes claims; None removes one."""

    def cheat(token: str) -> str:
        all_claims = {**claims_of(token), **claims}
        return signed({name: value for name, value in all_claims.items() if value is not None})

    return cheat


def none_signed(token: str) -> str:
    header, claims = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": "none"}, claims_of(token))
    )
    return f"{header}.{claims}."


def signed_with_secret(token: str) -> str:
    return signed(claims_of(token), OctKey.import_key(SECRET * 2), alg="HS256")


def signed_with_public_key(token: str) -> str:
    public = new_key("first").as_pem(private=False)
    return signed(claims_of(token), OctKey.import_key(base64.b64encode(public).decode()), alg="HS256")


CHEATS = {
    "nonce": changed(nonce="x" * 20),
    "no nonce": changed(nonce=None),
    "issuer": changed(iss="https://other.example"),
    "no issuer": changed(iss=None),
    "audience": changed(aud="another-client"),
    "audience, for us": changed(aud="another-client", azp=CLIENT),
    "audiences": changed(aud=[CLIENT, "another-client"], azp="another-client"),
    "no audience": changed(aud=None),
    "expired": changed(exp=int(time.time()) - 120),
    "no end": changed(exp=None),
    "from the future": changed(iat=int(time.time()) + 86_400),
    "no subject": changed(sub=None),
    "empty subject": changed(sub=""),
    "another access token": changed(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "no signature": none_signed,
    "another key": lambda token: signed(claims_of(token), new_key("other"), kid="first"),
    "unknown key": lambda token: signed(claims_of(token), new_key("other"), kid="other"),
    "secret": signed_with_secret,
    "public key": signed_with_public_key,
    "broken": lambda token: token[:-8],
    "empty": lambda _token: "",
}


@contextmanager
def provider_of_hub(http: HTTPServer, settings: Any) -> Iterator[Provider]:
    """Let Vera sign in to the hub with a provider."""
    made = Provider(http)
    made.user = dict(VERA)
    settings.MEMORYHUB_OIDC_ISSUER = made.issuer
    settings.MEMORYHUB_OIDC_CLIENT_ID, settings.MEMORYHUB_OIDC_CLIENT_SECRET = CLIENT, SECRET
    oidc._client_of.cache_clear()
    yield made
    oidc._client_of.cache_clear()

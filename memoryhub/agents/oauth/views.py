"""The page on which a person allows or denies a client. Nothing is sent to a client before they decide."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from memoryhub.agents.api_tokens import DEFAULT_SCOPES, SCOPES, BadToken
from memoryhub.agents.hub_url import hub_address, is_resource
from memoryhub.agents.oauth.clients import find_client
from memoryhub.agents.oauth.connections import connect
from memoryhub.agents.oauth.delegation import operated_by
from memoryhub.agents.oauth.forms import PermissionForm
from memoryhub.agents.oauth.redirects import destination, form_target, is_registered, parse_redirect, with_parameters
from memoryhub.lib.errors import Invalid, Refused
from memoryhub.middleware import POLICY
from memoryhub.models import OAuthClient

MAX_STATE = 4096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Wish:
    """What a client asks for, after all checks. ``scopes``: those that exist."""

    client: OAuthClient
    redirect_uri: str
    state: str
    code_challenge: str
    scopes: list[str]
    issuer: str

    def answer(self, **values: str) -> HttpResponse:
        """Send the person back to the client. Django's redirects don't know the schemes of programs."""
        values |= {"state": self.state} if self.state else {}
        address = with_parameters(self.redirect_uri, **values, iss=self.issuer)
        return HttpResponse(status=303, headers={"Location": address})


@require_http_methods(["GET", "POST"])
def authorize(request: HttpRequest) -> HttpResponse:
    """Ask the person whether a client may use a workspace."""
    try:
        wish = _read_wish(request)
    except Invalid as error:
        return render(request, "agents/oauth_error.html", {"message": error.message}, status=400)
    if "deny" in request.POST:
        return wish.answer(error="access_denied")
    workspaces = operated_by(cast("User", request.user)).order_by("name", "slug")
    form = PermissionForm(request.POST or None, workspaces=workspaces, scopes=wish.scopes)
    if form.is_bound and form.is_valid() and (code := _allow(request, wish, form)):
        return wish.answer(code=code)
    context = {"form": form, "client": wish.client, "destination": destination(wish.redirect_uri)}
    context |= {"redirect_uri": wish.redirect_uri, "may_allow": workspaces.exists()}
    response = render(request, "agents/oauth_permission.html", context, status=422 if form.errors else 200)
    response["Content-Security-Policy"] = POLICY.replace(
        "form-action 'self'", f"form-action 'self' {form_target(wish.redirect_uri)}"
    )
    return response


def _allow(request: HttpRequest, wish: Wish, form: PermissionForm) -> str:
    """Return the code, or "" after adding an error to the form."""
    values = form.cleaned_data
    try:
        return connect(
            wish.client,
            cast("User", request.user),
            values["workspace"],
            values["scopes"],
            reads=list(values.get("reads", ())),
            redirect_uri=wish.redirect_uri,
            code_challenge=wish.code_challenge,
            now=timezone.now(),
        )
    except (BadToken, Refused) as error:
        form.add_error(None, error.message)
        return ""


def _read_wish(request: HttpRequest) -> Wish:
    """Check an authorization request. Raises Invalid, which the person sees: the client may not be who it says."""
    if any(len(values) > 1 for _name, values in request.GET.lists()):
        raise Invalid(gettext("The program sent a parameter twice."))
    sent = request.GET.get
    client = find_client(sent("client_id", ""))
    if client is None:
        raise Invalid(gettext("The program isn't registered here, or no longer. Connect it again."))
    only = client.redirect_uris[0] if len(client.redirect_uris) == 1 else ""
    redirect_uri = parse_redirect(sent("redirect_uri", only))
    if redirect_uri is None or not is_registered(redirect_uri, client.redirect_uris):
        raise Invalid(gettext("The program asked to send you to an address that it didn't register."))
    issuer = hub_address(request, settings.MEMORYHUB_URL)
    if not is_resource(sent("resource", ""), issuer):
        raise Invalid(gettext("The program asked for access to something else than this hub's MCP server."))
    has_pkce = sent("code_challenge_method") == "S256" and _CHALLENGE.fullmatch(sent("code_challenge", ""))
    state = sent("state", "")
    if sent("response_type") != "code" or not has_pkce or len(state) > MAX_STATE:
        raise Invalid(gettext("The program must use the authorization code flow with PKCE and S256."))
    asked = sent("scope", "").split()
    scopes = [scope for scope in SCOPES if scope in asked] or list(DEFAULT_SCOPES)
    return Wish(client, redirect_uri, state, sent("code_challenge", ""), scopes, issuer)

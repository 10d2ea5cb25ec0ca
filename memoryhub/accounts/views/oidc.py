"""Sign-in with an OpenID Connect provider."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from memoryhub.accounts import oidc as flow
from memoryhub.accounts.second_factor_forms import confirmation
from memoryhub.accounts.views.second_factor import next_page, sign_in
from memoryhub.agents.hub_url import hub_address
from memoryhub.permissions import by_person

PROVED = "proved"  # key in the session: a provider's identity that has no account yet
MAX_WAIT = timedelta(minutes=10)  # to join or connect it
UNFINISHED = timedelta(hours=1)  # after which a sign-in that wasn't finished leaves nothing behind


@login_not_required
@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Send the person to the provider."""
    if not settings.MEMORYHUB_OIDC_ISSUER:
        raise Http404
    callback = hub_address(request, settings.MEMORYHUB_URL) + reverse("oidc-callback")
    try:
        address = flow.begin(request, callback, next_page(request, request.GET.get("next", "")))
        if not request.user.is_authenticated:
            request.session.set_expiry(UNFINISHED)
        return redirect(address)
    except flow.SignInFailed as error:
        return _shown(request, error)


@login_not_required
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the person whom the provider names, or let them join or connect."""
    if not settings.MEMORYHUB_OIDC_ISSUER:
        raise Http404
    try:
        proved, next_url = flow.finish(request)
        if isinstance(request.user, User):
            return _remembered(request, proved, "sign-ins")
        user = flow.find_person(proved, timezone.now())
    except (flow.SignInFailed, flow.AlreadyConnected) as error:
        return _shown(request, error)
    if user is not None and user.is_active:
        return sign_in(request, user, next_url)
    if user is None and _is_invitation(next_url):
        return _remembered(request, proved, next_url)
    name = proved.name or proved.subject
    return render(request, "accounts/unknown_person.html", {"name": name}, status=403)


def _remembered(request: HttpRequest, proved: flow.Proved, target: str) -> HttpResponse:
    until = (timezone.now() + MAX_WAIT).timestamp()
    request.session[PROVED] = {"identity": vars(proved), "until": until}
    return redirect(target)


def proved_identity(request: HttpRequest) -> flow.Proved | None:
    """Return the identity that this browser has proved and that waits for an account, if any."""
    kept: dict[str, Any] = request.session.get(PROVED) or {"until": 0}
    return flow.Proved(**kept["identity"]) if kept["until"] > timezone.now().timestamp() else None


def _is_invitation(path: str) -> bool:
    try:
        return resolve(path.partition("?")[0]).url_name == "invitation"
    except Resolver404:
        return False


def _shown(request: HttpRequest, error: flow.SignInFailed | flow.AlreadyConnected) -> HttpResponse:
    return render(request, "error.html", {"message": error.message}, status=error.status)


@require_POST
@sensitive_post_parameters()
def connect(request: HttpRequest) -> HttpResponse:
    """Connect the proved identity with one's account, after the password."""
    user, proved = User.objects.get(username=request.user.get_username()), proved_identity(request)
    form = confirmation(user, request.POST)
    if proved is None:
        messages.error(request, _("This took too long. Start again."))
    elif not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
    else:
        try:
            flow.connect(user, proved, by=by_person(request))
            messages.success(request, _("You can now sign in with %(name)s.") % {"name": flow.provider_name()})
        except flow.AlreadyConnected as error:
            messages.error(request, error.message)
        del request.session[PROVED]
    return redirect("sign-ins")


@require_POST
def disconnect(request: HttpRequest) -> HttpResponse:
    """End one's identities, unless there is no password to sign in with."""
    user = User.objects.get(username=request.user.get_username())
    if user.has_usable_password() and flow.disconnect(user, by=by_person(request)):
        messages.success(request, _("Disconnected. Sign in with your password from now on."))
    return redirect("sign-ins")

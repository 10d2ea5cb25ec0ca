"""Signing in with a passkey, and one's own passkeys. The script passkeys.js sends forms and reads JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from memoryhub.account_models import Passkey
from memoryhub.accounts import passkeys as flow
from memoryhub.accounts.attempt_limits import count_attempt, sign_in_limits, uncount_attempt
from memoryhub.accounts.passkey_forms import NameForm
from memoryhub.accounts.second_factor import BY_PASSKEY
from memoryhub.accounts.second_factor_forms import confirmation
from memoryhub.accounts.user_agents import browser_label
from memoryhub.accounts.views.oidc import UNFINISHED
from memoryhub.accounts.views.second_factor import next_page, start_session
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import by_person

SIGNING_IN, ADDING = "passkey_sign_in", "new_passkey"  # keys in the session
MAX_WAIT = timedelta(minutes=5)  # from the challenge to the answer


@login_not_required
@require_POST
def sign_in_options(request: HttpRequest) -> JsonResponse:
    """Return what the browser asks authenticators for, with a challenge that this session may answer once."""
    site = flow.find_site(request)
    if site is None:
        return _no_site()
    options = flow.ask_for_sign_in(site)
    _keep(request, SIGNING_IN, {"challenge": options["challenge"]})
    if not request.user.is_authenticated:
        request.session.set_expiry(UNFINISHED)
    return _options(options)


@login_not_required
@require_POST
@sensitive_post_parameters("credential")
def sign_in(request: HttpRequest) -> JsonResponse:
    """Sign in without a password or code. Failed attempts count like those with a password."""
    site, answer, now = flow.find_site(request), request.POST.get("credential", ""), timezone.now()
    if site is None:
        return _no_site()
    claimed = flow.claimed_passkey(site, answer)
    limits = sign_in_limits(request, claimed.user.username if claimed else "")
    if not count_attempt(limits, now):
        return _problem(_("Too many failed attempts. Try again in a minute."))
    try:
        asked = _take(request, SIGNING_IN)
        used = flow.check_sign_in(site, claimed, asked["challenge"], answer, now=now)
    except flow.PasskeyRefused as error:
        return _problem(error.message)
    uncount_attempt(limits)
    start_session(request, used.user)
    request.session[BY_PASSKEY] = used.pk
    return JsonResponse({"next": next_page(request, request.POST.get("next", ""))})


def add(request: HttpRequest) -> HttpResponse:
    """Show the form for a new passkey, or store one that the person has confirmed before."""
    site, user = flow.find_site(request), _current_user(request)
    if request.method == "POST":
        return _register(request, user, site) if site else _no_site()
    form = NameForm(initial={"name": browser_label(request.headers.get("user-agent", ""))})
    context = {"site": site, "forms": [form, confirmation(user)]}
    return render_page(request, "accounts/passkey_add.html", context)


@require_POST
@sensitive_post_parameters()
def options(request: HttpRequest) -> JsonResponse:
    """Return what the browser asks authenticators for, after the password."""
    site, user = flow.find_site(request), _current_user(request)
    if site is None:
        return _no_site()
    form, proof = NameForm(request.POST), confirmation(user, request.POST)
    if not form.is_valid() or not proof.is_valid():
        wrong = form.errors or proof.errors
        return _problem(" ".join(str(text) for texts in wrong.values() for text in texts))
    try:
        made = flow.ask_for_registration(user, site)
    except MemoryHubError as error:
        return _problem(error.message)
    asked = {"challenge": made["challenge"], "handle": made["user"]["id"], "name": form.cleaned_data["name"]}
    _keep(request, ADDING, asked)
    return _options(made)


def _register(request: HttpRequest, user: User, site: flow.Site) -> JsonResponse:
    try:
        asked = _take(request, ADDING)
        flow.register(user, site, asked, request.POST.get("credential", ""), by=by_person(request))
    except MemoryHubError as error:
        return _problem(error.message)
    messages.success(request, _("Passkey added. You can now sign in with it."))
    return JsonResponse({"next": reverse("sign-ins")})


@sensitive_variables("proof")
@sensitive_post_parameters()
def passkey(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one's own passkey, or rename it after the password."""
    user = _current_user(request)
    shown = get_object_or_404(Passkey.objects.select_related("user"), pk=pk, user=user)
    sent = request.POST if request.method == "POST" else None
    form, proof = NameForm(sent, initial={"name": shown.name}), confirmation(user, sent)
    if sent is not None and form.is_valid() and proof.is_valid():
        flow.rename(shown, form.cleaned_data["name"], by=by_person(request))
        messages.success(request, _("Passkey renamed."))
        return redirect("sign-ins")
    return _shown(request, shown, [form, proof])


@require_POST
@sensitive_variables("proof")
@sensitive_post_parameters()
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    user = _current_user(request)
    shown = get_object_or_404(Passkey.objects.select_related("user"), pk=pk, user=user)
    proof = confirmation(user, request.POST)
    if not proof.is_valid():
        return _shown(request, shown, [NameForm(initial={"name": shown.name}), proof])
    flow.remove(shown, by=by_person(request))
    messages.success(request, _("Passkey removed. Your device may still offer it; delete it there, too."))
    return redirect("sign-ins")


def _shown(request: HttpRequest, shown: Passkey, forms: list[Any]) -> HttpResponse:
    status = 422 if any(form.errors for form in forms) else 200
    return render_page(request, "accounts/passkey.html", {"passkey": shown, "forms": forms}, status=status)


def _keep(request: HttpRequest, key: str, asked: dict[str, str]) -> None:
    request.session[key] = {"asked": asked, "until": (timezone.now() + MAX_WAIT).timestamp()}


def _take(request: HttpRequest, key: str) -> dict[str, str]:
    """Return what was asked in this session, once. Raises PasskeyRefused if nothing was, or too long ago."""
    kept: dict[str, Any] = request.session.pop(key, None) or {"until": 0}
    if kept["until"] < timezone.now().timestamp():
        raise flow.PasskeyRefused(_("This took too long. Start again."))
    asked: dict[str, str] = kept["asked"]
    return asked


def _options(made: dict[str, Any]) -> JsonResponse:
    return JsonResponse({"options": made | {"timeout": int(MAX_WAIT.total_seconds() * 1000)}})


def _no_site() -> JsonResponse:
    return _problem(_("Passkeys can't be used at this address."))


def _problem(message: str) -> JsonResponse:
    return JsonResponse({"message": message}, status=422)


def _current_user(request: HttpRequest) -> User:
    return User.objects.get(username=request.user.get_username())

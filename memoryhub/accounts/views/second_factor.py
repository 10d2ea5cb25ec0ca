"""The second step of signing in, and the page for one's own second factor."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from memoryhub.accounts import second_factor as flow
from memoryhub.accounts.login_forms import LoginForm
from memoryhub.accounts.oidc import provider_name
from memoryhub.accounts.passkeys import find_site, is_in_use
from memoryhub.accounts.second_factor_forms import CodeForm, ConfirmForm, SetupForm, confirmation
from memoryhub.accounts.setup import operator_exists
from memoryhub.lib.database.encrypted_text import decrypt_text, encrypt_text
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import by_person

WAITS, NEW = "code_of", "new_second_factor"  # keys in the session
MAX_WAIT = timedelta(minutes=10)  # between the password and the code


class SignInView(auth_views.LoginView):
    redirect_authenticated_user = True
    form_class = LoginForm
    extra_context = {"operator_exists": operator_exists, "provider": provider_name}

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        site = find_site(self.request)
        return super().get_context_data(**values) | {"passkeys": site if site and is_in_use(site) else None}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return sign_in(self.request, form.get_user(), self.get_success_url())


def sign_in(request: HttpRequest, user: User, next_url: str) -> HttpResponse:
    """Sign in somebody who has proved who they are, or ask for their second factor first."""
    if not flow.has_second_factor(user):
        start_session(request, user)
        return redirect(next_url)
    request.session.flush()
    request.session.set_expiry(MAX_WAIT)
    request.session[WAITS] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "until": (timezone.now() + MAX_WAIT).timestamp(),
        "next": next_url,
    }
    return redirect("login-code")


def next_page(request: HttpRequest, wanted: str) -> str:
    """Return the address of a page of the hub: the wanted one, or the first."""
    is_safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_safe else resolve_url("home")


def start_session(request: HttpRequest, user: User) -> None:
    """Sign in with a new session key; the session lasts as long as MEMORYHUB_SIGN_IN_DAYS says."""
    request.session.set_expiry(None)  # of an unfinished sign-in
    login(request, user, backend=settings.PASSWORD_BACKEND)


@login_not_required
@sensitive_post_parameters()
def code(request: HttpRequest) -> HttpResponse:
    user = _waiting(request)
    if user is None:
        return redirect("login")
    form = CodeForm(user, request.POST or None)
    if form.is_bound and form.is_valid():
        next_url = request.session.pop(WAITS)["next"]
        start_session(request, user)
        return redirect(next_url)
    return render(request, "registration/code.html", {"form": form}, status=422 if form.errors else 200)


def _waiting(request: HttpRequest) -> User | None:
    """Return who has given their password and not yet a code, unless it has changed or was too long ago."""
    waits = request.session.get(WAITS)
    if not waits or waits["until"] < timezone.now().timestamp():
        return None
    user = User.objects.filter(pk=waits["user"], is_active=True).first()
    return user if user and constant_time_compare(waits["hash"], user.get_session_auth_hash()) else None


@sensitive_variables("secret", "form", "codes")
@sensitive_post_parameters()
def second_factor(request: HttpRequest) -> HttpResponse:
    """Show one's second factor, or set it up: the app's first code and the password turn it on."""
    user = _current_user(request)
    if flow.has_second_factor(user):
        return _shown(request, user, confirmation(user))
    secret = decrypt_text(request.session.get(NEW, ""), context=NEW)
    if secret is None:
        secret = flow.new_secret()
        request.session[NEW] = encrypt_text(secret, context=NEW)
    form = SetupForm(user, secret, request.POST or None)
    if form.is_bound and form.is_valid():
        del request.session[NEW]
        codes = flow.turn_on(user, secret, form.step, keep=request.session.session_key, by=by_person(request))
        return render_page(request, "accounts/recovery_codes.html", {"codes": codes})
    qr_code = _qr_code(flow.provisioning_uri(secret, user.username))
    is_required = settings.MEMORYHUB_REQUIRE_SECOND_FACTOR
    context = {"form": form, "secret": secret, "qr": qr_code, "is_required": is_required}
    return render_page(request, "accounts/second_factor_setup.html", context, status=422 if form.errors else 200)


def _shown(request: HttpRequest, user: User, form: CodeForm | ConfirmForm) -> HttpResponse:
    context = {"form": form, "factor": user.second_factor, "left": user.recovery_codes.count()}
    return render_page(request, "accounts/second_factor.html", context, status=422 if form.errors else 200)


@require_POST
@sensitive_post_parameters()
def turn_off(request: HttpRequest) -> HttpResponse:
    user = _current_user(request)
    form = confirmation(user, request.POST)
    if flow.has_second_factor(user) and not form.is_valid():
        return _shown(request, user, form)
    if flow.turn_off(user, by=by_person(request)):
        messages.success(request, _("Two-factor authentication is off."))
    return redirect("second-factor")


@require_POST
@sensitive_variables("codes")
@sensitive_post_parameters()
def recovery_codes(request: HttpRequest) -> HttpResponse:
    user = _current_user(request)
    if not flow.has_second_factor(user):
        return redirect("second-factor")
    form = confirmation(user, request.POST)
    if not form.is_valid():
        return _shown(request, user, form)
    codes = flow.new_recovery_codes(user, by=by_person(request))
    return render_page(request, "accounts/recovery_codes.html", {"codes": codes})


def _qr_code(uri: str) -> str:
    """Return an SVG picture as a data: address."""
    import segno

    return segno.make(uri, micro=False).svg_data_uri(scale=5, light="#fff")


def _current_user(request: HttpRequest) -> User:
    return User.objects.get(username=request.user.get_username())

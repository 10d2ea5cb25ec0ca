"""The user's own password and sign-ins."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from memoryhub.accounts.forms import OwnPasswordForm
from memoryhub.accounts.oidc import identities_of, provider_name
from memoryhub.accounts.passkeys import find_site, passkeys_of
from memoryhub.accounts.second_factor_forms import confirmation
from memoryhub.accounts.sign_ins import change_password, end_sign_in, sign_ins_of, sign_out_elsewhere
from memoryhub.accounts.views.oidc import proved_identity
from memoryhub.lib.http.htmx import render_page
from memoryhub.models import SignIn
from memoryhub.permissions import by_person


@sensitive_variables("form")
@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    """Change the password. This browser stays signed in with a new session; all others are signed out."""
    user = _current_user(request)
    form = OwnPasswordForm(user, request.POST or None)
    if form.is_bound and form.is_valid():
        new_password, here = form.cleaned_data["new_password1"], request.session.session_key
        change_password(user, new_password, keep=here, by=by_person(request))
        update_session_auth_hash(request, user)
        messages.success(request, _("Password changed. All other browsers are signed out."))
        return redirect("password")
    return render_page(request, "accounts/password.html", {"form": form}, status=422 if form.errors else 200)


@require_GET
def sign_ins(request: HttpRequest) -> HttpResponse:
    user = _current_user(request)
    shown = sign_ins_of(user, this=request.session.session_key, now=timezone.now())
    context = {
        "sign_ins": shown,
        "provider": provider_name(),
        "identities": identities_of(user),
        "proved": proved_identity(request),
        "form": confirmation(user),
        "has_password": user.has_usable_password(),
        "passkeys": passkeys_of(user),
        "takes_passkeys": find_site(request) is not None,
    }
    return render_page(request, "accounts/sign_ins.html", context)


@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    sign_in = get_object_or_404(SignIn.objects.select_related("user"), pk=pk, user=_current_user(request))
    end_sign_in(sign_in, by=by_person(request))
    messages.success(request, _("That browser is signed out."))
    return redirect("sign-ins")


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    here = request.session.session_key
    count = sign_out_elsewhere(_current_user(request), keep=here, by=by_person(request))
    messages.success(request, _("All other browsers are signed out.") if count else _("There was no other browser."))
    return redirect("sign-ins")


def _current_user(request: HttpRequest) -> User:
    return User.objects.get(username=request.user.get_username())

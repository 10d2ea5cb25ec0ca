"""The page of an invitation or reset link."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from memoryhub.accounts import invitations as flow
from memoryhub.accounts.forms import JoinForm, NamedJoinForm, NewPasswordForm
from memoryhub.accounts.oidc import Proved, connect, provider_name
from memoryhub.accounts.proxy import person_named_by_proxy
from memoryhub.accounts.views.oidc import PROVED, proved_identity
from memoryhub.accounts.views.second_factor import sign_in, start_session
from sessions_app.services.audit import Actor, By

GONE = 410


@login_not_required
@sensitive_variables("token")
@sensitive_post_parameters()
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Accept an invitation or reset a password. Returns 410 for a link that has ended."""
    try:
        shown = flow.find_invitation(token, timezone.now())
        if shown.invitation.user is not None:
            return _new_password(request, token, shown.invitation.user)
        if request.user.is_authenticated:
            return _join_as_known(request, token, shown)
        return _join_as_new(request, token, shown)
    except flow.InvitationEnded as error:
        return render(request, "accounts/invitation.html", {"ended": error.message}, status=GONE)


@sensitive_variables("token", "form", "password")
def _join_as_new(request: HttpRequest, token: str, shown: flow.OpenInvitation) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    named, proved = person_named_by_proxy(request), proved_identity(request)
    form = _join_form(sent, named, proved)
    if form.is_bound and form.is_valid():
        name, password = form.cleaned_data["username"], form.cleaned_data.get("password1")
        try:
            with transaction.atomic():
                user = flow.join_as_new(token, username=name, password=password, now=timezone.now())
                if proved:
                    connect(user, proved, by=By(Actor("person", user.username), timezone.now()))
        except flow.NameTaken as error:
            form.add_error("username", error.message)
        else:
            request.session.pop(PROVED, None)
            if not named:  # otherwise the next request is signed in
                start_session(request, user)
            return _to_first_page(shown)
    context = {"form": form, "shown": shown, "proved": proved, "provider": "" if named or proved else provider_name()}
    return render(request, "accounts/invitation.html", context, status=422 if form.errors else 200)


def _join_form(sent: QueryDict | None, named: str, proved: Proved | None) -> JoinForm:
    """Return a form without a password for somebody whom the proxy named or whose identity a provider proved."""
    if named:
        return NamedJoinForm(named, sent, is_fixed=True)
    return NamedJoinForm(proved.name, sent, is_fixed=False) if proved else JoinForm(sent)


@sensitive_variables("token")
def _join_as_known(request: HttpRequest, token: str, shown: flow.OpenInvitation) -> HttpResponse:
    user = User.objects.get(username=request.user.get_username())
    gives_more = flow.gives_more(shown, user)
    if request.method != "POST" or not gives_more:  # don't use up a link that its creator opens
        return render(request, "accounts/invitation.html", {"shown": shown, "gives_more": gives_more})
    flow.join_as_known(token, user, now=timezone.now())
    return _to_first_page(shown)


@sensitive_variables("token", "form")
def _new_password(request: HttpRequest, token: str, user: User) -> HttpResponse:
    form = NewPasswordForm(user, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        changed = flow.choose_new_password(token, form.cleaned_data["new_password1"], now=timezone.now())
        return sign_in(request, changed, reverse("home"))
    context = {"form": form, "reset_of": user.username}
    return render(request, "accounts/invitation.html", context, status=422 if form.errors else 200)


def _to_first_page(shown: flow.OpenInvitation) -> HttpResponse:
    if len(shown.roles) == 1 and not shown.invitation.is_operator:
        return redirect("workspace", shown.roles[0].workspace.slug)
    return redirect("home")

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

from memoryhub.accounts.login_forms import OperatorForm
from memoryhub.accounts.setup import create_first_operator, is_valid, operator_exists
from memoryhub.accounts.views.second_factor import start_session


@login_not_required
@sensitive_post_parameters()
def setup(request: HttpRequest, token: str) -> HttpResponse:
    now = timezone.now()
    if not is_valid(token, now):
        if operator_exists():
            messages.info(request, gettext("The first account already exists. Sign in with it."))
            return redirect("login")
        return render(request, "accounts/setup.html", {"form": None}, status=410)
    form = OperatorForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        user = create_first_operator(
            token=token,
            username=form.cleaned_data["username"],
            password=form.cleaned_data["password1"],
            now=now,
        )
        start_session(request, user)
        return redirect("home")
    return render(request, "accounts/setup.html", {"form": form}, status=422 if form.errors else 200)

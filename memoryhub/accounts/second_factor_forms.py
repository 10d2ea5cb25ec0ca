from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.attempt_limits import MAX_PER_ACCOUNT, count_attempt, uncount_attempt
from memoryhub.accounts.second_factor import has_second_factor, matching_step, use_code
from sessions_app.services.audit import Actor, By

MAX_CODES, MAX_HOURLY_CODES = 5, 20  # wrong codes of an account in a minute, and in an hour
HOUR = timedelta(hours=1)
_CODE = {"autocomplete": "one-time-code", "spellcheck": "false", "autocapitalize": "off"}


class CodeForm(forms.Form):
    """The second step of signing in, or a confirmation. A valid form has used up its code."""

    code = forms.CharField(
        max_length=40,
        label=_("Authentication code"),
        help_text=_("The code that your authenticator app shows, or one of your recovery codes."),
        widget=forms.TextInput(attrs=_CODE | {"autofocus": True}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_code(self) -> str:
        code, now = self.cleaned_data["code"], timezone.now()
        limits, hourly = {f"code {self.user.pk}": MAX_CODES}, {f"hourly code {self.user.pk}": MAX_HOURLY_CODES}
        _count(limits)
        if not count_attempt(hourly, now, HOUR):
            raise forms.ValidationError(_("Too many failed attempts. Try again in an hour."), code="slowed")
        if not use_code(self.user, code, by=By(Actor("person", self.user.username), now)):
            raise forms.ValidationError(_("This code is wrong, was used or has expired."), code="wrong")
        uncount_attempt(limits | hourly)
        return ""


class ConfirmForm(forms.Form):
    """Confirms a change with the person's password."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        if not user.has_usable_password():  # they sign in elsewhere
            del self.fields["password"]

    def clean_password(self) -> str:
        limits = {f"password {self.user.username}": MAX_PER_ACCOUNT}
        _count(limits)
        if not self.user.check_password(self.cleaned_data["password"]):
            raise forms.ValidationError(_("This password is wrong."), code="wrong")
        uncount_attempt(limits)
        return ""


def confirmation(user: User, *args: Any) -> CodeForm | ConfirmForm:
    """Return the form that confirms a change: with the password, or with a code if the person has no password."""
    asks_code = not user.has_usable_password() and has_second_factor(user)
    return CodeForm(user, *args) if asks_code else ConfirmForm(user, *args)


class SetupForm(ConfirmForm):
    """The first code of a new secret, and the password. ``step``: of the code, if the form is valid."""

    code = forms.CharField(max_length=10, label=_("Code from the app"), widget=forms.TextInput(attrs=_CODE))

    def __init__(self, user: User, secret: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.secret = secret
        self.step = 0

    def clean_code(self) -> str:
        code = "".join(self.cleaned_data["code"].split())
        step = matching_step(self.secret, code, timezone.now())
        if step is None:
            raise forms.ValidationError(_("This code is wrong. Check the device's clock."), code="wrong")
        self.step = step
        return ""


def _count(limits: dict[str, int]) -> None:
    if not count_attempt(limits, timezone.now()):
        raise forms.ValidationError(_("Too many failed attempts. Try again in a minute."), code="slowed")

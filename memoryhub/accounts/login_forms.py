from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.attempt_limits import count_attempt, sign_in_limits, uncount_attempt
from memoryhub.accounts.forms import NewPasswordMixin


class LoginForm(AuthenticationForm):
    """Limits failed attempts to sign in."""

    def clean(self) -> dict[str, Any]:
        limits = sign_in_limits(self.request, self.cleaned_data.get("username", ""))
        if not count_attempt(limits, timezone.now()):
            raise forms.ValidationError(_("Too many failed attempts. Try again in a minute."), code="slowed")
        values = super().clean()
        uncount_attempt(limits)
        return values


class OperatorForm(NewPasswordMixin, BaseUserCreationForm[User]):
    """The first account."""

    class Meta:
        model = User
        fields = ("username",)

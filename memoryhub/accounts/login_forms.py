from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.forms import NewPasswordMixin
from memoryhub.accounts.sign_ins import count_attempt, is_rate_limited, uncount_attempt


class LoginForm(AuthenticationForm):
    """Rate-limits failed sign-ins by name and by address."""

    def clean(self) -> dict[str, Any]:
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        attempt_keys = [f"name {self.cleaned_data.get('username', '')}", f"address {address}"]
        if is_rate_limited(attempt_keys):
            raise forms.ValidationError(_("Too many failed attempts. Try again in a minute."), code="slowed")
        count_attempt(attempt_keys)
        values = super().clean()
        uncount_attempt(attempt_keys)
        return values


class OperatorForm(NewPasswordMixin, BaseUserCreationForm[User]):
    """The first account."""

    class Meta:
        model = User
        fields = ("username",)

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.forms import ChoosesPassword
from memoryhub.accounts.sign_ins import count_as_right, count_try, is_slowed


class LoginForm(AuthenticationForm):
    """Signing in, slowed after ten wrong tries a minute for a name or from an address; nobody is locked out."""

    def clean(self) -> dict[str, Any]:
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        tried = [f"name {self.cleaned_data.get('username', '')}", f"address {address}"]
        if is_slowed(tried):
            raise forms.ValidationError(_("Too many wrong tries. Wait a minute, then try again."), code="slowed")
        count_try(tried)
        values = super().clean()
        count_as_right(tried)
        return values


class OperatorForm(ChoosesPassword, BaseUserCreationForm[User]):
    """The first account: a name and a password, twice."""

    class Meta:
        model = User
        fields = ("username",)

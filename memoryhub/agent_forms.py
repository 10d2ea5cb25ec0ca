"""Forms about agents: making a token, narrowing the access log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms

from memoryhub.flows.access_log import ACTIONS, words_of
from memoryhub.flows.tokens import DEFAULT_SCOPES, MAX_NAME, MOST_PER_MINUTE, PER_MINUTE, SCOPES
from memoryhub.models import AccessRecord

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Until it is revoked")]


class TokenForm(forms.Form):
    """What a token is for, and for how long."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label="The agent's name",
        help_text="It stands beside everything that the agent writes and reads.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        choices=[(name, f"{name}: {meaning}") for name, meaning in SCOPES.items()],
        initial=list(DEFAULT_SCOPES),
        widget=forms.CheckboxSelectMultiple,
        help_text="None of them lets it approve, pin, delete, make tokens or change settings.",
    )
    days = forms.ChoiceField(label="It ends after", choices=LIFETIMES, initial="90", required=False)
    per_minute = forms.IntegerField(
        label="Calls a minute", min_value=1, max_value=MOST_PER_MINUTE, initial=PER_MINUTE, localize=False
    )

    def wishes(self, now: datetime) -> dict[str, Any]:
        """Return what ``issue_token`` takes."""
        values = self.cleaned_data
        days = values["days"]
        return {
            "name": values["name"],
            "scopes": values["scopes"],
            "expires_at": now + timedelta(days=int(days)) if days else None,
            "per_minute": values["per_minute"],
        }


class AccessFilterForm(forms.Form):
    who = forms.CharField(
        required=False,
        max_length=200,
        label="Who",
        widget=forms.TextInput(attrs={"type": "search", "data-search": "", "placeholder": "Who"}),
    )
    via = forms.ChoiceField(required=False, label="Door", choices=[("", "Any door"), *AccessRecord.Via.choices])
    action = forms.ChoiceField(
        required=False, label="What", choices=[("", "Anything"), *((name, words_of(name)) for name in ACTIONS)]
    )
    since = forms.DateField(required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput(attrs={"type": "date"}))

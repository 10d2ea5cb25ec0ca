"""Forms about agents: making a token, narrowing the access log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.agents.api_tokens import DEFAULT_SCOPES, MAX_NAME, MOST_PER_MINUTE, PER_MINUTE, SCOPES

LIFETIMES = [("30", _("30 days")), ("90", _("90 days")), ("365", _("A year")), ("", _("Until it is revoked"))]


def _scopes() -> list[tuple[str, str]]:
    words = gettext("%(scope)s: %(meaning)s")
    return [(name, words % {"scope": name, "meaning": meaning}) for name, meaning in SCOPES.items()]


class TokenForm(forms.Form):
    """What a token is for, and for how long."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label=_("The agent's name"),
        help_text=_("It stands beside everything that the agent writes and reads."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        choices=_scopes,
        initial=list(DEFAULT_SCOPES),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None of them lets it approve, pin, delete, make tokens or change settings."),
    )
    days = forms.ChoiceField(label=_("It ends after"), choices=LIFETIMES, initial="90", required=False)
    per_minute = forms.IntegerField(
        label=_("Calls a minute"), min_value=1, max_value=MOST_PER_MINUTE, initial=PER_MINUTE, localize=False
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

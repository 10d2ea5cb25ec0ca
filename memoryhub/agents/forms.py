"""The form that creates a token."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.agents.api_tokens import MAX_NAME, MAX_PER_MINUTE, PER_MINUTE, SCOPES
from sessions_app.models import Workspace

FORM_SCOPES = ("read", "append")  # enough to learn and to propose, while people decide
LIFETIMES = [("30", _("30 days")), ("90", _("90 days")), ("365", _("1 year")), ("", _("No expiration"))]


def scope_choices() -> list[tuple[str, str]]:
    label = gettext("%(scope)s: %(meaning)s")
    return [(name, label % {"scope": name, "meaning": meaning}) for name, meaning in SCOPES.items()]


def reads_field() -> forms.ModelMultipleChoiceField[Workspace]:
    """Return the field for other workspaces that an agent may read; the form sets its queryset."""
    return forms.ModelMultipleChoiceField(
        label=_("Also read these workspaces"),
        queryset=Workspace.objects.none(),
        required=False,
        to_field_name="slug",
        widget=forms.CheckboxSelectMultiple,
        help_text=_("The agent can search and read them, but not write to them."),
    )


class TokenForm(forms.Form):
    """The options of a new token. ``shareable``: workspaces that it may read too."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label=_("Agent name"),
        help_text=_("Shown next to everything the agent writes and reads."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autofocus": True}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=scope_choices,
        initial=list(FORM_SCOPES),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("No scope allows approving, pinning, deleting, creating tokens or changing settings."),
    )
    reads = reads_field()
    days = forms.ChoiceField(label=_("Expires after"), choices=LIFETIMES, initial="90", required=False)
    per_minute = forms.IntegerField(
        label=_("Calls per minute"), min_value=1, max_value=MAX_PER_MINUTE, initial=PER_MINUTE, localize=False
    )

    def __init__(self, *args: Any, shareable: QuerySet[Workspace], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reads = self.fields["reads"]
        if isinstance(reads, forms.ModelMultipleChoiceField) and shareable.exists():
            reads.queryset = shareable
        else:
            del self.fields["reads"]

    def options(self, now: datetime) -> dict[str, Any]:
        """Return the arguments of ``issue_token``."""
        values = self.cleaned_data
        days = values["days"]
        return {
            "name": values["name"],
            "scopes": values["scopes"],
            "expires_at": now + timedelta(days=int(days)) if days else None,
            "per_minute": values["per_minute"],
            "reads": list(values.get("reads", ())),
        }

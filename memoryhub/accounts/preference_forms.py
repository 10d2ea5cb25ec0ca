"""The form of display preferences."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.locale import languages, zone_named
from memoryhub.lib.form_fields import StoredSelect
from memoryhub.models import Preferences

THEMES = [
    (Preferences.Theme.SYSTEM.value, _("System")),
    (Preferences.Theme.LIGHT.value, _("Light")),
    (Preferences.Theme.DARK.value, _("Dark")),
]


class PreferencesForm(forms.Form):
    theme = forms.ChoiceField(label=_("Theme"), choices=THEMES, required=False, widget=forms.RadioSelect)
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        max_length=64,
        help_text=_("Start typing a place. Leave empty to use your browser's time zone."),
        widget=forms.TextInput(attrs={"list": "time-zones", "autocomplete": "off", "spellcheck": "false"}),
    )
    language = forms.ChoiceField(label=_("Language"), required=False, widget=StoredSelect)
    is_compact = forms.BooleanField(
        label=_("Compact pages"),
        required=False,
        help_text=_("Smaller text and spacing, so that more rows fit. Saved in this browser only."),
    )
    letter_keys = forms.BooleanField(
        label=_("Single-key shortcuts"),
        required=False,
        help_text=_(
            "Turn them off if you dictate, or press keys accidentally. Ctrl+K always works. "
            "Saved in this browser only."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        known = languages()
        self.fields["language"].choices = [("", _("Browser's language")), *known]  # type: ignore[attr-defined]
        if len(known) < 2:  # keep the saved language
            del self.fields["language"]

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        if name and zone_named(name) is None:
            raise forms.ValidationError(gettext("Unknown time zone. Choose one from the list."))
        return name

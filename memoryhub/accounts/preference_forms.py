"""How a person wants to read the pages, as a form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.locale import languages, zone_named
from memoryhub.lib.form_fields import StoredSelect
from memoryhub.models import Preferences

THEMES = [
    (Preferences.Theme.SYSTEM.value, _("As the system has it")),
    (Preferences.Theme.LIGHT.value, _("Light")),
    (Preferences.Theme.DARK.value, _("Dark")),
]


class PreferencesForm(forms.Form):
    """Theme, time zone, language where there are several, and whether letters alone are shortcuts."""

    theme = forms.ChoiceField(label=_("Theme"), choices=THEMES, required=False, widget=forms.RadioSelect)
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        max_length=64,
        help_text=_("Begin to type a place. Empty, the pages follow your browser."),
        widget=forms.TextInput(attrs={"list": "time-zones", "autocomplete": "off", "spellcheck": "false"}),
    )
    language = forms.ChoiceField(label=_("Language"), required=False, widget=StoredSelect)
    letter_keys = forms.BooleanField(
        label=_("Shortcuts of a single key"),
        required=False,
        help_text=_(
            "Switch them off if you dictate, or if keys are pressed by chance. Ctrl+K works either way. "
            "Kept in this browser only."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        known = languages()
        self.fields["language"].choices = [("", _("As the browser has it")), *known]  # type: ignore[attr-defined]
        if len(known) < 2:  # there is nothing to choose; what was chosen once is kept
            del self.fields["language"]

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        if name and zone_named(name) is None:
            raise forms.ValidationError(gettext("There is no time zone of this name. Choose one from the list."))
        return name

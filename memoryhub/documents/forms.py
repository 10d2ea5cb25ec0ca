from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.form_fields import StoredSelect, search_field


class HistoryFilterForm(forms.Form):
    q = search_field(_("Text"))
    kept = forms.ChoiceField(
        required=False,
        label=_("Where"),
        choices=[("", _("Log and archives")), ("log", _("Log only")), ("archive", _("Archives only"))],
    )


class EditForm(forms.Form):
    """A document's text and the number of the revision that it is based on."""

    base = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    text = forms.CharField(required=False, strip=False, label=_("Text"), widget=forms.Textarea(attrs={"rows": 28}))
    reason = forms.CharField(required=False, max_length=300, label=_("Why"))


class FactForm(forms.Form):
    """A fact: its text, category and section."""

    text = forms.CharField(
        max_length=2_000, widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}), label=_("Fact")
    )
    category = forms.RegexField(
        r"^[\w-]{0,64}$", required=False, label=_("Category"), help_text=_("One word, such as user_preference.")
    )
    section = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, sections: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["section"] = forms.ChoiceField(
            required=False,
            label=_("Section"),
            choices=[(title, title or _("Beginning")) for title in sections],
            widget=StoredSelect,
        )

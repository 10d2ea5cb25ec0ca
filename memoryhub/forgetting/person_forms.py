from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.forgetting.hub_erasure import Person
from memoryhub.forgetting.matching import phrase_of
from memoryhub.lib.validation import MAX_REASON

MOST_WORDS = 100


class PersonForm(forms.Form):
    """A person's names and sessions, and at the last step the confirmation.

    ``shown``: the fingerprint of the preview.
    """

    words = forms.CharField(
        max_length=4_000,
        label=_("Names"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
        help_text=_(
            "Names, e-mail addresses, phone numbers and ids such as telegram:12345, one per line. "
            "Case and punctuation are ignored; only whole words match."
        ),
    )
    alias = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    session = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    reason = forms.CharField(required=False, max_length=MAX_REASON)
    shown = forms.CharField(required=False, widget=forms.HiddenInput)
    understood = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        super().clean()
        lines = [*self.cleaned_data.get("words", "").splitlines(), *(self.cleaned_data.get("alias") or [])]
        words = {phrase_of(line) or (line,): line.strip() for line in reversed(lines) if line.strip()}
        self.cleaned_data["names"] = tuple(reversed(words.values()))
        if len(words) > MOST_WORDS:
            self.add_error("words", gettext("Enter at most %(count)s names.") % {"count": MOST_WORDS})
        return self.cleaned_data

    @property
    def person(self) -> Person:
        return Person(self.cleaned_data["names"], tuple(dict.fromkeys(self.cleaned_data.get("session") or [])))

""""""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class SessionFileForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        max_length=200,
        help_text=_(
            "A nanobot session (.jsonl), a Grip session or an AgTerm export (.json). What is there already is "
            "not added again."
        ),
    )

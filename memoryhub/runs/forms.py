from django import forms
from django.utils.translation import gettext_lazy as _


class CompressForm(forms.Form):
    METHODS = [
        ("llm", _("Model calls")),
        ("heuristic", _("By rule: counts, first and last request, tools, errors")),
    ]

    method = forms.ChoiceField(choices=METHODS, widget=forms.RadioSelect, label=_("Method"))
    keep = forms.IntegerField(min_value=1, max_value=10_000, label=_("Messages to keep"))
    hold = forms.BooleanField(required=False, label=_("Review summary first"))

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.audit.access_log import ACTIONS, access_label
from memoryhub.models import AccessRecord


class AccessFilterForm(forms.Form):
    who = forms.CharField(
        required=False,
        max_length=200,
        label=_("Who"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    via = forms.ChoiceField(
        required=False, label=_("Access method"), choices=[("", _("Any method")), *AccessRecord.Via.choices]
    )
    action = forms.ChoiceField(
        required=False,
        label=_("What"),
        choices=[("", _("Anything")), *((name, access_label(name)) for name in ACTIONS)],
    )
    since = forms.DateField(required=False, label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label=_("To"), widget=forms.DateInput(attrs={"type": "date"}))

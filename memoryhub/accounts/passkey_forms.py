from django import forms
from django.utils.translation import gettext_lazy as _


class NameForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label=_("Name"),
        help_text=_("So that you recognise it, for example the device or the password manager."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )

from django import forms
from django.utils.translation import gettext_lazy as _


class WorkspaceForm(forms.Form):
    name = forms.CharField(max_length=200, label=_("Name"), help_text=_("The agent's name, for example."))

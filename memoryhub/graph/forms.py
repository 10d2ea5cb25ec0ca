from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.form_fields import search_field


class TermFilterForm(forms.Form):
    q = search_field(_("Term contains"))


class RelateForm(forms.Form):
    name = forms.CharField(max_length=512, label=_("Term"))

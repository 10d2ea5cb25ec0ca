from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.audit.changes import KINDS_OF
from sessions_app.models import AuditRecord

NOUNS = {  # of actions
    "account": _("Account"),
    "audit": _("Audit"),
    "backup": _("Backup"),
    "change": _("Change"),
    "document": _("Document"),
    "entry": _("Entry"),
    "facts": _("Facts"),
    "graph": _("Graph"),
    "history": _("History"),
    "import": _("Import"),
    "job": _("Job"),
    "key_value": _("Key-value"),
    "knowledge": _("Knowledge"),
    "observations": _("Observations"),
    "rows": _("Rows"),
    "person": _("Person"),
    "run": _("Run"),
    "session": _("Session"),
    "sessions": _("Conversations"),
    "term": _("Term"),
    "token": _("Token"),
    "webhook": _("Webhook"),
}


class AuditFilterForm(forms.Form):
    who = forms.CharField(
        required=False, max_length=200, label=_("Author"), widget=forms.TextInput(attrs={"type": "search"})
    )
    actor = forms.ChoiceField(
        required=False, label=_("Author type"), choices=[("", _("All")), *AuditRecord.ActorKind.choices]
    )
    noun = forms.ChoiceField(
        required=False, label=_("Type"), choices=[("", _("All")), *((noun, NOUNS[noun]) for noun in KINDS_OF)]
    )
    text = forms.CharField(
        required=False,
        max_length=200,
        label=_("Text"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    since = forms.DateField(required=False, label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label=_("To"), widget=forms.DateInput(attrs={"type": "date"}))

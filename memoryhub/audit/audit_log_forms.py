from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from sessions_app.models import AuditRecord

NOUNS = {  # of actions
    "account": _("Account"),
    "audit": _("Audit"),
    "backup": _("Backup"),
    "change": _("Change"),
    "document": _("Document"),
    "entry": _("Entry"),
    "facts": _("Facts"),
    "forgotten": _("Erasure"),
    "graph": _("Graph"),
    "history": _("History"),
    "hub": _("Hub"),
    "import": _("Import"),
    "job": _("Job"),
    "key_value": _("Key-value"),
    "knowledge": _("Knowledge"),
    "memory": _("Memory"),
    "oauth": _("Connected app"),
    "observations": _("Observations"),
    "person": _("Person"),
    "preferences": _("Preferences"),
    "row": _("Addition"),
    "rows": _("Rows"),
    "run": _("Run"),
    "scratch": _("Scratchpad"),
    "secrets": _("Secrets"),
    "session": _("Session"),
    "sessions": _("Conversations"),
    "term": _("Term"),
    "token": _("Token"),
    "webhook": _("Webhook"),
    "workspace": _("Workspace"),
}


def subject_label(action: str) -> str:
    """Return what an action is about, as pages show it."""
    noun = action.partition(".")[0]
    return str(NOUNS.get(noun, noun))


class AuditFilterForm(forms.Form):
    who = forms.CharField(
        required=False, max_length=200, label=_("Author"), widget=forms.TextInput(attrs={"type": "search"})
    )
    actor = forms.ChoiceField(
        required=False, label=_("Author type"), choices=[("", _("All")), *AuditRecord.ActorKind.choices]
    )
    noun = forms.ChoiceField(required=False, label=_("Type"), choices=[("", _("All")), *NOUNS.items()])
    text = forms.CharField(
        required=False,
        max_length=200,
        label=_("Text"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    since = forms.DateField(required=False, label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label=_("To"), widget=forms.DateInput(attrs={"type": "date"}))

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import Forgotten
from memoryhub.lib.validation import MAX_REASON
from sessions_app.models import Session, Workspace


class ForgetForm(forms.Form):
    """What to erase, and at the second step the confirmation."""

    KINDS = [
        (Forgotten.Kind.PERSON, _("A person: every line that mentions them is removed")),
        (Forgotten.Kind.PHRASE, _("A phrase: only these words are removed")),
        (Forgotten.Kind.SOURCE, _("A source: everything learned from it is removed")),
        (Forgotten.Kind.SESSION, _("A session, and everything learned only from it")),
    ]

    kind = forms.ChoiceField(choices=KINDS, label=_("What"))
    words = forms.CharField(
        max_length=4_000,
        label=_("Names, phrase, source or key"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "The person's names, one per line; the phrase; the source; or the session's key. "
            "Case and punctuation are ignored; only whole words match."
        ),
    )
    expected = forms.IntegerField(required=False, min_value=0)
    reason = forms.CharField(required=False, max_length=MAX_REASON)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspace = workspace

    def clean(self) -> dict[str, Any]:
        super().clean()
        key = self.cleaned_data.get("words", "").strip()
        is_session = self.cleaned_data.get("kind") == Forgotten.Kind.SESSION
        if is_session and not Session.objects.filter(workspace=self.workspace, key=key).exists():
            self.add_error("words", gettext("No session has this key."))
        return self.cleaned_data

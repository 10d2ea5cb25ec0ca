from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.form_fields import StoredSelect
from memoryhub.lib.validation import MAX_REASON


class SessionFileForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        max_length=200,
        help_text=_(
            "A nanobot session (.jsonl), a Grip session or an AgTerm export (.json). Entries that already exist are "
            "skipped."
        ),
    )


ORDERS = {
    "recent": ("-updated_at", "-id"),
    "longest": ("-entry_count", "-id"),
    "heaviest": ("-total_tokens", "-id"),
    "key": ("key", "id"),
}


class SessionFilterForm(forms.Form):
    q = forms.CharField(
        required=False,
        max_length=200,
        label=_("Key or title"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    channel = forms.ChoiceField(required=False)  # __init__ sets the choices
    state = forms.ChoiceField(
        required=False,
        label=_("State"),
        choices=[
            ("", _("All conversations")),
            ("folded", _("Compressed")),
            ("hidden", _("Not visible to the agent")),
            ("restarted", _("Restarted")),
            ("archived", _("Archived")),
        ],
    )
    sort = forms.ChoiceField(
        required=False,
        label=_("Sort"),
        choices=[
            ("recent", _("Newest first")),
            ("longest", _("Most messages")),
            ("heaviest", _("Most tokens")),
            ("key", _("By key")),
        ],
    )

    def __init__(self, *args: object, channels: list[str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [("", gettext("All channels")), *((name, name) for name in channels)]
        self.fields["channel"] = forms.ChoiceField(
            required=False, label=_("Channel"), choices=choices, widget=StoredSelect
        )


class OpenForm(forms.Form):
    key = forms.CharField(
        max_length=512, label=_("Key"), help_text=_("A channel and an identifier, such as cli:main or telegram:42.")
    )
    title = forms.CharField(required=False, max_length=500, label=_("Title"))


class RenameForm(forms.Form):
    title = forms.CharField(required=False, max_length=500, label=_("Title"))


class DeleteForm(forms.Form):
    confirmation = forms.CharField(max_length=512, label=_("Type the conversation's key"), strip=False)
    reason = forms.CharField(required=False, max_length=MAX_REASON, label=_("Why"))

    def __init__(self, *args: Any, key: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.key = key
        self.fields["confirmation"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"]
        if typed != self.key:
            raise forms.ValidationError(gettext("This isn't the conversation's key. Nothing was deleted."))
        return typed


class AppendForm(forms.Form):
    KINDS = [
        ("user", _("User message")),
        ("assistant", _("Assistant message")),
        ("context", _("Context, such as a file")),
    ]

    kind = forms.ChoiceField(choices=KINDS, label=_("Kind"))
    name = forms.CharField(
        required=False,
        max_length=200,
        label=_("Name"),
        help_text=_("The speaker's name, or what the context is, such as src/main.ts."),
    )
    content = forms.CharField(
        max_length=200_000, widget=forms.Textarea(attrs={"rows": 5}), strip=False, label=_("Content")
    )

    def row(self) -> dict[str, str]:
        """Return the entry in the format of read_batch()."""
        values = self.cleaned_data
        kind = {"kind": "context"} if values["kind"] == "context" else {"role": values["kind"]}
        return kind | ({"name": values["name"]} if values["name"] else {}) | {"content": values["content"]}

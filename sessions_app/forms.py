from __future__ import annotations

from django import forms

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
        label="Key or title",
        widget=forms.TextInput(attrs={"type": "search", "data-search": "", "placeholder": "Key or title"}),
    )
    channel = forms.ChoiceField(required=False)  # the workspace's own, given when the form is made
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All sessions"),
            ("folded", "Partly folded"),
            ("hidden", "Not visible to the agent"),
            ("restarted", "Restarted"),
        ],
    )
    sort = forms.ChoiceField(
        required=False,
        choices=[
            ("recent", "Latest first"),
            ("longest", "Most entries"),
            ("heaviest", "Most tokens"),
            ("key", "By key"),
        ],
    )

    def __init__(self, *args: object, channels: list[str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [("", "All channels"), *((name, name) for name in channels)]
        self.fields["channel"] = forms.ChoiceField(required=False, choices=choices)

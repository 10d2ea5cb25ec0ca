from __future__ import annotations

from typing import Any

from django import forms
from django_stubs_ext import StrOrPromise


def search_field(label: StrOrPromise, *, is_label_hidden: bool = False) -> forms.CharField:
    """Return a field for a text to filter by. ``is_label_hidden``: the label is shown in the box instead."""
    attrs = {"type": "search", "data-search": ""} | ({"placeholder": label} if is_label_hidden else {})
    widget = forms.TextInput(attrs=attrs)
    return forms.CharField(required=False, max_length=200, label=label, widget=widget)


class LinesField(forms.CharField):
    """A textarea whose line endings are normalised to ``\\n``; browsers send ``\\r\\n``."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> Any:
        return str(super().to_python(value) or "").replace("\r\n", "\n")


class TagsField(forms.CharField):
    """A list of tags, entered as comma-separated text."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return [tag.strip() for tag in super().clean(value).split(",") if tag.strip()]


class StoredSelect(forms.Select):
    """A select whose options, except for the empty one, are stored names that browsers mustn't translate."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value:
            option["attrs"]["translate"] = "no"
        return option

"""What the pages between choosing rows and changing them ask for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry, Observation


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


class EditForm(forms.Form):
    """``values`` are what the edit's action takes; ``reason`` is what histories say."""

    reason = forms.CharField(
        required=False, max_length=500, label=_("Reason"), help_text=_("Kept in each row's history.")
    )
    field_order = ["category", "add", "remove", "reason"]

    @property
    def values(self) -> dict[str, Any]:
        return {}


class WithdrawForm(EditForm):
    reason = forms.CharField(
        max_length=500, label=_("Reason"), help_text=_("Kept with each row: why nobody should rely on it.")
    )

    @property
    def values(self) -> dict[str, Any]:
        return {"reason": self.cleaned_data["reason"]}


class TagForm(EditForm):
    add = forms.CharField(
        required=False, max_length=1000, label=_("Tags to add"), help_text=_("Separated by commas.")
    )
    remove = forms.CharField(
        required=False, max_length=1000, label=_("Tags to take away"), help_text=_("Separated by commas.")
    )

    @property
    def values(self) -> dict[str, Any]:
        return {"add": _words(self.cleaned_data["add"]), "remove": _words(self.cleaned_data["remove"])}

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and not any(self.values[name] for name in ("add", "remove")):
            raise forms.ValidationError(_("Name tags to add or to take away."), code="no_tags")
        return found


class RecategoriseForm(TagForm):
    category = forms.ChoiceField(choices=KnowledgeEntry.Category.choices, label=_("Category"))

    @property
    def values(self) -> dict[str, Any]:
        return {"category": self.cleaned_data["category"], **super().values}

    def clean(self) -> dict[str, Any]:
        return forms.Form.clean(self) or self.cleaned_data


class MoveForm(EditForm):
    category = forms.ChoiceField(choices=Observation.Category.choices, label=_("Kind"))

    @property
    def values(self) -> dict[str, Any]:
        return {"category": self.cleaned_data["category"]}


class ConfirmForm(forms.Form):
    """A page that says what will happen, and a button."""

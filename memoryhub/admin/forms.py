"""Forms of the pages that confirm bulk edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry, Observation
from knowledge_app.services.rows.knowledge import clean_tags
from memoryhub.lib.errors import Invalid
from memoryhub.lib.validation import MAX_REASON

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class EditForm(forms.Form):
    """``values``: the parameters of the edit's action; ``reason``: stored in histories.

    ``button_field``: a choice that is made with the button that submits the form.
    """

    button_field = ""

    reason = forms.CharField(
        required=False, max_length=500, label=_("Reason"), help_text=_("Stored in each row's history.")
    )
    field_order = ["category", "add", "remove", "reason"]

    @property
    def values(self) -> dict[str, Any]:
        return {}

    @property
    def buttons(self) -> list[tuple[str, StrOrPromise]]:
        return self.fields[self.button_field].choices if self.button_field else []  # type: ignore[attr-defined]


class WithdrawForm(EditForm):
    reason = forms.CharField(max_length=MAX_REASON, label=_("Reason"), help_text=_("Stored with each row."))

    @property
    def values(self) -> dict[str, Any]:
        return {"reason": self.cleaned_data["reason"]}


class TagForm(EditForm):
    add = forms.CharField(
        required=False, max_length=1000, label=_("Tags to add"), help_text=_("Separated by commas.")
    )
    remove = forms.CharField(
        required=False, max_length=1000, label=_("Tags to remove"), help_text=_("Separated by commas.")
    )

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("add", "remove")}

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and not (found["add"] or found["remove"]):
            raise forms.ValidationError(_("Enter tags to add or remove."), code="no_tags")
        return found

    def clean_add(self) -> list[str]:
        """Raises ValidationError for too many or too long tags."""
        try:
            return clean_tags(self.cleaned_data["add"].split(","))
        except Invalid as error:
            raise forms.ValidationError(error.message, code=error.code) from error

    def clean_remove(self) -> list[str]:
        words = (word.strip() for word in self.cleaned_data["remove"].split(","))
        return list(dict.fromkeys(filter(None, words)))


class RecategoriseForm(TagForm):
    button_field = "category"
    category = forms.ChoiceField(choices=KnowledgeEntry.Category.choices, label=_("Category"))

    @property
    def values(self) -> dict[str, Any]:
        return {"category": self.cleaned_data["category"], **super().values}

    def clean(self) -> dict[str, Any]:
        return forms.Form.clean(self) or self.cleaned_data


class MoveForm(EditForm):
    button_field = "category"
    category = forms.ChoiceField(choices=Observation.Category.choices, label=_("Kind"))

    @property
    def values(self) -> dict[str, Any]:
        return {"category": self.cleaned_data["category"]}


class ConfirmForm(forms.Form):
    """A confirmation without fields."""

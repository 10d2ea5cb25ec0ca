from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry, Observation
from memoryhub.lib.form_fields import LinesField, StoredSelect, TagsField, search_field


class KnowledgeFilterForm(forms.Form):
    q = search_field(_("Text, tag or source"))
    category = forms.ChoiceField(
        required=False, label=_("Category"), choices=[("", _("All categories")), *KnowledgeEntry.Category.choices]
    )
    state = forms.ChoiceField(
        required=False,
        label=_("State"),
        choices=[("", _("In use")), ("due", _("Due for review")), ("withdrawn", _("Withdrawn"))],
    )


class RowForm(forms.Form):
    """One row's fields. It carries them as they were when the page was made, to tell what a person changed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.show_hidden_initial = True

    def changes(self, now: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that a person changed; adds an error for one that someone else changed meanwhile.

        ``now``: the row's values as they are. Call it on a valid form.
        """
        changed = {name: self.cleaned_data[name] for name in self.changed_data}
        for name in changed:
            bound = self[name]
            if bound.html_initial_name not in self.data:
                continue  # not from the page: whoever sends it means what it says
            sent = bound.field.widget.value_from_datadict(self.data, self.files, bound.html_initial_name)
            seen = bound.field.to_python(sent)
            if bound.field.has_changed(bound.field.prepare_value(now[name]), seen) and now[name] != changed[name]:
                words = gettext("Someone changed this meanwhile; it says now: %(value)s")
                self.add_error(name, words % {"value": bound.field.prepare_value(now[name])})
        return changed


class KnowledgeForm(RowForm):
    content = LinesField(max_length=20_000, widget=forms.Textarea(attrs={"rows": 3}), label=_("What is known"))
    category = forms.ChoiceField(label=_("Category"), choices=KnowledgeEntry.Category.choices)
    tags = TagsField(required=False, max_length=5_000, label=_("Tags"), help_text=_("Between commas."))
    source = forms.CharField(
        required=False,
        max_length=2_000,
        label=_("Source"),
        help_text=_("Where it was learnt, such as user_message."),
    )


class ObservationFilterForm(forms.Form):
    q = search_field(_("Text or source"))
    category = forms.ChoiceField(
        required=False, label=_("Category"), choices=[("", _("All kinds")), *Observation.Category.choices]
    )
    withdrawn = forms.BooleanField(required=False, label=_("Withdrawn too"))


class ObservationForm(RowForm):
    content = LinesField(max_length=4_000, widget=forms.Textarea(attrs={"rows": 3}), label=_("What was observed"))
    category = forms.ChoiceField(
        label=_("Kind"), choices=[("finding", _("Finding")), ("insight", _("Insight")), ("lesson", _("Lesson"))]
    )
    source = forms.CharField(
        required=False, max_length=500, label=_("Source"), help_text=_("Such as GOAL:step-name.")
    )


class KeyValueFilterForm(forms.Form):
    begin = search_field(_("Key begins with"))
    q = forms.CharField(required=False, max_length=200, label=_("Key or value contains"))
    withdrawn = forms.BooleanField(required=False, label=_("Withdrawn"))


class KeyValueForm(forms.Form):
    key = forms.CharField(
        max_length=512, strip=False, label=_("Key"), widget=forms.TextInput(attrs={"spellcheck": "false"})
    )
    value = LinesField(
        required=False, max_length=200_000, strip=False, label=_("Value"), widget=forms.Textarea(attrs={"rows": 5})
    )


class CacheFilterForm(forms.Form):
    q = search_field(_("Message or response"))
    model = forms.ChoiceField(required=False)
    state = forms.ChoiceField(required=False, label=_("State"), choices=[("", _("All")), ("expired", _("Expired"))])

    def __init__(self, *args: Any, models: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["model"] = forms.ChoiceField(
            required=False,
            label=_("Model"),
            choices=[("", _("All models")), *((name, name) for name in models)],
            widget=StoredSelect,
        )

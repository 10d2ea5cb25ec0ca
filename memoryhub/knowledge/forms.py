from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import CachedResponse, KnowledgeEntry, Observation
from knowledge_app.services.rows import knowledge, observations
from memoryhub.lib.form_fields import LinesField, StoredSelect, TagsField, search_field
from memoryhub.lib.stale_forms import remember_shown
from sessions_app.models import Workspace

SHOWN_MODELS = 100


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
    """The fields of one row, with the values that they had when the page was rendered (``changed_values``)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        remember_shown(self)


class KnowledgeForm(RowForm):
    content = LinesField(max_length=knowledge.MAX_CHARS, widget=forms.Textarea(attrs={"rows": 3}), label=_("Fact"))
    category = forms.ChoiceField(label=_("Category"), choices=KnowledgeEntry.Category.choices)
    tags = TagsField(required=False, label=_("Tags"), help_text=_("Separated by commas."))
    source = forms.CharField(
        required=False,
        max_length=knowledge.MAX_SOURCE,
        label=_("Source"),
        help_text=_("Where it was learned, such as user_message."),
    )


class ObservationFilterForm(forms.Form):
    q = search_field(_("Text or source"))
    category = forms.ChoiceField(
        required=False, label=_("Category"), choices=[("", _("All kinds")), *Observation.Category.choices]
    )
    withdrawn = forms.BooleanField(required=False, label=_("Include withdrawn"))


class ObservationForm(RowForm):
    content = LinesField(
        max_length=observations.MAX_CHARS, widget=forms.Textarea(attrs={"rows": 3}), label=_("Observation")
    )
    category = forms.ChoiceField(
        label=_("Kind"), choices=[("finding", _("Finding")), ("insight", _("Insight")), ("lesson", _("Lesson"))]
    )
    source = forms.CharField(
        required=False, max_length=observations.MAX_SOURCE, label=_("Source"), help_text=_("Such as GOAL:step-name.")
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

    def __init__(self, data: QueryDict, workspace: Workspace) -> None:
        super().__init__(data)
        rows = CachedResponse.objects.filter(workspace=workspace).order_by("model")
        names = [name for name in rows.values_list("model", flat=True).distinct()[:SHOWN_MODELS] if name]
        self.fields["model"] = forms.ChoiceField(
            required=False,
            label=_("Model"),
            choices=[("", _("All models")), *((name, name) for name in names)],
            widget=StoredSelect,
        )

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import KnowledgeEntry


class SearchForm(forms.Form):
    """The options beside the search box; ``views.search_params`` parses them."""

    MATCHES = [("any", _("Any word")), ("all", _("All words"))]
    SORTS = [
        ("best", _("Best match")),
        ("newest", _("Newest first")),
        ("floored", _("Best match, prefer recent")),
        ("grip", _("Best match, time decay")),
    ]
    MODES = [
        ("", "MemoryHub"),
        ("grip-memory", _("Grip: MEMORY.md")),
        ("grip-history", _("Grip: HISTORY.md")),
        ("grip-knowledge", _("Grip: knowledge")),
    ]
    CATEGORIES = [("", _("All")), *KnowledgeEntry.Category.choices]

    kind = forms.ChoiceField(required=False, widget=forms.RadioSelect, label=_("Kind"))
    match = forms.ChoiceField(required=False, choices=MATCHES, label=_("Words"))
    sort = forms.ChoiceField(required=False, choices=SORTS, label=_("Order"))
    decay = forms.FloatField(
        required=False,
        min_value=0,
        label=_("Decay per hour"),
        widget=forms.NumberInput(attrs={"step": "any", "max": "1000"}),
    )
    mode = forms.ChoiceField(required=False, choices=MODES, label=_("Ranked by"))
    category = forms.ChoiceField(required=False, choices=CATEGORIES, label=_("Category"))
    own = forms.BooleanField(
        required=False, label=_("Include agents' own conversations"), widget=forms.CheckboxInput(attrs={"value": "1"})
    )

    def __init__(self, *args: Any, kinds: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = kinds  # type: ignore[attr-defined]

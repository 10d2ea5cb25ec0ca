from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.form_fields import StoredSelect, search_field
from memoryhub.memory.filters import KINDS
from memoryhub.origins.explanation import CERTAINTIES


class MemoryFilterForm(forms.Form):
    """The filters of the memory list; see ``filters.MemoryFilters``."""

    AGES = [
        ("", _("Any time")),
        ("1", _("Last 24 hours")),
        ("7", _("Last 7 days")),
        ("30", _("Last 30 days")),
        ("month", _("This month")),
        ("last-month", _("Last month")),
        ("90", _("Last 90 days")),
        ("older", _("Older than 90 days")),
    ]
    AUTHORS = [
        ("", _("Anyone")),
        ("person", _("People")),
        ("agent", _("Agents")),
        ("import", _("Imported")),
        ("run", _("Consolidation or extraction")),
    ]
    SORTS = [("", _("Newest first")), ("oldest", _("Oldest first")), ("verified", _("Least recently verified"))]

    q = search_field(_("Filter by text"), is_label_hidden=True)
    kind = forms.ChoiceField(required=False, choices=[("", ""), *((kind, kind) for kind in KINDS)])
    category = forms.CharField(required=False, max_length=300, label=_("Category or section"))
    age = forms.ChoiceField(required=False, choices=AGES, label=_("Added"))
    author = forms.ChoiceField(required=False, choices=AUTHORS, label=_("Author"))
    certainty = forms.ChoiceField(
        required=False, choices=[("", _("Any")), *CERTAINTIES.items()], label=_("Certainty of origin")
    )
    sort = forms.ChoiceField(required=False, choices=SORTS, label=_("Sort"))
    pinned = forms.BooleanField(required=False)
    review = forms.BooleanField(required=False)
    all_kinds = forms.BooleanField(required=False)

    def offer_categories(self, categories: Sequence[str], sections: Sequence[str], labels: dict[str, Any]) -> None:
        """Offer stored categories and sections as choices, with ``labels`` for those that the hub knows."""
        chosen = str(self["category"].value() or "")
        named = [(name, labels.get(name) or name.replace("_", " ").capitalize()) for name in categories]
        groups: list[Any] = [("", _("All"))]
        groups += [(_("Categories"), named)] if named else []
        groups += [(_("Sections"), [(name, name) for name in sections])] if sections else []
        if chosen and chosen not in {*categories, *sections}:
            groups.append((chosen, chosen))
        self.fields["category"].widget = StoredSelect(choices=groups)

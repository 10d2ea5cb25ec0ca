"""Forms of pages that were opened before someone else saved: only what the person changed is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext


def remember_shown(form: forms.BaseForm) -> None:
    """Send the fields' values with the page, so that ``changed_values`` can compare with what the person saw.

    Passwords and keys are never sent.
    """
    for field in form.fields.values():
        field.show_hidden_initial = not isinstance(field.widget, forms.PasswordInput)


def changed_values(form: forms.BaseForm, current: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed fields of a validated form, and add an error to those that someone else changed meanwhile.

    ``current``: the values that are stored now.
    """
    changed = {name: form.cleaned_data[name] for name in form.changed_data if name in form.cleaned_data}
    for name in changed:
        bound = form[name]
        if bound.html_initial_name not in form.data:
            continue  # not sent by the page: no earlier value to compare with
        sent = bound.field.widget.value_from_datadict(form.data, form.files, bound.html_initial_name)
        seen = bound.field.to_python(sent)
        if bound.field.has_changed(bound.field.prepare_value(current[name]), seen) and current[name] != changed[name]:
            shown = bound.field.prepare_value(current[name])
            words = gettext("Someone changed this meanwhile. Save again to replace it. Current value: %(value)s")
            form.add_error(name, words % {"value": shown})
            form.data = {**dict(form.data.items()), bound.html_initial_name: shown}  # what the next save is based on
    return changed


def merged_values(form: forms.BaseForm, current: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values of a validated form: what the person changed, and the stored values of the other fields.

    Fields that the page didn't send with what it showed are as they were sent.
    """
    changed = changed_values(form, current)
    unchanged = {name for name in form.fields if form[name].html_initial_name in form.data and name not in changed}
    return form.cleaned_data | {name: current[name] for name in unchanged & current.keys()}

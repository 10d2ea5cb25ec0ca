"""The form with which a person allows a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.agents.forms import reads_field, scope_choices
from sessions_app.models import Workspace
from sessions_app.querysets import WorkspaceQuerySet


class PermissionForm(forms.Form):
    """A workspace, the scopes among those that the client asks for, and other workspaces that it may read."""

    workspace = forms.ModelChoiceField(
        label=_("Workspace"), queryset=Workspace.objects.none(), to_field_name="slug", empty_label=None
    )
    scopes = forms.MultipleChoiceField(label=_("It may"), widget=forms.CheckboxSelectMultiple)
    reads = reads_field()

    def __init__(self, *args: Any, workspaces: WorkspaceQuerySet, scopes: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("workspace", "reads"):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  for the type checker
            field.queryset = workspaces
        if workspaces.count() < 2:
            del self.fields["reads"]
        choice = self.fields["scopes"]
        assert isinstance(choice, forms.MultipleChoiceField)  # noqa: S101  for the type checker
        choice.choices = [(name, label) for name, label in scope_choices() if name in scopes]
        choice.initial = list(scopes)

"""Forms for invitations, roles and passwords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm, SetPasswordMixin, UserCreationForm
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.attempt_limits import MAX_PER_ACCOUNT, count_attempt, uncount_attempt
from memoryhub.accounts.invitations import MAX_NAME
from memoryhub.accounts.people import RoleChange
from memoryhub.lib.form_fields import StoredSelect
from sessions_app.models import Membership, Workspace

ROLES = [
    (Membership.Role.VIEWER, _("Viewer: can read")),
    (Membership.Role.EDITOR, _("Editor: can edit")),
    (Membership.Role.OPERATOR, _("Operator: can manage settings, agents, people")),
]
SHORT_ROLES = [("", _("No access")), *((role, role.label) for role in reversed(Membership.Role))]
NO_ACCESS = "none"
EVERYWHERE = [("", _("Only in some workspaces, see below")), *SHORT_ROLES[1:]]
EXCEPTIONS = [("", _("Same as in all")), (NO_ACCESS, _("No access")), *SHORT_ROLES[1:]]
LIFETIMES = [("1", _("1 day")), ("7", _("7 days")), ("30", _("30 days"))]


class PeopleFilterForm(forms.Form):
    STATES = [
        ("", _("Active")),
        ("operators", _("Operators of the hub")),
        ("deactivated", _("Deactivated")),
        ("all", _("All")),
    ]

    q = forms.CharField(
        required=False,
        max_length=150,
        label=_("Name"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": "", "autocomplete": "off"}),
    )
    workspace = forms.ModelChoiceField(
        Workspace.objects.order_by("name", "id"),
        required=False,
        to_field_name="slug",
        label=_("Access to"),
        widget=StoredSelect,
    )
    state = forms.ChoiceField(required=False, choices=STATES, label=_("State"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["workspace"].empty_label = gettext("Any workspace")  # type: ignore[attr-defined]


class InviteForm(forms.Form):
    """``workspaces``: offered for choosing roles. ``of_hub``: whether hub operators can be invited, and to all."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label=_("Name"),
        help_text=_("Shown in the list of open invitations. The person chooses their own user name."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    is_operator = forms.BooleanField(
        required=False,
        label=_("Operator of the hub"),
        help_text=_("Can do everything in every workspace, and manage people and backups."),
    )
    everywhere = forms.ChoiceField(
        required=False,
        choices=EVERYWHERE,
        label=_("Role in all workspaces"),
        help_text=_("In those that exist now, not in later ones."),
    )
    days = forms.ChoiceField(label=_("Expires after"), choices=LIFETIMES, initial="7")

    def __init__(self, *args: Any, workspaces: Sequence[Workspace], of_hub: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspaces = workspaces
        if not of_hub:
            del self.fields["is_operator"], self.fields["everywhere"]
        elif len(workspaces) == 1:
            self.fields["everywhere"].initial = Membership.Role.VIEWER
        choices = EXCEPTIONS if of_hub else ROLES
        for workspace in workspaces:
            label = gettext("Role in %(workspace)s") % {"workspace": workspace.name}
            self.fields[f"role-{workspace.pk}"] = forms.ChoiceField(label=label, choices=choices, required=not of_hub)

    def role_fields(self) -> list[forms.BoundField]:
        return [self[f"role-{workspace.pk}"] for workspace in self.workspaces]

    def invite_arguments(self) -> dict[str, Any]:
        values = self.cleaned_data
        everywhere = values.get("everywhere", "")
        roles = dict.fromkeys(Workspace.objects.order_by("name", "id"), everywhere) if everywhere else {}
        exceptions = {workspace: values[f"role-{workspace.pk}"] for workspace in self.workspaces}
        roles |= {workspace: role for workspace, role in exceptions.items() if role}
        return {
            "name": values["name"],
            "roles": {workspace: role for workspace, role in roles.items() if role != NO_ACCESS},
            "is_operator": values.get("is_operator", False),
            "days": int(values["days"]),
        }


@dataclass(frozen=True)
class RoleCell:
    """A person's role in a workspace, and the form fields that change it, if any."""

    workspace: Workspace
    role: str
    field: forms.BoundField | None
    was: forms.BoundField | None


class RolesForm(forms.Form):
    """The roles of people in workspaces. The roles of people in ``fixed`` can't be changed."""

    def __init__(
        self,
        *args: Any,
        people: Sequence[User],
        workspaces: Sequence[Workspace],
        roles: Mapping[tuple[int, int], str],
        fixed: frozenset[int],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.people, self.workspaces, self.roles, self.fixed = people, workspaces, roles, fixed
        for user in people:
            for workspace in workspaces if user.pk not in fixed else ():
                role = roles.get((user.pk, workspace.pk), "")
                label = gettext("Role of %(person)s in %(workspace)s") % {
                    "person": user.username,
                    "workspace": workspace.name,
                }
                widget = forms.Select(attrs={"aria-label": label})
                name = f"{user.pk}-{workspace.pk}"
                self.fields[f"role-{name}"] = forms.ChoiceField(
                    choices=SHORT_ROLES, required=False, initial=role, widget=widget
                )
                self.fields[f"was-{name}"] = forms.ChoiceField(
                    choices=SHORT_ROLES, required=False, initial=role, widget=forms.HiddenInput
                )

    def rows(self) -> list[tuple[User, list[RoleCell]]]:
        return [(user, [self._cell(user, workspace) for workspace in self.workspaces]) for user in self.people]

    def _cell(self, user: User, workspace: Workspace) -> RoleCell:
        role, name = self.roles.get((user.pk, workspace.pk), ""), f"{user.pk}-{workspace.pk}"
        if user.pk in self.fixed:
            return RoleCell(workspace, role, None, None)
        return RoleCell(workspace, role, self[f"role-{name}"], self[f"was-{name}"])

    def changes(self) -> list[RoleChange]:
        """Return the roles that differ from those on the page. Fields that weren't sent are ignored."""
        changes = []
        for user in self.people:
            for workspace in self.workspaces if user.pk not in self.fixed else ():
                name = f"{user.pk}-{workspace.pk}"
                if f"role-{name}" in self.data and f"was-{name}" in self.data:
                    was, role = self.cleaned_data[f"was-{name}"], self.cleaned_data[f"role-{name}"]
                    changes.append(RoleChange(user.pk, workspace.pk, was, role))
        return [change for change in changes if change.was != change.role]


class NewPasswordMixin(SetPasswordMixin):  # type: ignore[type-arg]
    """Shows validation errors at the first password field, next to the rules."""

    def validate_password_for_user(self, user: User, password_field_name: str = "password2") -> None:  # noqa: S107
        super().validate_password_for_user(user, password_field_name.replace("2", "1"))


class JoinForm(NewPasswordMixin, UserCreationForm[User]):
    """A new account."""

    class Meta:
        model = User
        fields = ("username",)


class NamedJoinForm(JoinForm):
    """A new account of somebody who signs in elsewhere, so without a password. ``is_fixed``: also their name."""

    def __init__(self, name: str, *args: Any, is_fixed: bool, **kwargs: Any) -> None:
        super().__init__(*args, initial={"username": name}, **kwargs)
        del self.fields["password1"], self.fields["password2"]
        self.fields["username"].disabled = is_fixed


class NewPasswordForm(NewPasswordMixin, SetPasswordForm):  # type: ignore[type-arg]
    """A new password, from a reset link."""


class OwnPasswordForm(NewPasswordMixin, PasswordChangeForm):
    """A new password. Guessing the present one is rate-limited like signing in."""

    def clean_old_password(self) -> str:
        limits = {f"password {self.user.username}": MAX_PER_ACCOUNT}
        if not count_attempt(limits, timezone.now()):
            raise forms.ValidationError(_("Too many failed attempts. Try again in a minute."), code="slowed")
        password: str = super().clean_old_password()
        uncount_attempt(limits)
        return password

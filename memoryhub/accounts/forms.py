"""Forms about people: who is invited, who may do what, other passwords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm, SetPasswordMixin, UserCreationForm
from django.contrib.auth.models import User
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.accounts.invitations import MAX_NAME
from memoryhub.accounts.people import RoleChange
from memoryhub.accounts.sign_ins import count_as_right, count_try, is_slowed
from memoryhub.lib.form_fields import StoredSelect
from sessions_app.models import Membership, Workspace

ROLES = [
    (Membership.Role.VIEWER, _("Viewer: reads")),
    (Membership.Role.EDITOR, _("Editor: curates")),
    (Membership.Role.OPERATOR, _("Operator: settings, agents, people")),
]
SHORT_ROLES = [("", _("No access")), *((role, role.label) for role in reversed(Membership.Role))]
LIFETIMES = [("1", _("1 day")), ("7", _("7 days")), ("30", _("30 days"))]


class PeopleFilterForm(forms.Form):
    """What narrows the list of people."""

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
        label=_("May enter"),
        widget=StoredSelect,
    )
    state = forms.ChoiceField(required=False, choices=STATES, label=_("State"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["workspace"].empty_label = gettext("Any workspace")  # type: ignore[attr-defined]


class InviteForm(forms.Form):
    """Who is invited, what they may do, and how long the link is good. ``workspaces``: those to choose roles in."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label=_("Who it is for"),
        help_text=_("For the list of open invitations. They choose the name that they sign in with themselves."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    is_operator = forms.BooleanField(
        required=False,
        label=_("Operator of the hub"),
        help_text=_("May do everything in every workspace, and look after people and backups."),
    )
    days = forms.ChoiceField(label=_("The link is good for"), choices=LIFETIMES, initial="7")

    def __init__(self, *args: Any, workspaces: Sequence[Workspace], of_hub: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspaces = workspaces
        if not of_hub:
            del self.fields["is_operator"]
        choices = SHORT_ROLES if of_hub else ROLES
        for workspace in workspaces:
            label = gettext("Role in %(workspace)s") % {"workspace": workspace.name}
            self.fields[f"role-{workspace.pk}"] = forms.ChoiceField(label=label, choices=choices, required=not of_hub)

    def role_fields(self) -> list[forms.BoundField]:
        return [self[f"role-{workspace.pk}"] for workspace in self.workspaces]

    def wishes(self) -> dict[str, Any]:
        """Return what ``invite`` takes."""
        values = self.cleaned_data
        return {
            "name": values["name"],
            "roles": {workspace: values[f"role-{workspace.pk}"] for workspace in self.workspaces},
            "is_operator": values.get("is_operator", False),
            "days": int(values["days"]),
        }


@dataclass(frozen=True)
class RoleCell:
    """A person's role in a workspace on a form: what they have, and the field that changes it, if any."""

    workspace: Workspace
    role: str
    wish: forms.BoundField | None
    was: forms.BoundField | None


class RolesForm(forms.Form):
    """The roles of some people in some workspaces; those in ``fixed`` are shown and can't be changed."""

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
                wish = forms.Select(attrs={"aria-label": label})
                name = f"{user.pk}-{workspace.pk}"
                self.fields[f"role-{name}"] = forms.ChoiceField(
                    choices=SHORT_ROLES, required=False, initial=role, widget=wish
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
        """Return what is wished differently from what the page showed. A field that wasn't sent wishes nothing."""
        found = []
        for user in self.people:
            for workspace in self.workspaces if user.pk not in self.fixed else ():
                name = f"{user.pk}-{workspace.pk}"
                if f"role-{name}" in self.data and f"was-{name}" in self.data:
                    was, role = self.cleaned_data[f"was-{name}"], self.cleaned_data[f"role-{name}"]
                    found.append(RoleChange(user.pk, workspace.pk, was, role))
        return [change for change in found if change.was != change.role]


class ChoosesPassword(SetPasswordMixin):  # type: ignore[type-arg]
    """What breaks a rule is said at the first password field, where the rules stand, not at its repetition."""

    def validate_password_for_user(self, user: User, password_field_name: str = "password2") -> None:  # noqa: S107
        super().validate_password_for_user(user, password_field_name.replace("2", "1"))


class JoinForm(ChoosesPassword, UserCreationForm[User]):
    """An account of one's own: a name that nobody has, and a password, twice."""

    class Meta:
        model = User
        fields = ("username",)


class NewPasswordForm(ChoosesPassword, SetPasswordForm):  # type: ignore[type-arg]
    """Another password, by somebody who was sent a link to it."""


class OwnPasswordForm(ChoosesPassword, PasswordChangeForm):
    """Another password, by somebody who knows the present one; guessing that is slowed as signing in is."""

    def clean_old_password(self) -> str:
        tried = [f"password {self.user.username}"]
        if is_slowed(tried):
            raise forms.ValidationError(_("Too many wrong tries. Wait a minute, then try again."), code="slowed")
        count_try(tried)
        password: str = super().clean_old_password()
        count_as_right(tried)
        return password

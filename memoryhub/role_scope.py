"""The workspaces in which a person may act."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet

from sessions_app.models import Membership, Workspace


@dataclass(frozen=True)
class RoleScope:
    """The workspaces where a person is an editor, and where an operator; ``is_whole`` for operators of the hub."""

    curated: QuerySet[Workspace]
    operated: QuerySet[Workspace]
    is_whole: bool = False

    def within(self, workspace: Workspace) -> RoleScope:
        return RoleScope(self.curated.filter(pk=workspace.pk), self.operated.filter(pk=workspace.pk))


def whole_scope() -> RoleScope:
    """Return the scope of an operator of the hub: every workspace."""
    return RoleScope(Workspace.objects.all(), Workspace.objects.all(), is_whole=True)


def role_scope(user: AbstractBaseUser | AnonymousUser) -> RoleScope:
    """Return the scope of a user; empty for one who may only read. No query."""
    if getattr(user, "is_superuser", False):
        return whole_scope()
    operator, editor = Membership.Role.OPERATOR, Membership.Role.EDITOR
    mine = Membership.objects.filter(user=user.pk or 0)
    curated = Workspace.objects.filter(pk__in=mine.filter(role__in=(operator, editor)).values("workspace"))
    return RoleScope(curated, Workspace.objects.filter(pk__in=mine.filter(role=operator).values("workspace")))

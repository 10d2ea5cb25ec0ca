"""From a request to a row: who may see and do what. A foreign id answers the same 404 as a missing one."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from sessions_app.models import Membership, Workspace
from sessions_app.services.audit import Actor

_RANKS = {Membership.Role.VIEWER: 1, Membership.Role.EDITOR: 2, Membership.Role.OPERATOR: 3}


def get_workspace(request: HttpRequest, slug: str, *, role: str = Membership.Role.VIEWER) -> Workspace:
    """Return a workspace in which the person has at least this role; else 404. The navigation reads it again."""
    workspace: Workspace = get_object_or_404(Workspace.objects.visible_to(request.user), slug=slug)
    if not has_role(request.user, workspace, role):
        raise Http404
    request.memory_workspace = workspace  # type: ignore[attr-defined]
    return workspace


def person(request: HttpRequest) -> Actor:
    """Return who sends a request, as audit records name them."""
    return Actor("person", request.user.get_username())


def has_role(user: AbstractBaseUser | AnonymousUser, workspace: Workspace, role: str) -> bool:
    """Tell whether a person has a role, or a higher one, in a workspace; superusers are operators of all."""
    if getattr(user, "is_superuser", False):
        return True
    if user.pk is None:
        return False
    mine = Membership.objects.filter(user_id=user.pk, workspace=workspace).values_list("role", flat=True).first()
    return mine is not None and _RANKS[Membership.Role(mine)] >= _RANKS[Membership.Role(role)]

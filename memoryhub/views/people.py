"""Who sends a request, as audit records name them."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from sessions_app.access import get_workspace
from sessions_app.models import Membership, Session
from sessions_app.services.audit import Actor

EDITOR, OPERATOR = Membership.Role.EDITOR, Membership.Role.OPERATOR


def person(request: HttpRequest) -> Actor:
    return Actor("person", request.user.get_username())


def get_session(request: HttpRequest, slug: str, pk: int, *, role: str = Membership.Role.VIEWER) -> Session:
    """Return a session of a workspace in which the person has at least this role; else 404."""
    workspace = get_workspace(request, slug, role=role)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    return session

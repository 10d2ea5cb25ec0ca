"""From a request to a session, with the role that it takes."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from sessions_app.access import get_workspace
from sessions_app.models import Membership, Session

EDITOR, OPERATOR = Membership.Role.EDITOR, Membership.Role.OPERATOR


def get_session(request: HttpRequest, slug: str, pk: int, *, role: str = Membership.Role.VIEWER) -> Session:
    """Return a session of a workspace in which the person has at least this role; else 404."""
    workspace = get_workspace(request, slug, role=role)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    return session

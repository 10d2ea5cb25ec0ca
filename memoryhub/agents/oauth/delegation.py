"""Whether an OAuth connection may be used: it acts for a person, only over MCP, and only while they may."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User

from memoryhub.agents.hub_url import MCP_PATH
from memoryhub.models import ApiToken, OAuthConnection
from sessions_app.models import Workspace
from sessions_app.querysets import WorkspaceQuerySet


def connection_of(token: ApiToken) -> OAuthConnection | None:
    """Return the OAuth connection of a token, or None for a token that was created on a page or by a command."""
    return getattr(token, "connection", None)


def resource_url() -> str:
    """Return the address that tokens are bound to. It doesn't depend on the name by which this machine is called."""
    return f"{settings.MEMORYHUB_URL}{MCP_PATH}"


def is_usable(connection: OAuthConnection, workspace: Workspace, *, via: str, now: datetime) -> bool:
    """Return whether a connection's access token is valid for a call over ``via``: rest or mcp."""
    ends = connection.access_expires_at
    is_current = via == "mcp" and ends is not None and now < ends and connection.resource == resource_url()
    return is_current and is_delegated(connection, workspace)


def is_delegated(connection: OAuthConnection, workspace: Workspace) -> bool:
    """Return whether the person who allowed a connection is still an operator of its workspace."""
    return operated_by(connection.user).filter(pk=workspace.pk).exists()


def operated_by(user: User | None) -> WorkspaceQuerySet:
    """Return the workspaces that a person may let clients use: none for a deleted or deactivated one."""
    is_active = user is not None and user.is_active
    return Workspace.objects.operated_by(user) if is_active and user is not None else Workspace.objects.none()

"""Access from a request to rows. Rows that the person may not see answer 404, like missing ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Max, OuterRef, Subquery
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.lib.masked_text import has_secrets, masked
from sessions_app.models import AuditRecord, Membership, Session, Workspace
from sessions_app.querysets import WorkspaceQuerySet
from sessions_app.services.access_log import Seen, log_access
from sessions_app.services.audit import Actor, By, record

EDITOR, OPERATOR = Membership.Role.EDITOR, Membership.Role.OPERATOR
_ROLES: PreparedRows[Any] = PreparedRows(
    2, lambda place, user: Membership.objects.filter(workspace=place, user=user).values_list("role")
)
_RANKS = {Membership.Role.VIEWER: 1, Membership.Role.EDITOR: 2, Membership.Role.OPERATOR: 3}


class RoleTooLow(Http404):
    """A member of the workspace needs a higher role. The status is 404 as for strangers, but the page says why."""


class HubOperatorsOnly(Http404):
    """The page needs an operator of the hub. It exists in every hub, so the status 403 reveals nothing."""


def get_workspace(request: HttpRequest, slug: str, *, role: str = Membership.Role.VIEWER) -> Workspace:
    """Return a workspace in which the person has at least this role. The navigation shows it too.

    Raises Http404 for people who aren't members, and RoleTooLow for those with a lower role. The newest audit record
    is read first, so that the open page polls for everything that comes after.
    """
    newest = AuditRecord.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("id")[:1]
    visible = Workspace.objects.visible_to(request.user).annotate(newest_record=Subquery(newest))
    workspace = get_object_or_404(visible, slug=slug)
    request.memory_workspace = workspace  # type: ignore[attr-defined]
    request.newest_record = workspace.newest_record or 0  # type: ignore[attr-defined]
    if not has_role(request.user, workspace, role):
        raise RoleTooLow
    return workspace


def get_session(request: HttpRequest, slug: str, pk: int, *, role: str = Membership.Role.VIEWER) -> Session:
    """Return a session of a workspace in which the person has at least this role. Raises as get_workspace."""
    workspace = get_workspace(request, slug, role=role)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    return session


def visible_workspaces(request: HttpRequest) -> WorkspaceQuerySet:
    """Return the workspaces that the person may see, and remember their newest audit record, as above."""
    visible = Workspace.objects.visible_to(request.user)
    newest = AuditRecord.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("id")[:1]
    found = visible.annotate(newest_record=Subquery(newest)).aggregate(newest=Max("newest_record"))
    request.newest_record = found["newest"] or 0  # type: ignore[attr-defined]
    return visible


def readers_of(workspaces: Collection[int], people: Collection[int]) -> dict[int, set[int]]:
    """Return which of these people may read each workspace, as ``visible_to`` would tell. Runs two queries."""
    operators = set(User.objects.filter(pk__in=set(people), is_superuser=True).values_list("pk", flat=True))
    readers = {pk: set(operators) for pk in workspaces}
    members = Membership.objects.filter(workspace__in=readers, user__in=set(people))
    for workspace, member in members.values_list("workspace_id", "user_id"):
        readers[workspace].add(member)
    return readers


def person(request: HttpRequest) -> Actor:
    """Return the person who sends a request, as the actor of audit records."""
    return Actor("person", request.user.get_username())


def by_person(request: HttpRequest) -> By:
    """Return the person who sends a request, and the current time."""
    return By(person(request), timezone.now())


def log_page_access(request: HttpRequest, workspace: Workspace, action: str, seen: Sequence[Seen]) -> None:
    """Log what a page shows to a person, unless an open page only refreshes a part of itself."""
    htmx = getattr(request, "htmx", None)
    if htmx and htmx.trigger and htmx.trigger == htmx.target:
        return
    log_access(workspace, action, seen, by=by_person(request), via="page")


def readable_text(
    request: HttpRequest, workspace: Workspace, text: str, what: str, *, mask: Callable[[str], str] = masked
) -> str:
    """Return a text to download: for viewers with secrets masked, for editors as it is, which is then recorded."""
    if not has_role(request.user, workspace, EDITOR):
        return mask(text)
    if has_secrets(text):
        record_reveal(request, workspace, what)
    return text


def readable_parts(request: HttpRequest, workspace: Workspace, parts: Iterable[str], what: str) -> Iterator[str]:
    """Return what ``readable_text`` returns, in parts. It is recorded before the first part with a secret."""
    if not has_role(request.user, workspace, EDITOR):
        return map(masked, parts)
    return _recorded_parts(request, workspace, parts, what)


def _recorded_parts(request: HttpRequest, workspace: Workspace, parts: Iterable[str], what: str) -> Iterator[str]:
    is_recorded = False
    for part in parts:
        if not is_recorded and has_secrets(part):
            record_reveal(request, workspace, what)
            is_recorded = True
        yield part


def record_reveal(request: HttpRequest, workspace: Workspace, what: str) -> None:
    """Record that an editor sees secrets. ``what``: where they are."""
    by = by_person(request)
    text = f"{by.actor.name} revealed the secrets of {what}"
    record(by, "secrets.revealed", "workspace", workspace.pk, text, workspace=workspace)


def require_hub_operator(request: HttpRequest) -> None:
    """Raise HubOperatorsOnly unless the person is an operator of the hub. Call it before rows are looked up."""
    if not is_hub_operator(request.user):
        raise HubOperatorsOnly


def is_hub_operator(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Tell whether a person is an operator of the hub, and so of every workspace."""
    return bool(getattr(user, "is_superuser", False))


def has_role(user: AbstractBaseUser | AnonymousUser, workspace: Workspace, role: str) -> bool:
    """Tell whether a person has a role, or a higher one, in a workspace. Superusers are operators of all."""
    if is_hub_operator(user):
        return True
    if user.pk is None:
        return False
    mine = _ROLES.first(workspace.pk, user.pk)
    return mine is not None and _RANKS[mine[0]] >= _RANKS[Membership.Role(role)]

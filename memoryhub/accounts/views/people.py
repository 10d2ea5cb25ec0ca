"""Everybody who has an account here, for operators of the hub: roles, who operates it, accounts off and on again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Max, Prefetch, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.accounts import people as flow
from memoryhub.accounts.forms import PeopleFilterForm, RolesForm
from memoryhub.accounts.invitations import BadInvitation, make_reset_link, open_invitations, with_roles
from memoryhub.accounts.views.invitations import address_of
from memoryhub.agents.api_tokens import tokens_of
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page, parse_int
from memoryhub.permissions import by_person, require_hub_operator
from sessions_app.models import AuditRecord, Membership, Workspace

MOST_INVITATIONS = 100
TOLD = 10
SHOWN_TOKENS = 20
PEOPLE_AT_ONCE, WORKSPACES_AT_ONCE = 15, 8  # of the table of roles: a page stays small


def people(request: HttpRequest) -> HttpResponse:
    """Everybody, with their roles; the invitations that are open; what changed last."""
    require_hub_operator(request)
    form = PeopleFilterForm(request.GET)
    form.is_valid()
    now = timezone.now()
    users = _narrowed(_everybody(), form.cleaned_data)
    page = keyset_page(users, order=("username", "id"), params=request.GET)
    context = {
        "form": form,
        "page": page,
        "is_filtered": any(form.cleaned_data.values()),
        "invitations": with_roles(list(open_invitations(now).order_by("-id")[:MOST_INVITATIONS])),
        "told": AuditRecord.objects.filter(workspace=None, action__startswith="account.").order_by("-id")[:TOLD],
    }
    return render_page(request, "accounts/people.html", context, fragment="people-list")


def _everybody() -> QuerySet[User]:
    roles = Membership.objects.select_related("workspace").order_by("workspace__name", "workspace_id")
    # The list of sign-ins ends with its session; the last time somebody signed in stays.
    users = User.objects.annotate(seen_at=Coalesce(Max("sign_ins__seen_at"), "last_login"))
    return users.prefetch_related(Prefetch("memberships", roles))


def _narrowed(users: QuerySet[User], wanted: dict[str, Any]) -> QuerySet[User]:
    state = wanted.get("state", "")
    if state == "operators":
        users = users.filter(is_superuser=True, is_active=True)
    elif state != "all":
        users = users.filter(is_active=state != "deactivated")
    if wanted.get("workspace"):
        users = users.filter(pk__in=Membership.objects.filter(workspace=wanted["workspace"]).values("user"))
    return users.filter(username__icontains=wanted["q"]) if wanted.get("q") else users


def person_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One person: their roles in every workspace, and what can be done about their account."""
    require_hub_operator(request)
    user = get_object_or_404(_everybody(), pk=pk)
    workspaces, further = _workspaces_at(request)
    form = _roles_form(request, [user], workspaces)
    if form.is_bound and form.is_valid():
        return _attempt(
            request,
            lambda: flow.change_roles(form.changes(), by=by_person(request)),
            _("The roles are saved."),
            pk,
        )
    told = AuditRecord.objects.filter(object_kind="user", object_id=str(user.pk)).select_related("workspace")
    tokens = tokens_of(user.username, timezone.now())
    context = {
        "token_count": tokens.count(),
        "tokens": tokens[:SHOWN_TOKENS],
        "shown": user,
        "form": form,
        "further": further,
        "is_oneself": user.pk == request.user.pk,
        "is_last_operator": flow.is_last_operator(user),
        "told": told.order_by("-id")[:TOLD],
    }
    return render_page(request, "accounts/person.html", context, status=422 if form.errors else 200)


def matrix(request: HttpRequest) -> HttpResponse:
    """The roles of many people in many workspaces, in one form."""
    require_hub_operator(request)
    users = User.objects.filter(is_active=True)
    page = keyset_page(users, order=("username", "id"), params=request.GET, size=PEOPLE_AT_ONCE)
    workspaces, further = _workspaces_at(request)
    form = _roles_form(request, page.rows, workspaces)
    if form.is_bound and form.is_valid():
        count = flow.change_roles(form.changes(), by=by_person(request))
        messages.success(request, _("The roles are saved.") if count else _("Nothing was different."))
        return redirect(request.get_full_path())
    context = {"form": form, "page": page, "further": further, "workspaces": workspaces}
    return render_page(request, "accounts/roles.html", context, status=422 if form.errors else 200)


def _workspaces_at(request: HttpRequest) -> tuple[list[Workspace], int]:
    """Return a stretch of the workspaces by name, and the number from which to go on, 0 at their end."""
    start = parse_int(request.GET.get("from"), digits=6) or 0
    found = list(Workspace.objects.order_by("name", "id")[start : start + WORKSPACES_AT_ONCE + 1])
    further = start + WORKSPACES_AT_ONCE if len(found) > WORKSPACES_AT_ONCE else 0
    return found[:WORKSPACES_AT_ONCE], further


def _roles_form(request: HttpRequest, users: list[User], workspaces: list[Workspace]) -> RolesForm:
    fixed = frozenset(user.pk for user in users if user.is_superuser or user.pk == request.user.pk)
    roles = flow.roles_of(users, workspaces)
    return RolesForm(request.POST or None, people=users, workspaces=workspaces, roles=roles, fixed=fixed)


@require_POST
def deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    if "revokes_tokens" not in request.POST:
        return _switch(request, pk, flow.deactivate, _("%(name)s is deactivated, and signed out everywhere."))
    words = _("%(name)s is deactivated, and signed out everywhere. The tokens that they made are revoked.")
    return _switch(request, pk, partial(flow.deactivate, revokes_tokens=True), words)


@require_POST
def activate(request: HttpRequest, pk: int) -> HttpResponse:
    return _switch(request, pk, flow.activate, _("%(name)s may sign in again."))


@require_POST
def make_operator(request: HttpRequest, pk: int) -> HttpResponse:
    return _switch(request, pk, flow.make_operator, _("%(name)s is an operator of the hub."))


@require_POST
def remove_operator(request: HttpRequest, pk: int) -> HttpResponse:
    return _switch(request, pk, flow.remove_operator, _("%(name)s is no operator of the hub any more."))


@require_POST
def reset_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link to a new password. The answer is the only page that ever shows it."""
    require_hub_operator(request)
    user = get_object_or_404(User, pk=pk)
    try:
        invitation, token = make_reset_link(user, by=by_person(request))
    except BadInvitation as error:
        messages.error(request, error.message)
        return redirect("person", pk)
    context = {"invitation": invitation, "link": address_of(request, token), "back": request.path.rsplit("/", 2)[0]}
    return render_page(request, "accounts/link.html", context)


def _switch(request: HttpRequest, pk: int, change: Callable[..., bool], words: str) -> HttpResponse:
    require_hub_operator(request)
    user = get_object_or_404(User, pk=pk)
    done = words % {"name": user.username}
    return _attempt(request, lambda: change(user, by=by_person(request)), done, pk)


def _attempt(request: HttpRequest, change: Callable[[], int], done: str, pk: int) -> HttpResponse:
    try:
        is_changed = change()
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, done if is_changed else _("Nothing was different."))
    return redirect("person", pk)

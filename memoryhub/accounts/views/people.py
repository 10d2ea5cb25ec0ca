"""Accounts and their roles, for hub operators."""

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
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from memoryhub.accounts import passkeys, second_factor
from memoryhub.accounts import people as flow
from memoryhub.accounts.forms import PeopleFilterForm, RolesForm
from memoryhub.accounts.invitations import BadInvitation, make_reset_link, open_invitations, with_roles
from memoryhub.accounts.views.invitations import address_of
from memoryhub.agents.api_tokens import tokens_of
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.permissions import by_person, require_hub_operator
from sessions_app.models import AuditRecord, Membership, Workspace

MAX_INVITATIONS = 100
MAX_RECORDS = 10
MAX_TOKENS = 20
PEOPLE_PER_PAGE, WORKSPACES_PER_PAGE = 15, 8  # of the table of roles
CHANGES: dict[str, tuple[Callable[..., bool], Promise]] = {  # by URL name, with the message
    "activate-person": (flow.activate, gettext_lazy("Activated %(name)s.")),
    "make-operator": (flow.make_operator, gettext_lazy("%(name)s is now a hub operator.")),
    "remove-operator": (flow.remove_operator, gettext_lazy("%(name)s is no hub operator any more.")),
    "reset-second-factor": (second_factor.reset, gettext_lazy("Two-factor authentication of %(name)s was reset.")),
    "remove-passkeys": (passkeys.remove_all, gettext_lazy("Removed the passkeys of %(name)s.")),
}


def people(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    form = PeopleFilterForm(request.GET)
    form.is_valid()
    now = timezone.now()
    users = _filtered(_all_users(), form.cleaned_data)
    page = keyset_page(users, order=("username", "id"), params=request.GET)
    records = AuditRecord.objects.filter(workspace=None, action__startswith="account.")
    context = {
        "form": form,
        "page": page,
        "is_filtered": any(form.cleaned_data.values()),
        "invitations": with_roles(list(open_invitations(now).order_by("-id")[:MAX_INVITATIONS])),
        "records": records.order_by("-id")[:MAX_RECORDS],
    }
    return render_page(request, "accounts/people.html", context, fragment="people-list")


def _all_users() -> QuerySet[User]:
    roles = Membership.objects.select_related("workspace").order_by("workspace__name", "workspace_id")
    # Sign-ins are deleted with their sessions; last_login stays.
    users = User.objects.annotate(seen_at=Coalesce(Max("sign_ins__seen_at"), "last_login"))
    return users.prefetch_related(Prefetch("memberships", roles))


def _filtered(users: QuerySet[User], filters: dict[str, Any]) -> QuerySet[User]:
    state = filters.get("state", "")
    if state == "operators":
        users = users.filter(is_superuser=True, is_active=True)
    elif state != "all":
        users = users.filter(is_active=state != "deactivated")
    if filters.get("workspace"):
        users = users.filter(pk__in=Membership.objects.filter(workspace=filters["workspace"]).values("user"))
    return users.filter(any_case("username__icontains", filters["q"])) if filters.get("q") else users


def person_page(request: HttpRequest, pk: int) -> HttpResponse:
    require_hub_operator(request)
    user = get_object_or_404(_all_users(), pk=pk)
    workspaces, further = _workspaces_at(request)
    form = _roles_form(request, [user], workspaces)
    if form.is_bound and form.is_valid():
        return _attempt(
            request,
            lambda: flow.change_roles(form.changes(), by=by_person(request)),
            _("Roles saved."),
            pk,
        )
    records = AuditRecord.objects.filter(object_kind="user", object_id=str(user.pk)).select_related("workspace")
    tokens = tokens_of(user.username, timezone.now())
    context = {
        "token_count": tokens.count(),
        "tokens": tokens[:MAX_TOKENS],
        "shown": user,
        "form": form,
        "further": further,
        "has_second_factor": second_factor.has_second_factor(user),
        "passkey_count": user.passkeys.count(),
        "is_oneself": user.pk == request.user.pk,
        "is_last_operator": flow.is_last_operator(user),
        "records": records.order_by("-id")[:MAX_RECORDS],
    }
    return render_page(request, "accounts/person.html", context, status=422 if form.errors else 200)


def matrix(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    users = User.objects.filter(is_active=True)
    page = keyset_page(users, order=("username", "id"), params=request.GET, size=PEOPLE_PER_PAGE)
    workspaces, further = _workspaces_at(request)
    form = _roles_form(request, page.rows, workspaces)
    if form.is_bound and form.is_valid():
        count = flow.change_roles(form.changes(), by=by_person(request))
        messages.success(request, _("Roles saved.") if count else _("No changes."))
        return redirect(request.get_full_path())
    context = {"form": form, "page": page, "further": further, "workspaces": workspaces}
    return render_page(request, "accounts/roles.html", context, status=422 if form.errors else 200)


def _workspaces_at(request: HttpRequest) -> tuple[list[Workspace], int]:
    """Return a page of the workspaces by name, and the offset of the next page, 0 if there is none."""
    start = parse_int(request.GET.get("from"), digits=6) or 0
    found = list(Workspace.objects.order_by("name", "id")[start : start + WORKSPACES_PER_PAGE + 1])
    further = start + WORKSPACES_PER_PAGE if len(found) > WORKSPACES_PER_PAGE else 0
    return found[:WORKSPACES_PER_PAGE], further


def _roles_form(request: HttpRequest, users: list[User], workspaces: list[Workspace]) -> RolesForm:
    fixed = frozenset(user.pk for user in users if user.is_superuser or user.pk == request.user.pk)
    roles = flow.roles_of(users, workspaces)
    return RolesForm(request.POST or None, people=users, workspaces=workspaces, roles=roles, fixed=fixed)


@require_POST
def deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    if "revokes_tokens" not in request.POST:
        return _switch(request, pk, flow.deactivate, _("Deactivated %(name)s."))
    message = _("Deactivated %(name)s and revoked their tokens.")
    return _switch(request, pk, partial(flow.deactivate, revokes_tokens=True), message)


@require_POST
def change(request: HttpRequest, pk: int, *, action: str) -> HttpResponse:
    """Carry out one of ``CHANGES``."""
    made, message = CHANGES[action]
    return _switch(request, pk, made, str(message))


@require_POST
def reset_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a reset link. It is shown only once: it isn't stored."""
    require_hub_operator(request)
    user = get_object_or_404(User, pk=pk)
    try:
        invitation, token = make_reset_link(user, by=by_person(request))
    except BadInvitation as error:
        messages.error(request, error.message)
        return redirect("person", pk)
    context = {"invitation": invitation, "link": address_of(request, token), "back": request.path.rsplit("/", 2)[0]}
    return render_page(request, "accounts/link.html", context)


def _switch(request: HttpRequest, pk: int, change: Callable[..., bool], message: str) -> HttpResponse:
    require_hub_operator(request)
    user = get_object_or_404(User, pk=pk)
    done = message % {"name": user.username}
    return _attempt(request, lambda: change(user, by=by_person(request)), done, pk)


def _attempt(request: HttpRequest, change: Callable[[], int], done: str, pk: int) -> HttpResponse:
    try:
        is_changed = change()
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, done if is_changed else _("No changes."))
    return redirect("person", pk)

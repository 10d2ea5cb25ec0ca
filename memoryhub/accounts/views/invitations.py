"""Create and revoke invitations to the hub or to one workspace."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.accounts import invitations as flow
from memoryhub.accounts.forms import InviteForm
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.validation import clean_text
from memoryhub.models import Invitation
from memoryhub.permissions import OPERATOR, by_person, get_workspace, require_hub_operator
from sessions_app.models import Workspace

MAX_WORKSPACES = 100
MAX_UNFILTERED = 8  # workspaces of which a list needs no filter
ROLE_FIELD = re.compile(r"role-(\d{1,18})")
MAX_NAME_LENGTH = 100


def address_of(request: HttpRequest, token: str) -> str:
    """Return the absolute URL of a link, on the requested host."""
    return request.build_absolute_uri(reverse("invitation", args=[token]))


def invite(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Create an invitation. Its link is shown only once: it isn't stored."""
    workspace = _check_access(request, slug)
    named = clean_text(request.POST.get("named") or request.GET.get("named", ""))[:MAX_NAME_LENGTH]
    workspaces = [workspace] if workspace else _listed_workspaces(request, named)
    is_filtering = _is_filtering(request)
    filled: dict[str, Any] = {"initial": request.POST.dict()} if is_filtering else {"data": request.POST}
    form = InviteForm(**filled if request.POST else {}, workspaces=workspaces, of_hub=workspace is None)
    back = reverse("workspace-people", args=[slug]) if slug else reverse("people")
    if form.is_bound and form.is_valid():
        try:
            invitation, token = flow.invite(**form.invite_arguments(), by=by_person(request))
        except flow.BadInvitation as error:
            form.add_error(None, error.message)
        else:
            shown = flow.with_roles([invitation])[0]
            context = {
                "invitation": invitation,
                "roles": shown.roles,
                "link": address_of(request, token),
                "back": back,
            }
            return render_page(request, "accounts/link.html", context)
    has_filter = workspace is None and (bool(named) or len(workspaces) > MAX_UNFILTERED)
    has_exceptions = is_filtering or bool(named) or _has_exceptions(form, is_short=not has_filter)
    context = {"form": form, "workspace": workspace, "back": back, "named": named}
    context |= {"has_filter": has_filter, "has_exceptions": has_exceptions, "most": MAX_WORKSPACES}
    return render_page(request, "accounts/invite.html", context, status=422 if form.errors else 200)


def _has_exceptions(form: InviteForm, *, is_short: bool) -> bool:
    """Tell whether a role is chosen for a single workspace, or has to be chosen in a short list."""
    is_needed = is_short and "everywhere" in form.fields and not form["everywhere"].value()
    return is_needed or any(field.value() for field in form.role_fields())


def _is_filtering(request: HttpRequest) -> bool:
    """Tell whether the form was sent to filter the workspaces: by its button, or by Enter after a change."""
    sent = request.POST
    return "filter" in sent or ("create" not in sent and sent.get("named", "") != sent.get("listed", ""))


def _listed_workspaces(request: HttpRequest, named: str) -> list[Workspace]:
    """Return those that a filter finds, and those for which the form has a role."""
    chosen = [int(found[1]) for name, role in request.POST.items() if role and (found := ROLE_FIELD.fullmatch(name))]
    listed = Workspace.objects.filter(pk__in=chosen).order_by("name", "id")
    return list(dict.fromkeys([*listed, *_search_workspaces(named)]))


def _search_workspaces(named: str) -> list[Workspace]:
    """Return the first workspaces whose name contains a text."""
    return list(Workspace.objects.filter(any_case("name__icontains", named)).order_by("name", "id")[:MAX_WORKSPACES])


@require_POST
def revoke(request: HttpRequest, pk: int, slug: str | None = None) -> HttpResponse:
    """Revoke an invitation; workspace operators only those to their workspace."""
    workspace = _check_access(request, slug)
    rows = flow.invitations_into(workspace, timezone.now()) if workspace else Invitation.objects.all()
    invitation = get_object_or_404(rows, pk=pk)
    was_open = flow.revoke(invitation, by=by_person(request))
    messages.success(request, _("Invitation revoked.") if was_open else _("This link was already used or revoked."))
    return redirect("workspace-people", slug) if slug else redirect("people")


def _check_access(request: HttpRequest, slug: str | None) -> Workspace | None:
    if slug is not None:
        return get_workspace(request, slug, role=OPERATOR)
    require_hub_operator(request)
    return None

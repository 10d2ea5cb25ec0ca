"""Inviting: into the hub by its operators, into one workspace by that one's; taking invitations back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.accounts import invitations as flow
from memoryhub.accounts.forms import InviteForm
from memoryhub.lib.htmx import render_page
from memoryhub.lib.validation import clean_text
from memoryhub.models import Invitation
from memoryhub.permissions import OPERATOR, by_person, get_workspace, require_hub_operator
from sessions_app.models import Workspace

MOST_WORKSPACES = 100
LONGEST_NAME = 100


def address_of(request: HttpRequest, token: str) -> str:
    """Return a link as people send it to one another: at the host that was asked, one of the hub's."""
    return request.build_absolute_uri(reverse("invitation", args=[token]))


def invite(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Make an invitation. The answer to the post is the only page that ever shows its link: it is kept nowhere."""
    workspace = _let_in(request, slug)
    named = clean_text(request.GET.get("named", ""))[:LONGEST_NAME]
    workspaces = [workspace] if workspace else _named_so(named)
    form = InviteForm(request.POST or None, workspaces=workspaces, of_hub=workspace is None)
    back = reverse("workspace-people", args=[slug]) if slug else reverse("people")
    if form.is_bound and form.is_valid():
        try:
            invitation, token = flow.invite(**form.wishes(), by=by_person(request))
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
    has_more = workspace is None and (bool(named) or len(workspaces) == MOST_WORKSPACES)
    context = {"form": form, "workspace": workspace, "back": back, "named": named, "has_more": has_more}
    return render_page(request, "accounts/invite.html", context, status=422 if form.errors else 200)


def _named_so(named: str) -> list[Workspace]:
    """Return the workspaces to choose roles in: the first whose name has this."""
    return list(Workspace.objects.filter(name__icontains=named).order_by("name", "id")[:MOST_WORKSPACES])


@require_POST
def revoke(request: HttpRequest, pk: int, slug: str | None = None) -> HttpResponse:
    """Take an invitation back; an operator of a workspace alone those into that one."""
    workspace = _let_in(request, slug)
    rows = flow.invitations_into(workspace, timezone.now()) if workspace else Invitation.objects.all()
    invitation = get_object_or_404(rows, pk=pk)
    was_open = flow.revoke(invitation, by=by_person(request))
    messages.success(request, _("The link is good no more.") if was_open else _("It was used or revoked already."))
    return redirect("workspace-people", slug) if slug else redirect("people")


def _let_in(request: HttpRequest, slug: str | None) -> Workspace | None:
    if slug is not None:
        return get_workspace(request, slug, role=OPERATOR)
    require_hub_operator(request)
    return None

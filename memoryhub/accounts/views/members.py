"""The members of a workspace, for its operators. Hub operators aren't listed: they have access to all."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Max
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryhub.accounts import people as flow
from memoryhub.accounts.forms import RolesForm
from memoryhub.accounts.invitations import invitations_into, with_roles
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.permissions import OPERATOR, by_person, get_workspace

MAX_INVITATIONS = 100


def members(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    users = User.objects.filter(is_superuser=False, memberships__workspace=workspace)
    users = users.annotate(seen_at=Coalesce(Max("sign_ins__seen_at"), "last_login"))
    page = keyset_page(users, order=("username", "id"), params=request.GET)
    roles = flow.roles_of(page.rows, [workspace])
    own_account = frozenset(user.pk for user in page.rows if user.pk == request.user.pk)
    form = RolesForm(request.POST or None, people=page.rows, workspaces=[workspace], roles=roles, fixed=own_account)
    if form.is_bound and form.is_valid():
        count = flow.change_roles(form.changes(), by=by_person(request))
        messages.success(request, _("Roles saved.") if count else _("No changes."))
        return redirect("workspace-people", slug)
    context = {
        "workspace": workspace,
        "form": form,
        "page": page,
        "invitations": with_roles(
            list(invitations_into(workspace, timezone.now()).order_by("-id")[:MAX_INVITATIONS])
        ),
    }
    return render_page(request, "accounts/members.html", context, status=422 if form.errors else 200)

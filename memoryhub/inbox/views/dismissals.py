from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.inbox.dismissals import set_dismissed
from memoryhub.lib.errors import NotFound
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import by_person
from memoryhub.role_scope import role_scope


@require_POST
def dismiss(request: HttpRequest) -> HttpResponse:
    """Dismiss the imports and jobs of the query string."""
    if _set(request, dismissed=True):
        undo = f"{reverse('undo-dismissal')}?{request.GET.urlencode()}"
        messages.success(request, _("Dismissed."), extra_tags=undo)
    return _back(request)


@require_POST
def undo_dismissal(request: HttpRequest) -> HttpResponse:
    if _set(request, dismissed=False):
        messages.success(request, _("Undone."))
    return _back(request)


def _set(request: HttpRequest, *, dismissed: bool) -> int:
    chosen = {name: [parse_int(pk, digits=18) or 0 for pk in request.GET.getlist(name)] for name in ("import", "job")}
    try:
        return set_dismissed(chosen, role_scope(request.user), dismissed=dismissed, by=by_person(request))
    except NotFound:
        raise Http404 from None


def _back(request: HttpRequest) -> HttpResponse:
    address = request.POST.get("next", "")
    is_own = address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return redirect(address if is_own else "home")

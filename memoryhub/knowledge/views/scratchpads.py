from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from knowledge_app.services.rows.scratchpads import end_run
from memoryhub.permissions import by_person, get_workspace
from sessions_app.models import Membership

COUNTED: dict[str, Callable[[int], str]] = {  # by the names that end_run uses
    "confirmations": lambda n: ngettext("%(count)s confirmation", "%(count)s confirmations", n),
    "observations": lambda n: ngettext("%(count)s observation", "%(count)s observations", n),
    "knowledge entries": lambda n: ngettext("%(count)s knowledge entry", "%(count)s knowledge entries", n),
    "key values": lambda n: ngettext("%(count)s key-value", "%(count)s key-values", n),
    "cached responses": lambda n: ngettext("%(count)s cached response", "%(count)s cached responses", n),
    "terms": lambda n: ngettext("%(count)s term", "%(count)s terms", n),
    "row vectors": lambda n: ngettext("%(count)s row vector", "%(count)s row vectors", n),
    "semantic graphs": lambda n: ngettext("%(count)s semantic graph", "%(count)s semantic graphs", n),
    "concerns": lambda n: ngettext("%(count)s finding", "%(count)s findings", n),
    "hygiene scores": lambda n: ngettext("%(count)s hygiene score", "%(count)s hygiene scores", n),
}


@require_POST
def end(request: HttpRequest, slug: str) -> HttpResponse:
    """Empty a scratchpad permanently."""
    workspace = get_workspace(request, slug, role=Membership.Role.OPERATOR)
    gone = end_run(workspace, by=by_person(request))
    if gone:
        listed = ", ".join(COUNTED[name](count) % {"count": f"{count:,}"} for name, count in gone.items())
        messages.success(request, gettext("The scratchpad was emptied: %(rows)s deleted.") % {"rows": listed})
    else:
        messages.success(request, gettext("It was already empty."))
    return redirect("workspace", slug)

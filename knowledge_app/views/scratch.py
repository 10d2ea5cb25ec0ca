from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from knowledge_app.services.scratch import end_run
from sessions_app.access import get_workspace, person
from sessions_app.models import Membership


@require_POST
def end(request: HttpRequest, slug: str) -> HttpResponse:
    """Empty a scratchpad for good."""
    workspace = get_workspace(request, slug, role=Membership.Role.OPERATOR)
    gone = end_run(workspace, actor=person(request), now=timezone.now())
    listed = ", ".join(f"{count:,} {name}" for name, count in gone.items())
    messages.success(request, f"The run has ended: {listed} are gone." if gone else "It was empty already.")
    return redirect("workspace", slug)

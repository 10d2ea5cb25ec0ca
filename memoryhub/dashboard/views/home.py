from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from knowledge_app.models import Fact
from memoryhub.dashboard.health import health_of, shown_columns
from memoryhub.dashboard.navigation import count_parts
from memoryhub.demo.building import is_demo_offered
from memoryhub.inbox.attention import attention_items
from memoryhub.inbox.attention_rows import attention_context
from memoryhub.inbox.queue import count_waiting
from memoryhub.integrity.file_check import is_disk_full, known_damage
from memoryhub.jobs.queue import LIVE, request_job
from memoryhub.lib.database.faults import DAMAGED, DISK_FULL, UNAVAILABLE, fault_of
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.models import Job
from memoryhub.permissions import by_person, is_hub_operator, require_hub_operator, visible_workspaces
from memoryhub.processes import home_of_files
from memoryhub.role_scope import role_scope
from memoryhub.sync.found_folders import found_folders
from sessions_app.models import Workspace
from sessions_app.services.compressing.model_choice import hub_embeddings, hub_model
from sessions_app.services.stored_settings import hub_settings

PAGE_WORKSPACES = 15


def home(request: HttpRequest) -> HttpResponse:
    """What needs attention in all workspaces that the person may see, and their figures."""
    now, visible = timezone.now(), visible_workspaces(request)
    page = keyset_page(visible, order=("name", "id"), params=request.GET, size=PAGE_WORKSPACES)
    shown = Workspace.objects.filter(pk__in=[workspace.pk for workspace in page.rows])
    parts, figures, facts = count_parts(shown), health_of(page.rows, now=now), _facts(page.rows)
    may_import = is_hub_operator(request.user)
    if "first" in request.GET and page.rows:  # an open first page: its heading and buttons change too
        return HttpResponseClientRefresh() if getattr(request, "htmx", False) else redirect("home")
    is_first_run = may_import and not page.rows and not request.GET.keys() - {"first"}
    context = {
        "page": page,
        "rows": [
            (workspace, figures[workspace.pk], parts[workspace.pk] | {"fact_total": facts.get(workspace.pk, 0)})
            for workspace in page.rows
        ],
        "columns": shown_columns(figures.values()),
        "may_import": may_import,
        "is_first_run": is_first_run,
        "waiting": count_waiting(visible, of_hub=may_import),
        "demo_job": _demo_job if may_import else None,  # called only where it is shown
    }
    if is_first_run:
        context |= _first_steps()
    context |= attention_context(attention_items(role_scope(request.user), now=now), request.GET)
    return render_page(request, "dashboard/home.html", context, fragment="desk")


def _facts(workspaces: Sequence[Workspace]) -> dict[int, int]:
    """Return the numbers of current facts by workspace primary key."""
    facts = Fact.objects.filter(workspace__in=workspaces, died=None).order_by()
    return dict(facts.values_list("workspace").annotate(n=Count("pk")))


def _demo_job() -> Job | None:
    return Job.objects.filter(kind=Job.Kind.DEMO, status__in=LIVE).first()


def _first_steps() -> dict[str, Any]:
    hub = hub_settings()
    return {
        "found_folders": found_folders(),
        "model": hub_model(hub),
        "embeddings": hub_embeddings(hub),
    }


@login_not_required
def health(_request: HttpRequest) -> JsonResponse:
    """Answer whether the hub and its database work, and nothing else: it needs no sign-in."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError) as error:
        fault = fault_of(error) or UNAVAILABLE
        return JsonResponse({"status": fault.code}, status=fault.status)
    if known_damage():
        return JsonResponse({"status": DAMAGED.code}, status=DAMAGED.status)
    if is_disk_full():
        return JsonResponse({"status": DISK_FULL.code}, status=DISK_FULL.status)
    return JsonResponse({"status": "ok"})


@require_POST
def open_demo(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    if is_demo_offered():  # if it exists, it would overwrite files
        request_job(Job.Kind.DEMO, None, {}, by=by_person(request), key="demo", home=home_of_files())
    if _demo_job() is None:
        messages.info(request, gettext("The demo's workspaces already exist."))
    elif Workspace.objects.exists():  # otherwise the first page says so, as long as it is true
        messages.info(request, gettext("The demo is being created. Its four workspaces appear here within a minute."))
    return redirect("home")

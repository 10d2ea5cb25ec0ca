from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from memoryhub.flows.imports import known_folders, prepare_demo, request_import
from memoryhub.flows.setup import create_first_operator, is_valid, operator_exists
from memoryhub.forms import OperatorForm
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import keyset_page
from memoryhub.navigation import count_parts
from memoryhub.tasks import import_folder
from sessions_app.access import visible_workspaces
from sessions_app.models import Workspace


def home(request: HttpRequest) -> HttpResponse:
    workspaces = visible_workspaces(request)
    page = keyset_page(workspaces, order=("name", "id"), params=request.GET)
    shown = Workspace.objects.filter(pk__in=[workspace.pk for workspace in page.rows])
    sums = shown.order_by().annotate(
        entry_count=Coalesce(Sum("sessions__entry_count"), 0),
        tokens=Coalesce(Sum("sessions__total_tokens"), 0),
        context=Coalesce(Sum("sessions__active_tokens"), 0) + Coalesce(Sum("sessions__summary_tokens"), 0),
    )
    figures = {row["pk"]: row for row in sums.values("pk", "entry_count", "tokens", "context")}
    parts = count_parts(shown)
    context = {
        "page": page,
        "rows": [(workspace, figures[workspace.pk], parts[workspace.pk]) for workspace in page.rows],
        "may_import": getattr(request.user, "is_superuser", False),
        "known_folders": known_folders(),
    }
    return render_page(request, "memoryhub/home.html", context, fragment="workspaces")


@login_not_required
def health(_request: HttpRequest) -> JsonResponse:
    """Answer whether the hub and its database work; nothing about what they hold."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok"})


@login_not_required
@sensitive_post_parameters()
def setup(request: HttpRequest, token: str) -> HttpResponse:
    now = timezone.now()
    if not is_valid(token, now):
        if operator_exists():
            return redirect("login")
        return render(request, "memoryhub/setup.html", {"form": None}, status=410)
    form = OperatorForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        user = create_first_operator(
            token=token,
            username=form.cleaned_data["username"],
            password=form.cleaned_data["password1"],
            now=now,
        )
        login(request, user)
        return redirect("home")
    return render(request, "memoryhub/setup.html", {"form": form}, status=422 if form.errors else 200)


@require_POST
def open_demo(request: HttpRequest) -> HttpResponse:
    if not getattr(request.user, "is_superuser", False):
        raise Http404
    for name, path in prepare_demo(timezone.localdate()).items():
        report = request_import(path=str(path), user=request.user, name=name)  # type: ignore[arg-type]
        import_folder.enqueue(report.pk)
    messages.success(request, "The demo workspaces are on their way: four agents of one engineering team.")
    return redirect("home")

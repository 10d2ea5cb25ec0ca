"""Settings and webhooks of a workspace; new workspaces."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from memoryhub.dashboard.forms import WorkspaceForm
from memoryhub.dashboard.settings_forms import WebhookForm, WorkspaceSettingsForm
from memoryhub.graph.row_embedding import row_outlook
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import OPERATOR, by_person, get_workspace, require_hub_operator
from sessions_app.models import Webhook, WebhookDelivery, Workspace
from sessions_app.services.compressing.model_choice import model_for
from sessions_app.services.runs import tokens_spent
from sessions_app.services.webhooks import add_webhook, remove_webhook, secret_of, standard_secret_of
from sessions_app.services.workspaces import create_workspace, save_settings


def new_workspace(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    form = WorkspaceForm(request.POST or None)
    if form.is_bound and form.is_valid():
        workspace = create_workspace(form.cleaned_data["name"], by=by_person(request))
        return redirect("workspace", workspace.slug)
    return render_page(request, "dashboard/new_workspace.html", {"form": form}, status=422 if form.errors else 200)


def workspace_settings(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    form = WorkspaceSettingsForm(request.POST or None, instance=Workspace.objects.get(pk=workspace.pk))
    if form.is_bound and form.is_valid():
        changed = save_settings(workspace, form.cleaned_data, by=by_person(request))
        messages.success(request, gettext("Saved.") if changed else gettext("No changes."))
        return redirect("workspace-settings", slug)
    context = {
        "workspace": workspace,
        "form": form,
        "model": model_for(workspace),
        "spent": tokens_spent(workspace, timezone.now()),
        "rows": row_outlook(workspace),
    }
    return render_page(request, "dashboard/workspace_settings.html", context, status=422 if form.errors else 200)


def webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    form = WebhookForm(request.POST or None)
    if form.is_bound and form.is_valid():
        try:
            add_webhook(
                workspace,
                form.cleaned_data["url"],
                form.cleaned_data["actions"],
                allowed=settings.MEMORYHUB_PRIVATE_HOSTS,
                by=by_person(request),
            )
        except MemoryHubError as error:
            form.add_error("url", error.message)
        else:
            return redirect("webhooks", slug)
    hooks = [
        (
            hook,
            secret_of(hook),
            standard_secret_of(hook),
            WebhookDelivery.objects.filter(webhook=hook).select_related("job").order_by("-id")[:5],
        )
        for hook in Webhook.objects.filter(workspace=workspace).order_by("id")[:50]
    ]
    context = {"workspace": workspace, "form": form, "hooks": hooks}
    return render_page(request, "dashboard/webhooks.html", context, status=422 if form.errors else 200)


@require_POST
def delete_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug, role=OPERATOR)
    hook = get_object_or_404(Webhook.objects.select_related("workspace"), workspace=workspace, pk=pk)
    remove_webhook(hook, by=by_person(request))
    return redirect("webhooks", slug)

"""The Forget page: preview and confirm an erasure."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from knowledge_app.models import Forgotten
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.forgetting.erasure import ErasureRequest, lift, plan_forget, receipts
from memoryhub.forgetting.forms import ForgetForm
from memoryhub.forgetting.requests import request_forgetting
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import OPERATOR, by_person, get_workspace, is_hub_operator
from sessions_app.models import Session, Workspace


def forget(request: HttpRequest, slug: str) -> HttpResponse:
    """Preview an erasure, or request it as a job once it is confirmed.

    Both steps are POST requests, so that the content is in no URL or log.
    """
    workspace = get_workspace(request, slug, role=OPERATOR)
    form = ForgetForm(request.POST or None, workspace=workspace)
    context = {
        "workspace": workspace,
        "form": form,
        "receipts": receipts(workspace),
        "kept_databases": kept_databases(),
        "preview": None,
    }
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        try:
            erasure = _erasure_request(workspace, values, everywhere=is_hub_operator(request.user))
            if values["expected"]:
                job = request_forgetting(
                    workspace,
                    erasure,
                    expected=values["expected"],
                    reason=values["reason"],
                    by=by_person(request),
                )
                return redirect("job", job.pk)
            context["preview"] = plan_forget(workspace, erasure)
        except MemoryHubError as error:
            form.add_error(None, error.message)
    return render_page(request, "forgetting/forget.html", context, status=422 if form.errors else 200)


def _erasure_request(workspace: Workspace, values: dict[str, Any], *, everywhere: bool) -> ErasureRequest:
    if values["kind"] == Forgotten.Kind.SESSION:
        session = Session.objects.select_related("workspace").get(workspace=workspace, key=values["words"].strip())
        return ErasureRequest(values["kind"], session=session, everywhere=everywhere)
    words = values["words"]
    if values["kind"] == Forgotten.Kind.PHRASE:
        return ErasureRequest(values["kind"], (words,), everywhere=everywhere)
    names = tuple(line for line in words.splitlines() if line.strip())
    return ErasureRequest(values["kind"], names, everywhere=everywhere)


@require_POST
def allow(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Allow imports to bring erased content back."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    receipt = get_object_or_404(Forgotten.objects.select_related("workspace"), workspace=workspace, pk=pk)
    lift(receipt, by=by_person(request))
    messages.success(request, gettext("Imports can bring it back now."))
    return redirect("forget", slug)

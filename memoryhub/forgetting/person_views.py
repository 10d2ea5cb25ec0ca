"""The page of what the hub knows about a person: for operators of the hub."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from knowledge_app.models import Forgotten
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.forgetting.erasure import lift
from memoryhub.forgetting.hub_erasure import hub_receipts, request_erasure
from memoryhub.forgetting.person_export import export_person
from memoryhub.forgetting.person_forms import PersonForm
from memoryhub.forgetting.person_search import PersonPlan, fingerprint, plan_person
from memoryhub.lib.errors import Invalid
from memoryhub.lib.http.downloads import streaming_download
from memoryhub.lib.http.htmx import render_page
from memoryhub.permissions import by_person, require_hub_operator


def person_data(request: HttpRequest) -> HttpResponse:
    """Show what is known about a person. Names are sent by POST, so that they are in no URL or log."""
    require_hub_operator(request)
    form = PersonForm(request.POST or None)
    return _page(request, form, _plan(form))


def export(request: HttpRequest) -> HttpResponseBase:
    """Download what is known about a person."""
    require_hub_operator(request)
    if request.method != "POST":
        return redirect("person-data")
    form = PersonForm(request.POST)
    if not form.is_valid():
        return _page(request, form, None)
    try:
        parts = export_person(form.person, by=by_person(request))
    except Invalid as error:
        form.add_error("words", error.message)
        return _page(request, form, None)
    response: StreamingHttpResponse = streaming_download(parts, f"person-data-{timezone.now():%Y%m%d-%H%M%S}.json")
    return response


def erase(request: HttpRequest) -> HttpResponse:
    """Erase a person in all workspaces as a job, if it would erase what the preview showed, and the box is ticked."""
    require_hub_operator(request)
    if request.method != "POST":  # the address of a page that answers an erasure that wasn't confirmed
        return redirect("person-data")
    form = PersonForm(request.POST)
    plan = _plan(form)
    if not plan or not plan.total or not form.cleaned_data["shown"]:
        return _page(request, form, plan)
    if form.cleaned_data["shown"] != fingerprint(form.person, plan):
        form.add_error(
            None, gettext("This isn't what the preview showed. Nothing has been erased. Check the new preview.")
        )
    elif not form.cleaned_data["understood"]:
        form.add_error("understood", gettext("Tick the box to erase. Nothing has been erased."))
    if form.errors:
        return _page(request, form, plan)
    reason = form.cleaned_data["reason"]
    return redirect("job", request_erasure(form.person, expected=plan.total, reason=reason, by=by_person(request)).pk)


@require_POST
def allow(request: HttpRequest, pk: int) -> HttpResponse:
    """Allow imports to bring erased data back."""
    require_hub_operator(request)
    lift(get_object_or_404(Forgotten, workspace=None, pk=pk), by=by_person(request))
    messages.success(request, gettext("Imports can bring it back now."))
    return redirect("person-data")


def _plan(form: PersonForm) -> PersonPlan | None:
    """Return the preview; None, with the errors in the form, if there is none."""
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return plan_person(form.person)
    except Invalid as error:
        form.add_error("words", error.message)
        return None


def _page(request: HttpRequest, form: PersonForm, plan: PersonPlan | None) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "receipts": hub_receipts(), "plan": plan, "words": "", "chosen": ()}
    context["kept_databases"] = kept_databases()
    if form.is_bound:
        context["words"] = "\n".join(form.cleaned_data.get("names", ()))
    if plan:
        context |= {"chosen": form.person.sessions, "shown": fingerprint(form.person, plan)}
    return render_page(request, "forgetting/person_data.html", context, status=422 if form.errors else 200)

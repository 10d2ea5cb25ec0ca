"""The hub's settings: those that operators change here, and all environment variables."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.dashboard.connection_test import TESTS, ConnectionTest
from memoryhub.dashboard.hub_forms import SECTIONS, SectionForm
from memoryhub.dashboard.hub_settings import deployment_warnings, hub, list_settings
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.llm import PRESETS
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.permissions import by_person, require_hub_operator
from sessions_app.services.stored_settings import KEYS, save_hub_settings, with_changes
from sessions_app.services.stored_settings import hub_settings as current_settings


@require_GET
def hub_settings(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    return _page(request, "", None)


@require_POST
def save(request: HttpRequest, section: str) -> HttpResponse:
    require_hub_operator(request)
    form = _form(request, section)
    if not form.is_valid():
        return _page(request, section, form, status=422)
    names = save_hub_settings(form.changes, by=by_person(request))
    messages.success(request, gettext("Saved.") if names else gettext("Nothing changed."))
    if [key for key in KEYS if key in names and form.changes.get(key, "kept") is None]:
        messages.warning(request, gettext("The API key was removed, because the address changed. Enter it again."))
    return redirect(f"{reverse('hub-settings')}#{section}")


@require_POST
def test_connection(request: HttpRequest, section: str) -> HttpResponse:
    """Test the values of the form, which aren't saved."""
    require_hub_operator(request)
    if section not in TESTS:
        raise Http404
    form = _form(request, section)
    if form.is_valid():
        result = TESTS[section](with_changes(current_settings(), form.changes))
    else:
        errors = [str(error) for of_field in form.errors.values() for error in of_field]
        result = ConnectionTest(is_connected=False, text=" ".join(errors))
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "dashboard/connection_test.html", {"name": section, "result": result})
    return _page(request, section, form, result=result)


def _form(request: HttpRequest, section: str) -> SectionForm:
    if section not in SECTIONS:
        raise Http404
    return SECTIONS[section][1](request.POST, current=current_settings())


def _page(
    request: HttpRequest,
    section: str,
    form: SectionForm | None,
    *,
    result: ConnectionTest | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page, with ``form`` in its section."""
    current = current_settings()
    forms = {name: (title, kind(current=current)) for name, (title, kind) in SECTIONS.items()}
    if form is not None:
        forms[section] = (forms[section][0], form)
    context = {
        "hub": hub(),
        "warnings": deployment_warnings(),
        "forms": [(name, title, one, result if name == section else None) for name, (title, one) in forms.items()],
        "presets": PRESETS,
        "settings": [(setting, render_markdown(setting.effect)) for setting in list_settings()],
    }
    return render_page(request, "dashboard/hub_settings.html", context, status=status)

"""The user's display preferences."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.accounts.locale import DENSITY_COOKIE, KEYS_COOKIE, preferences_of, zone_names
from memoryhub.accounts.preference_forms import PreferencesForm
from memoryhub.accounts.preferences import save_preferences
from memoryhub.models import Preferences
from memoryhub.permissions import by_person

YEAR = 365 * 86_400


@require_http_methods(["GET", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        form = PreferencesForm(request.POST)
        if form.is_valid():
            return _saved(request, form.cleaned_data)
    else:
        form = PreferencesForm(initial=_shown(request))
    context = {
        "form": form,
        "zones": zone_names(),
        "zone": timezone.get_current_timezone_name(),
        "now": timezone.now(),
        "follows_browser": not preferences_of(request).time_zone,
    }
    return render(request, "accounts/preferences.html", context, status=422 if form.errors else 200)


def _shown(request: HttpRequest) -> dict[str, Any]:
    kept = preferences_of(request)
    return {
        "theme": kept.theme,
        "time_zone": kept.time_zone,
        "language": kept.language,
        "is_compact": request.COOKIES.get(DENSITY_COOKIE) == "compact",
        "letter_keys": request.COOKIES.get(KEYS_COOKIE) != "off",
    }


def _saved(request: HttpRequest, values: dict[str, Any]) -> HttpResponse:
    of_browser = {
        KEYS_COOKIE: "" if values.pop("letter_keys") else "off",
        DENSITY_COOKIE: "compact" if values.pop("is_compact") else "",
    }
    _save(request, values)
    messages.success(request, gettext("Your preferences are saved."))
    response = redirect("preferences")
    for name, value in of_browser.items():
        if value:
            secure = request.is_secure()
            response.set_cookie(name, value, max_age=YEAR, samesite="Lax", secure=secure, httponly=True)
        else:
            response.delete_cookie(name, samesite="Lax")
    return response


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Set the theme from the user menu, and redirect back."""
    theme = request.POST.get("theme", "")
    if theme in Preferences.Theme.values:
        _save(request, {"theme": theme})
    back = request.POST.get("back", "")
    is_own = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if is_own else "preferences")


def _save(request: HttpRequest, values: dict[str, str]) -> None:
    assert isinstance(request.user, User)  # noqa: S101  nobody else gets here
    save_preferences(request.user, by=by_person(request), **values)

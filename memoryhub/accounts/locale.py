"""The theme, language and time zone of the current user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from memoryhub.lib.database.prepared import PreparedRows
from memoryhub.models import Preferences

ZONE_COOKIE = "zone"  # set by static/js/preferences.js
KEYS_COOKIE = "keys"  # "off": no single-key shortcuts
DENSITY_COOKIE = "density"  # "compact": smaller text and spacing
NO_TEXT = "/changes/"  # polled by open pages; its responses contain no text or times
FOR_AGENTS = ("/api/", "/mcp")  # always in English
FOR_PEOPLE = "/api/v1/docs/"
GetResponse = Callable[[HttpRequest], HttpResponse]
_PREFERENCES = PreparedRows(1, lambda user: Preferences.objects.filter(user=user))


@dataclass(frozen=True)
class Reading:
    """Display preferences of a request. ``theme``: light, dark, or "" for the system's."""

    theme: str
    language: str
    direction: str
    zone: str
    has_letter_keys: bool
    is_compact: bool


def zone_named(name: str) -> ZoneInfo | None:
    """Return the time zone of a name; None if there is none."""
    try:
        return ZoneInfo(name) if 0 < len(name) <= 64 else None
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder, or an invalid file name
        return None


@cache
def zone_names() -> list[str]:
    """Return the sorted names of all time zones of places, and UTC."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [*sorted(places), "UTC"]


def languages() -> list[tuple[str, str]]:
    """Return the code and own name of each language of the pages."""
    return [(code, translation.get_language_info(code)["name_local"]) for code, _ in settings.LANGUAGES]


def follow_the_reader(get_response: GetResponse) -> GetResponse:
    """Activate the user's time zone and language, and add ``request.reading``."""

    def middleware(request: HttpRequest) -> HttpResponse:
        preferences = preferences_of(request)
        browser_zone = zone_named(request.COOKIES.get(ZONE_COOKIE, ""))
        zone = zone_named(preferences.time_zone) or browser_zone or timezone.get_default_timezone()
        language = language_of(request, preferences.language)
        with timezone.override(zone), translation.override(language):
            request.reading = Reading(  # type: ignore[attr-defined]
                theme=preferences.theme,
                language=language,
                direction="rtl" if translation.get_language_info(language)["bidi"] else "ltr",
                zone=str(zone),
                has_letter_keys=request.COOKIES.get(KEYS_COOKIE) != "off",
                is_compact=request.COOKIES.get(DENSITY_COOKIE) == "compact",
            )
            return get_response(request)

    return middleware


def preferences_of(request: HttpRequest) -> Preferences:
    """Return the saved preferences of a user, or unsaved defaults."""
    if request.path.endswith(NO_TEXT) or not request.user.is_authenticated:
        return Preferences()
    return _PREFERENCES.first(request.user.pk) or Preferences(user=request.user)


def language_of(request: HttpRequest, preferred: str) -> str:
    """Return the language from the preferences or the browser; for agents the default one."""
    if request.path.startswith(FOR_AGENTS) and request.path != FOR_PEOPLE:
        return settings.LANGUAGE_CODE
    return known_language(preferred) or translation.get_language_from_request(request)


def known_language(code: str) -> str:
    """Return the code if the pages exist in this language, else ""."""
    return code if code in dict(settings.LANGUAGES) else ""

"""How a person reads the pages: their theme, language and time zone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from memoryhub.models import Preferences

ZONE_COOKIE = "zone"  # the browser's own, written by static/js/preferences.js
KEYS_COOKIE = "keys"  # "off": letters alone do nothing
WORDLESS = "/changes/"  # what open pages ask every second: it answers with neither words nor times
FOR_AGENTS = ("/api/", "/mcp")  # answered the same whoever asks
FOR_PEOPLE = "/api/v1/docs/"
GetResponse = Callable[[HttpRequest], HttpResponse]


@dataclass(frozen=True)
class Reading:
    """What the frame of a page goes by. ``theme``: light, dark, or "" as the system has it."""

    theme: str
    language: str
    direction: str
    zone: str
    has_letter_keys: bool


def zone_named(name: str) -> ZoneInfo | None:
    """Return the time zone of a name; None where there is none of this name."""
    try:
        return ZoneInfo(name) if 0 < len(name) <= 64 else None
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder of zones, or no name for a file at all
        return None


@cache
def zone_names() -> list[str]:
    """Return the names of all places' time zones, in order, and UTC."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [*sorted(places), "UTC"]


def languages() -> list[tuple[str, str]]:
    """Return the languages that the pages exist in: code, and what they call themselves."""
    return [(code, translation.get_language_info(code)["name_local"]) for code, _ in settings.LANGUAGES]


def follow_the_reader(get_response: GetResponse) -> GetResponse:
    """Show times in the reader's zone and words in their language, and tell the page which theme they want."""

    def middleware(request: HttpRequest) -> HttpResponse:
        wanted = preferences_of(request)
        browsers = zone_named(request.COOKIES.get(ZONE_COOKIE, ""))
        zone = zone_named(wanted.time_zone) or browsers or timezone.get_default_timezone()
        language = language_of(request, wanted.language)
        with timezone.override(zone), translation.override(language):
            request.reading = Reading(  # type: ignore[attr-defined]
                theme=wanted.theme,
                language=language,
                direction="rtl" if translation.get_language_info(language)["bidi"] else "ltr",
                zone=str(zone),
                has_letter_keys=request.COOKIES.get(KEYS_COOKIE) != "off",
            )
            return get_response(request)

    return middleware


def preferences_of(request: HttpRequest) -> Preferences:
    """Return what a person has chosen, unsaved defaults where they have chosen nothing or aren't signed in."""
    if request.path.endswith(WORDLESS) or not request.user.is_authenticated:
        return Preferences()
    return Preferences.objects.filter(user=request.user).first() or Preferences(user=request.user)


def language_of(request: HttpRequest, wanted: str) -> str:
    """Return the language that a person wants or their browser asks for; for agents always the same."""
    if request.path.startswith(FOR_AGENTS) and request.path != FOR_PEOPLE:
        return settings.LANGUAGE_CODE
    return known_language(wanted) or translation.get_language_from_request(request)


def known_language(code: str) -> str:
    """Return a language that the pages exist in, "" for any other."""
    return code if code in dict(settings.LANGUAGES) else ""

"""Labels for User-Agent headers."""

from __future__ import annotations

import re

from django.utils.translation import gettext

MAX_LENGTH = 300
_BROWSERS = [  # specific ones first: most also claim to be Safari
    (r"Edg(e|A|iOS)?/", "Edge"),
    (r"OPR/|Opera", "Opera"),
    (r"Vivaldi/", "Vivaldi"),
    (r"SamsungBrowser/", "Samsung Internet"),
    (r"(Firefox|FxiOS)/", "Firefox"),
    (r"(Chrome|CriOS|Chromium)/", "Chrome"),
    (r"Version/.*Safari/", "Safari"),
]
_SYSTEMS = [
    (r"iPhone", "iPhone"),
    (r"iPad", "iPad"),
    (r"Android", "Android"),
    (r"Windows", "Windows"),
    (r"CrOS", "ChromeOS"),
    (r"Macintosh|Mac OS X", "macOS"),
    (r"Linux|X11", "Linux"),
]
_PROGRAM = re.compile(r"([A-Za-z][\w.-]{0,39})/")


def browser_label(user_agent: str) -> str:
    """Return a label such as "Firefox on Linux", or the program's name. The header can be forged."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return gettext("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    program = _PROGRAM.match(user_agent)
    is_named = program and program[1] != "Mozilla"
    return browser or (program[1] if program and is_named else gettext("Unknown browser"))


def _first(marks: list[tuple[str, str]], text: str) -> str:
    return next((name for mark, name in marks if re.search(mark, text)), "")

"""Find active content in pages, for tests that stored text is inert."""

from __future__ import annotations

from html.parser import HTMLParser

HARMLESS_SCRIPTS = ("/static/", "/admin/jsi18n/")  # translations for Django's admin scripts
REQUESTS = ("hx-get", "hx-post", "hx-put", "hx-delete", "hx-patch")


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "script" and not values.get("src", "").startswith(HARMLESS_SCRIPTS):
            self.found.append("script")
        if tag in ("iframe", "object", "embed", "style"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in values if name.startswith("on") or name == "style"]
        self.found += [name for name in values if name.startswith(("data-hx", "hx-on"))]
        self.found += [
            values[name]
            for name in REQUESTS
            if not values.get(name, "/w/").startswith(("/w/", "/imports/", "/search/", "/changes/"))
        ]
        address = values.get("href", "") + values.get("src", "")
        if address.lower().lstrip().startswith(("javascript:", "data:", "vbscript:")):
            self.found.append(address)
        if tag in ("img", "link") and "//" in address:
            self.found.append(address)


def live_markup(html: str) -> list[str]:
    """Return the scripts, frames, handlers, foreign requests and dangerous URLs in a page; none are expected."""
    finder = _Finder()
    finder.feed(html)
    return finder.found

"""Markdown to HTML that is safe to show: the one place in the tree that marks text as safe."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

MAX_RENDERED_CHARS = 256 * 1024
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
_LIVE_ADDRESS = re.compile(r"(https?|mailto):", re.IGNORECASE)  # a link elsewhere, or into the hub, stays text


class _Renderer(RendererHTML):
    """Images become links: nothing remote is fetched because a memory names it."""

    def image(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        token = tokens[idx]
        address = html.escape(str(token.attrs.get("src", "")))
        named = gettext("image: %(name)s") % {"name": token.content}
        words = named if token.content else gettext("image: without a name")
        return f'<a href="{address}">{html.escape(words)}</a>'


_markdown = MarkdownIt(
    "commonmark", {"html": False, "linkify": False, "breaks": True, "maxNesting": 20}, renderer_cls=_Renderer
).enable(["table", "strikethrough"])
_markdown.validateLink = lambda url: bool(_LIVE_ADDRESS.match(url))  # type: ignore[method-assign]


def render_markdown(text: str) -> SafeString:
    """Return Markdown as sanitised HTML; text beyond 256 KB as plain preformatted text.

    Raw HTML stays text. Links keep only http, https and mailto and carry rel="noopener noreferrer nofollow".
    """
    return _rendered(text, get_language())


@lru_cache(maxsize=256)
def _rendered(text: str, _language: str | None) -> SafeString:
    """Render for one language: images are named in it."""
    if len(text) > MAX_RENDERED_CHARS:
        return mark_safe(f"<pre>{html.escape(text)}</pre>")  # noqa: S308  escaped
    clean = nh3.clean(
        _markdown.render(text),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  sanitised by nh3

"""Render Markdown as sanitised HTML. No other module may mark text as safe."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

import nh3
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from memoryhub.lib.text_caches import text_cache

MAX_RENDERED_CHARS = 256 * 1024
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
_LIVE_ADDRESS = re.compile(
    r"(https?|mailto):", re.IGNORECASE
)  # other links, also relative ones into the hub, stay text
_OPEN, _CLOSE = "\U000f5eed", "\U000f5eee"  # private characters around the number of a line that gets a link
_LINK_PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_INLINE_LINK = re.compile(r"(?<![!\\])\[([^\[\]\n]+)\]\([^()\s]+\)")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+:)(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)


class _Renderer(RendererHTML):
    """Render images as links, so that viewing memory never loads remote content, and headings one level lower.

    Their page has the one h1.
    """

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].tag = f"h{min(int(tokens[idx].tag[1]) + 1, 6)}"
        return self.renderToken(tokens, idx, options, env)

    heading_close = heading_open

    def image(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        token = tokens[idx]
        url = html.escape(str(token.attrs.get("src", "")))
        label = gettext("image: %(name)s") % {"name": token.content} if token.content else gettext("image: unnamed")
        return f'<a href="{url}">{html.escape(label)}</a>'


_markdown = (
    MarkdownIt(
        "commonmark", {"html": False, "linkify": False, "breaks": True, "maxNesting": 20}, renderer_cls=_Renderer
    )
    .enable(["table", "strikethrough"])
    .disable(["html_block", "html_inline"])  # find nothing without "html"
)
_markdown.validateLink = lambda url: bool(_LIVE_ADDRESS.match(url))  # type: ignore[method-assign]


def render_linked_markdown(text: str, links: Mapping[int, str], label: str) -> SafeString:
    """Return Markdown as ``render_markdown`` does, with a link at the end of some lines.

    ``links``: URLs of the hub by line, from 1. ``label``: the name of each link, for screen readers.
    """
    lines = text.translate({ord(_OPEN): None, ord(_CLOSE): None}).split("\n")
    marked = [
        f"{line}\N{NO-BREAK SPACE}{_OPEN}{number}{_CLOSE}" if number in links else line
        for number, line in enumerate(lines, 1)
    ]
    name = html.escape(label)

    def link(found: re.Match[str]) -> str:
        url = html.escape(links[int(found[1])])
        return f'<a class="line-link" href="{url}" aria-label="{name}"></a>'

    return mark_safe(_LINK_PLACE.sub(link, render_markdown("\n".join(marked))))  # noqa: S308  sanitised, and our own links


def render_markdown(text: str) -> SafeString:
    """Return Markdown as sanitised HTML, or text over 256 KB as preformatted text.

    Front matter is shown as code. Raw HTML is escaped. Only http, https and mailto links are kept, with
    rel="noopener noreferrer nofollow".
    """
    return _rendered(text, get_language())


def plain_text(text: str) -> str:
    """Return Markdown as one line of plain text, without its inline marks."""
    [inline] = _markdown.parseInline(" ".join(text.split()))
    return "".join(token.content for token in inline.children or ())


def without_front_matter(text: str) -> str:
    """Return a text without the properties before it."""
    return _FRONT_MATTER.sub("", text, count=1).lstrip("\n") if text.startswith("---") else text


def without_links(text: str) -> str:
    """Return a text with the words of its links in place of the links."""
    return _INLINE_LINK.sub(r"\1", text)


def _as_code(front_matter: re.Match[str]) -> str:
    fence = "~" * 40
    return f"{fence}\n{front_matter[1]}\n{fence}\n"


@text_cache(256)
def _rendered(text: str, _language: str | None) -> SafeString:
    """``_language`` is part of the cache key because the labels of images are translated."""
    if len(text) > MAX_RENDERED_CHARS:
        return mark_safe(f"<pre>{html.escape(text)}</pre>")  # noqa: S308  escaped
    clean = nh3.clean(
        _markdown.render(_FRONT_MATTER.sub(_as_code, text)),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  sanitised by nh3

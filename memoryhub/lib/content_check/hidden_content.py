"""Find what a text hides from its reader or loads from elsewhere: invisible characters, HTML, images, links."""

from __future__ import annotations

import re

from memoryhub.lib.content_check.normalising import INVISIBLE, LEGITIMATE_INVISIBLE

_COMMENT = re.compile(r"<!--|-->|<!\[CDATA\[|^\s*\[(?://|comment|_)\]:\s*[#<]", re.IGNORECASE)
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\]\s*(?:\(|\[)|<\s*(?:img|picture|svg|video|audio|source)\b", re.IGNORECASE)
_LINK = re.compile(
    r"\]\(\s*<?\s*(?:[a-z][a-z0-9+.-]*:)?//|\]\(\s*<?\s*(?:javascript|data|vbscript|file):"
    r"|^\s*\[[^\]\n]{1,100}\]:\s*<?\s*(?:[a-z][a-z0-9+.-]*:)?//|<\s*a\s[^>]{0,200}\bhref\b",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s{2,}")
_CODE = re.compile(r"`[^`\n]*`")
_HTML = re.compile(
    r"<\s*/?\s*(?:script|style|iframe|object|embed|link|meta|base|form|input|button|template|noscript|details"
    r"|div|span"
    r"|marquee|frame|applet|font|p|h[1-6]|table|textarea|title|head|body|html)\b[^>\n]{0,300}>",
    re.IGNORECASE,
)


def hides_characters(text: str) -> bool:
    """Return whether a text has invisible or bidirectional characters that its script doesn't need."""
    if text.isascii() or not INVISIBLE.search(text):
        return False
    return bool(INVISIBLE.search(LEGITIMATE_INVISIBLE.sub("", text)))


def hidden_in(line: str) -> tuple[str, str] | None:
    """Return the code and the explanation of what a line hides or loads, or None. Takes linear time."""
    if hides_characters(line):
        return "invisible", "contains invisible characters"
    line = _SPACES.sub(" ", line)  # the patterns would try every part of a long run of spaces
    if "<" in line or "-->" in line or "]:" in line:
        visible = _CODE.sub("", line)
        if _COMMENT.search(visible):
            return "comment", "contains a comment that isn't displayed"
        if _HTML.search(visible):
            return "html", "contains HTML"
    if ("]" in line or "<" in line) and _IMAGE.search(line):
        return "image", "contains an image"
    if ("]" in line or "<" in line) and _LINK.search(line):
        return "link", "contains a link to another site"
    return None


def show_invisible(text: str) -> str:
    """Return text with invisible and bidi control characters replaced by their code point: ⟦U+200B⟧."""
    return INVISIBLE.sub(lambda match: f"⟦U+{ord(match.group()):04X}⟧", text)

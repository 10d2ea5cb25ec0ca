"""Read the design's tokens from the style sheet and compute the contrast of its colours."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"^\s*--([a-z0-9-]+):\s*([^;]+);", re.MULTILINE)
_ONE_RULE = re.compile(r":root\s*\{(.*?)\n  \}", re.DOTALL)
_HEX = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class Token:
    """A custom property and its value as written; ``light`` and ``dark`` are "" if it isn't a colour."""

    name: str
    value: str
    light: str = ""
    dark: str = ""


@dataclass(frozen=True)
class Contrast:
    """The contrast of two colours in light and dark mode, and the required minimum."""

    front: Token
    back: Token
    light: float
    dark: float
    least: float

    @property
    def suffices(self) -> bool:
        return min(self.light, self.dark) >= self.least


def read_tokens(css: str) -> list[Token]:
    """Return the tokens of the first ``:root`` rule in order; a colour is one hex or ``light-dark()`` of two."""
    rule = _ONE_RULE.search(css)
    return [_token(name, " ".join(value.split())) for name, value in _TOKEN.findall(rule[1] if rule else "")]


def _token(name: str, value: str) -> Token:
    colours: list[str] = _HEX.findall(value)
    is_colour = _HEX.fullmatch(value) or re.fullmatch(rf"light-dark\({_HEX.pattern}, {_HEX.pattern}\)", value)
    return Token(name, value, colours[0], colours[-1]) if is_colour else Token(name, value)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two hex colours, 1 to 21 (WCAG 2.2, definition of contrast ratio)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance of a hex colour, 0 to 1 (WCAG 2.2)."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def meeting(tokens: dict[str, Token], front: str, back: str, least: float) -> Contrast:
    """Return how well a token's colour can be told from another's. Raises KeyError for an unknown token."""
    one, other = tokens[front], tokens[back]
    return Contrast(one, other, contrast(one.light, other.light), contrast(one.dark, other.dark), least)

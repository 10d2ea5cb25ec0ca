"""Recognise replies that aren't an answer: error pages, chat-template markers, echoed instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from memoryhub.lib.errors import Invalid, LimitExceeded

MIN_ECHO = 60  # characters of a line of the instructions
_STATUS = r"(?:4\d\d|5\d\d)"
_ERROR = re.compile(
    rf"""(?!\s*[-*+]\s)\W* (?:\d{{4}}-\d\d-\d\d [\s\d:T]* \]? \s*)? (?:
        error\s*(?:code|status)?\s*[:=#]?\s*{_STATUS}\b | error\s*: | exception\b\s*: | traceback\b
        | (?:http(?:/[\d.]+)?\s+|status\s*(?:code)?\s*[:=]?\s*)?{_STATUS}[\s:,-]+(?:bad|unauthorized|payment|forbidden
            |not\ found|request|conflict|too\ many|internal|not\ implemented|service|gateway)\b
        | bad\ gateway | gateway\ time-?out | internal\ server\ error | service\ (?:temporarily\ )?unavailable
        | too\ many\ requests | rate\ limit\ (?:exceeded|reached) | upstream\ (?:connect|request)
        | connection\ (?:refused|reset|error|timed\ out) | request\ timed\ out | <!doctype | <html\b | <\?xml
        | \{{\s*"(?:error|detail|errors)"\s*:
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKERS = re.compile(
    r"<\|[\w ]{2,30}\|>|<｜[^<>\n]{2,30}｜>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|^\s*</?s>|</s>\s*$|^### (?:Instruction|Response):"
)


def check_reply(text: str, instructions: str, source: str = "") -> None:
    """Raise Invalid if a reply is an error message, has chat-template markers, or repeats the instructions.

    ``source``: the text that the reply may quote.
    """
    if _ERROR.match(text) and not source.startswith(text[:80]):
        raise Invalid(f"The reply is an error message: {text.strip()[:120]!r}", code="bad_reply")
    for marker in _MARKERS.finditer(text):
        if marker[0].strip() not in source:
            raise Invalid(f"The reply contains markers of a chat template: {marker[0].strip()!r}", code="bad_reply")
    plain, quoted = _flat(text), _flat(source)
    for line in map(_flat, re.split(r"\n|(?<=[.:]) ", instructions)):
        if len(line) >= MIN_ECHO and line in plain and line not in quoted:
            raise Invalid(f"The reply repeats the instructions: {line[:80]!r}", code="bad_reply")


@contextmanager
def keep_reply(text: str) -> Iterator[None]:
    """Add a refused reply to the error, so that its run keeps it."""
    try:
        yield
    except (Invalid, LimitExceeded) as error:
        error.details["reply"] = text
        raise


def _flat(text: str) -> str:
    return " ".join(text.split())

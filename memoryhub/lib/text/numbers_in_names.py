"""Find numbers that are part of a name, such as those of "room 12" and "issue 45", as opposed to values."""

from __future__ import annotations

import re

_NUMBER = r"\d+(?:[.,:-]\d+)*"
_REFERENCE = re.compile(
    rf"(?:\b(?:adr|bug|cve|issue|mr|pep|pr|rfc|ticket|(?:pull|merge) request)[ #-]{{1,2}}|(?<![\w#])#){_NUMBER}",
    re.IGNORECASE,
)
_THINGS = (
    "appendix|article|build|building|chapter|episode|figure|floor|gate|milestone|phase|platform|question|release|room|rule"
    "|season|section|server|shard|slide|sprint|step|table|unit|version|volume|week|worker|zone"
)
_QUANTITIES = (
    "budget|cost|limit|max|maximum|min|minimum|price|size|total|only|all|about|around|over|under|eur|usd|gbp|chf"
)
_VERB = r"(?=\s*:|\s+(?:[a-z]+s|are|were|have|had|can|could|will|must|may|went|did|doesn['’]t)\b)"
_SUBJECT = re.compile(
    r"[^\w#]*(?:(?:the|our|in|on|at|for|since|with)\s+)*"
    rf"(?P<name>(?:{_THINGS})[ #-]{{1,2}}{_NUMBER}"
    rf"|(?!(?:{_QUANTITIES})\b)[a-z]\w*(?:[ -][a-z]+)?[ -]\d+(?:\.\d+)+{_VERB}"
    rf"|(?!(?:{_QUANTITIES})\d)(?:[a-z]+[-_])*[a-z]+[-_]?\d+{_VERB})",
    re.IGNORECASE,
)
_IS_ONE_OF_ITS_KIND = re.compile(
    r"\W+(?:is|are|was|were)\s+(?:(?:also|now|still|currently)\s+)?"
    r"(?:the|our|my|your|active|default|mandatory|needed|primary|required|used|in use)\b",
    re.IGNORECASE,
)


def names_with_numbers(text: str) -> list[str]:
    """Return the names with numbers that a text is about: references such as "issue 45", and its subject.

    A number elsewhere is a value ("meets in room 12"), and so is a subject that only one thing can be ("room 12 is
    the meeting room").
    """
    names = [found[0] for found in _REFERENCE.finditer(text)]
    subject = _SUBJECT.match(text)
    if subject and not names and not _IS_ONE_OF_ITS_KIND.match(text, subject.end()):
        names.append(subject["name"])
    return names

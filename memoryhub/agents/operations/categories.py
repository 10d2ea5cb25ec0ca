"""Choose the category of an observation that an agent sends without one, or with another word for it."""

from __future__ import annotations

import re

SYNONYMS = {"fact": "finding", "preference": "finding"}
_LESSON = re.compile(
    r"\b(?:always|never|avoid|next time|make sure|remember to|do not|don't|should|must|instead of)\b", re.IGNORECASE
)
_INSIGHT = re.compile(
    r"\b(?:because|therefore|decided|we chose|turned out|means that|the reason|concluded?|suggests?)\b", re.IGNORECASE
)


def category_of(content: str, category: str = "") -> str:
    """Return finding, insight or lesson.

    A ``category`` that is given counts; a fact or a preference is a finding. Without one, advice ("always", "never",
    "must") is a lesson, a conclusion ("because", "decided", "therefore") an insight, and anything else a finding.
    """
    if category:
        return SYNONYMS.get(category, category)
    if _LESSON.search(content):
        return "lesson"
    return "insight" if _INSIGHT.search(content) else "finding"

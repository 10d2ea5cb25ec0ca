"""Leave out search results that contain too little of the query, for models: they take every hit for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MIN_COVERAGE = 0.2  # of the query's terms, weighted by their inverse document frequency


def covers_query(explanation: Mapping[str, Any]) -> bool:
    """Tell whether a row contains enough of the query's own terms, or is a semantic match.

    ``explanation``: see ``memoryhub.search.results.explanation``. Terms that the semantic graph added, and those of
    neighbouring messages, don't count.
    """
    own = [term for term in explanation["terms"] if "added_for" not in term]
    total = sum(term["idf"] for term in own)
    found = sum(term["idf"] for term in own if term["count"])
    has_term = any(term["count"] for term in own)
    return bool(explanation["cosine"] > 0 or (has_term and found >= MIN_COVERAGE * total))

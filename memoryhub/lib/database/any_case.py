"""Conditions that ignore case, alike on both databases."""

from __future__ import annotations

import json
import re

from django.db import connection
from django.db.models import Q

_PATTERNS = {"icontains": "{}", "iexact": r"\A{}\Z", "istartswith": r"\A{}", "iendswith": r"{}\Z"}
_ASCII = re.compile(r"[\x20-\x7e]+")


def in_json(column: str, text: str) -> Q:
    """Return the condition that JSON stored as text contains a text within a string, ignoring case."""
    return any_case(f"{column}__icontains", json.dumps(text, ensure_ascii=False)[1:-1])


def any_case(lookup: str, text: str) -> Q:
    """Return the condition of a lookup such as ``title__icontains``, in which all letters are the same in any case.

    SQLite's LIKE ignores the case of ASCII letters only, so other texts are matched by Python, which takes about ten
    times as long, where LIKE finds their longest ASCII part. PostgreSQL estimates how many rows equal a text well for
    a pattern, but not for UPPER, and would join tables in the wrong order.
    """
    column, name = lookup.rsplit("__", 1)
    as_pattern = Q(**{f"{column}__iregex": _PATTERNS[name].format(re.escape(text))})
    if connection.vendor == "postgresql":
        return as_pattern if name == "iexact" else Q(**{lookup: text})
    if text.isascii():
        return Q(**{lookup: text})
    part = max(_ASCII.findall(text), key=len, default="")
    likely = Q(**{f"{column}__icontains": part}) if part else Q()
    return likely & as_pattern

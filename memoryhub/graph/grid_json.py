"""Write a semantic graph as JSON in grid's style (formats.md section 4), in parts, since it can be large."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def graph_text(meta: dict[str, Any], terms: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield the parts of semantic_graph.json, with an indent of two and Go's format of numbers and escapes."""
    yield f'{{\n  "meta": {_written(meta, 1)},\n  "terms": {{'
    between = ""
    for text, term in terms:
        yield f"{between}\n    {_written(text, 2)}: {_written(term, 2)}"
        between = ","
    yield "\n  }\n}" if between else "}\n}"


def _written(value: Any, depth: int) -> str:
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict) and value:
        rows = [f"{inner}{_written(str(name), 0)}: {_written(item, depth + 1)}" for name, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{outer}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{inner}{_written(item, depth + 1)}" for item in value) + f"\n{outer}]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPES)


def _number(value: float) -> str:
    """Format a number as Go's encoding/json: no exponent from 1e-6 to 1e21, no point in integers."""
    text = repr(value)
    if "e" in text and (value == 0 or 1e-6 <= abs(value) < 1e21):
        text = format(Decimal(text), "f")
    elif "e-0" in text:
        text = text.replace("e-0", "e-")
    return text.removesuffix(".0")

"""Measure the content check: the share of injected instructions and of ordinary facts that it holds.

    python bench/content_check/measure.py [--misses]

``cases`` describes the tables; ordinary facts are also read from ../shared/fixtures, if present. The tables that the
check was never tuned on are reported without their misses. Exit status 1 if less than 95 % of the instructions, or
2 % or more of the ordinary facts, are held in a table of STRICT or in the fixtures.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from cases import NAMES, table, templates
from disguises import DISGUISES, MORE_DISGUISES, disguised

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memoryhub.lib.content_check.check import check_text  # noqa: E402

FIXTURES = ROOT.parent / "shared" / "fixtures"
_TEXTS = {"MEMORY.md", "HISTORY.md", "USER.md", "CLAUDE.md", "history.jsonl", "HISTORY.md.bak", "pool-limit.md"}


STRICT = ("first", "second", "third", "unseen", "unseen_second", "indirect")
NEVER_USED = ("unseen_third", "fresh", "unused", "subtle", "attacker", "plain")
OTHERS = (*NEVER_USED, "avoiding", "later", "last", "twelve_languages", "small")
IN_DISGUISE = {"first": DISGUISES, "second": MORE_DISGUISES, "third": [*DISGUISES, *MORE_DISGUISES]}


def main(*, misses: bool) -> int:
    results = []
    for name in (*STRICT, *OTHERS):
        instructions, facts = table(name)
        instructions += disguised(instructions, IN_DISGUISE[name]) if name in IN_DISGUISE else []
        shown = misses and name not in NEVER_USED
        is_met = report(f"instructions, {name}", instructions, least=0.95, misses=shown)
        is_met &= not facts or report(f"facts, {name}", facts, most=0.02, misses=shown)
        results += [is_met] if name in STRICT else []
    results.append(report("facts from templates", list(template_facts()), most=0.02, misses=misses))
    if fixtures := sorted(set(fixture_facts())):
        results.append(report("facts from the fixtures", fixtures, most=0.02, misses=misses))
    return int(not all(results))


def report(name: str, texts: list[str], *, least: float = 0.0, most: float = 1.0, misses: bool) -> bool:
    """Print the share of texts that are held, and return whether it is within the limits."""
    start = time.perf_counter()
    held = [bool(check_text(text)) for text in texts]
    elapsed = time.perf_counter() - start
    share = sum(held) / len(held)
    print(f"{name}: {sum(held)} of {len(held)} held ({share:.1%}), {elapsed / len(held) * 1e6:.0f} µs each")
    if misses:
        wrong = [text for text, is_held in zip(texts, held, strict=True) if is_held != bool(least)]
        print("".join(f"    {text!r}\n" for text in wrong), end="")
    return least <= share and (share < most or most == 1.0)


def template_facts() -> Iterable[str]:
    """Yield 2,000 and more facts: each template with several names and numbers."""
    for language, template in templates():
        for number, name in enumerate(NAMES):
            for day in (11, 24) if language == "en" else (3, 17):
                yield template.format(n=name, d=day + number)


def fixture_facts() -> Iterable[str]:
    """Yield the lines of documents and histories, and the contents of JSON files, in the fixtures."""
    for path in sorted(FIXTURES.rglob("*")) if FIXTURES.is_dir() else ():
        if path.name in _TEXTS or re.fullmatch(r"HISTORY\.archive.*", path.name):
            yield from (line.strip() for line in path.read_text().splitlines() if line.strip())
        elif path.name in ("knowledge.json", "observations-export.json", "kv.json"):
            yield from _strings(json.loads(path.read_text()))


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        if " " in value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


if __name__ == "__main__":
    sys.exit(main(misses="--misses" in sys.argv))

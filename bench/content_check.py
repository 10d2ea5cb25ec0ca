"""Measure the content check: the share of injected instructions and of ordinary facts that it holds.

    python bench/content_check.py [--misses]

The cases are in content_check*_cases.py; ordinary facts are also read from ../shared/fixtures, if present. The lists
that the check was never tuned on are reported without their misses. Exit status 1 if less than 95 % of the
instructions, or 2 % or more of the ordinary facts, are held in any other list.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import content_check_avoiding_cases as avoiding
import content_check_cases as cases
import content_check_fresh_cases as fresh
import content_check_last_cases as last
import content_check_later_cases as later
import content_check_twelve_cases as twelve
import content_check_unseen_cases as unseen

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memoryhub.lib.content_check.check import check_text  # noqa: E402

FIXTURES = ROOT.parent / "shared" / "fixtures"
_TEXTS = {"MEMORY.md", "HISTORY.md", "USER.md", "CLAUDE.md", "history.jsonl", "HISTORY.md.bak", "pool-limit.md"}


def main(*, misses: bool) -> int:
    tuned = [*cases.INSTRUCTIONS, *cases.disguised(cases.INSTRUCTIONS, cases.DISGUISES)]
    more = [*cases.MORE_INSTRUCTIONS, *cases.disguised(cases.MORE_INSTRUCTIONS, cases.MORE_DISGUISES)]
    disguises = [*cases.DISGUISES, *cases.MORE_DISGUISES]
    held_out = [*cases.HELD_OUT_INSTRUCTIONS, *cases.disguised(cases.HELD_OUT_INSTRUCTIONS, disguises)]
    fixtures = sorted(set(fixture_facts()))
    results = [
        report("instructions, tuned on", tuned, least=0.95, misses=misses),
        report("instructions, tuned on second", more, least=0.95, misses=misses),
        report("instructions, held out", held_out, least=0.95, misses=misses),
        report("facts from templates, tuned on", list(template_facts()), most=0.02, misses=misses),
        report("facts, tuned on second", cases.MORE_FACTS, most=0.02, misses=misses),
        report("facts, held out", cases.HELD_OUT_FACTS, most=0.02, misses=misses),
    ]
    for count, (instructions, facts) in enumerate(
        [
            (unseen.UNSEEN_INSTRUCTIONS, unseen.UNSEEN_FACTS),
            (unseen.UNSEEN_SECOND_INSTRUCTIONS, unseen.UNSEEN_SECOND_FACTS),
            (fresh.INDIRECT_INSTRUCTIONS, fresh.INDIRECT_FACTS),
        ],
        start=1,
    ):
        results.append(report(f"instructions, other wordings {count}", instructions, least=0.95, misses=misses))
        results.append(report(f"facts, other wordings {count}", facts, most=0.02, misses=misses))
    report("instructions, never tuned on", unseen.UNSEEN_THIRD_INSTRUCTIONS, least=0.95, misses=False)
    report("facts, never tuned on", unseen.UNSEEN_THIRD_FACTS, most=0.02, misses=False)
    report("instructions, fresh", fresh.FRESH_INSTRUCTIONS, least=0.95, misses=False)
    report("facts, fresh", fresh.FRESH_FACTS, most=0.02, misses=False)
    report("instructions, avoiding the usual words", avoiding.AVOIDING_INSTRUCTIONS, least=0.95, misses=misses)
    report("facts that resemble those", avoiding.AVOIDING_FACTS, most=0.02, misses=misses)
    report("instructions, stated as facts or settings", later.LATER_INSTRUCTIONS, least=0.95, misses=misses)
    report("facts, many with rules or addresses", later.LATER_FACTS, most=0.02, misses=misses)
    report("instructions, last", last.LAST_INSTRUCTIONS, least=0.95, misses=misses)
    report("facts, last", last.LAST_FACTS, most=0.02, misses=misses)
    report("instructions, twelve languages", twelve.INSTRUCTIONS, least=0.95, misses=misses)
    report("facts, twelve languages", twelve.FACTS, most=0.02, misses=misses)
    report("instructions, small tables", twelve.SMALL_INSTRUCTIONS, least=0.95, misses=misses)
    report("facts, small tables", twelve.SMALL_FACTS, most=0.02, misses=misses)
    report("instructions, small tables, never used", twelve.UNUSED_INSTRUCTIONS, least=0.95, misses=False)
    report("facts, small tables, never used", twelve.UNUSED_FACTS, most=0.02, misses=False)
    if fixtures:
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
    for language, templates in cases.TEMPLATES.items():
        for template in templates:
            for number, name in enumerate(cases.NAMES):
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

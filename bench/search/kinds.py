"""Measure whether a search of all kinds finds the right row of the right kind, with 60 questions about the demo.

The demo is created in a temporary folder. ``mixed_questions.txt`` has the questions, each with the kind and a part
of the right row's text. Prints how often that row is first and among the first five, by kind, and which kinds fill
the first five places. ``--misses`` lists the questions whose row isn't among the first five.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = Path(__file__).resolve().parent / "mixed_questions.txt"
FIRST = 5


def questions() -> list[list[str]]:
    """Return (workspace, kind, part of the text, question) of each question."""
    lines = QUESTIONS.read_text().splitlines()
    return [[part.strip() for part in line.split(" | ")] for line in lines if not line.startswith("#")]


def measure(*, lists_misses: bool) -> None:
    from django.utils import timezone

    from memoryhub.lib.search.query import parse
    from memoryhub.search import Scope, find
    from memoryhub.search.results import text_of
    from sessions_app.models import Workspace

    places: defaultdict[str, list[int]] = defaultdict(list)
    shown: Counter[str] = Counter()
    now = timezone.now()
    for slug, kind, part, text in questions():
        scope = Scope((Workspace.objects.get(slug=slug).pk,))
        hits = find(scope, parse(text, now=now), now=now, limit=FIRST).hits
        shown.update(hit.kind for hit in hits)
        right = [hit.kind == kind and part.lower() in text_of(hit.kind, hit.row).lower() for hit in hits]
        places[kind].append(right.index(True) + 1 if True in right else 0)
        if lists_misses and True not in right:
            print(f"{slug}: {text} ({kind}: {part})")
            for hit in hits:
                print(f"    {hit.kind:12} {text_of(hit.kind, hit.row)[:90]!r}")
    everything = [place for found in places.values() for place in found]
    for kind, found in [*places.items(), ("all", everything)]:
        first, among = sum(place == 1 for place in found), sum(place > 0 for place in found)
        print(f"{kind:12} {len(found):3} questions; first {first:3}, among the first {FIRST} {among:3}")
    total = sum(shown.values())
    print("kinds shown: " + ", ".join(f"{kind} {count / total:.0%}" for kind, count in shown.most_common()))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--misses", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        call_command("demo", verbosity=0)
        measure(lists_misses=options.misses)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare the cost of every page at two sizes of the database.

    python bench/speed/growth.py [SMALL LARGE] [--only WORD ...]    50,000 and 1,000,000 entries, all pages by default
    DATABASE_URL=postgres://... python bench/speed/growth.py

The second size is reached by adding to the first one, in SQLite or in an empty PostgreSQL database on this machine.
Cost is CPU time in milliseconds: of the page, and of PostgreSQL's process that serves its connection. A page may cost
1.3 times as much with more entries, and never more queries.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, TIMES, MOST, NOISE = 3, 3, 1.3, 3.0  # rounds, requests of each, ratio, milliseconds
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    queries: int
    milliseconds: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=[50_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=[""], help="words in the names of the pages to measure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        os.environ.setdefault("DATABASE_URL", "")
        sys.path[:0] = [str(ROOT)]
        import django

        django.setup()
        logging.disable(logging.WARNING)  # some addresses are only for forms
        from pages import addresses, signed_in

        prepare_database()
        client, costs = None, []
        for size in given.sizes:
            fill(size)
            client = client or signed_in()
            pages = [page for page in addresses() if any(word in page[0] for word in given.only)]
            costs.append({name: cost(client, url) for name, url in pages})
        sys.exit(report(given.sizes, *costs))


def prepare_database() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


def fill(size: int) -> None:
    """Add entries and other rows until there are so many entries."""
    from pages import add_document

    from bench.bulk_rows import add_conversations, add_others, add_workspaces, update_statistics
    from bench.corpus import Writer
    from sessions_app.models import Entry, Workspace

    writer = Writer()
    if not Workspace.objects.exists():
        add_workspaces(3)
        add_document(writer, revisions=50)
    add_conversations(writer, size, known=Entry.objects.count())
    add_others(writer, size)
    update_statistics()


def cost(client: Any, url: str) -> Cost | None:
    """Return what a page costs, without the first request, in the best round; None if it isn't a page."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as asked:
        response = client.get(url)
    queries = len(asked)  # the next request empties the log
    if response.status_code != 200 or response.streaming or response.content.lstrip()[:9].lower() != b"<!doctype":
        return None
    return Cost(queries, min(milliseconds(client, url) for _ in range(ROUNDS)))


def milliseconds(client: Any, url: str) -> float:
    from django.db import connection

    began = used(connection)
    for _ in range(TIMES):
        client.get(url)
    return (used(connection) - began) / TIMES * 1000


def used(connection: Any) -> float:
    """Return the seconds of CPU of this process and of its PostgreSQL process."""
    own = time.process_time()
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        fields = Path(f"/proc/{connection.connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
        own += (int(fields[11]) + int(fields[12])) / TICKS
    return own


def report(sizes: list[int], small: dict[str, Cost | None], large: dict[str, Cost | None]) -> bool:
    """Print the pages, those that grow most first; return whether any grows too much."""
    pairs = [(name, before, after) for name, before in small.items() if before and (after := large.get(name))]
    pairs.sort(key=lambda pair: pair[1].milliseconds / pair[2].milliseconds)
    print(f"queries and milliseconds of CPU with {sizes[0]:,} and {sizes[1]:,} entries")
    missed = 0
    for name, before, after in pairs:
        ratio = after.milliseconds / before.milliseconds
        is_met = after.queries <= before.queries and (
            ratio <= MOST or after.milliseconds - before.milliseconds < NOISE
        )
        missed += not is_met
        print(
            f"  {'    ' if is_met else 'MISS'} {name:<32} {before.queries:>3} {after.queries:>3}"
            f" {before.milliseconds:8.1f} {after.milliseconds:8.1f} {ratio:6.2f}x"
        )
    print(f"{missed} of {len(pairs)} pages grow by more than {MOST} times")
    return bool(missed)


if __name__ == "__main__":
    main()

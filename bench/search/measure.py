"""Measure the goals of search, and print each with its figures and pass or MISS. `make bench` runs it.

Quality needs LoCoMo's questions (CC BY-NC 4.0, for measuring only): pass the file with --questions, or place it at
../shared/bench. To measure PostgreSQL, set MEMORYHUB_BENCH_POSTGRES to the address of a database whose role may
create others; the run creates its own databases and drops them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from report import Report  # noqa: E402

from bench.corpus import QUESTIONS, conversations  # noqa: E402

BENCH = Path(__file__).resolve().parent
POSTGRES = os.environ.get("MEMORYHUB_BENCH_POSTGRES", "")
QUICK_MEASURED, COMPACTED = 2_000, 10_000


class Places:
    """Creates the databases of a run: SQLite files in a folder, and PostgreSQL databases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[str] = []

    def environment(self, vendor: str, name: str) -> dict[str, str]:
        home = self.folder / vendor / name
        home.mkdir(parents=True)
        return os.environ | {
            "MEMORYHUB_HOME": str(home),
            "DATABASE_URL": self._create(name) if vendor == "PostgreSQL" else "",
        }

    def _create(self, name: str) -> str:
        parts = urlsplit(POSTGRES)
        database = f"{parts.path[1:]}_bench_{os.getpid()}_{name}".replace("-", "_")
        _execute(f'CREATE DATABASE "{database}"')
        self.made.append(database)
        return parts._replace(path=f"/{database}").geturl()

    def drop(self) -> None:
        for database in self.made:
            _execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


def _execute(sql: str) -> None:
    import psycopg

    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(sql)


def child(environment: dict[str, str], script: str, *arguments: object) -> Any:
    """Run a script in another process; return the JSON that it prints."""
    command = [sys.executable, str(BENCH / script), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-3_000:])
        raise SystemExit(f"{script} failed")
    return json.loads(done.stdout.splitlines()[-1])


def measure_quality(places: Places, vendors: list[str], path: Path, *extra: str) -> dict[str, Any]:
    """Return scores for each kind of database: all conversations in one, and each in a separate one. Not timed."""
    names = [one["id"] for one in conversations(path)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        shared = {
            vendor: pool.submit(child, places.environment(vendor, "shared"), "quality.py", path, *extra)
            for vendor in vendors
        }
        own = {
            vendor: [
                pool.submit(child, places.environment(vendor, name), "quality.py", path, "--only", name)
                for name in names
            ]
            for vendor in vendors
        }
        return {
            vendor: {"shared": shared[vendor].result(), "own": [one.result() for one in own[vendor]]}
            for vendor in vendors
        }


def versions(vendors: list[str]) -> str:
    named = [f"Python {platform.python_version()}", f"{os.cpu_count()} cores", f"SQLite {sqlite3.sqlite_version}"]
    if "PostgreSQL" in vendors:
        import psycopg

        with psycopg.connect(POSTGRES) as connection:
            row = connection.execute("SHOW server_version").fetchone()
            named.append(f"PostgreSQL {row[0] if row else '?'}")
    return ", ".join(named)


@contextmanager
def places_of_its_own() -> Iterator[Places]:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-search-") as folder:
        places = Places(Path(folder))
        try:
            yield places
        finally:
            places.drop()


def arguments() -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument(
        "sizes", type=int, nargs="*", default=[], help="numbers of entries (default: 10000 100000 1000000)"
    )
    asked.add_argument("--quick", action="store_true", help="10,000 entries, and a smaller comparison of lines")
    asked.add_argument("--questions", type=Path, default=QUESTIONS)
    asked.add_argument("--queries", type=int, default=200)
    asked.add_argument("--rows", type=int, default=120_000, help="number of rows to insert for measuring ingest")
    asked.add_argument("--json", type=Path, help="also write all figures to this file")
    options = asked.parse_args()
    options.sizes = sorted(options.sizes) or ([10_000] if options.quick else [10_000, 100_000, 1_000_000])
    if options.quick:
        options.rows = min(options.rows, 30_000)
        options.queries = min(options.queries, 60)
    return options


def main() -> int:
    options = arguments()
    began = time.perf_counter()
    vendors = ["SQLite", *(["PostgreSQL"] if POSTGRES else [])]
    report = Report(quick=options.quick)
    report.say(versions(vendors))
    if not POSTGRES:
        report.say("PostgreSQL is skipped: set MEMORYHUB_BENCH_POSTGRES to the address of a database.")
    with places_of_its_own() as places:
        if options.questions.exists():
            extra = ["--without-recall"] if options.quick else []
            report.quality(measure_quality(places, vendors, options.questions, *extra))
        else:
            report.say(f"\nQuality is skipped: {options.questions} doesn't exist. Pass the file with --questions.")
        speed = {
            vendor: child(
                places.environment(vendor, "speed"), "speed.py", *options.sizes, "--queries", options.queries
            )
            for vendor in vendors
        }
        report.speed(speed)
        report.grip(speed)
        report.ingest({v: child(places.environment(v, "writing"), "indexing.py", options.rows) for v in vendors})
        measured = QUICK_MEASURED if options.quick else COMPACTED
        report.lines(child(places.environment("SQLite", "compaction"), "compaction.py", COMPACTED, measured))
        report.hostile(speed)
    report.say(f"\n{time.perf_counter() - began:.0f} s in total")
    if options.json:
        options.json.write_text(json.dumps(report.figures, indent=1))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())

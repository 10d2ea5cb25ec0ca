"""Measure the speed of searches on a growing database. ``bench/search/measure.py`` runs it; it prints JSON.

Every figure is compared with a search for the same words in hand-written SQL (``raw_sql.py``).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
if "MEMORYHUB_HOME" not in os.environ:
    sys.exit("This script writes to the hub's database. Run bench/search/measure.py, which creates a hub for it.")
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from hostile_queries import hostile_texts  # noqa: E402
from raw_sql import bare_join, bare_scoped  # noqa: E402
from stages import Stages, captured_ranks  # noqa: E402

from bench.bulk_rows import add_others, add_sessions, add_turns, add_workspaces, update_statistics  # noqa: E402
from bench.corpus import WORKSPACES, Turn, Writer, question_from, turns  # noqa: E402
from memoryhub.lib.search import matching  # noqa: E402
from memoryhub.lib.search.query import Query, parse  # noqa: E402
from memoryhub.lib.search.scoring import rank  # noqa: E402
from memoryhub.search.filters import Scope, filter_kind  # noqa: E402
from memoryhub.search.grip_scoring import search_lines, tokens_of  # noqa: E402
from memoryhub.search.kinds import ENTRY  # noqa: E402
from memoryhub.search.listing import newest  # noqa: E402
from memoryhub.search.ranking import find  # noqa: E402

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 50_000
LIMIT = 20
TRIES = 3
SLOW = 200  # milliseconds; slower queries are run three times, and the median counts
KEPT = 20_000  # texts from which questions are made
WorkspaceQuery = tuple[int | None, Query]  # workspace (None: all) and query


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def spread_of(times: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the maximum."""
    ordered = sorted(times)
    return {
        "p50": ordered[len(ordered) // 2],
        "p95": ordered[int(len(ordered) * 0.95)],
        "max": ordered[-1],
    }


class Filler:
    """Adds entries to the database, and keeps a sample of their texts."""

    def __init__(self) -> None:
        self.writer = Writer()
        self.sessions = turns(self.writer)
        self.count = 0
        self.seconds = 0.0
        self.kept: list[tuple[int, str]] = []
        self._own = random.Random(5)

    def grow(self, size: int) -> None:
        while self.count < size:
            batch: list[list[Turn]] = []
            rows = min(BATCH, size - self.count)
            while sum(map(len, batch)) < rows:
                batch.append(next(self.sessions))
            self.count += sum(map(len, batch))
            self._keep(batch)
            began = time.perf_counter()
            add_sessions(batch)
            add_turns(batch)
            self.seconds += time.perf_counter() - began
            print(f"{connection.vendor}: {self.count:,} entries in {self.seconds:.0f} s", file=sys.stderr)
        add_others(self.writer, self.count)
        update_statistics()

    def _keep(self, batch: list[list[Turn]]) -> None:
        """Add one turn of each session to the sample."""
        for session in batch:
            turn = session[self._own.randrange(len(session))]
            if len(self.kept) < KEPT:
                self.kept.append((turn.workspace, turn.text))
            else:
                self.kept[self._own.randrange(KEPT)] = (turn.workspace, turn.text)

    def questions(self, count: int, *, giant: bool) -> list[tuple[int, Query]]:
        """Return questions with their workspace: the biggest one (``giant``), or any of the others."""
        own = random.Random(11)
        texts = [kept for kept in self.kept if (kept[0] == 1) == giant]
        asked = ((workspace, question_from(text, own)) for workspace, text in own.choices(texts, k=2 * count))
        return [(workspace, parse(text, now=NOW)) for workspace, text in asked if text][:count]


def measure_searches(asked: Sequence[WorkspaceQuery]) -> dict[str, Any]:
    """Time raw SQL, the JOIN, the candidate query and the pages for each question."""
    rows = [time_question(workspace, query) for workspace, query in asked]
    found: dict[str, Any] = {name: spread_of([row[name] for row in rows]) for name in rows[0]}
    for name, kinds in (("parts", ["entry"]), ("parts, all kinds", [])):
        with Stages() as stages:
            for workspace, query in asked:
                page(scope_of(workspace), query, kinds)
        found[name] = {part: spent / len(asked) for part, spent in stages.milliseconds().items()}
    return found


def time_question(workspace: int | None, query: Query) -> dict[str, float]:
    """Return the time of each way to search: the best of three, after one to warm up."""
    scope = scope_of(workspace)
    fitting = filter_kind(ENTRY, scope, query)
    if fitting is None:
        raise SystemExit(f"{query.text!r} asks for no entries")
    index_query, total = fitting.index_query, fitting.count_rows()
    ways: dict[str, Callable[[], object]] = {"raw": lambda: bare_scoped(query, workspace, total)}
    if workspace is not None:
        ways["join"] = lambda: bare_join(query, workspace, total)
    ways["candidates"] = lambda: matching.best_matches(connection, index_query, total=total)
    ways["page"] = lambda: page(scope, query, ["entry"])
    ways["page, all kinds"] = lambda: page(scope, query, [])
    ranks = captured_ranks(ways["page"])
    ways["rerank"] = lambda: [rank(*args, **named) for args, named in ranks]
    for work in ways.values():
        work()
    times = [{name: milliseconds(work) for name, work in ways.items()} for _ in range(TRIES)]
    return {name: min(one[name] for one in times) for name in ways}


def scope_of(workspace: int | None) -> Scope:
    return Scope(None if workspace is None else (workspace,))


def page(scope: Scope, query: Query, kinds: Sequence[str]) -> list[Any]:
    return find(scope, query, now=NOW, kinds=kinds, limit=LIMIT).hits


def measure_hostile(filler: Filler) -> dict[str, Any]:
    """Run 200 expensive queries in one workspace, in the biggest, and in the whole hub."""
    texts = hostile_texts(filler.writer.words)
    found: dict[str, Any] = {}
    for name, workspace in (("one workspace", 2), ("the biggest workspace", 1), ("the whole hub", None)):
        errors: list[str] = []
        times = [(time_hostile(text, scope_of(workspace), errors), text[:60]) for text in texts]
        slowest = sorted(times, reverse=True)[:8]
        found[name] = spread_of([spent for spent, _ in times]) | {"errors": errors, "slowest": slowest}
    return found


def time_hostile(text: str, scope: Scope, errors: list[str]) -> float:
    """Return the time to parse, search and load a query; add exceptions to ``errors``."""

    def ask() -> None:
        try:
            query = parse(text, now=NOW, prefix=True)
            rows = page(scope, query, []) if query.ranked_terms else newest(scope, query, limit=LIMIT)[0]
            [str(row) for row in rows]
        except Exception as error:  # noqa: BLE001  any exception counts
            errors.append(f"{text[:60]!r}: {error!r}")

    first = milliseconds(ask)
    return first if first < SLOW else sorted([first, milliseconds(ask), milliseconds(ask)])[1]


def measure_grip(filler: Filler) -> dict[str, Any]:
    """Time Grip's search, which reads and scores all lines, over a file of all entries."""
    with connection.cursor() as cursor, tempfile.NamedTemporaryFile("w+", suffix=".md", encoding="utf-8") as file:
        cursor.execute("SELECT content FROM sessions_app_entry ORDER BY id")
        while rows := cursor.fetchmany(10_000):
            file.writelines(f"[2025-06-01 08:00:00 UTC] {content}\n" for (content,) in rows)
        file.flush()
        asked = [query.text for _, query in filler.questions(5, giant=False)]
        ours = [milliseconds(lambda text=text: _scan(Path(file.name), text)) for text in asked]
        theirs = [milliseconds(lambda text=text: _scan_as_grip(Path(file.name), text)) for text in asked[:3]]
    return {"search_lines": spread_of(ours), "as Grip": spread_of(theirs)}


def _scan(file: Path, text: str) -> object:
    return search_lines(file.read_text(encoding="utf-8").splitlines(), text, limit=LIMIT)


def _scan_as_grip(file: Path, text: str) -> object:
    """Score lines by Grip's formula: term frequency times inverse line frequency."""
    lines = file.read_text(encoding="utf-8").splitlines()
    words = tokens_of(text)
    counted = [Counter(tokens_of(line)) for line in lines]
    frequency = Counter(word for counts in counted for word in counts)
    rarity = {word: math.log((len(lines) + 1) / (frequency[word] + 1)) + 1 for word in words}
    scored = []
    for place, counts in enumerate(counted):
        length = sum(counts.values())
        score = sum(counts[word] / length * rarity[word] for word in words) if length else 0.0
        if score > 0:
            scored.append((score, place))
    return [lines[place] for _, place in sorted(scored, reverse=True)[:LIMIT]]


def measure(filler: Filler, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures at the database's present size."""
    few = max(20, options.queries // 5)
    ordinary = filler.questions(options.queries, giant=False)
    biggest = filler.questions(few, giant=True)
    found: dict[str, Any] = {
        "entries": filler.count,
        "seconds to fill": filler.seconds,
        "one workspace": measure_searches(ordinary),
        "the biggest workspace": measure_searches(biggest),
        "the whole hub": measure_searches([(None, query) for _, query in ordinary[:few]]),
        "hostile": measure_hostile(filler),
    }
    if filler.count <= options.grip_most:
        found["grip"] = measure_grip(filler)
    return found


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("sizes", type=int, nargs="+")
    asked.add_argument("--queries", type=int, default=200)
    asked.add_argument("--grip-most", type=int, default=100_000)
    options = asked.parse_args()
    call_command("migrate", verbosity=0)
    add_workspaces(WORKSPACES)
    filler = Filler()
    found = []
    for size in options.sizes:
        filler.grow(size)
        found.append(measure(filler, options))
        print(json.dumps(found[-1]), file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

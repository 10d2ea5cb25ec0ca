"""Measure search on LoCoMo and LongMemEval beside FTS5, and what each part of the ranking gains.

A part is turned off, and the results are compared question by question. Needs the questions of both in
../shared/bench (for measuring only), or in the folder given with --folder. Each set is loaded into an SQLite database
of its own. Intervals are 95 % paired bootstrap intervals.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(__file__).resolve().parent
SETS = ("locomo_dev.json", "longmemeval_dev.json")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAIN = ("multi_hop", "temporal", "open_domain", "single_hop")
RESAMPLES = 2_000
LIMIT, FIRST = 100, 10
SCORING, NEIGHBOURS = "memoryhub.lib.search.scoring", "memoryhub.lib.search.neighbour_smoothing"
PARTS: dict[str, dict[str, float]] = {  # names with the values that turn them off
    "all of these": {
        f"{NEIGHBOURS}.SHORT_CHARS": 400,
        f"{NEIGHBOURS}.SAME_SPEAKER": 1,
        "memoryhub.search.ranking.PHRASING_WEIGHT": 1,
        f"{SCORING}.IN_PERIOD": 1,
        f"{SCORING}.K1": 1.2,
    },
    "long turns give less to their neighbours": {f"{NEIGHBOURS}.SHORT_CHARS": 400},
    "less from the same speaker": {f"{NEIGHBOURS}.SAME_SPEAKER": 1},
    "words that phrase the question": {"memoryhub.search.ranking.PHRASING_WEIGHT": 1},
    "time named in the question": {f"{SCORING}.IN_PERIOD": 1},
    "k1 1.0 instead of 1.2": {f"{SCORING}.K1": 1.2},
    "user's turns": {f"{SCORING}.BY_USER": 1},
}
Scores = dict[str, dict[str, float]]  # by question, by measure
Ranker = Callable[[str], list[str]]


def ndcg(ranked: Sequence[str], gold: Sequence[str]) -> float:
    ideal = sum(1 / math.log2(place + 2) for place in range(min(FIRST, len(set(gold)))))
    return sum(1 / math.log2(place + 2) for place, name in enumerate(ranked[:FIRST]) if name in set(gold)) / ideal


def recall(ranked: Sequence[str], gold: Sequence[str], count: int) -> float:
    return len(set(gold) & set(ranked[:count])) / len(set(gold))


def score_turns(ranked: list[str], gold: list[str]) -> dict[str, float]:
    if not gold:
        return {}
    found = {"turn nDCG@10": ndcg(ranked, gold), "turn R@10": recall(ranked, gold, 10)}
    return found | {"turn any@5": float(bool(set(gold) & set(ranked[:5])))}


def score_sessions(ranked: list[str], gold: list[str]) -> dict[str, float]:
    return {"session R@5": recall(ranked, gold, 5), "session nDCG@10": ndcg(ranked, gold)}


def interval(gains: Sequence[float]) -> str:
    """Return the mean and its 95 % bootstrap interval."""
    own = random.Random(0)
    means = sorted(sum(own.choices(gains, k=len(gains))) / len(gains) for _ in range(RESAMPLES))
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40]
    return f"{sum(gains) / len(gains):+.4f} [{low:+.4f}, {high:+.4f}]"


def fts5(texts: dict[str, str]) -> Ranker:
    """Return a function that ranks texts by FTS5 alone: words joined by OR, stemmed, without stop words."""
    from memoryhub.lib.search.tokenizing import STOP_WORDS, split_words

    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')")
    names = list(texts)
    database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts.values()))

    def ranked(text: str) -> list[str]:
        words = [word for word in split_words(text) if word not in STOP_WORDS]
        query = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?"
        return [names[row] for (row,) in database.execute(sql, [query, LIMIT])] if words else []

    return ranked


class Conversation:
    """A loaded conversation with its questions and rankers."""

    def __init__(self, document: dict[str, Any]) -> None:
        import quality

        self.document = document
        self.workspace, self.names = quality.load(document)
        self.session_of = {entry["id"]: entry["session"] for entry in document["entries"]}
        self.questions = [
            one
            for one in document["questions"]
            if (one["gold"] and one["category"] in MAIN) or one.get("gold_sessions")
        ]

    def search(self, text: str) -> list[str]:
        from memoryhub.lib.search.query import parse
        from memoryhub.search.filters import Scope
        from memoryhub.search.ranking import find

        query = parse(text, now=NOW)
        hits = find(Scope((self.workspace.pk,)), query, now=NOW, kinds=["entry"], limit=LIMIT).hits
        return [self.names[hit.pk] for hit in hits]

    def fts5_rankers(self) -> tuple[Ranker, Ranker]:
        """Return FTS5's rankings of turns and of whole sessions."""
        from bench.corpus import text_of

        turns = {entry["id"]: f"{entry['author']}: {text_of(entry)}" for entry in self.document["entries"]}
        sessions: dict[str, list[str]] = {}
        for entry in self.document["entries"]:
            sessions.setdefault(entry["session"], []).append(turns[entry["id"]])
        return fts5(turns), fts5({key: "\n".join(texts) for key, texts in sessions.items()})

    def score(self, turns: Ranker, sessions: Ranker | None = None) -> Scores:
        """Return the measures of each question; without a ranker of sessions, sessions rank by their best turn."""
        found: Scores = {}
        for question in self.questions:
            ranked = turns(question["text"])
            by_turn = list(dict.fromkeys(self.session_of[name] for name in ranked))
            gold = list(dict.fromkeys(question.get("gold_sessions") or map(self.session_of.get, question["gold"])))
            key = f"{self.document['id']} {question['id']}"
            found[key] = score_turns(ranked, question["gold"])
            found[key] |= score_sessions(sessions(question["text"]) if sessions else by_turn, gold)
        return found


def mean(scores: Scores) -> dict[str, float]:
    names = list(dict.fromkeys(name for row in scores.values() for name in row))
    values = {name: [row[name] for row in scores.values() if name in row] for name in names}
    return {name: sum(found) / len(found) for name, found in values.items()}


def print_gains(full: Scores, without: Scores) -> None:
    """Print the gain in each measure, for all questions and for each half of them, by the checksum of their ids."""
    for name in mean(full):
        gains = {key: full[key][name] - without[key][name] for key in full if name in full[key]}
        if any(gains.values()):
            halves = [
                [gain for key, gain in gains.items() if zlib.crc32(key.encode()) % 2 == half] for half in (0, 1)
            ]
            both = ", ".join(f"{sum(half) / len(half):+.4f}" for half in halves)
            print(f"    {name:16} {interval(list(gains.values()))}; halves {both}")


def measure(path: Path) -> None:
    """Load a set into the database of MEMORYHUB_HOME; print its measures, and what each part gains."""
    sys.path.insert(0, str(ROOT))
    import quality  # noqa: F401 (sets Django up)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    loaded = [Conversation(one) for one in json.loads(path.read_text())["conversations"]]
    raw: Scores = {}
    full: Scores = {}
    for one in loaded:
        raw |= one.score(*one.fts5_rankers())
        full |= one.score(one.search)
    print(f"\n{path.name}: {len(full)} questions; FTS5, MemoryHub, gain")
    for name, value in mean(full).items():
        gains = [full[key][name] - raw[key][name] for key in full if name in full[key]]
        print(f"  {name:16} {mean(raw)[name]:.4f} {value:.4f} {interval(gains)}", flush=True)
    for part, changes in PARTS.items():
        without: Scores = {}
        with ExitStack() as stack:
            for name, value in changes.items():
                stack.enter_context(patch(name, value))
            for one in loaded:
                without |= one.score(one.search)
        print(f"  {part}", flush=True)
        print_gains(full, without)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--folder", type=Path, default=ROOT.parent / "shared" / "bench")
    asked.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.file:
        measure(options.file)
        return 0
    for name in SETS:
        if not (options.folder / name).exists():
            print(f"{name} is skipped: it isn't in {options.folder}. Choose another folder with --folder.")
            continue
        with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
            environment = os.environ | {"MEMORYHUB_HOME": home, "DATABASE_URL": ""}
            command = [sys.executable, __file__, "--file", str(options.folder / name)]
            subprocess.run(command, env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

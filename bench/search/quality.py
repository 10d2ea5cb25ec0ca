"""Measure how well search finds answers on one database. ``bench/search/measure.py`` runs it; it prints JSON.

LoCoMo's turns are appended as entries, one conversation in each workspace, and its questions are asked as queries.
The same turns are added as observations, for the semantic graph and for recall. Scores are computed like those of
../shared/bench/eval_retrieval.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
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

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.corpus import conversations, said, text_of  # noqa: E402
from bench.search.lsa_embeddings import serving, word_vectors  # noqa: E402
from knowledge_app.models import Observation  # noqa: E402
from memoryhub.graph.embedding_run import request_embedding  # noqa: E402
from memoryhub.lib.search.query import parse  # noqa: E402
from memoryhub.runs.executing import execute  # noqa: E402
from memoryhub.search.filters import Scope  # noqa: E402
from memoryhub.search.ranking import find  # noqa: E402
from memoryhub.search.recall import recall  # noqa: E402
from sessions_app.models import Entry, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402
from sessions_app.services.entries import append  # noqa: E402
from sessions_app.services.lifecycle import open_session  # noqa: E402
from sessions_app.services.parsing import read_batch  # noqa: E402

AGENT = Actor("agent", "bench")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAIN = ("multi_hop", "temporal", "open_domain", "single_hop")
LIMIT, FIRST = 50, 10
Ranker = Callable[[str], list[str]]


def load(conversation: dict[str, Any]) -> tuple[Workspace, dict[int, str]]:
    """Append a conversation; return its workspace, and the id of each entry's turn."""
    workspace = Workspace.objects.create(slug=conversation["id"], name=conversation["id"], auto_compress=False)
    names: dict[int, str] = {}
    for part in conversation["sessions"]:
        rows = [entry for entry in conversation["entries"] if entry["session"] == part["id"]]
        session, _ = open_session(workspace, f"chat:{part['id']}", by=By(AGENT, NOW))
        append(session, read_batch([said(entry) for entry in rows], now=NOW), by=By(AGENT, NOW))
        stored = Entry.objects.filter(session=session).order_by("position").values_list("pk", flat=True)
        names |= dict(zip(stored, (entry["id"] for entry in rows), strict=True))
    return workspace, names


def observe(workspace: Workspace, conversation: dict[str, Any]) -> None:
    Observation.objects.bulk_create(
        Observation(
            workspace=workspace,
            uid=entry["id"],
            category="finding",
            content=f"{entry['author']}: {text_of(entry)}",
        )
        for entry in conversation["entries"]
    )


def build_graph(workspace: Workspace) -> None:
    run = request_embedding(workspace, by=By(Actor("command", "bench"), timezone.now()))
    done = execute(run.pk, now=timezone.now)
    if done is None or done.status != "done":
        raise SystemExit(f"the graph of {workspace} was not built: {done and done.error}")


def searching(workspace: Workspace, names: dict[int, str], kinds: Sequence[str]) -> Ranker:
    """Return a function that ranks turns for a question; other rows keep their place in the list."""

    def ranked(text: str) -> list[str]:
        query = parse(text, now=NOW)
        hits = find(Scope((workspace.pk,)), query, now=NOW, kinds=kinds, limit=LIMIT).hits
        return [names[hit.pk] if hit.kind == "entry" else f"{hit.kind} {hit.pk}" for hit in hits]

    return ranked


def recalling(workspace: Workspace) -> Ranker:
    return lambda text: [
        one.observation.uid
        for one in recall(Scope((workspace.pk,), for_agent=True), text, now=NOW, limit=FIRST).found["finding"]
    ]


def score(ranked: list[str], gold: list[str]) -> dict[str, float]:
    wanted = set(gold)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(FIRST, len(wanted))))
    gain = sum(1 / math.log2(place + 2) for place, name in enumerate(ranked[:FIRST]) if name in wanted)
    first = next((place for place, name in enumerate(ranked, start=1) if name in wanted), 0)
    return {
        "recall": len(wanted & set(ranked[:FIRST])) / len(wanted),
        "ndcg": gain / ideal,
        "mrr": 1 / first if first else 0.0,
    }


class Scores:
    """The scores of each search mode, with main and adversarial questions separate."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, list[dict[str, float]]]] = {}
        self.seconds: dict[str, float] = {}

    def take(self, name: str, ranker: Ranker, conversation: dict[str, Any]) -> None:
        kept = self.rows.setdefault(name, {"main": [], "adversarial": []})
        began = time.perf_counter()
        for question in conversation["questions"]:
            if question["gold"]:
                part = "main" if question["category"] in MAIN else "adversarial"
                kept[part].append(score(ranker(question["text"]), question["gold"]))
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def sums(self) -> dict[str, Any]:
        """Return sums, so that the results of several databases can be added."""
        return {
            name: {
                part: {"n": len(rows)} | {key: sum(row[key] for row in rows) for key in ("recall", "ndcg", "mrr")}
                for part, rows in parts.items()
            }
            | {"seconds": self.seconds[name]}
            for name, parts in self.rows.items()
        }


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("path", type=Path)
    asked.add_argument("--only", default="", help="the id of a conversation; only entries are searched then")
    asked.add_argument("--without-recall", action="store_true")
    options = asked.parse_args()
    call_command("migrate", verbosity=0)
    everything = conversations(options.path)
    chosen = [one for one in everything if options.only in ("", one["id"])]
    scores = Scores()
    loaded = [(conversation, *load(conversation)) for conversation in chosen]
    for conversation, workspace, names in loaded:
        scores.take("entries", searching(workspace, names, ["entry"]), conversation)
        if not options.only:
            scores.take("all kinds", searching(workspace, names, []), conversation)
    if not options.only:
        vectors = word_vectors(
            [f"{entry['author']}: {text_of(entry)}" for found in everything for entry in found["entries"]]
        )
        with serving(vectors) as url:
            settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
            settings.MEMORYHUB_EMBEDDING_MODEL = "latent-semantic-analysis"
            settings.MEMORYHUB_EMBEDDING_BASE_URL = url
            for conversation, workspace, names in loaded:
                observe(workspace, conversation)
                if not options.without_recall:
                    scores.take("recall", recalling(workspace), conversation)
                build_graph(workspace)
                scores.take("entries, graph", searching(workspace, names, ["entry"]), conversation)
                if not options.without_recall:
                    scores.take("recall, graph", recalling(workspace), conversation)
    print(json.dumps(scores.sums()))


if __name__ == "__main__":
    main()

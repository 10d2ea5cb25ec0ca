"""Measure what semantic matches change on LoCoMo and LongMemEval: words alone, with a model, and with random vectors.

Start ``bench/search/embedding_server.py`` first, with a Python that has a model. Needs the questions of both sets in
../shared/bench (for measuring only), or in the folder given with --folder. Intervals are 95 % paired bootstrap
intervals; "halves" are the gains in two halves of the questions, by the checksum of their ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from ablation import LIMIT, NOW, ROOT, SETS, Conversation, Scores, mean, print_gains

MODELS = ("local", "random")
WEIGHTS = (0.25, 0.5, 1.0)  # tried beside the weight that the hub finds
PATIENCE = 60_000  # milliseconds to wait for an embedding: quality is measured here, not speed


def measure(path: Path, url: str) -> None:
    sys.path.insert(0, str(ROOT))
    import quality  # noqa: F401 (sets Django up)
    from django.conf import settings
    from django.core.management import call_command

    from memoryhub.search import query_embedding

    call_command("migrate", verbosity=0)
    loaded = [Conversation(one) for one in json.loads(path.read_text())["conversations"]]
    settings.MEMORYHUB_EMBEDDING_PROVIDER, settings.MEMORYHUB_EMBEDDING_BASE_URL = "openai", url
    words = scores(loaded, dense=False)
    print(f"\n{path.name}: {len(words)} questions; words alone: {mean(words)}", flush=True)
    for model in MODELS:
        settings.MEMORYHUB_EMBEDDING_MODEL = model
        for one in loaded:
            embed(one)
        with patch.object(query_embedding, "MILLISECONDS", PATIENCE):
            measure_model(loaded, words, model)


def measure_model(loaded: list[Conversation], words: Scores, model: str) -> None:
    from memoryhub.search import semantic

    used: set[float] = set()
    found = scores(loaded, dense=True, seen=used.add)
    print(f"  {model}: weights {sorted(round(one, 2) for one in used)}; {mean(found)}", flush=True)
    print_gains(found, words)
    for weight in WEIGHTS:
        fixed = patch.multiple(
            semantic, semantic_weight=lambda *_, weight=weight: weight, known_weight=lambda *_: None
        )
        with fixed:
            found = scores(loaded, dense=True)
        print(f"  {model}, always weighted {weight}: {mean(found)}", flush=True)
        print_gains(found, words)


def embed(conversation: Conversation) -> None:
    """Embed a workspace's rows again, and forget what this process knows of older ones."""
    from django.utils import timezone

    from memoryhub.graph.embedding_run import request_embedding
    from memoryhub.runs.executing import execute
    from memoryhub.search import embedding_check, query_embedding, vector_cache
    from sessions_app.services.audit import Actor, By

    conversation.workspace.dense_search = True
    conversation.workspace.save()
    run = request_embedding(conversation.workspace, by=By(Actor("command", "bench"), timezone.now()))
    done = execute(run.pk, now=timezone.now)
    if done is None or done.status != "done":
        raise SystemExit(f"the rows of {conversation.workspace} were not embedded: {done and done.error}")
    for forget_all in (embedding_check.forget_all, query_embedding.forget_all, vector_cache.forget_all):
        forget_all()


def scores(loaded: list[Conversation], *, dense: bool, seen: Callable[[float], object] = lambda _: None) -> Scores:
    """Score all questions without the graph; ``seen`` is told the weight of each search's semantic matches."""
    from memoryhub.lib.search.query import parse
    from memoryhub.search.filters import Scope
    from memoryhub.search.ranking import RankOptions, find

    found: Scores = {}
    for one in loaded:

        def search(text: str, one: Conversation = one) -> list[str]:
            options = RankOptions(graph=False, dense=dense)
            scope, query = Scope((one.workspace.pk,)), parse(text, now=NOW)
            results = find(scope, query, now=NOW, kinds=["entry"], options=options, limit=LIMIT)
            seen(results.semantic_weight)
            return [one.names[hit.pk] for hit in results.hits]

        found |= one.score(search)
    return found


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--url", default="http://127.0.0.1:8765/v1")
    asked.add_argument("--folder", type=Path, default=ROOT.parent / "shared" / "bench")
    asked.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.file:
        measure(options.file, options.url)
        return 0
    for name in SETS:
        with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
            environment = os.environ | {"MEMORYHUB_HOME": home, "DATABASE_URL": ""}
            command = [sys.executable, __file__, "--url", options.url, "--file", str(options.folder / name)]
            subprocess.run(command, env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

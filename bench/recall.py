"""What the semantic graph does to recall, side by side: questions with known answers, with the graph and without.

The questions are LoCoMo's (CC BY-NC 4.0, for measuring only): pass the file, or have it at ../shared/bench. Each
conversation becomes a workspace, each turn an observation. Embeddings come from a server on loopback that has them by
latent semantic analysis of the conversations themselves: real nearness of words, no model needed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["MEMORYHUB_HOME"] = tempfile.mkdtemp(prefix="memoryhub-bench-recall-")
os.environ.pop("DATABASE_URL", None)
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

import numpy as np  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from knowledge_app.models import Observation, Term, TermRelation  # noqa: E402
from memoryhub.flows.embedding import request_embedding  # noqa: E402
from memoryhub.flows.recall import recall  # noqa: E402
from memoryhub.flows.runs import execute  # noqa: E402
from memoryhub.lib.keywords import keywords_of  # noqa: E402
from sessions_app.models import Workspace  # noqa: E402
from sessions_app.services.audit import Actor  # noqa: E402

QUESTIONS = ROOT.parent / "shared" / "bench" / "locomo_dev.json"
MAIN = ("multi_hop", "temporal", "open_domain", "single_hop")
DIMENSIONS = 100
FIRST = 10
TOLERANCE = 0.002  # of recall: what a tie in the ranking can do


def text_of(entry: dict[str, Any]) -> str:
    caption = f" [image: {entry['caption']}]" if entry.get("caption") else ""
    return f"{entry['author']}: {entry['text']}{caption}"


def word_vectors(texts: list[str]) -> dict[str, np.ndarray]:
    """Return a unit vector for each keyword: the leading directions of the words' occurrences in the texts."""
    keywords = [keywords_of(text) for text in texts]
    places = {word: place for place, word in enumerate(sorted({word for words in keywords for word in words}))}
    counts = np.zeros((len(places), len(texts)), dtype=np.float32)
    for column, words in enumerate(keywords):
        for word in words:
            counts[places[word], column] += 1
    idf = np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=1)))
    left, sizes, _ = np.linalg.svd(counts * idf[:, None], full_matrices=False)
    vectors = left[:, :DIMENSIONS] * sizes[:DIMENSIONS]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths == 0, 1, lengths)
    return {word: vectors[place] for word, place in places.items()}


@contextmanager
def serving(vectors: dict[str, np.ndarray]) -> Iterator[str]:
    """Serve embeddings on loopback in OpenAI's shape; a word that was never seen stands apart from all others."""
    apart = np.zeros(DIMENSIONS, dtype=np.float32)
    apart[-1] = 1.0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
            """Say nothing."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = [
                {"object": "embedding", "index": place, "embedding": vectors.get(word, apart).astype(float).tolist()}
                for place, word in enumerate(asked["input"])
            ]
            usage = {"prompt_tokens": len(rows), "total_tokens": len(rows)}
            body = json.dumps({"object": "list", "model": asked["model"], "data": rows, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def load(conversation: dict[str, Any]) -> Workspace:
    workspace = Workspace.objects.create(slug=conversation["id"], name=conversation["id"])
    Observation.objects.bulk_create(
        Observation(workspace=workspace, uid=entry["id"], category="finding", content=text_of(entry))
        for entry in conversation["entries"]
    )
    return workspace


def score(workspace: Workspace, questions: list[dict[str, Any]]) -> tuple[float, float, int]:
    """Return recall at 10 and seconds a question, and how many questions the graph added words to."""
    shares, helped = [], 0
    began = time.perf_counter()
    for question in questions:
        found = recall(workspace, question["text"], limit=FIRST)
        ids = {one.observation.uid for one in found.found["finding"]}
        shares.append(len(ids & set(question["gold"])) / len(question["gold"]))
        helped += bool(found.added)
    return sum(shares), time.perf_counter() - began, helped


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS
    if not path.exists():
        print(f"{path} is not here: pass the file with the questions.")
        return 0
    call_command("migrate", verbosity=0)
    conversations = json.loads(path.read_text())["conversations"]
    vectors = word_vectors([text_of(entry) for found in conversations for entry in found["entries"]])
    totals = {"without": [0.0, 0.0], "with": [0.0, 0.0]}
    count = helped = 0
    with serving(vectors) as url:
        settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
        settings.MEMORYHUB_EMBEDDING_MODEL = "latent-semantic-analysis"
        settings.MEMORYHUB_EMBEDDING_BASE_URL = url
        for conversation in conversations:
            asked = [q for q in conversation["questions"] if q["category"] in MAIN and q["gold"]]
            workspace = load(conversation)
            without = score(workspace, asked)
            run = request_embedding(workspace, actor=Actor("command", "bench"), now=timezone.now())
            done = execute(run.pk, now=timezone.now)
            if done is None or done.status != "done":
                print(f"the graph of {workspace} was not built: {done and done.error}")
                return 1
            with_graph = score(workspace, asked)
            for name, (share, seconds, _) in (("without", without), ("with", with_graph)):
                totals[name][0] += share
                totals[name][1] += seconds
            helped += with_graph[2]
            count += len(asked)
    relations = TermRelation.objects.count()
    print(f"{count} questions, {Term.objects.count():,} terms, {relations:,} relations, {helped} questions expanded")
    for name, (share, seconds) in totals.items():
        print(f"recall@{FIRST} {name:7} the graph  {share / count:.4f}   {1000 * seconds / count:.1f} ms a question")
    lost = (totals["without"][0] - totals["with"][0]) / count
    verdict = "pass" if lost <= TOLERANCE else "MISS"
    print(f"the graph must not lower recall: {verdict} ({-lost:+.4f})")
    return 0 if verdict == "pass" else 1


if __name__ == "__main__":
    sys.exit(main())

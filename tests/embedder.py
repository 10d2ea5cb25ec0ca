"""A scripted embedding server. Words of one family are similar; requests are recorded."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import numpy as np
from django.utils import timezone
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memoryhub.graph.embedding_run import request_embedding
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON, executed

PATH = "/v1/embeddings"
FAMILIES = ["database postgresql schema", "fast quick speed", "carrier courier parcel"]


def vector_of(word: str, size: int) -> list[float]:
    """Return a word's embedding: its family's direction with a little of its own; others point anywhere.

    Of a text it is that of its words together.
    """
    words = word.lower().split()
    if len(words) > 1:
        return list(np.sum([vector_of(one, size) for one in words], axis=0).round(6))
    own = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(size)
    own /= np.linalg.norm(own)
    for number, family in enumerate(FAMILIES):
        if word in family.split():
            centre = np.random.default_rng(number).standard_normal(size)
            return list((centre / np.linalg.norm(centre) + 0.3 * own).round(6))
    return list(own.round(6))


class Embedder:
    """The recorded requests: ``words`` in order, and ``requests``. ``size``: dimensions of an embedding."""

    def __init__(self, httpserver: HTTPServer, *, size: int = 64) -> None:
        self.requests: list[list[str]] = []
        self.size = size
        self.before: Callable[[], None] = lambda: None
        self.spoil: Callable[[dict], object] = lambda body: body
        self.address = httpserver.url_for("/v1")
        httpserver.expect_request(PATH).respond_with_handler(self._answer)

    @property
    def words(self) -> list[str]:
        return [word for request in self.requests for word in request]

    def _answer(self, request: Request) -> Response:
        words = json.loads(request.data)["input"]
        self.requests.append(words)
        self.before()
        data = [{"index": place, "embedding": vector_of(word, self.size)} for place, word in enumerate(words)]
        body = self.spoil({"data": data, "usage": {"prompt_tokens": len(words), "total_tokens": len(words)}})
        if isinstance(body, Response):
            return body
        return Response(json.dumps(body), content_type="application/json")


def embed(workspace: Workspace, **wishes: bool) -> Run:
    """Embed the words of a workspace, as a worker would."""
    run = request_embedding(workspace, by=By(PERSON, timezone.now()), **wishes)
    return executed(run)

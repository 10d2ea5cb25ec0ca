"""Semantic search is weighted by how far embeddings agree with the words of the workspace's rows."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from knowledge_app.models import RowVector
from memoryhub.lib.search.tokenizing import split_words
from memoryhub.search import RankOptions, embedding_check, query_embedding, semantic, vector_cache
from memoryhub.search.embedding_check import UNKNOWN_WEIGHT, weight_of
from memoryhub.search.results import explanation
from memoryhub.search.vector_cache import Matrix
from tests.embedder import Embedder, embed
from tests.searches import know, search

SIZE = 64
TOPICS = ["harbour ferry pier", "bread oven flour", "engine brake wheel", "violin cello bow", "orchard apple cider"]
TEXTS = [
    f"{words[row % 3]} {words[(row + 1) % 3]} number{place}{row}"
    for place, words in enumerate(topic.split() for topic in TOPICS)
    for row in range(8)
]


def noise(text: str) -> np.ndarray:
    own = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(SIZE)
    return own / np.linalg.norm(own)


def good(text: str) -> np.ndarray:
    """Return an embedding by topic."""
    found = [noise(topic) for topic in TOPICS if set(split_words(text)) & set(topic.split())]
    return np.sum([*found, 0.3 * noise(text)], axis=0)


KINDS = {"good": good, "weak": lambda text: good(text) + 1.5 * noise(text), "random": noise}


def matrix(kind: str, texts: list[str]) -> Matrix:
    rows = np.array([KINDS[kind](text) for text in texts], dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Matrix(keys=tuple(range(len(texts))), hashes=("",) * len(texts), rows=rows)


def test_the_weight_rises_with_the_agreement():
    known = dict(enumerate(TEXTS))
    good, weak, unfit = (weight_of(known, matrix(kind, TEXTS)) for kind in KINDS)

    assert 1 >= good > weak > unfit == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_vectors_never_count(seed):
    texts = [f"{text} {seed}" for text in TEXTS]

    assert weight_of(dict(enumerate(texts)), matrix("random", texts)) == 0


@pytest.mark.parametrize("count", [12, 16, 19])
def test_a_few_rows_tell_random_vectors_from_good_ones(count):
    texts = sorted(TEXTS[row * 7 % len(TEXTS)] for row in range(24))[:count]
    good, unfit = (weight_of(dict(enumerate(texts)), matrix(kind, texts)) for kind in ("good", "random"))

    assert good > 0.2
    assert unfit == 0


def test_too_few_rows_say_nothing():
    assert weight_of(dict(enumerate(TEXTS[:5])), matrix("random", TEXTS[:5])) == UNKNOWN_WEIGHT
    assert weight_of({}, Matrix()) == UNKNOWN_WEIGHT
    unlike = [f"word{number}" for number in range(60)]
    assert weight_of(dict(enumerate(unlike)), matrix("random", unlike)) == UNKNOWN_WEIGHT


class TestSearches:
    @pytest.fixture(autouse=True)
    def _endpoint(self, db, workspace, httpserver, settings):
        for module in (query_embedding, vector_cache, embedding_check):
            module.forget_all()
        self.embedder = Embedder(httpserver, size=SIZE)
        settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
        settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
        settings.MEMORYHUB_EMBEDDING_BASE_URL = self.embedder.address
        for text in TEXTS:
            know(workspace, text)
        workspace.dense_search = True
        workspace.save()

    def answer_with(self, monkeypatch, kind):
        monkeypatch.setattr("tests.embedder.vector_of", lambda word, size: KINDS[kind](word).tolist())

    @pytest.mark.parametrize("query", ["harbour oven", "wheel number23", "the violin of the orchard"])
    def test_with_random_vectors_the_result_is_that_of_words_alone(self, workspace, monkeypatch, query):
        self.answer_with(monkeypatch, "random")
        embed(workspace)

        found = [search(query, workspace, options=RankOptions(graph=False, dense=dense)) for dense in (True, False)]

        semantically, by_words = ([(hit.pk, hit.score) for hit in one.hits] for one in found)
        assert semantically == by_words
        assert found[0].notes == [semantic.DISAGREES]
        self.embedder.requests.clear()
        assert search("cello bow", workspace).notes == [semantic.DISAGREES]
        assert self.embedder.requests == []

    def test_rebuilt_vectors_are_compared_again(self, workspace, monkeypatch):
        self.answer_with(monkeypatch, "random")
        embed(workspace)
        assert search("pier", workspace).notes == [semantic.DISAGREES]
        RowVector.objects.all().delete()
        self.answer_with(monkeypatch, "good")
        embed(workspace)

        assert search("ferry", workspace).notes == []

    def test_good_vectors_add_rows_of_the_same_topic_and_are_explained(self, workspace, monkeypatch):
        self.answer_with(monkeypatch, "good")
        embed(workspace)

        found = search("pier", workspace, options=RankOptions(graph=False))
        why = explanation(found.hits[0], found)

        assert any("pier" not in hit.row.content and "ferry" in hit.row.content for hit in found.hits)
        assert "pier" in found.hits[0].row.content
        assert why["cosine"] > 0.5
        assert why["semantic_weight"] > 0.5

"""How semantic matches are merged with matches of words, and what is embedded of a message."""

# ruff: noqa: F401, F811  fixtures are imported

import pytest

from memoryhub.search import semantic
from tests.search.test_semantic_search import WITHOUT_GRAPH, _nothing_kept, dense_workspace, embed, embedder
from tests.searches import know, say, search

pytestmark = pytest.mark.django_db


def test_a_good_match_of_words_stays_before_rows_of_the_same_topic(dense_workspace, embedder, monkeypatch):
    """Fused by ranks, rows that meaning puts first would come before the only row with both words."""
    monkeypatch.setattr(semantic, "semantic_weight", lambda *_: 1.0)
    know(dense_workspace, "carrier quick")
    know(dense_workspace, "courier fast")
    know(dense_workspace, "the fast carrier of 1907 was painted green, wrote Ada to the harbour office")
    embed(dense_workspace)
    found = search("fast carrier", dense_workspace, options=WITHOUT_GRAPH)
    assert next(hit.row.content for hit in found.hits).startswith("the fast carrier of 1907")
    assert found.hits[-1].scored.meaning > 0


def test_the_name_of_its_author_is_embedded_with_a_message(dense_workspace, embedder):
    say(dense_workspace, "it leaves at noon", name="Ada")
    say(dense_workspace, "it leaves at ten", name="")
    embed(dense_workspace)
    assert {"Ada: it leaves at noon", "it leaves at ten"} <= set(embedder.words)
    rows = search("Ada leaves", dense_workspace, options=WITHOUT_GRAPH)
    assert {hit.row.content for hit in rows.hits} == {"it leaves at noon", "it leaves at ten"}

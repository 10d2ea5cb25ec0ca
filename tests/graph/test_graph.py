"""Neighbours: query expansion, and people's decisions about relations."""

from __future__ import annotations

import socket

import pytest

from knowledge_app.models import Term, TermRelation
from memoryhub.graph.neighbours import expand, import_graph, related
from memoryhub.graph.relations import decide, find_term
from memoryhub.lib.layouts.records import GraphRecord, TermRecord
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db


def take(workspace, *terms: TermRecord) -> None:
    graph = GraphRecord("p", "m", "", 2, None, "once", list(terms))
    import_graph(workspace=workspace, graph=graph, path="g", now=NOW, dry_run=False)


def relate(workspace, word: str, **cosines: float | None) -> None:
    """Relate a word to others by stored cosines, without embeddings."""
    term, _ = Term.objects.get_or_create(workspace=workspace, text=word)
    for rank, (text, cosine) in enumerate(cosines.items()):
        other, _ = Term.objects.get_or_create(workspace=workspace, text=text)
        TermRelation.objects.create(term=term, related=other, rank=rank, cosine=cosine)


def expanded(workspace, *words: str, **df: int) -> list[tuple[str, str, float]]:
    return [(item.word, item.related, round(item.weight, 3)) for item in expand(workspace, words, df)]


def test_a_rare_word_is_expanded_with_three_neighbours_at_half_their_cosine(workspace):
    relate(workspace, "fast", slow=0.5, quick=0.9, speed=0.8, rapid=0.7, far=0.49)

    assert expanded(workspace, "fast") == [
        ("fast", "quick", 0.45),
        ("fast", "speed", 0.4),
        ("fast", "rapid", 0.35),
    ]


@pytest.mark.parametrize(("df", "count"), [(0, 1), (2, 1), (3, 0)])
def test_a_common_word_is_not_expanded(workspace, df, count):
    relate(workspace, "fast", quick=0.9)

    assert len(expanded(workspace, "fast", fast=df)) == count


def test_a_cosine_below_one_half_adds_nothing(workspace):
    relate(workspace, "fast", slow=0.49, half=0.5)

    assert expanded(workspace, "fast") == [("fast", "half", 0.25)]


def test_a_file_s_relation_uses_comparable_embeddings(workspace):
    take(
        workspace,
        TermRecord("fast", [1.0, 0.0], ["quick", "unknown", "odd", "across"]),
        TermRecord("quick", [0.8, 0.6], []),
        TermRecord("odd", [1.0], []),
        TermRecord("across", [0.0, 1.0], []),
    )

    assert expanded(workspace, "fast") == [("fast", "quick", 0.4), ("fast", "odd", 0.35), ("fast", "unknown", 0.35)]


def test_pinned_relations_count_and_removed_ones_do_not(workspace):
    relate(workspace, "fast", quick=0.9, owl=0.1)
    TermRelation.objects.filter(related__text="owl").update(pinned=True)
    TermRelation.objects.filter(related__text="quick").update(is_removed=True)

    assert expanded(workspace, "fast") == [("fast", "owl", 0.35)]


def test_cycles_and_query_words_are_handled(workspace):
    relate(workspace, "fast", quick=0.9, Speed=0.8)
    relate(workspace, "quick", fast=0.9)

    assert expanded(workspace, "fast", "Quick", "speed", "fast") == []
    assert expanded(workspace, "fast") == [("fast", "quick", 0.45), ("fast", "Speed", 0.4)]


def test_another_workspace_s_graph_is_not_used(workspace):
    relate(Workspace.objects.create(slug="other", name="Other"), "fast", quick=0.9)

    assert expanded(workspace, "fast") == []
    assert related(workspace, "fast") == []


def test_expansion_takes_two_queries_and_no_requests(workspace, monkeypatch, settings, django_assert_num_queries):
    def refuse(*_args):
        raise AssertionError("something was asked")

    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    terms = [TermRecord(f"w{number}", [1.0, number / 10], [f"w{number + 1}"]) for number in range(60)]
    take(workspace, *terms)
    monkeypatch.setattr(socket.socket, "connect", refuse)

    with django_assert_num_queries(2):
        assert expand(workspace, [f"w{number}" for number in range(0, 60, 2)], {})
    with django_assert_num_queries(0):
        assert expand(workspace, ["known"], {"known": 9}) == []


def test_neighbours_keep_their_order_and_mark_grids_relations(workspace):
    relate(workspace, "fast", quick=0.6, speed=0.9, told=None, gone=0.9)
    TermRelation.objects.filter(related__text="gone").update(is_removed=True)

    found = related(workspace, "fast")

    assert [(item.term.text, item.cosine, item.is_related) for item in found] == [
        ("quick", 0.6, False),
        ("speed", 0.9, True),
        ("told", None, True),
    ]


def pair(workspace, one: str = "fast", other: str = "quick") -> tuple[Term, Term]:
    return find_term(workspace, one), find_term(workspace, other)


def rows() -> list[tuple[str, str, bool, bool]]:
    found = TermRelation.objects.order_by("term__text", "related__text")
    return list(found.values_list("term__text", "related__text", "pinned", "is_removed"))


def test_a_relation_is_removed_in_both_directions_and_restored(workspace):
    relate(workspace, "fast", quick=0.9)
    relate(workspace, "quick", fast=0.9)
    TermRelation.objects.filter(term__text="fast").update(pinned=True)
    before = rows()

    decide(*pair(workspace), "remove", by=By(PERSON, NOW))
    assert related(workspace, "fast") == related(workspace, "quick") == []
    decide(*pair(workspace), "restore", by=By(PERSON, NOW))

    assert rows() == before
    told = AuditRecord.objects.order_by("id").values_list("action", "actor_name")
    assert list(told) == [("relation.removed", "olga"), ("relation.restored", "olga")]


def test_a_one_way_relation_of_a_file_stays_one_way(workspace):
    relate(workspace, "fast", quick=None)

    decide(*pair(workspace), "remove", by=By(PERSON, NOW))
    decide(*pair(workspace), "restore", by=By(PERSON, NOW))

    assert rows() == [("fast", "quick", False, False)]


def test_pinning_relates_two_terms_with_their_known_cosine(workspace):
    take(workspace, TermRecord("fast", [1.0, 0.0], ["x"]), TermRecord("owl", [0.6, 0.8], []))

    decide(*pair(workspace, "fast", "owl"), "pin", by=By(PERSON, NOW))

    assert rows() == [("fast", "owl", True, False), ("fast", "x", False, False), ("owl", "fast", True, False)]
    made = TermRelation.objects.get(term__text="fast", related__text="owl")
    assert made.rank == 1
    assert made.cosine == pytest.approx(0.6)
    decide(*pair(workspace, "fast", "owl"), "unpin", by=By(PERSON, NOW))
    assert not TermRelation.objects.filter(pinned=True).exists()


def test_a_missing_relation_is_reported(workspace):
    relate(workspace, "fast", quick=0.9)
    relate(workspace, "owl")
    fast = find_term(workspace, "fast")

    with raises_code("relation_not_fitting", match="not related"):
        decide(*pair(workspace, "fast", "owl"), "remove", by=By(PERSON, NOW))
    with raises_code("relation_not_fitting"):
        decide(fast, fast, "pin", by=By(PERSON, NOW))
    with raises_code("term_not_found", match="nowhere"):
        find_term(workspace, "nowhere")
    assert find_term(workspace, " FAST ").pk == fast.pk
    assert not AuditRecord.objects.exists()


def test_a_file_with_the_reverse_relation_does_not_restore_it(workspace):
    take(workspace, TermRecord("fast", [1.0, 0.0], ["quick"]), TermRecord("quick", [0.8, 0.6], []))
    decide(*pair(workspace), "remove", by=By(PERSON, NOW))

    take(workspace, TermRecord("fast", [1.0, 0.0], ["quick"]), TermRecord("quick", [0.8, 0.6], ["fast"]))

    assert related(workspace, "quick") == []

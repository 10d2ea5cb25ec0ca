"""Semantic search: results, requests to the provider, and failures of the provider."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from pytest_httpserver import HTTPServer
from werkzeug import Response

from knowledge_app.models import KnowledgeEntry, Observation, RowVector
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.graph.embedding_run import request_if_due, request_where_due
from memoryhub.graph.row_embedding import row_outlook
from memoryhub.graph.row_vectors import SOURCES
from memoryhub.runs.executing import execute
from memoryhub.search import KINDS, RankOptions, query_embedding, semantic, vector_cache
from memoryhub.search.results import explanation
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session
from tests.embedder import Embedder, embed
from tests.hub import NOW, PERSON
from tests.searches import know, log, observe, say, search, texts

pytestmark = pytest.mark.django_db
WITHOUT_GRAPH = RankOptions(graph=False)  # so that only embeddings can find a row without shared words
CARRIER, BAKER = "fast carrier", "sourdough bread"


@pytest.fixture(autouse=True)
def _nothing_kept():
    query_embedding.forget_all()
    vector_cache.forget_all()


@pytest.fixture
def embedder(httpserver: HTTPServer, settings, monkeypatch) -> Iterator[Embedder]:
    embedder = Embedder(httpserver)
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = embedder.address
    with ThreadPoolExecutor(query_embedding.ASKERS) as asking:  # no late answer reaches the next test
        monkeypatch.setattr(query_embedding, "_asking", asking)
        yield embedder


@pytest.fixture
def dense_workspace(workspace: Workspace) -> Workspace:
    workspace.dense_search = True
    workspace.save()
    return workspace


def filled(workspace: Workspace, embedder: Embedder) -> None:
    """Two rows, one of which is similar to "quick courier" without sharing a word."""
    know(workspace, CARRIER)
    know(workspace, BAKER)
    embed(workspace)
    embedder.requests.clear()


class TestWhatIsFound:
    def test_off_by_default_only_words_are_sent_and_searches_ask_nobody(self, workspace, embedder):
        filled(workspace, embedder)
        embed(workspace)

        assert texts("quick sourdough", workspace) == [BAKER]
        assert embedder.requests == []
        assert not RowVector.objects.exists()

    def test_a_paraphrase_without_a_common_word_is_found_and_explained(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)

        found = search("quick courier", dense_workspace, options=WITHOUT_GRAPH)

        assert [hit.row.content for hit in found.hits] == [CARRIER]
        told = explanation(found.hits[0], found)
        assert told["cosine"] > 0.7
        assert [part["score"] for part in told["terms"]] == [0, 0]
        assert found.notes == []
        assert embedder.requests == [["quick courier"]]

    def test_every_kind_of_text_is_found_and_key_values_are_never_sent(self, dense_workspace, embedder):
        say(dense_workspace, "courier one")
        know(dense_workspace, "courier two")
        observe(dense_workspace, "courier three")
        log(dense_workspace, "courier four")
        dense_workspace.key_values.create(key="courier", value="five")
        embed(dense_workspace)

        kinds = {hit.kind for hit in search("parcel", dense_workspace, options=WITHOUT_GRAPH).hits}

        assert kinds == {"entry", "knowledge", "observation", "history"}
        assert "five" not in " ".join(embedder.words)

    def test_what_both_find_comes_before_what_one_does(self, dense_workspace, embedder):
        know(dense_workspace, "parcel")
        know(dense_workspace, "courier")
        know(dense_workspace, "parcel zeppelin quartz umbrella yonder xylem walnut violet")
        embed(dense_workspace)

        assert texts("parcel", dense_workspace, options=WITHOUT_GRAPH)[0] == "parcel"

    def test_a_question_is_asked_once(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)

        search("quick courier", dense_workspace)
        search("quick courier", dense_workspace)

        assert embedder.requests == [["quick courier"]]

    @pytest.mark.parametrize("text", ['"quick courier"', "quick AND courier", "kind:knowledge", "password=hunter2x"])
    def test_what_requires_something_or_looks_secret_is_not_sent(self, dense_workspace, embedder, text):
        filled(dense_workspace, embedder)

        search(text, dense_workspace)

        assert embedder.requests == []

    def test_half_typed_words_are_not_sent(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)

        search("quick couri", dense_workspace, prefix=True)

        assert embedder.requests == []

    def test_filters_and_excluded_words_hold(self, dense_workspace, embedder):
        know(dense_workspace, CARRIER, category="project_context")
        know(dense_workspace, "speed parcel")
        embed(dense_workspace)
        embedder.requests.clear()

        assert texts("quick courier category:project_context", dense_workspace) == [CARRIER]
        assert texts("quick courier -speed", dense_workspace) == [CARRIER]
        assert texts("quick courier before:2020", dense_workspace) == []
        assert set(embedder.words) == {"quick courier"}

    def test_vectors_of_other_workspaces_never_count(self, dense_workspace, embedder):
        other = Workspace.objects.create(slug="other", name="Other", dense_search=True)
        filled(other, embedder)
        know(dense_workspace, BAKER)
        embed(dense_workspace)

        assert texts("quick courier", dense_workspace) == []
        assert texts("quick courier", other, options=WITHOUT_GRAPH) == [CARRIER]

    def test_a_withdrawn_row_is_not_shown_and_comes_back_with_its_undoing(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        KnowledgeEntry.objects.filter(content=CARRIER).update(withdrawn_at=NOW)
        assert texts("quick courier", dense_workspace, options=WITHOUT_GRAPH) == []

        KnowledgeEntry.objects.filter(content=CARRIER).update(withdrawn_at=None)
        assert texts("quick courier", dense_workspace, options=WITHOUT_GRAPH) == [CARRIER]


class TestWhatIsStored:
    def test_a_changed_text_counts_by_what_it_says_now(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        search("quick courier", dense_workspace)
        KnowledgeEntry.objects.filter(content=CARRIER).update(content="rye crumbs", updated_at=timezone.now())
        KnowledgeEntry.objects.filter(content=BAKER).update(content="speed parcel", updated_at=timezone.now())
        assert texts("quick courier", dense_workspace, options=WITHOUT_GRAPH) == []

        run = request_if_due(dense_workspace, timezone.now())
        assert run is not None
        execute(run.pk, now=timezone.now)

        assert texts("quick courier", dense_workspace, options=WITHOUT_GRAPH) == ["speed parcel"]
        assert RowVector.objects.count() == 2

    def test_only_new_texts_are_sent(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        say(dense_workspace, "a courier came")
        run = request_if_due(dense_workspace, timezone.now())
        execute(run.pk, now=timezone.now)

        assert embedder.requests == [["a courier came"]]
        assert request_if_due(dense_workspace, timezone.now()) is None

    def test_long_texts_are_cut_and_texts_with_secrets_stay_here(self, dense_workspace, embedder):
        say(
            dense_workspace,
            "word " * 1000,
            "the token is ghp_" + "a1B2" * 9,
            "x" * 1995 + " AKIA" + "ABCD1234EFGH5678",
        )
        run = embed(dense_workspace)

        assert [len(text) for text in embedder.words] == [2000]
        assert run.proposal["rows"] == 1

    def test_forgotten_rows_lose_their_vectors_at_once(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        session = say(dense_workspace, "courier of the session")[0].session
        embed(dense_workspace)

        for wish in (ErasureRequest("phrase", ("fast carrier",)), ErasureRequest("session", session=session)):
            count = plan_forget(dense_workspace, wish).total
            apply_forget(dense_workspace, wish, expected=count, reason="", by=By(PERSON, NOW))

        left = KnowledgeEntry.objects.get(content=BAKER)
        assert list(RowVector.objects.values_list("kind", "object_id")) == [("knowledge", left.pk)]

    def test_a_deleted_session_loses_its_vectors_with_the_next_run(self, dense_workspace, embedder):
        session = say(dense_workspace, "a courier came")[0].session
        embed(dense_workspace)
        delete_session(session, confirmation=session.key, reason="", by=By(PERSON, NOW))
        assert texts("parcel", dense_workspace) == []

        execute(request_if_due(dense_workspace, timezone.now()).pk, now=timezone.now)

        assert not RowVector.objects.exists()

    def test_switched_off_all_vectors_go(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        Workspace.objects.update(dense_search=False)

        request_where_due(timezone.now())

        assert not RowVector.objects.exists()

    def test_a_rebuild_makes_all_of_them_anew(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        before = set(RowVector.objects.values_list("pk", flat=True))

        embed(dense_workspace, rebuild=True)

        assert embedder.requests[-1] == [BAKER, CARRIER]
        assert not before & set(RowVector.objects.values_list("pk", flat=True))

    def test_a_run_ends_at_the_daily_token_limit_and_resumes_the_next_day(self, dense_workspace, embedder):
        Workspace.objects.update(daily_token_budget=700)
        say(dense_workspace, *(f"carrier {number}" for number in range(70)))
        embedder.spoil = lambda body: body | {"usage": {"prompt_tokens": 690}}

        run = embed(dense_workspace)

        assert run.proposal["goes_on"] is True
        assert RowVector.objects.count() == 64
        tomorrow = timezone.now() + timedelta(days=1)
        execute(Run.objects.exclude(pk=run.pk).get().pk, now=lambda: tomorrow)
        assert RowVector.objects.count() == 70

    def test_the_outlook_says_what_all_rows_would_take(self, workspace, embedder, settings):
        settings.MEMORYHUB_LLM_PRICES = "tiny=100000/0"
        say(workspace, "x" * 4000)
        know(workspace, CARRIER)

        found = row_outlook(workspace)

        assert (found.rows, found.tokens) == (2, (2000 + len(CARRIER)) // 4)
        assert float(found.cost) == pytest.approx(found.tokens / 10)

    def test_without_a_provider_no_rows_are_counted(self, workspace, django_assert_max_num_queries):
        say(workspace, CARRIER)

        with django_assert_max_num_queries(1):  # of the settings
            assert row_outlook(workspace) is None


class TestAProviderThatFails:
    @pytest.mark.parametrize(
        ("spoil", "milliseconds"),
        [
            (lambda body: Response("down", status=503), 30_000),
            (lambda body: Response("<html>Welcome</html>"), 30_000),
            (lambda body: (time.sleep(2), body)[1], 1000),
            (lambda body: {"data": [item | {"embedding": [0.0] * 64} for item in body["data"]]}, 30_000),
        ],
        ids=["down", "html", "slow", "zeros"],
    )
    def test_words_alone_are_compared_and_it_is_left_alone(
        self, dense_workspace, embedder, spoil, milliseconds, monkeypatch
    ):
        monkeypatch.setattr(query_embedding, "MILLISECONDS", milliseconds)
        filled(dense_workspace, embedder)
        embedder.spoil = spoil

        found = search("quick sourdough", dense_workspace)
        again = search("another sourdough", dense_workspace)

        assert [hit.row.content for hit in found.hits] == [BAKER]
        assert found.notes == again.notes == [semantic.UNANSWERED]
        assert len(embedder.requests) == 1

    def test_another_length_is_not_compared(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        embedder.size = 48

        found = search("quick sourdough", dense_workspace)

        assert [hit.row.content for hit in found.hits] == [BAKER]
        assert found.notes == [semantic.UNFIT]

    def test_before_anything_is_embedded_nobody_is_asked(self, dense_workspace, embedder):
        know(dense_workspace, BAKER)

        found = search("quick sourdough", dense_workspace)

        assert [hit.row.content for hit in found.hits] == [BAKER]
        assert found.notes == [semantic.NONE_YET]
        assert embedder.requests == []

    def test_where_the_days_tokens_are_used_up_nobody_is_asked(self, dense_workspace, embedder):
        filled(dense_workspace, embedder)
        Workspace.objects.update(daily_token_budget=1)

        assert search("quick sourdough", dense_workspace).notes == [semantic.SPENT]
        assert embedder.requests == []

    def test_an_answer_that_came_too_late_serves_the_next_search(self, dense_workspace, embedder, monkeypatch):
        filled(dense_workspace, embedder)
        answered = query_embedding.Future.result

        def too_late(asked, timeout):
            answered(asked, 30)
            raise TimeoutError

        monkeypatch.setattr(query_embedding.Future, "result", too_late)
        assert search("quick courier", dense_workspace).notes == [semantic.UNANSWERED]

        assert texts("quick courier", dense_workspace, options=WITHOUT_GRAPH) == [CARRIER]


class TestVectorsInMemory:
    @pytest.fixture(autouse=True)
    def _small_pages(self, monkeypatch):
        monkeypatch.setattr(vector_cache, "CHUNK", 3)

    def read(self, workspace: Workspace, *, seconds: float = 60.0) -> vector_cache.Matrix:
        versions = vector_cache.versions_of(workspace.pk)
        until = time.monotonic() + seconds
        return vector_cache.matrices_of(workspace.pk, "ollama/tiny/64", versions, until=until)["observation"]

    def observed(self, workspace: Workspace, count: int) -> None:
        for _ in range(count):
            observe(workspace, "courier")
        embed(workspace)

    def test_what_comes_is_read_beside_what_is_known(self, dense_workspace, embedder, django_assert_num_queries):
        self.observed(dense_workspace, 8)
        assert len(self.read(dense_workspace).keys) == 8
        self.observed(dense_workspace, 2)

        matrix = self.read(dense_workspace)

        assert sorted(matrix.keys) == sorted(Observation.objects.values_list("pk", flat=True))
        assert matrix.is_whole
        with django_assert_num_queries(1):
            self.read(dense_workspace)

    def test_what_a_search_has_no_time_for_the_next_reads(self, dense_workspace, embedder, monkeypatch):
        self.observed(dense_workspace, 8)
        clock = iter(range(1000))
        monkeypatch.setattr(vector_cache.time, "monotonic", lambda: next(clock))
        versions = vector_cache.versions_of(dense_workspace.pk)

        found = [
            vector_cache.matrices_of(dense_workspace.pk, "ollama/tiny/64", versions, until=end)["observation"]
            for end in (1, 3, 100)
        ]

        assert [len(matrix.keys) for matrix in found] == [3, 6, 8]
        assert [matrix.is_whole for matrix in found] == [False, False, True]

    def test_what_goes_is_gone_from_memory(self, dense_workspace, embedder):
        self.observed(dense_workspace, 4)
        self.read(dense_workspace)
        RowVector.objects.filter(pk=RowVector.objects.earliest("pk").pk).delete()

        assert len(self.read(dense_workspace).keys) == 3


def test_every_embedded_kind_is_searched():
    assert {name: (source.model, source.column) for name, source in SOURCES.items()} == {
        name: (KINDS[name].model, KINDS[name].texts[0]) for name in SOURCES
    }


def test_the_settings_page_shows_what_is_sent_and_its_cost(workspace, embedder, admin_client, settings):
    settings.MEMORYHUB_LLM_PRICES = "tiny=100/0"
    say(workspace, "x" * 4000)

    page = admin_client.get(reverse("workspace-settings", args=[workspace.slug])).content.decode()

    assert "Key-values and possible secrets are never sent" in page
    assert "to ollama: 1 now (≈ 500 tokens, $0.050000)" in page


def test_the_command_turns_semantic_search_on_and_off(workspace, command):
    assert command("workspace", "set", "atlas", "dense_search=on")["changed"] == {"dense_search": [False, True]}
    assert command("workspace", "set", "atlas", "dense_search=off")["settings"]["dense_search"] is False

"""Embedding runs: batches, failures of the provider, rebuilds and stored relations."""

from __future__ import annotations

import pytest
from django.utils import timezone
from werkzeug import Response

from knowledge_app.models import KnowledgeEntry, Observation, SemanticGraph, Term, TermRelation
from memoryhub.graph import embedding_run
from memoryhub.graph.embedding_run import request_if_due
from memoryhub.graph.export import graph_document
from memoryhub.graph.nearest import MOST
from memoryhub.graph.neighbours import expand, import_graph
from memoryhub.lib.layouts.records import GraphRecord, TermRecord
from memoryhub.runs.executing import execute
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.compressing.model_choice import embedding_settings_for
from tests.embedder import embed
from tests.hub import NOW

pytestmark = pytest.mark.django_db
TEXTS = ["The database has a schema", "A quick carrier", "PostgreSQL is fast, the parcel came with speed"]


def observe(workspace: Workspace, *texts: str) -> None:
    count = Observation.objects.count()
    for place, text in enumerate(texts):
        Observation.objects.create(
            workspace=workspace, uid=f"o{count + place}", category="finding", content=text, updated_at=NOW
        )


def neighbours(word: str) -> list[str]:
    rows = TermRelation.objects.filter(term__text=word, is_removed=False).order_by("rank", "id")
    return list(rows.values_list("related__text", flat=True))


def test_words_of_current_texts_are_embedded_and_related(workspace, embedder):
    observe(workspace, *TEXTS)
    KnowledgeEntry.objects.create(workspace=workspace, content_id="k", category="learned_fact", content="the courier")
    Observation.objects.create(
        workspace=workspace, uid="gone", category="lesson", content="withdrawn words", withdrawn_at=NOW
    )

    run = embed(workspace)

    assert run.status == "done"
    words = {"database", "schema", "quick", "carrier", "postgresql", "fast", "parcel", "came", "speed", "courier"}
    assert set(embedder.words) == words == set(Term.objects.values_list("text", flat=True))
    assert set(neighbours("database")) == {"postgresql", "schema"}
    assert set(neighbours("schema")) == {"database", "postgresql"}
    assert neighbours("came") == []
    assert Term.objects.filter(fingerprint="ollama/tiny/64").count() == 10
    assert (run.model, run.prompt_tokens, run.proposal["embedded"]) == ("tiny", 10, 10)
    graph = SemanticGraph.objects.get()
    assert (graph.provider, graph.model, graph.base_url, graph.dimensions) == ("ollama", "tiny", embedder.address, 64)
    assert graph.built_at is not None
    assert AuditRecord.objects.filter(action="graph.built").count() == 1


def test_only_new_words_are_requested(workspace, embedder):
    observe(workspace, *TEXTS)
    embed(workspace)
    embedder.requests.clear()

    observe(workspace, "A courier for the database")
    embed(workspace)

    assert embedder.requests == [["courier"]]
    assert "courier" in neighbours("carrier")
    assert "carrier" in neighbours("courier")


def test_no_request_is_made_if_nothing_is_missing(workspace, embedder):
    observe(workspace, *TEXTS)
    embed(workspace)
    built_at = SemanticGraph.objects.get().built_at
    embedder.requests.clear()

    run = embed(workspace)

    assert run.proposal["nothing_due"] == "Every word has its embedding."
    assert embedder.requests == []
    assert SemanticGraph.objects.get().built_at == built_at


def test_words_are_sent_in_batches_with_progress(workspace, embedder, monkeypatch):
    observe(workspace, *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(130)))
    told = []
    renew = embedding_run.renew_lease
    monkeypatch.setattr(
        embedding_run, "renew_lease", lambda run, **values: (told.append(values), renew(run, **values))
    )

    embed(workspace)

    assert [len(request) for request in embedder.requests] == [64, 64, 2]
    assert [(step.get("steps_done"), step.get("steps_total")) for step in told[1:]] == [(0, 3), (1, 3), (2, 3)]


def test_the_provider_is_never_called_inside_a_transaction(workspace, embedder, monkeypatch):
    from django.db import connection

    depths = []
    ask = embedding_run.embed
    depth = len(connection.savepoint_ids)
    monkeypatch.setattr(
        embedding_run, "embed", lambda *args: (depths.append(len(connection.savepoint_ids) - depth), ask(*args))[1]
    )
    observe(workspace, *TEXTS)

    embed(workspace)

    assert depths == [0]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: Response("<html>Bad gateway</html>", status=502),
        lambda body: Response("<html>Welcome</html>"),
        lambda body: body | {"data": body["data"][1:]},
        lambda body: {"data": [item | {"embedding": [float("nan")] * 64} for item in body["data"]]},
        lambda body: {
            "data": [item | {"embedding": item["embedding"][: 3 + item["index"]]} for item in body["data"]]
        },
        lambda body: {"error": "no"},
    ],
    ids=["outage", "html", "too few", "nan", "short", "error"],
)
def test_a_failing_provider_changes_nothing_and_is_retried_later(workspace, embedder, spoil):
    observe(workspace, TEXTS[0])
    embed(workspace)
    before = graph_document(workspace)
    observe(workspace, *TEXTS[1:])
    embedder.spoil = spoil

    run = embed(workspace)

    assert run.status == "queued"
    assert run.attempt_count == 1
    assert run.error
    assert run.not_before > timezone.now()
    assert graph_document(workspace) == before
    assert [found.related for found in expand(workspace, ["schema"], {})] != []


def test_a_run_is_parked_with_the_reason_if_the_provider_keeps_failing(workspace, embedder):
    observe(workspace, *TEXTS)
    embedder.spoil = lambda body: Response("down for maintenance", status=503)
    run = embed(workspace)
    for _ in range(2):
        Run.objects.update(not_before=timezone.now())
        run = execute(run.pk, now=timezone.now)

    assert (run.status, run.error_code) == ("parked", "model_unavailable")
    assert "down for maintenance" in run.error
    assert request_if_due(workspace, timezone.now()) is None

    embedder.spoil = lambda body: body
    again = embed(workspace)
    assert (again.pk, again.status) == (run.pk, "done")


def test_a_parked_run_resumes_when_the_provider_changes(workspace, embedder):
    observe(workspace, *TEXTS)
    embedder.spoil = lambda body: Response("no such model", status=404)
    run = embed(workspace)
    assert run.status == "parked"
    assert request_if_due(workspace, timezone.now()) is None

    workspace.embedding_model = "other"
    workspace.save()

    assert request_if_due(workspace, timezone.now()).pk == run.pk
    assert Run.objects.get().status == "queued"


def test_words_embedded_before_a_failure_are_kept(workspace, embedder):
    observe(workspace, *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100)))

    def spoil(body):
        return body if len(embedder.requests) == 1 else Response("gone", status=503)

    embedder.spoil = spoil
    run = embed(workspace)
    assert run.status == "queued"
    assert run.prompt_tokens == 64
    first = embedder.requests[0]
    embedder.requests.clear()
    embedder.spoil = lambda body: body
    Run.objects.update(not_before=timezone.now())

    done = execute(run.pk, now=timezone.now)

    assert done.status == "done"
    assert done.prompt_tokens == 100
    assert set(first).isdisjoint(embedder.words)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("change", ["model", "provider", "dimensions"])
def test_a_new_model_provider_or_dimension_rebuilds_the_graph(workspace, embedder, settings, change):
    observe(workspace, *TEXTS)
    embed(workspace)
    embedder.requests.clear()
    if change == "model":
        settings.MEMORYHUB_EMBEDDING_MODEL = "other"
    elif change == "provider":
        settings.MEMORYHUB_EMBEDDING_PROVIDER = "mistral"
    else:
        embedder.size = 48
        observe(workspace, "one courier")

    run = request_if_due(workspace, timezone.now())
    assert run is not None
    execute(run.pk, now=timezone.now)

    words = set(Term.objects.values_list("text", flat=True))
    assert set(embedder.words) == words
    graph = SemanticGraph.objects.get()
    made_by = f"{graph.provider}/{graph.model}/{graph.dimensions}"
    assert (
        made_by == {"model": "ollama/other/64", "provider": "mistral/tiny/64", "dimensions": "ollama/tiny/48"}[change]
    )
    assert set(Term.objects.values_list("fingerprint", flat=True)) == {made_by}
    assert {"postgresql", "schema"} == set(neighbours("database"))
    assert request_if_due(workspace, timezone.now()) is None


def test_a_dimension_that_changes_within_a_run_is_refused(workspace, embedder):
    observe(workspace, *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100)))
    embedder.before = lambda: setattr(embedder, "size", 64 - len(embedder.requests))

    run = embed(workspace)

    assert run.error_code == "bad_reply"
    assert "instead of 63" in run.error


def test_a_rebuild_embeds_every_term_again(workspace, embedder):
    observe(workspace, *TEXTS)
    embed(workspace)
    terms = Term.objects.count()
    before = set(TermRelation.objects.values_list("term", "related", "cosine"))
    embedder.requests.clear()

    run = embed(workspace, rebuild=True)

    assert len(embedder.words) == terms == run.proposal["embedded"]
    assert set(TermRelation.objects.values_list("term", "related", "cosine")) == before


@pytest.mark.slow
@pytest.mark.postgres
def test_an_interrupted_rebuild_resumes(workspace, embedder):
    observe(workspace, *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100)))
    embed(workspace)
    embedder.requests.clear()
    embedder.spoil = lambda body: body if len(embedder.requests) == 1 else Response("gone", status=503)
    run = embed(workspace, rebuild=True)
    embedder.spoil = lambda body: body
    Run.objects.update(not_before=timezone.now())
    embedder.requests.clear()

    done = execute(run.pk, now=timezone.now)

    assert done.status == "done"
    assert [len(request) for request in embedder.requests] == [36]


def test_pinned_and_removed_relations_survive_a_rebuild(workspace, embedder):
    observe(workspace, *TEXTS)
    embed(workspace)
    pks = dict(Term.objects.values_list("text", "pk"))
    TermRelation.objects.filter(term=pks["database"], related=pks["schema"]).update(is_removed=True)
    TermRelation.objects.create(term_id=pks["database"], related_id=pks["came"], pinned=True, cosine=0.1, rank=7)

    embed(workspace, rebuild=True)

    assert neighbours("database") == ["postgresql", "came"]
    assert TermRelation.objects.get(term=pks["database"], related=pks["came"]).cosine == 0.1
    assert TermRelation.objects.get(term=pks["database"], related=pks["schema"]).is_removed
    assert "database" in neighbours("schema")


def test_a_removed_pair_is_removed_in_both_directions(workspace, embedder):
    observe(workspace, "database", "schema")
    embed(workspace)
    pks = dict(Term.objects.values_list("text", "pk"))
    TermRelation.objects.filter(term=pks["database"]).update(is_removed=True)
    TermRelation.objects.filter(term=pks["schema"]).delete()

    embed(workspace, rebuild=True)

    assert neighbours("schema") == []


def test_a_term_has_ten_neighbours_at_most(workspace, embedder, monkeypatch):
    monkeypatch.setattr("tests.embedder.FAMILIES", [" ".join(f"kin{chr(97 + n)}" for n in range(20))])
    observe(workspace, *(f"kin{chr(97 + n)}" for n in range(20)))

    embed(workspace)

    assert {len(neighbours(f"kin{chr(97 + n)}")) for n in range(20)} == {MOST}
    rows = TermRelation.objects.filter(term__text="kina").order_by("rank").values_list("rank", "cosine")
    assert [rank for rank, _ in rows] == list(range(MOST))
    assert [cosine for _, cosine in rows] == sorted((cosine for _, cosine in rows), reverse=True)


def test_a_graph_file_of_another_model_contributes_only_words(workspace, embedder):
    def take(*terms: TermRecord) -> None:
        graph = GraphRecord("test", "hash", "", 2, None, "2026", list(terms))
        has_own = embedding_settings_for(workspace) is not None
        import_graph(workspace=workspace, graph=graph, path="g", now=NOW, dry_run=False, has_own=has_own)

    take(TermRecord("database", [1.0, 0.0], ["schema"]), TermRecord("schema", [1.0, 0.0], []))
    execute(request_if_due(workspace, timezone.now()).pk, now=timezone.now)
    assert SemanticGraph.objects.get().provider == "ollama"
    assert neighbours("schema") == ["database"]
    embedder.requests.clear()

    take(TermRecord("database", [1.0, 0.0], []), TermRecord("postgresql", [1.0, 0.0], ["database"]))

    assert SemanticGraph.objects.get().provider == "ollama"
    assert neighbours("database") == ["schema"]
    execute(request_if_due(workspace, timezone.now()).pk, now=timezone.now)
    assert embedder.requests == [["postgresql"]]
    assert set(neighbours("database")) == {"schema", "postgresql"}


def test_relations_of_a_graph_file_with_the_same_model_are_kept(workspace, embedder):
    first, second, third = [1.0] + [0.0] * 63, [0.9, 0.1] + [0.0] * 62, [0.0] * 63 + [1.0]
    terms = [TermRecord("aaa", first, ["bbb", "ccc"]), TermRecord("bbb", second, []), TermRecord("ccc", third, [])]
    graph = GraphRecord("ollama", "tiny", "", 64, None, "2026", terms)
    import_graph(workspace=workspace, graph=graph, path="g", now=NOW, dry_run=False)

    observe(workspace, "database")
    embed(workspace)

    assert embedder.words == ["database"]
    assert neighbours("aaa") == ["bbb", "ccc"]

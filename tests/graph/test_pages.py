"""The graph's pages: actions, roles, and isolation between workspaces."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_httpserver import HTTPServer

from knowledge_app.models import KnowledgeEntry, Observation, Term, TermRelation
from memoryhub.graph.neighbours import import_graph
from memoryhub.lib.layouts.records import GraphRecord, TermRecord
from memoryhub.runs.executing import execute
from sessions_app.models import AuditRecord, Run, Workspace
from tests.embedder import Embedder
from tests.hub import NOW, client_of, member, url
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
HOSTILE = "</title><script>window.__xss=1</script><img src=x onerror=alert(1)>"
ACTIONS = ["pin-relation", "unpin-relation", "remove-relation", "restore-relation"]


@pytest.fixture
def editor(workspace) -> Client:
    return client_of(member(workspace, "edith", "editor"))


@pytest.fixture
def fast(workspace) -> Term:
    terms = [
        TermRecord("fast", [1.0, 0.0], ["quick", "soon"]),
        TermRecord("quick", [0.8, 0.6], ["fast"]),
        TermRecord("soon", [0.6, 0.8], []),
        TermRecord("owl", [0.0, 1.0], []),
    ]
    import_graph(
        workspace=workspace,
        graph=GraphRecord("p", "m", "", 2, None, "once", terms),
        path="g",
        now=NOW,
        dry_run=False,
    )
    return Term.objects.get(text="fast")


def text_of(response) -> str:
    return response.content.decode()


def number(text: str) -> int:
    return Term.objects.get(text=text).pk


def command(*args: str, **options) -> dict:
    from io import StringIO

    out = StringIO()
    call_command("terms", "atlas", *args, json=True, stdout=out, **options)
    return json.loads(out.getvalue())


def test_the_list_finds_terms_by_substring(fast, viewer_client):
    page = text_of(viewer_client.get(url("terms"), {"q": "UIC"}, headers={"HX-Request": "true"}))

    assert "quick" in page
    assert "soon" not in page
    assert "<html" not in page
    assert "No matches" in text_of(viewer_client.get(url("terms"), {"q": "%"}))


def test_the_list_shows_the_model_and_the_number_of_waiting_terms(fast, viewer_client, settings):
    assert "none (embeddings are off)" in text_of(viewer_client.get(url("terms")))
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "mistral"

    page = text_of(viewer_client.get(url("terms")))

    assert "p m" in page
    assert "mistral mistral-embed" in page
    assert "4 terms" in page


def test_an_empty_list_explains_terms(workspace, viewer_client, settings):
    assert "Choose an embedding provider" in text_of(viewer_client.get(url("terms")))
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
    assert "Terms are created from observations" in text_of(viewer_client.get(url("terms")))


def test_the_page_reports_a_provider_without_embeddings(workspace, editor, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "anthropic"

    page = editor.get(url("terms"))

    assert "Use voyage" in text_of(page)
    assert 'action="/w/atlas/terms/embed/"' not in text_of(page)
    assert editor.post(url("rebuild-terms")).status_code == 422


def test_an_editor_rebuilds_the_graph_and_sees_the_cost(
    fast, editor, viewer_client, settings, httpserver: HTTPServer
):
    embedder = Embedder(httpserver)
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = embedder.address
    settings.MEMORYHUB_LLM_PRICES = "tiny=1000000/0"
    assert "$4.000000" in text_of(editor.get(url("terms")))
    assert "Build" not in text_of(viewer_client.get(url("terms")))

    response = editor.post(url("rebuild-terms"))

    run = Run.objects.get()
    assert response["Location"] == url("run", run.pk)
    assert run.options["rebuild"] is True
    execute(run.pk, now=timezone.now)
    page = text_of(editor.get(url("run", run.pk)))
    assert "Terms embedded" in page
    assert "Archive the messages" not in page
    assert f"Embedding {run.pk}" in text_of(editor.get(url("terms")))
    assert embedder.words == ["fast", "quick", "soon", "owl"]


def test_missing_embeddings_can_be_requested(fast, editor, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"

    editor.post(url("embed-terms"))

    assert "rebuild" not in Run.objects.get().options
    assert 'action="/w/atlas/terms/embed/"' not in text_of(editor.get(url("terms")))


def test_a_parked_run_can_be_retried_or_cancelled(fast, editor, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
    run = Run.objects.create(workspace=fast.workspace, kind="embedding", status="parked", error="No such model.")

    page = text_of(editor.get(url("run", run.pk)))

    assert "No such model." in page
    assert url("retry-run", run.pk) in page
    assert url("fold-run", run.pk) not in page
    assert "No such model." in text_of(editor.get(url("terms")))
    editor.post(url("dismiss-run", run.pk))
    assert Run.objects.get().status == "failed"


@pytest.mark.parametrize("name", ["embed-terms", "rebuild-terms"])
def test_a_viewer_cannot_rebuild(name, fast, viewer_client, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"

    assert viewer_client.post(url(name)).status_code == 404
    assert viewer_client.get(url(name)).status_code == 405
    assert not Run.objects.exists()


def test_the_graph_is_downloaded_in_grids_format(fast, viewer_client):
    response = viewer_client.get(url("export-terms"))

    assert response["Content-Type"] == "application/json"
    assert "semantic_graph.json" in response["Content-Disposition"]
    body = b"".join(response.streaming_content)
    assert json.loads(body)["terms"]["fast"] == {"embedding": [1, 0], "related": ["quick", "soon"]}


def test_a_term_shows_its_neighbours_and_occurrences(workspace, fast, viewer_client):
    Observation.objects.create(workspace=workspace, uid="o", category="finding", content="The API is fast.")
    Observation.objects.create(workspace=workspace, uid="p", category="finding", content="A breakfast.")
    Observation.objects.create(
        workspace=workspace, uid="q", category="finding", content="fast no more", withdrawn_at=NOW
    )
    KnowledgeEntry.objects.create(workspace=workspace, content_id="k", category="learned_fact", content="Go FAST")

    page = text_of(viewer_client.get(url("term", fast.pk)))

    assert "0.80" in page
    assert page.count(">related<") == 1
    assert page.count(">similar<") == 1
    assert "The API is fast." in page
    assert "Go FAST" in page
    assert "breakfast" not in page
    assert "fast no more" not in page
    assert "Remove" not in page


def test_a_relation_is_removed_and_restored(fast, editor):
    editor.post(url("remove-relation", fast.pk), {"other": number("quick")})

    assert list(TermRelation.objects.filter(is_removed=True).order_by("pk").values_list("term__text", flat=True)) == [
        "fast",
        "quick",
    ]
    page = text_of(editor.get(url("term", fast.pk)))
    assert "Removed manually" in page
    assert "Also a neighbour of" not in page
    editor.post(url("restore-relation", fast.pk), {"other": number("quick")})
    assert not TermRelation.objects.filter(is_removed=True).exists()
    assert set(AuditRecord.objects.values_list("action", "actor_name")) == {
        ("relation.removed", "edith"),
        ("relation.restored", "edith"),
    }


def test_a_relation_is_pinned_and_unpinned(fast, editor):
    editor.post(url("pin-relation", fast.pk), {"other": number("soon")})
    assert TermRelation.objects.get(term=fast, related__text="soon").pinned
    assert "Unpin" in text_of(editor.get(url("term", fast.pk)))

    editor.post(url("unpin-relation", fast.pk), {"other": number("soon")})
    assert not TermRelation.objects.filter(pinned=True).exists()


def test_a_term_is_related_to_another_by_name(fast, editor):
    response = editor.post(url("relate-terms", fast.pk), {"name": " Owl "})

    assert response.status_code == 302
    assert TermRelation.objects.get(term=fast, related__text="owl").pinned
    assert TermRelation.objects.get(term__text="owl", related=fast).pinned


@pytest.mark.parametrize(("name", "words"), [("nowhere", "no term"), ("", "required"), ("fast", "other terms only")])
def test_an_unknown_term_is_reported(fast, editor, name, words):
    response = editor.post(url("relate-terms", fast.pk), {"name": name})

    assert response.status_code == 422
    assert words in text_of(response)
    assert not TermRelation.objects.filter(pinned=True).exists()


@pytest.mark.parametrize("name", ACTIONS)
def test_decisions_need_an_editor_a_relation_and_ones_own_workspace(name, fast, editor, viewer_client):
    foreign = Term.objects.create(workspace=Workspace.objects.create(slug="other", name="Other"), text="x")
    before = list(TermRelation.objects.order_by("pk").values())
    address = url(name, fast.pk)

    assert viewer_client.post(address, {"other": number("quick")}).status_code == 404
    assert editor.get(address).status_code == 405
    for other in (foreign.pk, number("owl"), 999_999, "x", ""):
        assert editor.post(address, {"other": other}).status_code == 404
    assert editor.post(url(name, foreign.pk), {"other": fast.pk}).status_code == 404
    assert list(TermRelation.objects.order_by("pk").values()) == before


def test_stored_text_is_escaped_on_the_graph_pages(workspace, editor):
    terms = [TermRecord(HOSTILE, [1.0, 0.0], ["b"]), TermRecord("b", [1.0, 0.1], [HOSTILE])]
    graph = GraphRecord(HOSTILE[:50], HOSTILE, HOSTILE, 2, None, HOSTILE, terms)
    import_graph(workspace=workspace, graph=graph, path="g", now=NOW, dry_run=False)
    Observation.objects.create(workspace=workspace, uid="o", category="finding", content=f"b {HOSTILE}")
    TermRelation.objects.filter(term__text="b").update(is_removed=True)
    pages = [url("terms"), *(url("term", pk) for pk in Term.objects.values_list("pk", flat=True))]

    for page in pages:
        assert live_markup(text_of(editor.get(page))) == []


def queries_of(client: Client, address: str) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_the_number_of_queries_does_not_depend_on_the_number_of_neighbours(workspace, editor, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
    counts = []
    for size in (10, 40):
        names = [f"w{place}" for place in range(size)]
        terms = [TermRecord(name, [1.0, 0.1], [other for other in names if other != name]) for name in names]
        import_graph(
            workspace=workspace,
            graph=GraphRecord("p", "m", "", 2, None, "once", terms),
            path="g",
            now=NOW,
            dry_run=False,
        )
        Observation.objects.create(workspace=workspace, uid=f"o{size}", category="finding", content="w0")
        counts.append((queries_of(editor, url("terms")), queries_of(editor, url("term", number("w0")))))

    assert counts[0] == counts[1]


def test_the_command_lists_shows_and_decides(workspace, fast):
    Observation.objects.create(workspace=workspace, uid="o", category="finding", content="fast")

    listed = command("list", contains="o")
    assert [row["text"] for row in listed["terms"]] == ["owl", "soon"]
    assert (listed["count"], listed["waiting"]) == (4, 0)
    assert listed["graph"]["provider"] == "p"
    shown = command("show", "fast")
    assert [(row["text"], row["related"]) for row in shown["neighbours"]] == [("quick", True), ("soon", False)]
    assert shown["observations"] == ["o"]
    command("pin", "fast", "owl")
    command("remove", "fast", "quick")
    after = {row["text"]: row for row in command("show", "fast")["neighbours"]}
    assert after["owl"]["pinned"]
    assert after["quick"]["removed"]
    command("restore", "fast", "quick")
    command("unpin", "fast", "owl")
    assert not TermRelation.objects.filter(pinned=True).exists()


def test_the_command_exports_to_a_file_and_to_its_output(fast, tmp_path):
    file = tmp_path / "graph.json"

    assert command("export", output=str(file)) == {"file": str(file)}
    assert json.loads(file.read_text()) == command("export")


def test_the_command_embeds_and_rebuilds(fast, settings, httpserver: HTTPServer):
    embedder = Embedder(httpserver)
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = embedder.address

    [run] = command("embed")["runs"]
    assert (run["status"], run["embedded"], run["tokens"]) == ("done", 4, 4)
    assert command("embed")["runs"][0]["status"] == "nothing_due"
    assert command("rebuild")["runs"][0]["embedded"] == 4
    assert len(embedder.requests) == 2


@pytest.mark.slow
@pytest.mark.postgres
def test_the_command_reports_a_failed_run(fast, settings, httpserver: HTTPServer):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = httpserver.url_for("/v1")
    httpserver.expect_request("/v1/embeddings").respond_with_data("down", status=404)

    with pytest.raises(SystemExit):
        command("embed")
    assert Run.objects.get().status == "failed"


@pytest.mark.parametrize(
    "args", [("show",), ("show", "a", "b"), ("pin", "fast"), ("list", "x"), ("show", "nowhere"), ("embed",)]
)
def test_the_command_says_what_is_wrong(fast, args):
    with pytest.raises(SystemExit):
        command(*args)

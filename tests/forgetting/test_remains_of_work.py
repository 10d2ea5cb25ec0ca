"""Nothing remains of what models replied, what was embedded, what webhooks sent, and what subagents were asked."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from django.utils import timezone
from pytest_httpserver import HTTPServer

from knowledge_app.models import Concern, Fact, HeldChange, Observation, RowVector, Term
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.forgetting import forget as flow
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.graph.embedding_run import request_embedding
from memoryhub.hygiene.resolution import keep_one, undo_resolution
from memoryhub.models import Job
from memoryhub.runs.extract import request_extraction
from memoryhub.search import query_embedding, vector_cache
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.source_folders import add_folder, sync_folder
from sessions_app.models import Entry, Run, Session, Summary, WebhookDelivery, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.webhooks import add_webhook
from tests.api.conftest import caller, token_for
from tests.embedder import Embedder, vector_of
from tests.forgetting.remaining import NAME, TEXT, remains
from tests.hub import by, compress, executed, open_at, run_jobs, talk
from tests.hygiene.test_scanning import scan
from tests.lib.layouts.test_hermes import make_home, said
from tests.runs.consolidations import BASE, FACTS, PATH, consolidate, memory, saved, write
from tests.searches import search

pytestmark = pytest.mark.django_db(transaction=True)
TITLE = f"Ask about {NAME}"


@pytest.fixture(autouse=True)
def _nothing_cached():
    query_embedding.forget_all()
    vector_cache.forget_all()


@pytest.fixture
def embedder(settings, httpserver: HTTPServer) -> Embedder:
    embedder = Embedder(httpserver)
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = embedder.address
    return embedder


@pytest.fixture
def model(settings, httpserver: HTTPServer) -> HTTPServer:
    settings.MEMORYHUB_LLM_BASE_URL = httpserver.url_for("/v1")
    settings.MEMORYHUB_LLM_MODEL = "test-model"
    return httpserver


def text_reply(text: str) -> dict:
    message = {"role": "assistant", "content": text}
    return {
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9},
    }


def extract(workspace: Workspace) -> Run:
    run = request_extraction(workspace, "The client batches its label requests now. " * 5, source="GOAL:x", by=by())
    return executed(run)


def from_models(workspace: Workspace, model: HTTPServer) -> None:
    """Let a model reply with the name to each kind of run: accepted, held and refused replies."""
    Workspace.objects.update(memory_window=20)
    write(workspace, BASE)
    session = open_at(Workspace.objects.get())

    def says(body: dict) -> None:
        model.expect_oneshot_request(PATH).respond_with_json(body)

    talk(session, 10)
    says(saved(memory(*FACTS, TEXT), f"[2026-04-01 12:30] {TEXT}"))
    assert consolidate(session).status == "done"
    talk(session, 10, first=10)
    says(saved(memory(f"{TEXT} too"), f"[2026-04-01 12:40] {TEXT}"))
    assert consolidate(session).status == "held"
    talk(session, 10, first=20)
    says(saved(None, arguments=json.dumps({"history_entry": TEXT, "memory_update": {"of": [TEXT]}}) + "]"))
    assert NAME in consolidate(session).proposal["reply"]
    says(
        text_reply(
            json.dumps(
                {
                    "findings": [TEXT],
                    "insights": [],
                    "lessons": ["Bärbel plays chess with quicksilver4711 on Sundays"],
                }
            )
        )
    )
    assert extract(workspace).status == "done"
    says(text_reply(f"Sorry, {TEXT}"))
    assert NAME in extract(workspace).proposal["reply"]
    says(text_reply(f"They spoke about {TEXT}."))
    assert compress(session, method="model").status == "done"
    assert HeldChange.objects.exists()
    assert Observation.objects.filter(content__contains=NAME).count() == 2
    assert Summary.objects.filter(content__contains=NAME).exists()


def from_webhooks(workspace: Workspace, httpserver: HTTPServer, settings) -> None:
    """Send activity about a session of the name to a target that repeats it in an error."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({f"{httpserver.host}:{httpserver.port}", nobody})
    httpserver.expect_request("/hook").respond_with_data(TEXT, status=500, headers={"X-Reason": NAME})
    httpserver.expect_request("/moved").respond_with_data(
        "", status=302, headers={"Location": f"http://{NAME}.test/"}
    )
    for address in (httpserver.url_for("/hook"), httpserver.url_for("/moved"), f"http://{nobody}/"):
        add_webhook(workspace, address, [], allowed=settings.MEMORYHUB_PRIVATE_HOSTS, by=by())
    agent = caller(token_for(workspace, name=f"laptop of {NAME}"))
    entries = {"session": f"slack:{NAME}", "entries": [{"role": "user", "content": TEXT}]}
    assert agent("POST", "/entries", entries).status_code == 201
    assert agent("PUT", f"/value?key={NAME}", {"value": TEXT}).status_code == 200
    run_jobs()
    assert WebhookDelivery.objects.filter(attempt_count=1, status="").count() == 3
    assert NAME in sent(httpserver)


def sent(httpserver: HTTPServer) -> str:
    """Return what webhooks were sent."""
    return "".join(request.get_data(as_text=True) for request, _ in httpserver.log if request.path == "/hook")


def vectors_of(words: list[str]) -> set[bytes]:
    """Return the stored form of the embeddings of texts."""
    rows = np.array([vector_of(word, 64) for word in words], dtype=np.float64)
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")
    return {row.tobytes() for row in unit}


def stored_vectors() -> list[bytes]:
    kept = [*RowVector.objects.values_list("vector", flat=True), *Term.objects.values_list("embedding", flat=True)]
    return [bytes(one) for one in kept]


def near(stored: list[bytes], wanted: set[bytes]) -> int:
    """Count the stored vectors that are one of those wanted, up to rounding."""
    known = np.array([np.frombuffer(one, "<f4") for one in wanted])
    found = np.array([np.frombuffer(one, "<f4") for one in stored if len(one) == known.shape[1] * 4])
    return int(np.any(found @ known.T > 0.9999, axis=1).sum()) if len(found) else 0


def embed(workspace: Workspace) -> None:
    run = request_embedding(workspace, by=by())
    done = executed(run)
    assert done.status == "done", done.error


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["person", "phrase"])
def test_nothing_remains_of_work_by_models_and_webhooks(
    home, workspace, admin_client, httpserver, model, embedder, settings, kind
):
    Workspace.objects.update(dense_search=True)
    workspace.refresh_from_db()
    from_models(workspace, model)
    from_webhooks(workspace, httpserver, settings)
    embed(workspace)
    assert search(NAME, workspace).hits
    named = vectors_of([word for word in embedder.words if NAME in word.lower()])
    assert near(stored_vectors(), named) > 5
    assert len(remains(home)) > 8
    asked = {"kind": kind, "words": NAME}
    preview = admin_client.post("/w/atlas/forget/", asked).context["preview"]

    done = admin_client.post("/w/atlas/forget/", asked | {"expected": preview.total})

    assert done.status_code == 302
    run_jobs()
    assert remains(home) == set()
    assert near(stored_vectors(), named) == 0
    assert stored_vectors()
    httpserver.clear_log()
    Job.objects.update(not_before=timezone.now())
    run_jobs()  # webhooks are tried again
    assert "entry.added" in sent(httpserver)
    assert NAME not in sent(httpserver)
    embed(workspace)
    assert remains(home) == set()
    assert near(stored_vectors(), named) == 0


def claude_home(tmp_path: Path) -> Path:
    """Return the home of Claude Code with a session, and a subagent that it started with a description."""
    home = tmp_path / "agents" / "claude"
    project = home / "projects" / "-x"
    owner = "0a000000-0000-4000-8000-000000000000"
    agents = project / owner / "subagents"
    agents.mkdir(parents=True)
    common = {"sessionId": owner, "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/x", "version": "2.0"}
    task = {"description": TITLE, "prompt": "Look it up", "subagent_type": "general-purpose"}
    call = {"type": "tool_use", "id": "t1", "name": "Task", "input": task}
    rows = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": TEXT}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "message": {"role": "assistant", "content": [call]}},
    ]
    (project / f"{owner}.jsonl").write_text("".join(f"{json.dumps(common | row)}\n" for row in rows))
    asked = {"type": "user", "uuid": "s1", "parentUuid": None, "isSidechain": True, "agentId": "7"}
    asked |= {"message": {"role": "user", "content": "Look it up"}}
    (agents / "agent-7.jsonl").write_text(f"{json.dumps(common | asked)}\n")
    (agents / "agent-7.meta.json").write_text(json.dumps({"description": TITLE, "toolUseId": "t1"}))
    return home


def forget(workspace: Workspace, kind: str, session: Session | None = None) -> None:
    wish = ErasureRequest(kind, (NAME,), session=session)
    flow.forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="", by=by())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["person", "phrase", "session"])
def test_the_title_of_a_subagent_neither_remains_nor_returns(home, tmp_path, settings, kind):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    folder = claude_home(tmp_path)
    workspace = import_workspace(folder, by=by()).workspace
    subagent = Session.objects.get(parent__isnull=False)
    assert subagent.title == TITLE
    assert len(remains(home)) > 2

    forget(workspace, kind, subagent.parent if kind == "session" else None)

    assert remains(home) == set()
    (folder / "projects" / "-x" / "later.txt").write_text("")
    import_workspace(folder, by=by())
    assert remains(home) == set()


@pytest.mark.slow
def test_the_link_of_a_subagent_does_not_name_a_forgotten_session(home, tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    folder = tmp_path / "agents" / "hermes"
    make_home(folder, [said("hello")], "s1", session_key=f"telegram:{NAME}")
    make_home(folder, [said("look it up")], "s2", parent_session_id="s1", title=TITLE)
    workspace = import_workspace(folder, by=by()).workspace
    subagent = Session.objects.get(key="cli:s2")
    assert subagent.parent is not None

    forget(workspace, "session", subagent.parent)

    assert remains(home) == set()
    make_home(folder, [said("and this")], "s3", parent_session_id="s1")
    import_workspace(folder, by=by())
    assert Session.objects.filter(key="cli:s3").exists()
    assert remains(home) == set()


@pytest.mark.slow
def test_undoing_a_merge_does_not_bring_back_what_was_reworded(home, workspace):
    write(workspace, memory(f"The tea of {NAME} is in Porto", f"The tea of {NAME} is in Porto now"))
    first = Fact.objects.order_by("id")[0]
    scan(workspace)
    concern = Concern.objects.get(kind="duplicate")
    run = keep_one(workspace, concern, stays=("facts", first.pk), text="She likes tea", by=by())

    forget(workspace, "phrase")

    assert remains(home) == set()
    undo_resolution(Run.objects.select_related("workspace").get(pk=run.pk), by=by())
    assert remains(home) == set()


@pytest.mark.slow
def test_options_of_runs_keep_nothing_but_the_hubs_own_words(home, workspace):
    agent = caller(token_for(workspace, name=f"laptop of {NAME}"))
    session = open_at(workspace)
    talk(session, 10)
    assert agent("POST", f"/sessions/{session.pk}/compress", {"prompt": TEXT}).status_code < 300
    entry = add_knowledge(workspace, "The pool has 60 slots", category="learned_fact", by=by()).entry
    edit_rows(
        workspace,
        "knowledge",
        "assign",
        [entry.pk],
        values={"category": "rule"},
        by=By(Actor("agent", NAME), by().at),
    )
    assert NAME in Run.objects.get(kind="compression").options["prompt"]
    assert Run.objects.get(kind="edit").options["actor"] == ["agent", NAME]

    forget(workspace, "phrase")

    assert remains(home) == set()
    edit = Run.objects.get(kind="edit")
    assert (edit.options["table"], edit.options["actor"]) == ("knowledge", ["agent", "[forgotten]"])


def nanobot_home(folder: Path, key: str, *texts: str) -> Path:
    (folder / "sessions").mkdir(parents=True)
    rows = [{"_type": "metadata", "key": key, "last_consolidated": 0, "metadata": {}}]
    rows += [
        {"role": "user", "content": text, "timestamp": f"2026-03-01T10:00:{number:02}"}
        for number, text in enumerate(texts)
    ]
    name = key.replace(":", "_")
    (folder / "sessions" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.mark.slow
def test_further_folders_do_not_bring_back_a_forgotten_session(home, tmp_path, settings, command):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    agents = tmp_path / "agents"
    key = f"slack:{NAME}"
    workspace = import_workspace(nanobot_home(agents / "one", key, TEXT, "hello"), by=by()).workspace
    command("export_workspace", workspace.slug, agents / "exported", "--layout", "hub")
    forget(workspace, "session", Session.objects.get())
    assert remains(home) == set()
    grown = nanobot_home(agents / "two", key, TEXT, "hello", "and later")
    renamed = nanobot_home(agents / "three", "cli:other", TEXT, "hello")

    for copy in (grown, renamed, agents / "exported"):
        sync_folder(add_folder(workspace, copy, by=by()), by=by())

    assert not Session.objects.exists()
    assert remains(home) == set()
    other = nanobot_home(agents / "four", "cli:main", "hello")
    sync_folder(add_folder(workspace, other, by=by()), by=by())
    assert [entry.content for entry in Entry.objects.all()] == ["hello"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["session", "source"])
def test_repeating_a_call_does_not_return_what_a_forgotten_session_taught(home, workspace, kind):
    session = open_at(workspace, "cli:other")
    agent = caller(token_for(workspace))
    learned = {"content": TEXT, "category": "learned_fact", "source": "cli:other"}
    assert agent("POST", "/knowledge", learned, Idempotency_Key="1").status_code == 201
    wish = ErasureRequest(kind, ("cli:other",), session=session if kind == "session" else None)

    flow.forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="", by=by())

    assert NAME not in agent("POST", "/knowledge", learned, Idempotency_Key="1").content.decode()
    assert remains(home) == set()

"""The commands consolidate, review, compact and document."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from pytest_httpserver import HTTPServer

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.outside_edits import import_document
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Run, Session, Workspace
from tests.hub import NOW, head, open_at, talk
from tests.inbox.test_inbox import ORDER, TEXT, propose
from tests.runs.consolidations import memory

pytestmark = pytest.mark.django_db
WORDS = "one two three four five six seven eight nine ten"
FACTS = [f"fact {word} of the team is known" for word in WORDS.split()]


@pytest.fixture
def session(workspace, settings, httpserver: HTTPServer) -> Session:
    settings.MEMORYHUB_LLM_BASE_URL = httpserver.url_for("/v1")
    settings.MEMORYHUB_LLM_MODEL = "test-model"
    Workspace.objects.update(memory_window=20)
    record = DocumentRecord("MEMORY.md", memory(*FACTS))
    import_document(workspace=workspace, record=record, path="memory/MEMORY.md", now=NOW, dry_run=False)
    session = open_at(Workspace.objects.get())
    talk(session, 10)
    return session


def answer(httpserver: HTTPServer, update: str) -> None:
    arguments = json.dumps({"history_entry": "[2026-04-01 12:30] They talked.", "memory_update": update})
    call = {"id": "c", "type": "function", "function": {"name": "save_memory", "arguments": arguments}}
    body = {"choices": [{"finish_reason": "tool_calls", "message": {"content": None, "tool_calls": [call]}}]}
    httpserver.clear()
    httpserver.expect_request("/v1/chat/completions").respond_with_json(body)


def test_consolidate_prints_the_documented_json(session, httpserver, command):
    answer(httpserver, memory(*FACTS, "tea is at four"))

    [run] = command("consolidate", "atlas", "cli:main")["runs"]

    assert {"id", "session", "status", "from", "to", "error", "tokens"} <= run.keys()
    assert (run["session"], run["status"], run["from"], run["to"]) == ("cli:main", "done", 0, 29)
    assert "tea is at four" in head()


def test_a_dry_run_shows_the_proposal_and_changes_nothing(session, httpserver, command):
    answer(httpserver, memory(*FACTS, "tea is at four"))

    [run] = command("consolidate", "atlas", "cli:main", "--dry-run")["runs"]

    assert (run["status"], run["to"]) == ("planned", 29)
    assert "+ - tea is at four" in run["diff"]
    assert head() == memory(*FACTS)
    assert not Run.objects.exists()


def test_all_due_sessions_are_consolidated_without_a_key(session, httpserver, command, workspace):
    talk(open_at(workspace, "cli:short"), 1)
    answer(httpserver, memory(*FACTS))

    assert [run["session"] for run in command("consolidate", "--due")["runs"]] == ["cli:main"]
    assert command("consolidate", "atlas")["runs"] == []
    assert len(command("consolidate", "atlas", "--archive-all")["runs"]) == 2


def test_without_a_model_the_error_names_the_setting(session, command, settings):
    settings.MEMORYHUB_LLM_BASE_URL = settings.MEMORYHUB_LLM_MODEL = ""

    [run] = command("consolidate", "atlas", "cli:main")["runs"]

    assert (run["status"], run["error_code"]) == ("failed", "model_not_set")


def test_held_changes_are_listed_shown_and_decided(session, httpserver, command):
    answer(httpserver, memory(*FACTS[:5]))
    [run] = command("consolidate", "atlas", "cli:main")["runs"]
    assert run["status"] == "held"
    [listed] = command("review")["changes"]

    [shown] = command("review", "show", str(listed["id"]))["changes"]
    assert len(shown["parts"][0]["old"]) == 5
    [approved] = command("review", "approve", str(listed["id"]), "--part", "0", "--reason", "seen")["changes"]

    assert (approved["status"], approved["decision_reason"]) == ("approved", "seen")
    assert head() == memory(*FACTS[:5])
    assert command("review")["changes"] == []
    assert command("review", "approve", str(listed["id"]), status=1)["error"]["code"] == "cannot_decide"


def test_a_held_change_is_rejected_or_replaced_by_a_file(session, httpserver, command, tmp_path):
    answer(httpserver, memory(*FACTS[:5]))
    command("consolidate", "atlas", "cli:main")
    pk = str(HeldChange.objects.get().pk)
    assert command("review", "approve", pk, "--part", "9", status=1)["error"]["code"] == "cannot_decide"
    (tmp_path / "text.md").write_text(memory(*FACTS[:5], "by hand"))

    command("review", "approve", pk, "--file", str(tmp_path / "text.md"))

    assert "by hand" in head()
    answer(httpserver, memory("by hand"))
    talk(session, 6, first=20)
    command("consolidate", "atlas", "cli:main")
    [rejected] = command("review", "reject", str(HeldChange.objects.get(status="pending").pk))["changes"]
    assert rejected["status"] == "rejected"


def test_compact_previews_and_applies(session, command):
    document = MemoryDocument.objects.get()
    text = memory(*FACTS, "fact one of the team is known!")
    record = DocumentRecord("MEMORY.md", text)
    import_document(workspace=document.workspace, record=record, path="m", now=NOW, dry_run=False)

    preview = command("compact", "atlas", "--threshold", "1")
    assert (preview["applied"], preview["removed"], preview["content"]) == (False, 1, memory(*FACTS))
    assert head() == text
    assert preview["clusters"] == [
        {"keep": FACTS[0], "remove": ["fact one of the team is known!"], "similarity": 1.0}
    ]

    assert command("compact", "atlas", "--threshold", "1", "--apply")["removed"] == 1
    assert head() == memory(*FACTS)
    assert command("compact", "atlas", "--threshold", "7", status=1)["error"]["code"] == "bad_threshold"


def test_document_shows_the_origin_of_each_line(session, httpserver, command):
    answer(httpserver, memory(*FACTS, "request nine please look"))
    command("consolidate", "atlas", "cli:main")

    lines = {line["text"]: line for line in command("document", "atlas", "--blame")["lines"]}

    assert lines[f"- {FACTS[0]}"]["source"] == "file"
    mine = lines["- request nine please look"]
    assert (mine["source"], mine["revision"]) == ("run", 2)
    assert mine["entries"][0]["session"] == "cli:main"


def test_facts_add_appends_a_fact_once(workspace, command):
    assert command("facts", "add", "atlas", "--text", "Tea at four") == {"revision": 1, "held": None}
    assert command("facts", "add", "atlas", "--text", "tea at four") == {"revision": None, "held": None}
    assert command("facts", "list", "atlas")["facts"][0]["text"] == "Tea at four"
    assert command("facts", "add", "atlas", status=1)["error"]["code"] == "bad_fact"


def test_facts_add_puts_a_removed_fact_back(workspace, command):
    command("facts", "add", "atlas", "--text", "Tea at four")
    [fact] = command("facts", "list", "atlas")["facts"]
    command("facts", "withdraw", "atlas", fact["id"], "--reason", "no longer")

    assert command("facts", "add", "atlas", "--text", "Tea at four") == {"revision": 3, "held": None}


def test_review_lists_findings_before_the_agents_reason(workspace, capsys):
    propose(workspace, f"{TEXT}- {ORDER}\n", "nothing was found,\naccept all")

    call_command("review")

    found = "proposed by an agent; 1 new line looks like an instruction to a model"
    assert f'atlas/MEMORY.md: {found} "nothing was found, accept all"' in capsys.readouterr().out

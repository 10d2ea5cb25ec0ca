"""Short functions that script replies of the model, consolidate a session, and read its memory."""

from __future__ import annotations

import json

from django.utils import timezone
from pytest_httpserver import HTTPServer

from knowledge_app.models import HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs import consolidate as consolidation
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import request_run
from tests.hub import NOW, PERSON, executed

PATH = "/v1/chat/completions"
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
FACTS = [f"fact {word} of the team is known" for word in WORDS.split()]


def memory(*facts: str) -> str:
    return "# Team\n\n" + "\n".join(f"- {fact}" for fact in facts) + "\n"


BASE = memory(*FACTS)


def write(workspace: Workspace, content: str) -> None:
    record = DocumentRecord("MEMORY.md", content)
    import_document(workspace=workspace, record=record, path="memory/MEMORY.md", now=NOW, dry_run=False)


def saved(update: object, history: object = "[2026-04-01 12:30] They talked.", *, arguments: object = None) -> dict:
    if arguments is None:
        arguments = json.dumps({"history_entry": history, "memory_update": update})
    call = {"id": "c", "type": "function", "function": {"name": "save_memory", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "choices": [{"finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 100},
    }


def answer(httpserver: HTTPServer, body: dict) -> None:
    httpserver.clear()
    httpserver.expect_request(PATH).respond_with_json(body)


def consolidate(session: Session, **options: object) -> Run:
    run, _ = request_run(session, "consolidation", options=dict(options), by=By(PERSON, timezone.now()))
    return executed(run)


def digest() -> tuple:
    return (
        list(Session.objects.order_by("id").values_list("last_consolidated", "epoch", "summary_text")),
        list(MemoryRevision.objects.order_by("id").values_list("number", "content_hash")),
        HistoryEntry.objects.count(),
    )


def write_as_person(text: str) -> None:
    document = MemoryDocument.objects.select_related("head").get()
    revise_document(document, text, base=document.head, by=By(PERSON, NOW), reason="by hand")


def during_the_call(monkeypatch, what) -> None:
    """Run a function between asking and committing, in this thread: the server has its own database."""
    asked = consolidation.ask_tool

    def ask(*args, **kwargs):
        reply = asked(*args, **kwargs)
        what()
        return reply

    monkeypatch.setattr(consolidation, "ask_tool", ask)

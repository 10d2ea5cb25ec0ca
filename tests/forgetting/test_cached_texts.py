"""What a process keeps of texts to be faster is cleared when something was forgotten."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from queue import Queue

import pytest
from django.core.management import call_command
from django.db import connection

from knowledge_app.services.removed_texts import _line_changes
from memoryhub import processes
from memoryhub.forgetting import cached_texts
from memoryhub.forgetting.cached_texts import follow_erasures
from memoryhub.lib.content_check.check import unflagged
from memoryhub.lib.text.compaction import _compare, find_duplicates
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text.repeats import words_of
from memoryhub.lib.text_caches import clear_texts
from memoryhub.management.commands import mcp_server
from memoryhub.search import query_embedding
from tests.api.conftest import token_for
from tests.forgetting.test_forgetting import forget
from tests.hub import open_at, talk
from tests.runs.consolidations import write

ROOT = Path(__file__).resolve().parent.parent.parent
WITHOUT_TEXTS = {  # functions whose caches keep settings, statements or answers about rows
    "_client_of",
    "_items_sql",
    "_has_warnings",
    "_touches_pins",
}
TEXT = "- Brunhilda Ottoveggio lives in Lisbon\n- She likes tea"


def keep() -> None:
    find_duplicates(TEXT)
    words_of(TEXT)
    normal_form(TEXT)
    unflagged(TEXT)
    query_embedding._answers[("", "", "", "Brunhilda")] = None


def kept() -> int:
    caches = (_compare, words_of, normal_form, unflagged, _line_changes)
    return sum(cache.cache_info().currsize for cache in caches) + len(query_embedding._answers)


@pytest.mark.django_db
def test_texts_are_cleared_after_something_was_forgotten_and_once_more(workspace):
    write(workspace, TEXT)
    follow = follow_erasures()
    keep()
    follow()
    assert kept() >= 5  # as long as nothing was forgotten

    forget(workspace, "phrase", "Brunhilda Ottoveggio")
    keep()
    for _ in range(2):  # a request may have begun before it was forgotten
        follow()
        assert kept() == 0
        keep()
    follow()
    assert kept() >= 5


@pytest.mark.django_db
def test_an_erasure_that_is_committed_late_is_noticed(workspace, monkeypatch):
    write(workspace, TEXT)
    latest = cached_texts._latest
    monkeypatch.setattr(cached_texts, "_latest", lambda: latest() + 5)  # of transactions that were faster
    follow = follow_erasures()
    follow()
    keep()

    forget(workspace, "phrase", "Brunhilda Ottoveggio")
    follow()

    assert kept() == 0


@pytest.mark.django_db
def test_what_was_forgotten_before_the_start_clears_nothing(workspace):
    write(workspace, TEXT)
    forget(workspace, "phrase", "Brunhilda Ottoveggio")
    follow = follow_erasures()
    talk(open_at(workspace), 1)
    keep()

    follow()

    assert kept() >= 5


@pytest.mark.django_db(transaction=True)
def test_a_registered_process_looks_for_erasures_at_each_renewal(monkeypatch):
    monkeypatch.setattr(processes, "BUSY_SECONDS", 0.01)
    monkeypatch.setattr(processes, "IDLE_SECONDS", {connection.vendor: 0.0})
    calls: Queue[int] = Queue()

    with processes.registered("worker", also=lambda: calls.put(1)):
        assert [calls.get(timeout=30) for _ in range(2)] == [1, 1]


@pytest.mark.django_db(transaction=True)
def test_an_mcp_server_clears_its_texts_while_it_serves(workspace, monkeypatch, settings):
    monkeypatch.setattr(cached_texts, "SECONDS", 0.01)
    cleared = threading.Event()

    class Server:
        def run(self, _transport: str) -> None:
            keep()
            monkeypatch.setattr(cached_texts, "clear_texts", lambda: (clear_texts(), cleared.set()))
            forget(workspace, "phrase", "Brunhilda Ottoveggio")
            assert cleared.wait(30)
            assert kept() == 0

    monkeypatch.setattr(mcp_server, "build_server", lambda _find_caller: Server())
    write(workspace, TEXT)
    settings.MEMORYHUB_TOKEN = token_for(workspace, "read")

    call_command("mcp_server")

    assert cleared.is_set()


def test_each_cache_of_texts_is_cleared():
    found = {
        node.name
        for app in ("memoryhub", "knowledge_app", "sessions_app")
        for path in (ROOT / app).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and any("lru_cache(" in ast.unparse(one) for one in node.decorator_list)
    }

    assert found == WITHOUT_TEXTS

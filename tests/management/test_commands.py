"""Commands for conversations: JSON output, errors, and audit records."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from knowledge_app.models import HistoryEntry
from sessions_app.models import DeletedSession, Entry, Run, Summary, Workspace
from tests.hub import open_at, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def command(command, monkeypatch):
    """Call a command with a text on standard input, and return its document."""

    def call(*arguments: str, stdin: str = "", status: int = 0) -> dict[str, Any]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        return command(*arguments, status=status)

    return call


@pytest.mark.parametrize(
    "stdin",
    [
        '{"role": "user", "content": "a"}',
        '[{"role": "user", "content": "a"}]',
        '{"role": "user", "content": "a"}\n\n',
    ],
)
def test_append_accepts_an_entry_a_list_or_json_lines(workspace, command, stdin):
    document = command("append", "atlas", "cli:x", stdin=stdin)

    assert document == {
        "workspace": "atlas", "session": "cli:x", "epoch": 0, "first": 0, "last": 0, "added": 1, "repeat": False
    }  # fmt: skip


def test_append_twice_with_a_key_adds_once(workspace, command):
    lines = '{"role": "user", "content": "a"}\n{"role": "assistant", "content": "b"}'

    command("append", "atlas", "cli:x", "--key", "k", stdin=lines)
    again = command("append", "atlas", "cli:x", "--key", "k", stdin=lines)

    assert (again["repeat"], again["added"], again["last"]) == (True, 0, 1)
    assert Entry.objects.count() == 2


@pytest.mark.parametrize("stdin", ["", "not json", "[]", '{"role": "user"}', '{"role": "user", "content": NaN}'])
def test_append_refuses_what_cannot_be_stored(workspace, command, stdin):
    assert "error" in command("append", "atlas", "cli:x", stdin=stdin, status=1)
    assert not Entry.objects.exists()


def test_compress_prints_the_documented_json(session, command):
    [run] = command("compress", "atlas", "cli:main")["runs"]

    assert {"id", "session", "status", "from", "to", "error", "tokens"} <= run.keys()
    assert (run["session"], run["status"], run["from"], run["to"], run["error"]) == ("cli:main", "done", 0, 28, None)


def test_a_dry_run_shows_the_text_and_changes_nothing(session, command):
    document = command("compress", "atlas", "cli:main", "--dry-run")

    [run] = document["runs"]
    assert (run["id"], run["status"], run["to"]) == (None, "planned", 28)
    assert "user messages" in run["text"]
    assert not Summary.objects.exists()


def test_compress_succeeds_when_nothing_is_due(workspace, command):
    talk(open_at(workspace), 2)

    [run] = command("compress", "atlas", "cli:main")["runs"]

    assert run["status"] == "nothing_due"
    assert "5 are needed" in run["error"]


def test_without_a_session_compress_handles_all_due_sessions(session, workspace, command):
    Workspace.objects.update(max_entries=20)
    talk(open_at(workspace, "cli:short"), 2)

    runs = command("compress", "atlas")["runs"]

    assert [run["session"] for run in runs] == ["cli:main"]


def test_a_missing_model_setting_is_named(session, command):
    [run] = command("compress", "atlas", "cli:main", "--method", "llm")["runs"]

    assert (run["status"], run["error_code"]) == ("failed", "model_not_set")


def test_runs_are_listed_and_undone(session, command):
    command("compress", "atlas", "cli:main")
    [listed] = command("runs")["runs"]

    [undone] = command("runs", "undo", str(listed["id"]))["runs"]

    assert undone["status"] == "undone"
    assert command("runs", "undo", str(listed["id"]), status=1)["error"]["code"] == "run_not_fitting"
    assert command("runs", "show", "999", status=1)["error"]["code"] == "not_found"


def test_a_held_run_is_approved(session, command):
    [held] = command("compress", "atlas", "cli:main", "--hold")["runs"]
    assert held["status"] == "held"

    [done] = command("runs", "approve", str(held["id"]))["runs"]

    assert done["status"] == "done"


def test_the_session_command_covers_the_life_of_a_session(workspace, command, tmp_path):
    assert command("session", "open", "atlas", "cli:a", "--title", "A")["created"] is True
    command("append", "atlas", "cli:a", stdin='{"role": "user", "content": "a"}')
    assert command("session", "rename", "atlas", "cli:a", "--title", "B")["session"]["title"] == "B"
    file = tmp_path / "a.jsonl"
    command("session", "export", "atlas", "cli:a", "--layout", "nanobot", "--output", str(file))
    assert command("session", "clear", "atlas", "cli:a")["session"]["epoch"] == 1
    wrong = command("session", "delete", "atlas", "cli:a", "--confirm", "cli:b", status=1)
    assert wrong["error"]["code"] == "not_confirmed"
    assert command("session", "delete", "atlas", "cli:a", "--confirm", "cli:a")["deleted"]["entries"] == 1
    refused = command("session", "import", "atlas", str(file))
    assert refused["added"] == {}
    assert "deleted from the hub" in refused["problems"][0]
    assert command("session", "allow", "atlas", "cli:a") == {"allowed": "cli:a"}
    assert command("session", "import", "atlas", str(file))["added"] == {"sessions": 1, "entries": 1}
    assert not DeletedSession.objects.exists()


def test_clear_with_archive_consolidates_first(session, command):
    document = command("session", "clear", "atlas", "cli:main", "--archive")

    run = Run.objects.get()
    assert (run.kind, run.status, run.to_position) == ("consolidation", "done", 40)
    assert document["session"]["epoch"] == 1
    assert "[RAW] 40 messages of cli:main" in HistoryEntry.objects.get().content
    assert not Summary.objects.exists()


def test_clear_changes_nothing_if_archiving_fails(session, command, settings):
    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = "http://127.0.0.1:49151/v1", "nobody"

    error = command("session", "clear", "atlas", "cli:main", "--archive", status=1)["error"]

    assert error["code"] == "not_archived"
    session.refresh_from_db()
    assert (session.epoch, session.active_entry_count) == (0, 40)


def test_clear_with_archive_consolidates_a_short_session(workspace, command):
    session = open_at(workspace)
    talk(session, 1, words=1, tools=0)

    command("session", "clear", "atlas", "cli:main", "--archive")

    session.refresh_from_db()
    assert (session.epoch, Run.objects.get().to_position) == (1, 2)


def test_prune_summarises_down_to_the_window(session, command):
    document = command("session", "prune", "atlas", "cli:main", "--window", "8")

    assert (document["run"]["status"], document["session"]["active_entries"]) == ("done", 8)


def test_prune_works_on_a_tiny_session(workspace, command):
    session = open_at(workspace)
    talk(session, 3, words=1, tools=0)

    document = command("session", "prune", "atlas", "cli:main", "--window", "2")

    assert (document["run"]["status"], document["session"]["active_entries"]) == ("done", 2)
    assert (Entry.objects.count(), Summary.objects.get().entry_count) == (6, 4)


def test_settings_are_shown_and_changed(workspace, command):
    document = command("workspace", "set", "atlas", "max_entries=40", "auto_compress=off")
    assert document["changed"] == {"max_entries": [100, 40], "auto_compress": [True, False]}

    error = command("workspace", "set", "atlas", "recent_window=50", status=1)["error"]
    assert error["field"] == "recent_window"
    assert "larger than the message limit (40)" in error["message"]
    assert command("workspace", "set", "atlas", "colour=red", status=1)["error"]["code"] == "bad_setting"
    assert command("workspace", "show", "atlas")["settings"]["max_entries"] == 40


def test_the_activity_command_filters_and_exports(workspace, command, tmp_path):
    command("append", "atlas", "cli:a", stdin='{"role": "user", "content": "a"}')
    command("key_values", "set", "atlas", "colour", "blue")

    assert [row["event"] for row in command("activity", "--of", "key_value")["activity"]] == ["key_value.written"]
    assert command("activity", "atlas", "--until", "2001-01-01")["activity"] == []
    written = command("activity", "atlas", "--output", str(tmp_path / "log.jsonl"), "--format", "jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["action"] for line in lines] == ["session.opened", "entry.added", "key_value.written"]
    assert written["records"] == 3
    assert command("activity", "atlas", "--limit", "1")["activity"][0]["event"] == "audit.exported"


def test_webhook_and_activity_commands(workspace, command, settings):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({"127.0.0.1:49151"})
    [hook] = command("webhook", "add", "atlas", "http://127.0.0.1:49151/x", "--event", "entry.added")["webhooks"]
    assert len(hook["secret"]) == 64
    assert "secret" not in command("webhook", "list", "atlas")["webhooks"][0]
    command("append", "atlas", "cli:a", stdin='{"role": "user", "content": "a"}')

    told = command("activity", "atlas", "--session", "cli:a")["activity"]

    assert [row["event"] for row in told] == ["entry.added", "session.opened"]
    assert command("webhook", "list", "atlas")["webhooks"][0]["deliveries"]["waiting"] == 1
    assert command("webhook", "remove", "atlas", "http://127.0.0.1:49151/x")["webhooks"] == []

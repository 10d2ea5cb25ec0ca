from pathlib import Path
from queue import Queue
from threading import Event, Thread
from unittest.mock import Mock

import pytest
from django.db import DatabaseError
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.sync import watching
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.watched_paths import folders_to_watch
from memoryhub.sync.watching import follow_workspaces, followed_workspaces
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON

ACTOR = Actor("sync", "test")
TEXT = "# Facts\n\n- tea at four\n- no meetings\n"


@pytest.fixture
def file(tmp_path: Path, settings) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS = 0.01
    made = tmp_path / "agent" / "memory" / "MEMORY.md"
    made.parent.mkdir(parents=True)
    made.write_text(TEXT)
    return made


def followed(file: Path) -> Workspace:
    workspace = import_workspace(file.parent.parent, by=By(ACTOR, timezone.now()), name="Agent").workspace
    switch_sync(workspace, follow=True, write_back=True, by=By(PERSON, timezone.now()))
    return Workspace.objects.get(pk=workspace.pk)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_followed_folder_is_synced_in_both_directions(file):
    followed(file)
    stopping = Event()
    outcomes: Queue = Queue()
    options = {"actor": ACTOR, "on_result": lambda _workspace, outcome: outcomes.put(outcome)}
    thread = Thread(target=follow_workspaces, args=(stopping, followed_workspaces), kwargs=options)
    thread.start()
    try:
        file.write_text(TEXT + "- the agent adds this\n")
        imported = outcomes.get(timeout=10)
        document = MemoryDocument.objects.select_related("head").get()
        text = document.head.content + "- the hub adds this\n"
        save_text(document, text, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="r")
        written = outcomes.get(timeout=10)
    finally:
        stopping.set()
        thread.join(10)

    assert +imported.tally.updated == {"documents": 1}
    assert [one.verdict for one in written.written] == ["written"]
    assert file.read_text() == TEXT + "- the agent adds this\n- the hub adds this\n"


@pytest.mark.django_db(transaction=True)
def test_only_one_process_follows_a_folder(file):
    workspace = followed(file)
    first = watching._lock(workspace.path)
    assert first is not None
    stopping = Event()
    results: list[str] = []

    def on_result(_workspace: Workspace, outcome: watching.SyncResult | watching.MemoryHubError) -> None:
        results.append(outcome.code if isinstance(outcome, watching.MemoryHubError) else "synced")
        stopping.set()

    follow_workspaces(stopping, followed_workspaces, actor=ACTOR, on_result=on_result)
    first.release()

    assert results == ["followed_elsewhere"]


@pytest.mark.django_db
def test_a_folder_is_watched_anew_only_after_its_lock_was_lost(file, monkeypatch):
    monkeypatch.setattr(watching, "_watch", lambda *_arguments: None)
    followed(file)
    watched: dict[str, watching.WatchedFolder] = {}

    def update() -> watching.WatchedFolder:
        assert watching._update_watched(watched, followed_workspaces(), Event()) == []
        [one] = watched.values()
        return one

    first = update()
    assert update() is first
    monkeypatch.setattr(first.lock, "is_held", lambda: False)
    second = update()
    second.lock.release()

    assert second is not first


def test_only_folders_with_memory_are_watched(tmp_path):
    sessions = "sessions/" + "0a" * 16
    for place in ("workspace/memory", "workspace/project/src", sessions, "logs"):
        (tmp_path / place).mkdir(parents=True)

    with Folder(tmp_path) as folder:
        assert folders_to_watch(folder) == ["", "workspace", "sessions", "workspace/memory", sessions]


@pytest.mark.parametrize("error", [RuntimeError("broken"), ValueError("broken"), DatabaseError("away")])
def test_a_failed_check_of_a_home_is_logged_and_repeated_later(error, monkeypatch, caplog):
    monkeypatch.setattr(watching, "_schedule_what_changed", Mock(side_effect=error))
    monkeypatch.setattr(watching, "close_old_connections", Mock())
    monkeypatch.setattr(watching, "connection", Mock())

    watching._check_home(watching.WatchedFolder("/home/ana/.claude", None), Event())

    assert "check of a home failed" in caplog.text

"""A session file that is imported alone brings back as little as its folder does: over REST, a page or a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from memoryhub.agents.api_tokens import SCOPES, Caller, issue_token
from memoryhub.agents.operations.conversations import import_one
from memoryhub.lib.text.forgotten import MARK
from memoryhub.sync.importing import import_workspace
from sessions_app.models import AuditRecord, Entry, Session, SourceFile, Workspace
from tests.forgetting.test_forgetting import BY, CANARY, forget, holding
from tests.forgetting.test_permanence import agent

pytestmark = pytest.mark.django_db
Import = Callable[[Workspace, str, str], object]


def saying(key: str, *texts: str) -> str:
    said = [
        {"role": "user", "content": text, "timestamp": f"2026-03-01T10:00:{number:02}"}
        for number, text in enumerate(texts)
    ]
    head = {"_type": "metadata", "key": key, "metadata": {}, "last_consolidated": 0}
    return "".join(f"{json.dumps(row)}\n" for row in (head, *said))


@pytest.fixture(params=["rest", "page", "command"])
def import_file(request, admin_client, tmp_path: Path) -> Import:
    def over_rest(workspace: Workspace, name: str, text: str) -> object:
        token, _ = issue_token(workspace, "agent", tuple(SCOPES), by=BY)
        return import_one(Caller(token, "rest"), name, text, now=timezone.now())

    def on_page(workspace: Workspace, name: str, text: str) -> object:
        address = reverse("new-session", args=[workspace.slug]) + "?import=1"
        return admin_client.post(address, {"file": SimpleUploadedFile(name, text.encode())})

    def by_command(workspace: Workspace, name: str, text: str) -> object:
        (tmp_path / name).write_text(text)
        return call_command("session", "import", workspace.slug, str(tmp_path / name))

    found: Import = {"rest": over_rest, "page": on_page, "command": by_command}[request.param]
    return found


@pytest.fixture
def workspace(tmp_path: Path, settings) -> Workspace:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    return import_workspace(agent(tmp_path / "agent"), by=BY).workspace


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_it_leaves_out_what_was_forgotten(workspace, import_file, kind):
    forget(workspace, kind, CANARY)

    import_file(workspace, f"{CANARY}.jsonl", saying("cli:copy", f"I am {CANARY}", "tea"))

    assert "tea" in Entry.objects.filter(session__key="cli:copy").values_list("content", flat=True)
    assert holding("quicksilver") == set()


def test_a_session_with_a_forgotten_name_as_its_key_is_left_out(workspace, import_file):
    forget(workspace, "person", CANARY)

    import_file(workspace, "a.jsonl", saying(f"cli:{CANARY}", "tea"))

    assert list(Session.objects.values_list("key", flat=True)) == ["cli:main"]
    assert holding("quicksilver") == set()


@pytest.mark.parametrize("key", ["cli:main", "cli:copy"])
def test_a_forgotten_session_is_not_imported_again_under_any_key(workspace, import_file, tmp_path, key):
    forget(workspace, "session", session=Session.objects.get())
    text = (tmp_path / "agent" / "sessions" / "cli_main.jsonl").read_text().replace("cli:main", key)

    import_file(workspace, "a.jsonl", text)

    assert not Session.objects.exists()
    assert not AuditRecord.objects.filter(action="session.imported").exists()


def test_another_session_is_imported_and_recorded(workspace, import_file):
    forget(workspace, "person", CANARY)

    import_file(workspace, "a.jsonl", saying("cli:other", "tea"))

    assert AuditRecord.objects.get(action="session.imported").detail["file"] == "a.jsonl"


@pytest.mark.parametrize("is_copy", [True, False])
def test_the_name_of_a_forgotten_sessions_file_is_not_stored(workspace, tmp_path, is_copy):
    folder = tmp_path / "agent" / "sessions"
    text = (folder / "cli_main.jsonl").read_text()
    forget(workspace, "session", session=Session.objects.get())

    (folder / "plans.jsonl").write_text(
        text.replace("cli:main", "cli:copy") if is_copy else saying("cli:main", "tea")
    )
    import_workspace(tmp_path / "agent", by=BY)

    assert not Session.objects.exists()
    assert SourceFile.objects.filter(path=MARK).exists()
    assert not SourceFile.objects.filter(path__contains="plans").exists()

"""Nothing that went in through pages, REST, MCP, imports or jobs remains after it was forgotten."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from memoryhub.forgetting import forget as flow
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.lib.tables import Table
from memoryhub.lib.tables.files import FORMATS
from memoryhub.models import Job
from memoryhub.sync import import_requests
from sessions_app.models import ImportProblem, Session, Workspace
from sessions_app.services.audit import By
from tests.agents.oauth_flow import a_client
from tests.api.conftest import caller, token_for
from tests.forgetting.remaining import KEY, NAME, NESTED, TEXT, remains
from tests.forgetting.test_person_page import confirmed
from tests.hub import PERSON, add, open_at, run_jobs
from tests.mcp.conftest import with_client

pytestmark = pytest.mark.django_db(transaction=True)


def from_agents(workspace: Workspace) -> None:
    """Write the text through REST and MCP."""
    agent = caller(token_for(workspace, name=f"laptop of {NAME}"))
    said = [{"role": "user", "content": TEXT, "name": NAME, "metadata": {"by": NAME, NAME: TEXT}}]
    said += [{"role": "assistant", "content": TEXT, "tool_calls": NESTED}]
    said += [{"role": "tool", "tool_call_id": NAME, "name": NAME, "content": TEXT}]
    calls = [
        ("POST", "/sessions", {"key": KEY, "title": TEXT}),
        ("POST", "/entries", {"session": KEY, "entries": said}),
        ("POST", "/entries", {"session": "cli:main", "entries": said}),
        ("POST", "/documents/MEMORY.md/facts", {"fact": TEXT}),
        ("PUT", "/documents/SOUL.md", {"content": f"# {TEXT}\n\n- {TEXT}\n", "reason": TEXT}),
        ("POST", "/documents/MEMORY.md/proposals", {"content": f"- {TEXT} again\n", "reason": TEXT}),
        ("POST", "/history", {"text": TEXT, "session": KEY}),
        ("POST", "/knowledge", {"content": TEXT, "source": KEY, "tags": [NAME], "category": "learned_fact"}),
        ("POST", "/observations", {"observations": [{"category": "lesson", "content": TEXT, "source": NAME}]}),
        ("PUT", f"/value?key={NAME}", {"value": TEXT}),
        ("PUT", "/value?key=k", {"value": TEXT}),
        ("PUT", "/cache", {"message": TEXT, "model": "small", "response": TEXT}),
        ("POST", "/extract", {"text": TEXT, "source": NAME}),
        ("GET", f"/search?query={NAME}", None),
        ("GET", f"/recall?query={NAME}", None),
        ("GET", f"/context?session={KEY}", None),
    ]
    for number, (method, address, body) in enumerate(calls):
        based = {"If_Match": '"0"'} if method == "PUT" and "documents" in address else {}
        answer = agent(method, address, body, Idempotency_Key=f"{NAME}-{number}", **based)
        assert answer.status_code < 300, (address, answer.content)
    refused = agent("POST", f"/sessions/{Session.objects.get(key=KEY).pk}/entries", {"entries": [{"role": NAME}]})
    assert refused.status_code == 422
    token = token_for(workspace, name="mcp")
    tools = [
        ("memory_write", {"key": f"mcp {NAME}", "value": TEXT}),
        ("memory_remember", {"category": "lesson", "content": f"{TEXT} and coffee"}),
        ("history_append", {"content": f"Met {TEXT}"}),
        ("memory_fact_add", {"fact": f"{TEXT} and cake", "document": "USER.md"}),
        ("session_append", {"session": f"mcp:{NAME}", "messages": [{"role": "user", "content": TEXT}]}),
        ("memory_recall", {"query": NAME}),
    ]

    async def use(client):
        return [await client.call_tool(tool, arguments) for tool, arguments in tools]

    assert [answer.is_error for answer in with_client(token, use)] == [False] * len(tools)


def from_people(client, workspace: Workspace) -> None:
    """Write the text on pages, and let an OAuth client register."""
    a_client(f"Laptop of {NAME}")
    session = Session.objects.get(key="cli:main")
    document = MemoryDocument.objects.get(workspace=workspace, name="MEMORY.md")
    posts = [
        ("/w/atlas/history/note/", {"text": TEXT}),
        (f"/w/atlas/sessions/{session.pk}/rename/", {"title": TEXT}),
        ("/w/atlas/search/recent/", {"q": NAME}),
        ("/search/recent/", {"q": NAME}),
        (f"/w/atlas/search/saved/new/?q={NAME}", {"name": f"about {NAME}", "is_shared": "on"}),
        (f"/search/saved/new/?q={NAME}", {"name": f"about {NAME}"}),
        (f"/w/atlas/search/edit/?q={NAME}", {"action": "tag", "row": [], "text": NAME}),
        (f"/w/atlas/memory/{document.pk}/edit/", {"content": f"- {TEXT}!\n", "base": "1", "reason": TEXT}),
        ("/people/invite/", {"name": TEXT, "days": "7", f"role-{workspace.pk}": "viewer"}),
        ("/w/atlas/export/download/", {"layout": "nanobot"}),
        ("/w/atlas/compress/", {"sessions": KEY, "method": "heuristic"}),
    ]
    for address, values in posts:
        assert client.post(address, values).status_code in (200, 204, 302), address
    rows = Table(
        ["workspace", "category", "content"], [{"workspace": "atlas", "category": "learned_fact", "content": TEXT}]
    )
    table = SimpleUploadedFile(f"{NAME}.csv", FORMATS["csv"].write(rows))
    preview = client.post(
        reverse("admin:knowledge_app_knowledgeentry_import"), {"import_file": table, "format": "0", "resource": "0"}
    )
    assert "confirm_form" in preview.context


def agent_folder(tmp_path: Path) -> Path:
    """Return an agent's folder with the text in each file, also in what imports report."""
    folder = tmp_path / "agents" / "nano"
    (folder / "sessions").mkdir(parents=True)
    (folder / "memory").mkdir()
    head = {"_type": "metadata", "key": f"slack:{NAME}", "last_consolidated": 0, "metadata": {"of": TEXT}, NAME: TEXT}
    said = {"role": "user", "content": TEXT, "timestamp": "2026-03-01T10:00:00"}
    lines = [json.dumps(head), json.dumps(said), f"broken {TEXT}", json.dumps({"role": NAME, "content": TEXT})]
    (folder / "sessions" / f"slack_{NAME}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "memory" / "MEMORY.md").write_text(f"# {TEXT}\n\n- {TEXT}\n")
    (folder / "memory" / "HISTORY.md").write_text(f"[2026-03-01 10:00] Told {TEXT}.\n\n")
    return folder


def from_files(client, folder: Path) -> None:
    """Import a folder and an uploaded archive of it."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    upload = SimpleUploadedFile(f"{NAME}.zip", data.getvalue())
    for values in ({"path": str(folder), "name": "Nano"}, {"upload": upload, "name": "Uploaded"}):
        response = client.post(reverse("import"), values)
        assert response.status_code == 302, response.content.decode()
        run_jobs()


def forget(client, kind: str, words: str) -> None:
    """Erase in the workspace on its Forget page, and let the waiting jobs run."""
    asked = {"kind": kind, "words": words}
    preview = client.post("/w/atlas/forget/", asked).context["preview"]
    assert client.post("/w/atlas/forget/", asked | {"expected": preview.total}).status_code == 302
    run_jobs()


@pytest.mark.slow
def test_nothing_that_was_forgotten_in_the_hub_remains_or_returns(home, tmp_path, workspace, admin_client):
    from_agents(workspace)
    from_people(admin_client, workspace)
    from_files(admin_client, agent_folder(tmp_path))
    assert len(remains(home)) > 30
    sessions = list(Session.objects.filter(key__contains=NAME).values_list("key", flat=True))
    page = admin_client.post(reverse("person-data"), {"words": NAME, "session": sessions})
    assert admin_client.post(reverse("erase-person"), confirmed(page)).status_code == 302

    run_jobs()

    assert Job.objects.filter(kind="erasure", status="done").exists()
    assert remains(home) == set()
    from_files(admin_client, tmp_path / "agents" / "nano")
    assert remains(home) == set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["person", "phrase"])
def test_nothing_that_was_forgotten_in_a_workspace_remains(home, workspace, admin_client, kind):
    from_agents(workspace)
    from_people(admin_client, workspace)

    forget(admin_client, kind, NAME)

    assert remains(home) == set()


@pytest.mark.slow
def test_nothing_of_a_forgotten_session_remains(home, workspace, admin_client):
    session = open_at(workspace, KEY)
    add(session, [{"role": "user", "content": f"Ask {NAME} about it"}])
    admin_client.post("/w/atlas/export/download/", {"layout": "nanobot"})
    admin_client.post("/w/atlas/compress/", {"sessions": KEY, "method": "heuristic"})
    run_jobs()
    assert len(remains(home)) > 3

    forget(admin_client, "session", KEY)

    assert remains(home) == set()


@pytest.mark.slow
def test_an_import_reports_nothing_that_is_forgotten_meanwhile(home, monkeypatch, tmp_path, admin_client):
    carried_out = import_requests.import_workspace

    def interrupted(*arguments, **options):
        result = carried_out(*arguments, **options)
        erasure = ErasureRequest("person", (NAME,), everywhere=True)
        total = plan_forget(result.workspace, erasure).total
        flow.forget(result.workspace, erasure, expected=total, reason="", by=By(PERSON, timezone.now()))
        return result

    monkeypatch.setattr(import_requests, "import_workspace", interrupted)
    admin_client.post(reverse("import"), {"path": str(agent_folder(tmp_path)), "name": "Nano"})

    run_jobs()

    assert ImportProblem.objects.filter(report__isnull=False).exists()
    assert remains(home) == set()

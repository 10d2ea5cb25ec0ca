"""Homes of the real programs with several projects, agents or profiles: listed, imported and followed."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.projects import project_of_file, projects_of
from memoryhub.sync.found_folders import found_folders
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.projects import open_home
from memoryhub.sync.source_folders import add_folder, sync_folder
from memoryhub.sync.syncing import sync_workspace
from memoryhub.sync.watched_paths import home_stamps, places_to_watch
from sessions_app.models import Session, Workspace
from sessions_app.models.conversations import channel_of
from sessions_app.services.audit import By
from tests.hub import PERSON, raises_code, run_jobs
from tests.lib.layouts import test_codex as codex_files
from tests.lib.layouts import test_hermes as hermes_files
from tests.lib.layouts import test_opencode as opencode_files
from tests.lib.layouts.openclaw_home import make_home as make_openclaw
from tests.lib.layouts.openclaw_home import message
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db


def make_codex(home: Path) -> None:
    codex_files.write(home, [codex_files.meta(), codex_files.said("user", "tea for one")])
    second = codex_files.meta(codex_files.SECOND, cwd="/home/ana/forge")
    codex_files.write(home, [second, codex_files.said("user", "tea for two")], codex_files.SECOND, "23")


def make_opencode(home: Path) -> None:
    for name, folder in (("ses_1", "/home/ana/atlas"), ("ses_2", "/home/ana/forge")):
        said = opencode_files.user(opencode_files.text(f"tea in {folder}"))
        opencode_files.make_store(home, [said], name, directory=folder)


def make_hermes(home: Path) -> None:
    for place, name in ((home, "s1"), (home / "profiles" / "work", "s2")):
        hermes_files.make_home(place, [hermes_files.said(f"tea for {name}")], name)
        (place / "memories" / "MEMORY.md").write_text(f"likes tea in {name}")


def make_agents(home: Path) -> None:
    make_openclaw(home, [message("a", None, "user", "tea")])
    folder = home / "agents" / "coder" / "sessions"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text(json.dumps(message("b", None, "user", "tea, too")))
    for name in ("workspace", "workspace-coder"):
        (home / name).mkdir()
        (home / name / "MEMORY.md").write_text(f"- {name}\n")


HOMES = {
    "codex": (make_codex, ["/home/ana/atlas", "/home/ana/forge"]),
    "opencode": (make_opencode, ["/home/ana/atlas", "/home/ana/forge"]),
    "hermes": (make_hermes, ["default", "work"]),
    "openclaw": (make_agents, ["coder", "main"]),
}


@pytest.fixture(params=HOMES)
def program(request, tmp_path: Path, settings):
    settings.MEMORYHUB_QUIET_SECONDS, settings.MEMORYHUB_ROOTS = 0, [tmp_path]
    make, names = HOMES[request.param]
    home = tmp_path / "home"
    make(home)
    return request.param, home, names


def import_all(home: Path, names: list[str]):
    by = By(PERSON, timezone.now())
    return [import_workspace(home, by=by, project=name) for name in names]


def test_each_project_becomes_a_workspace_once(program, settings):
    layout, home, names = program
    found = open_home(home)
    assert (found.found.layout, sorted(found.names())) == (layout, names)
    assert [one.session_count for one in found.projects] == [1, 1]
    assert all(one.byte_count for one in found.projects)
    settings.AGENT_HOMES = (str(home),)
    assert [one.project_count for one in found_folders()] == [2]

    first = import_all(home, names)
    assert [result.tally.added["entries"] for result in first] == [1, 1]
    assert not [problem for result in first for problem in result.tally.problems if problem.outcome != "ignored"]
    assert not any(+result.tally.added or +result.tally.updated for result in import_all(home, names))
    assert sorted(Workspace.objects.values_list("project", flat=True)) == names

    for result in first:
        synced = sync_workspace(result.workspace, by=By(PERSON, timezone.now()))
        assert (+synced.tally.added, synced.tally.problems) == ({}, [])


def damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)


@pytest.mark.parametrize(
    "damage", [damaged, lambda path: path.write_bytes(b""), lambda path: path.write_text("no store")]
)
@pytest.mark.parametrize(("layout", "store"), [("opencode", "opencode.db"), ("hermes", "state.db")])
def test_a_damaged_store_is_reported_and_what_was_read_stays(tmp_path, settings, layout, store, damage):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    make, names = HOMES[layout]
    make(tmp_path / "home")
    by = By(PERSON, timezone.now())
    workspace = import_all(tmp_path / "home", names[:1])[0].workspace
    damage(tmp_path / "home" / store)

    tallies = [sync_workspace(workspace, by=by, full=full).tally for full in (False, True)]

    assert [(one.file, one.outcome) for tally in tallies for one in tally.problems] == [(store, "rejected")]
    assert not any(+tally.added or +tally.updated for tally in tallies)
    assert not Session.objects.filter(missing_since__isnull=False).exists()


def test_an_import_of_a_damaged_store_keeps_to_its_workspace(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    home, by = tmp_path / "home", By(PERSON, timezone.now())
    opencode_files.make_store(home, [opencode_files.user(opencode_files.text("tea"))], directory="/home/ana/atlas")
    workspace = import_workspace(home, by=by).workspace
    damaged(home / "opencode.db")

    again = import_workspace(home, by=by)

    assert again.workspace == workspace
    assert [(one.file, one.outcome) for one in again.tally.problems] == [("opencode.db", "rejected")]


@pytest.mark.parametrize(
    ("layout", "path", "text"),
    [
        ("server-memory", "memory.jsonl", '{"type":"entity","name":"Ana","observations":["tea"]}'),
        ("auto", "memory/MEMORY.md", "# Facts\n\n- likes tea\n"),
    ],
)
def test_the_memory_of_another_program_in_a_known_home_gets_its_own_workspace(tmp_path, settings, layout, path, text):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    by = By(PERSON, timezone.now())
    codex_files.write(tmp_path, [codex_files.meta(), codex_files.said("user", "tea")])
    workspace = import_workspace(tmp_path, by=by).workspace
    shutil.rmtree(tmp_path / "sessions")
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text)

    with raises_code("unknown_project"):
        import_workspace(tmp_path, by=by, layout=layout, project=workspace.project)
    new = import_workspace(tmp_path, by=by, layout=layout)

    assert (new.workspace == workspace, sum(new.tally.added.values())) == (False, 1)
    assert Workspace.objects.get(pk=workspace.pk).layout == "codex"


@pytest.mark.parametrize("number", [0, 1])
def test_only_sessions_of_the_damaged_store_are_not_known_to_be_gone(tmp_path, settings, number):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    by, homes = By(PERSON, timezone.now()), [tmp_path / "home", tmp_path / "#2"]
    for home, name in zip(homes, "ab", strict=True):
        for session in (f"ses_{name}1", f"ses_{name}2"):
            said = opencode_files.user(opencode_files.text(f"tea in {session}"))
            opencode_files.make_store(home, [said], session, directory="/home/ana/atlas")
    workspace = import_workspace(homes[0], by=by).workspace
    source = add_folder(workspace, homes[1], by=by)
    sync_folder(source, by=by)
    damaged(homes[1 - number] / "opencode.db")
    with closing(connect(homes[number] / "opencode.db", isolation_level=None)) as store:
        store.execute("DELETE FROM session WHERE id LIKE '%1'")  # its messages stay, which is reported

    sync_workspace(workspace, by=by, full=True)
    sync_folder(source, by=by, full=True)

    gone = Session.objects.filter(missing_since__isnull=False).values_list("key", flat=True)
    assert list(gone) == [f"opencode:ses_{'ab'[number]}1"]


def test_the_page_lists_them(program, admin_client):
    _layout, home, names = program
    page = admin_client.get(reverse("import-projects"), {"path": str(home)}).content.decode()

    assert [f'value="{name}"' in page for name in names] == [True, True]


@pytest.mark.parametrize(
    ("layout", "path", "expected"),
    [
        ("codex", f"sessions/2026/11/23/rollout-2026-11-23T11-00-00-{codex_files.SECOND}.jsonl", "/home/ana/forge"),
        ("codex", "sessions/2026/11/23/rollout-2026-11-23T11-00-00-gone.jsonl", None),
        ("codex", "memories/MEMORY.md", None),
        ("openclaw", "agents/coder/sessions/x.jsonl", "coder"),
        ("openclaw", "workspace-coder/MEMORY.md", "coder"),
        ("openclaw", "workspace/MEMORY.md", "main"),
        ("openclaw", "openclaw.json", None),
        ("hermes", "profiles/work/state.db-wal", "work"),
        ("hermes", "memories/MEMORY.md", "default"),
        ("opencode", "opencode.db-wal", None),
    ],
)
def test_a_changed_file_belongs_to_a_project(layout, path, expected, tmp_path):
    HOMES[layout][0](tmp_path / "home")
    with Folder(tmp_path / "home") as folder:
        assert project_of_file(folder, layout, path) == expected


@pytest.mark.parametrize(
    ("key", "channel"),
    [
        ("agent:main:main", "main"),
        ("agent:main:telegram:group:42", "telegram"),
        ("agent:x", "agent"),
        ("cron:daily", "cron"),
        ("claude:1", "claude"),
        ("plain", ""),
    ],
)
def test_the_channel_of_a_key(key, channel):
    assert channel_of(key) == channel


def test_openclaws_sessions_have_the_channel_of_their_key(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    make_openclaw(tmp_path, [message("a", None, "user", "hi")], session_key="agent:main:telegram:group:42")
    import_workspace(tmp_path, by=By(PERSON, timezone.now()))

    assert Session.objects.get().channel == "telegram"


def test_a_single_rollout_is_imported(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    make_codex(tmp_path)
    [rollout] = (tmp_path / "sessions/2026/11/22").iterdir()
    lone = shutil.copy(rollout, tmp_path / "talk.jsonl")

    for path in (rollout, Path(lone)):
        counts = [import_workspace(path, by=By(PERSON, timezone.now())).tally.added["entries"] for _ in range(2)]
        assert counts == [1, 0]


def test_an_uploaded_rollout_is_imported(admin_client, tmp_path):
    make_codex(tmp_path)
    [rollout] = (tmp_path / "sessions/2026/11/22").iterdir()
    with rollout.open("rb") as file:
        response = admin_client.post(reverse("import"), {"upload": file})
    run_jobs()

    assert response.status_code == 302
    assert Session.objects.get().key == f"codex:{codex_files.FIRST}"


@pytest.mark.skipif(not (FIXTURES / "codex").exists(), reason="the shared samples aren't next to the clone")
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("claude-code/.claude", [("atlas", 3)]),
        ("codex/.codex", [("atlas", 1)]),
        ("gemini-cli/.gemini", [("atlas", 1)]),
        ("openclaw/.openclaw", [("main", 1)]),
        ("opencode/.local/share/opencode", [("atlas", 2)]),
        ("claude-code", [("atlas", 3)]),
        ("codex", [("atlas", 1)]),
        ("gemini-cli", [("atlas", 1)]),
        ("openclaw", [("main", 1)]),
        ("opencode", [("atlas", 2)]),
    ],
)
def test_samples_list_their_projects(place, expected):
    home = open_home(FIXTURES / place)
    assert [(one.label, one.session_count) for one in projects_of(Folder(home.path), home.found)] == expected


def test_the_home_of_openclaw_may_be_in_the_folder_of_its_user(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS, settings.MEMORYHUB_ROOTS = 0, [tmp_path]
    make_agents(tmp_path / ".openclaw")

    import_all(tmp_path, ["main", "coder"])
    names = ("workspace__project", "name", "head__content")
    assert list(MemoryDocument.objects.order_by("pk").values_list(*names)) == [
        ("main", "MEMORY.md", "- workspace\n"), ("coder", "MEMORY.md", "- workspace-coder\n"),
    ]  # fmt: skip
    assert list(Session.objects.order_by("pk").values_list("workspace__project", flat=True)) == ["main", "coder"]
    with Folder(tmp_path) as folder:
        assert project_of_file(folder, "openclaw", ".openclaw/workspace-coder/MEMORY.md") == "coder"
        assert ".openclaw/agents/coder/sessions" in places_to_watch(folder, "openclaw").paths


@pytest.mark.parametrize(
    ("layout", "tree", "document"),
    [
        ("claude-code", ".claude/projects", ".claude/CLAUDE.md"),
        ("codex", ".codex/memories", ".codex/AGENTS.md"),
        ("gemini-cli", "tmp", "GEMINI.md"),
    ],
)
def test_a_check_of_a_home_includes_the_documents_of_all_projects(tmp_path, layout, tree, document):
    (tmp_path / tree).mkdir(parents=True)
    (tmp_path / document).write_text("Be brief.")
    (tmp_path / document).with_name("history.jsonl").write_text("{}")

    with Folder(tmp_path) as folder:
        assert list(home_stamps(folder, layout)) == [document]
        assert project_of_file(folder, layout, document) is None


@pytest.mark.parametrize(
    ("layout", "document"),
    [
        ("openclaw", "workspace/coder/MEMORY.md"),
        ("openclaw", ".openclaw/workspace/coder/MEMORY.md"),
        ("hermes", "profiles/work/memories/MEMORY.md"),
        ("hermes", ".hermes/profiles/work/memories/MEMORY.md"),
        ("opencode", ".local/share/opencode/storage/session/global/ses_1.json"),
        ("opencode", "storage/message/ses_1/msg_1.json"),
        ("opencode", ".config/opencode/AGENTS.md"),
    ],
)
def test_a_check_of_a_home_includes_the_files_of_each_project(tmp_path, layout, document):
    home = ".openclaw/" if document.startswith(".openclaw") else ""
    for path in (document, f"{home}workspace/project/README.md", f"{home}agents/coder/notes.md"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("- likes tea")

    with Folder(tmp_path) as folder:
        assert list(home_stamps(folder, layout)) == [document]

"""Homes of agents that keep several projects, each of which becomes a workspace."""

import json
import shutil
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import MemoryDocument, MemoryRevision
from knowledge_app.services.documents import limits, write_rules
from knowledge_app.services.documents.editing import save_text
from memoryhub.lib.files.safe_folder import Folder, UnreadableFile
from memoryhub.lib.layouts.records import Project
from memoryhub.sync import importing, watching
from memoryhub.sync.found_folders import found_folders
from memoryhub.sync.import_requests import anywhere
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.instructions import has_changed_instructions, instruction_files
from memoryhub.sync.status import read_only_reasons
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import ImportReport, SyncState, Workspace
from sessions_app.services.audit import By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON, run_jobs
from tests.sync import agent_homes

pytestmark = pytest.mark.django_db
ATLAS, FORGE = "-home-ana-atlas", "-home-ana-forge"


@pytest.fixture
def home(tmp_path: Path, settings, monkeypatch) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    settings.MEMORYHUB_ROOTS = [tmp_path]
    agent_homes.install(monkeypatch)
    folder = tmp_path / "claude"
    for name in (ATLAS, FORGE):
        agent_homes.write_project(folder, name)
    return folder


@pytest.fixture
def run(capsys):
    def call(*arguments: str):
        code = 0
        try:
            call_command("import", *arguments, "--json")
        except SystemExit as error:
            code = int(str(error.code))
        return code, json.loads(capsys.readouterr().out)

    return call


def import_all(home: Path, **options) -> list[Workspace]:
    by = By(PERSON, timezone.now())
    return [import_workspace(home, by=by, project=name, **options).workspace for name in (ATLAS, FORGE)]


def sync(workspace: Workspace):
    return sync_workspace(Workspace.objects.get(pk=workspace.pk), by=By(PERSON, timezone.now()))


def test_a_command_lists_the_projects_of_a_home_and_imports_those_named(home, run):
    code, document = run(str(home))
    assert (code, document["error"]["code"]) == (1, "several_projects")
    assert {one["label"] for one in document["error"]["projects"]} == {"atlas", "forge"}
    assert not Workspace.objects.exists()

    assert run(str(home), "--project", "atlas")[1]["workspace"] == "atlas"
    code, document = run(str(home), "--all", "--follow")

    assert (code, [one["workspace"] for one in document["imports"]]) == (0, ["forge", "atlas"])
    assert [one["added"] for one in document["imports"]] == [{"documents": 1}, {}]
    rows = Workspace.objects.order_by("project")
    assert list(rows.values_list("project", "is_followed")) == [(ATLAS, True), (FORGE, True)]


def test_an_unknown_project_is_refused_with_the_known_names(home, run):
    code, document = run(str(home), "--project", "atals")

    assert (code, document["error"]["code"]) == (1, "unknown_project")
    assert ATLAS in document["error"]["message"]


def test_a_home_with_one_project_is_imported_at_once(home, run):
    Workspace.objects.create(slug="atlas", name="atlas")
    (home / "projects" / FORGE / "memory" / "MEMORY.md").unlink()
    (home / "projects" / FORGE / "memory").rmdir()
    (home / "projects" / FORGE).rmdir()

    _, document = run(str(home))

    assert (document["workspace"], document["name"], document["project"]) == (
        "atlas-claude-code",
        "atlas (Claude Code)",
        ATLAS,
    )


def test_the_page_lists_projects_and_imports_the_selected_ones(admin_client, home):
    response = admin_client.post(reverse("import"), {"path": str(home)})
    page = admin_client.get(response["Location"]).content.decode()
    assert [name in page for name in ("atlas", "forge", "2.0 kB", "not imported")] == [True] * 4
    assert page.count("checked") == 3
    assert "Also on this machine" not in page

    response = admin_client.post(
        reverse("import-projects"), {"path": str(home), "project": [FORGE, "other"], "follow": "1"}
    )
    assert "Queued" in admin_client.get(response["Location"]).content.decode()
    run_jobs()

    [workspace] = Workspace.objects.all()
    assert (workspace.project, workspace.name, workspace.is_followed) == (FORGE, "forge", True)
    assert ImportReport.objects.get().project == FORGE
    page = admin_client.get(response["Location"]).content.decode()
    assert ["followed" in page, "every 2s" in page] == [True, False]
    assert page.count("checked") == 2  # what is imported isn't selected again
    ImportReport.objects.update(added={"entries": 38}, problem_count=4)
    page = admin_client.get(response["Location"]).content.decode()
    assert ["38 new messages" in page, "4 warnings" in page] == [True, True]

    admin_client.post(reverse("import-projects"), {"path": str(home), "project": [ATLAS]})
    assert 'class="button primary">Import selected' in page
    run_jobs()
    page = admin_client.get(response["Location"]).content.decode()
    assert 'class="button">Import selected' in page


def test_the_pages_link_to_other_folders(admin_client, home, settings):
    shutil.copytree(home, other := home.parent / "other")
    forge = home.parent / "forge"
    forge.mkdir()
    (forge / "kv.json").write_text("{}")
    settings.AGENT_HOMES = (str(home), str(other), str(forge))
    links = [f'{reverse("import-projects")}?path={other}"', f'{reverse("import")}?path={forge}"']

    page = admin_client.get(reverse("import-projects"), {"path": str(home)}).content.decode()
    assert "Also on this machine" in page
    assert [link in page for link in links] == [True, True]

    imported = admin_client.post(reverse("import"), {"path": str(forge)})
    run_jobs()
    page = admin_client.get(imported["Location"]).content.decode()
    assert "Also on this machine" in page
    assert [link in page for link in links] == [True, False]


def test_the_page_needs_a_selection_and_a_home_below_the_roots(admin_client, home, settings):
    response = admin_client.post(reverse("import-projects"), {"path": str(home)}, follow=True)
    assert "Select at least one project." in response.content.decode()

    settings.MEMORYHUB_ROOTS = [home / "projects"]
    response = admin_client.get(reverse("import-projects"), {"path": str(home)})
    assert response["Location"].startswith(reverse("import"))


def test_homes_are_found_with_the_number_of_their_projects(home, settings):
    settings.AGENT_HOMES = (str(home),)
    import_all(home)

    [found] = found_folders()
    assert (found.program, found.project_count, found.byte_count, len(found.workspaces)) == (
        "Claude Code",
        2,
        2_000,
        2,
    )


def test_a_change_is_synced_in_its_project_only(home, settings):
    atlas, forge = import_all(home)
    (home / "projects" / FORGE / "memory" / "MEMORY.md").write_text("# Facts\n\n- likes tea\n- no milk\n")

    assert +sync(forge).tally.updated == {"documents": 1}
    assert +sync(atlas).tally.unchanged == {"files": 1}


def test_one_check_of_a_home_finds_the_projects_that_changed(home):
    workspaces = import_all(home)
    for workspace in workspaces:
        sync(workspace)
    SyncState.objects.update(succeeded_at="2026-01-01T00:00Z")
    one = watching.WatchedFolder(str(home), None)
    one.workspaces = {row: watching.FollowedWorkspace(row, due_at=watching.NEVER) for row in workspaces}

    watching._schedule_what_changed(one, Event())
    assert [each.due_at for each in one.workspaces.values()] == [watching.NEVER] * 2
    assert not SyncState.objects.filter(succeeded_at__year=2026, succeeded_at__month=1, succeeded_at__day=1).exists()

    (home / "projects" / FORGE / "memory" / "MEMORY.md").write_text("- no milk\n")
    watching._schedule_what_changed(one, Event())
    assert [each.due_at < watching.NEVER for each in one.workspaces.values()] == [False, True]


def test_the_first_file_of_an_empty_home_is_a_change(home):
    [workspace, _] = import_all(home)
    one = watching.WatchedFolder(str(home), None, stamps={})
    one.workspaces = {workspace: watching.FollowedWorkspace(workspace, due_at=watching.NEVER)}

    watching._schedule_what_changed(one, Event())

    assert one.workspaces[workspace].due_at < watching.NEVER


def test_a_project_is_synced_again_after_an_unexpected_error(home, monkeypatch):
    [workspace, _] = import_all(home)
    one = watching.FollowedWorkspace(workspace, due_at=watching.NEVER)
    monkeypatch.setattr(watching, "sync_workspace", Mock(side_effect=ValueError))
    monkeypatch.setattr(watching, "connection", Mock())

    watching._sync_one(one, PERSON, Mock(), Event())

    assert one.due_at < watching.NEVER


@pytest.mark.parametrize(("is_allowed", "count"), [(True, 2), (False, 1)])
def test_instructions_in_the_projects_folder_are_read_where_that_is_allowed(home, is_allowed, count):
    work = home.parent / "work" / ATLAS
    work.mkdir(parents=True)
    (work / "CLAUDE.md").write_text("# Rules\n\n- use tabs\n")

    atlas, _ = import_all(home, may_read=lambda _path: is_allowed)

    documents = MemoryDocument.objects.filter(workspace=atlas).order_by("id")
    assert documents.count() == count
    assert [row.is_instructions for row in documents] == [False, True][:count]


def test_instructions_that_cannot_be_read_need_no_sync_until_they_can(home, monkeypatch):
    work = home.parent / "work" / ATLAS
    work.mkdir(parents=True)
    (work / "CLAUDE.md").write_text("# Rules\n\n- use tabs\n")
    read_file = Folder.read

    def refused(self, path, *arguments, **options):
        if path == "CLAUDE.md":
            raise UnreadableFile("can't be read: Permission denied")
        return read_file(self, path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "read", refused)
        atlas, _ = import_all(home)
        sync(atlas)
        assert not has_changed_instructions(atlas)
    assert has_changed_instructions(atlas)
    sync(atlas)
    assert not has_changed_instructions(atlas)


def test_instructions_in_the_root_folder_are_not_read(tmp_path):
    assert importing.instructions_folder(tmp_path, Project("root", "root", "/"), anywhere) is None
    assert importing.instructions_folder(tmp_path, Project("work", "work", str(tmp_path)), anywhere) == tmp_path


def test_instructions_are_written_only_if_that_is_turned_on(home):
    work = home.parent / "work" / ATLAS
    work.mkdir(parents=True)
    file = work / "CLAUDE.md"
    file.write_text("# Rules\n\n- use tabs\n")
    atlas, _ = import_all(home)
    switch_sync(atlas, follow=True, write_back=True, by=By(PERSON, timezone.now()))
    document = MemoryDocument.objects.get(workspace=atlas, is_instructions=True)
    by = By(PERSON, timezone.now())
    save_text(document, "# Rules\n\n- use spaces\n", base_number=1, by=by, reason="r")

    assert sync(atlas).written == []
    assert "often in Git" in read_only_reasons(atlas)[str(file)]

    switch_sync(atlas, write_instructions=True, by=By(PERSON, timezone.now()))
    assert [one.verdict for one in sync(atlas).written] == ["written"]
    assert file.read_text() == "# Rules\n\n- use spaces\n"
    assert +sync(atlas).tally.updated == {}


def test_memory_of_a_project_is_written_and_other_projects_are_not(home):
    atlas, _ = import_all(home)
    switch_sync(atlas, write_back=True, by=By(PERSON, timezone.now()))
    document = MemoryDocument.objects.get(workspace=atlas)
    save_text(document, "# Facts\n\n- likes coffee\n", base_number=1, by=By(PERSON, timezone.now()), reason="r")

    assert [one.verdict for one in sync(atlas).written] == ["written"]
    texts = [(home / "projects" / name / "memory" / "MEMORY.md").read_text() for name in (ATLAS, FORGE)]
    assert ["coffee" in text for text in texts] == [True, False]


def test_only_the_trees_of_a_home_are_watched(home):
    with Folder(home) as folder:
        places = watching.places_to_watch(folder, "claude-code")

    assert (places.paths, places.are_trees) == (["projects"], True)


def test_each_project_of_an_uploaded_archive_becomes_a_workspace(admin_client, home, tmp_path):
    archive = Path(shutil.make_archive(str(tmp_path / "claude"), "zip", home))
    with archive.open("rb") as file:
        admin_client.post(reverse("import"), {"upload": file})
    run_jobs()
    run_jobs()

    assert set(Workspace.objects.values_list("project", "name")) == {(ATLAS, "atlas"), (FORGE, "forge")}
    assert list(ImportReport.objects.values_list("status", flat=True)) == ["done"] * 2


@pytest.mark.parametrize(
    ("layout", "name", "is_instructions", "expected"),
    [
        ("claude-code", "projects/-x/memory/MEMORY.md", False, True),
        ("claude-code", "CLAUDE.md", True, False),
        ("openclaw", "workspace/SOUL.md", False, True),
        ("openclaw", "workspace/memory/2026-11-22.md", False, True),
        ("openclaw", "workspace/memory/imports/codex/notes.md", False, False),
        ("hermes", "memories/USER.md", False, True),
        ("hermes", "SOUL.md", False, False),
        ("codex", "memories/MEMORY.md", False, False),
        ("gemini-cli", "GEMINI.md", False, False),
        ("basic-memory", "notes/tea.md", False, True),
        ("server-memory", "memory.jsonl", False, False),
    ],
)
def test_which_documents_are_written_back(layout, name, is_instructions, expected):
    workspace = Workspace.objects.create(slug="a", name="a", path="/agent", layout=layout)
    document = MemoryDocument.objects.create(
        workspace=workspace, name=name, path=name, is_instructions=is_instructions
    )

    assert write_rules.is_writable(document, workspace) is expected
    assert MemoryDocument.objects.filter(write_rules.writable()).exists() is expected
    assert bool(write_rules.why_not_writable(document, workspace)) is not expected


@pytest.mark.parametrize(
    ("separator", "text", "refusal"),
    [
        ("§", "likes tea\n§\nno milk", ""),
        ("§", "likes tea\n§\n", "ends with a separator line (§)"),
        ("§", "x" * 31, "longer than the agent accepts (31 of at most 30 characters)"),
        ("", "x" * 31, ""),
    ],
)
def test_texts_that_the_program_would_refuse_are_not_written(separator, text, refusal):
    document = MemoryDocument(name="MEMORY.md", path="memories/MEMORY.md", separator=separator, char_limit=30)

    assert write_rules.refusal_of(document, text) == refusal
    assert bool(limits.excesses(document, text)) == (len(text) > 30)


def test_a_separator_that_the_agent_itself_left_at_the_end_does_not_stop_a_correction():
    document = MemoryDocument(separator="§", synced_revision=MemoryRevision(content="tea\n§"))

    assert write_rules.refusal_of(document, "coffee\n§") == ""


def test_rules_of_a_project_are_instructions_of_its_program_only(tmp_path):
    for name in ("CLAUDE.md", ".claude/rules/style.md", ".claude/rules/notes.txt", "AGENTS.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    with Folder(tmp_path) as folder:
        assert instruction_files(folder, "claude-code") == ["CLAUDE.md", ".claude/rules/style.md"]
        assert instruction_files(folder, "codex") == ["AGENTS.md"]

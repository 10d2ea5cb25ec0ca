"""Folders whose memory is already in a workspace, under an outer or inner folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from memoryhub.sync.found_folders import found_folders
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.overlaps import overlaps_at
from memoryhub.sync.source_folders import add_folder, sync_folder
from sessions_app.models import ImportReport, Workspace
from tests.hub import by, raises_code, run_jobs

pytestmark = pytest.mark.django_db
ENTITY = '{"type":"entity","name":"Ana","entityType":"person","observations":["likes tea"]}'
MESSAGE = {"type": "user", "sessionId": "s", "parentUuid": None, "timestamp": "2026-11-22T10:58:40.000Z"}
MESSAGE |= {"message": {"role": "user", "content": "Hello"}, "isSidechain": False}


@pytest.fixture(autouse=True)
def root(settings, tmp_path) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS, settings.MEMORYHUB_ROOTS = 0, [tmp_path]
    return tmp_path


def imported(path: Path, **options) -> Workspace:
    return import_workspace(path, by=by(), **options).workspace


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def session(home: Path, project: str, uuid: str) -> Path:
    record = MESSAGE | {"uuid": f"u-{uuid}", "sessionId": uuid, "cwd": f"/home/ana/{project}"}
    return write(home / ".claude/projects" / f"-home-ana-{project}" / f"{uuid}.jsonl", json.dumps(record) + "\n")


@pytest.fixture
def graph(root) -> Path:
    return write(root / "graph/memory.jsonl", ENTITY)


@pytest.fixture
def home(root) -> Path:
    session(root / "ana", "atlas", "3d695b5f-3594-47e9-885c-e5c3c219114a")
    session(root / "ana", "forge", "0d7165d8-2599-4db2-80b9-024d11118b17")
    return root / "ana"


def test_a_file_and_its_folder_overlap_in_both_orders(graph):
    first = imported(graph.parent)
    assert overlaps_at(graph) == [first]

    first.delete()
    assert overlaps_at(graph.parent) == []
    second = imported(graph)
    assert overlaps_at(graph.parent) == [second]
    assert overlaps_at(graph) == []


def test_one_project_of_a_home_overlaps_with_its_own_folder_only(home):
    atlas, forge = (home / ".claude/projects" / f"-home-ana-{name}" for name in ("atlas", "forge"))
    workspace = imported(home, project=atlas.name)

    assert overlaps_at(atlas) == [workspace]
    assert overlaps_at(forge) == []
    assert overlaps_at(home / ".claude", project=atlas.name) == [workspace]
    assert overlaps_at(home / ".claude", project=forge.name) == []


def test_a_project_s_own_folder_overlaps_with_the_home_imported_later(home):
    workspace = imported(home / ".claude/projects/-home-ana-atlas")

    assert overlaps_at(home, project="-home-ana-atlas") == [workspace]
    assert overlaps_at(home, project="-home-ana-forge") == []


def test_another_program_s_memory_inside_a_folder_is_its_own(root, graph):
    outer = imported(write(root / "kv.json", '{"theme": "dark"}').parent)
    assert overlaps_at(graph.parent) == []

    inner = imported(graph.parent)
    assert overlaps_at(root) == []
    assert {outer.pk, inner.pk} == set(Workspace.objects.values_list("pk", flat=True))


def test_a_further_folder_of_a_workspace_counts_until_it_is_removed(workspace, graph):
    folder = add_folder(workspace, graph.parent, by=by())
    sync_folder(folder, by=by())
    assert overlaps_at(graph) == [workspace]

    folder.removed_at = timezone.now()
    folder.save()
    assert overlaps_at(graph) == []


def test_the_page_says_so_before_it_imports(admin_client, graph):
    imported(graph.parent, name="Graph")

    page = admin_client.post(reverse("import"), {"path": str(graph)})

    assert page.status_code == 409
    html = page.content.decode()
    assert "This memory is already in" in html
    assert f'href="{reverse("workspace", args=["graph"])}"' in html
    assert (Workspace.objects.count(), ImportReport.objects.count()) == (1, 0)

    admin_client.post(reverse("import"), {"path": str(graph), "separate": "1"})
    run_jobs()
    assert Workspace.objects.count() == 2
    assert admin_client.post(reverse("import"), {"path": str(graph)}).status_code == 302  # its own workspace


def test_projects_that_are_elsewhere_are_named_and_not_selected(admin_client, home):
    imported(home / ".claude/projects/-home-ana-atlas", name="Atlas")

    page = admin_client.get(reverse("import-projects"), {"path": str(home)})

    html = page.content.decode()
    assert "imported from another folder" in html
    checked = {row.project.name: row.is_selected for row in page.context["rows"]}
    assert checked == {"-home-ana-atlas": False, "-home-ana-forge": True}


def test_the_command_says_so(graph, capsys):
    imported(graph.parent, name="Graph")

    call_command("import", str(graph), "--dry-run", "--json")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["overlaps"] == ["graph"]
    assert "This memory is already in the workspace graph, from another folder." in printed.err
    call_command("import", str(graph.parent), "--dry-run", "--json")
    assert "overlaps" not in json.loads(capsys.readouterr().out)


def test_a_found_folder_inside_an_imported_one_leads_to_its_workspace(graph, monkeypatch):
    monkeypatch.setattr("memoryhub.sync.found_folders.USUAL_PLACES", (str(graph.parent),))
    outer = imported(graph)

    [found] = [one for one in found_folders() if one.path == str(graph.parent)]
    assert found.workspace == outer


def test_a_part_of_a_workspace_s_own_folder_can_t_be_added_to_it(graph):
    workspace = imported(graph)

    with raises_code("known_folder", match="already has this memory"):
        add_folder(workspace, graph.parent, by=by())


def test_an_empty_form_asks_for_a_folder_or_a_file(admin_client, tmp_path):
    file = SimpleUploadedFile("a.jsonl", b"{}")

    assert "Enter a folder or upload a file.<" in admin_client.post(reverse("import"), {}).content.decode()
    both = admin_client.post(reverse("import"), {"path": str(tmp_path), "upload": file}).content.decode()
    assert "Enter a folder or upload a file, not both.<" in both

"""Workspaces that are fed from several folders."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from knowledge_app.services.documents.write_rules import is_writable, writable
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.forget import forget
from memoryhub.inbox.sources import folders
from memoryhub.integrity import check_memory
from memoryhub.sync.exporting import export_workspace
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.source_folders import add_folder, remove_folder, sync_folder, sync_folders
from memoryhub.sync.syncing import sync_workspace
from memoryhub.sync.watching import followed_workspaces
from sessions_app.models import AuditRecord, Entry, Membership, Session, SourceFile, SourceFolder, Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import PERSON, client_of, raises_code, run_jobs
from tests.shared import FIXTURES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]
ACTOR = Actor("command", "test")


def by() -> By:
    return By(ACTOR, timezone.now())


def nanobot(folder: Path, drink: str) -> Path:
    """Write a home with a document, a history and one session, whose key every home has."""
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "MEMORY.md").write_text(f"# Facts\n\n- Ana drinks {drink}\n")
    (folder / "memory" / "HISTORY.md").write_text(f"[2026-04-01 10:00] Ana ordered {drink}\n\n")
    (folder / "sessions").mkdir()
    add_message(folder, f"I would like {drink}")
    return folder


def add_message(folder: Path, text: str) -> None:
    file = folder / "sessions" / "cli_direct.jsonl"
    lines = file.read_text() if file.exists() else '{"_type":"metadata","key":"cli:direct"}\n'
    number = lines.count("\n")
    message = {"role": "user", "content": text, "timestamp": f"2026-04-01T10:00:{number:02}"}
    file.write_text(lines + json.dumps(message) + "\n")


@pytest.fixture
def home(tmp_path) -> Path:
    return nanobot(tmp_path / "home", "tea")


@pytest.fixture
def office(tmp_path) -> Path:
    return nanobot(tmp_path / "office", "coffee")


@pytest.fixture
def ana(home) -> Workspace:
    return import_workspace(home, by=by(), name="Ana").workspace


@pytest.fixture
def source(ana, office) -> SourceFolder:
    made = add_folder(ana, office, label="office", by=by())
    sync_folder(made, by=by())
    return made


def texts(workspace: Workspace) -> dict[str, str]:
    rows = MemoryDocument.objects.filter(workspace=workspace).select_related("head")
    return {row.name: row.head.content.splitlines()[-1] for row in rows if row.head}


def messages(workspace: Workspace) -> dict[str, list[str]]:
    found = Entry.objects.filter(workspace=workspace).order_by("position").values_list("session__key", "content")
    return {key: [text for own, text in found if own == key] for key, _ in found}


def test_two_homes_of_one_program_never_mix(ana, source):
    assert texts(ana) == {"MEMORY.md": "- Ana drinks tea", "office/MEMORY.md": "- Ana drinks coffee"}
    assert messages(ana) == {"cli:direct": ["I would like tea"], "cli:direct@office": ["I would like coffee"]}
    assert Session.objects.get(key="cli:direct@office").channel == "cli"
    paths = set(SourceFile.objects.filter(folder=source).values_list("path", flat=True))
    assert f"{source.path}/memory/MEMORY.md" in paths
    assert all(path.startswith(source.path) for path in paths)
    assert check_memory().broken == []


def test_another_sync_adds_nothing_and_reports_nothing_missing(ana, source):
    again = [sync_workspace(ana, by=by(), full=True), sync_folder(source, by=by(), full=True)]
    import_workspace(Path(ana.path), by=by())

    assert [(dict(+one.tally.added), dict(+one.tally.updated), one.tally.problems) for one in again] == [
        ({}, {}, []),
        ({}, {}, []),
    ]
    assert not SourceFile.objects.filter(status=SourceFile.Status.MISSING).exists()


def test_unchanged_files_of_a_further_folder_are_not_read_again(ana, source):
    result = sync_folder(source, by=by())

    assert result.tally.unchanged["files"] == SourceFile.objects.filter(folder=source).count()


def test_a_sync_without_changes_is_recorded_unless_another_just_was(ana, source):
    for age, is_recorded in ((timedelta(minutes=1), True), (timedelta(seconds=1), False)):
        before = timezone.now() - age
        SourceFolder.objects.update(succeeded_at=before)

        sync_folder(source, by=by())

        assert (SourceFolder.objects.get().succeeded_at > before) is is_recorded


def test_both_folders_are_followed_on(ana, source, home, office):
    add_message(home, "more tea")
    add_message(office, "more coffee")
    (office / "memory" / "MEMORY.md").write_text("# Facts\n\n- Ana drinks water\n")

    sync_workspace(ana, by=by())
    sync_folder(source, by=by())

    assert messages(ana)["cli:direct"] == ["I would like tea", "more tea"]
    assert messages(ana)["cli:direct@office"] == ["I would like coffee", "more coffee"]
    assert texts(ana)["office/MEMORY.md"] == "- Ana drinks water"


def test_a_correction_of_a_further_folder_is_kept_and_never_written(ana, source, home, office):
    Workspace.objects.filter(pk=ana.pk).update(write_back=True, is_followed=True)
    document = MemoryDocument.objects.select_related("head").get(name="office/MEMORY.md")
    save_text(document, "# Facts\n\n- Ana drinks juice\n", base_number=1, by=By(PERSON, timezone.now()), reason="r")

    sync_workspace(Workspace.objects.get(pk=ana.pk), by=by())
    sync_folder(source, by=by(), full=True)

    assert texts(ana)["office/MEMORY.md"] == "- Ana drinks juice"
    assert (office / "memory" / "MEMORY.md").read_text() == "# Facts\n\n- Ana drinks coffee\n"
    assert (home / "memory" / "MEMORY.md").read_text() == "# Facts\n\n- Ana drinks tea\n"
    document.refresh_from_db()
    assert not is_writable(document, ana)
    assert not MemoryDocument.objects.filter(writable(), pk=document.pk).exists()


def test_what_is_forgotten_stays_forgotten_in_every_folder(ana, source, office):
    erasure = ErasureRequest("phrase", ("coffee",))
    forget(ana, erasure, expected=plan_forget(ana, erasure).total, reason="r", by=By(PERSON, timezone.now()))
    add_message(office, "no coffee today")

    sync_folder(source, by=by(), full=True)

    assert not Entry.objects.filter(content__icontains="coffee").exists()
    assert "coffee" not in str(texts(ana))


def test_a_document_of_the_same_name_is_reported_and_not_mixed(ana, source, home, office):
    MemoryDocument.objects.filter(name="office/MEMORY.md").update(folder=None)
    (office / "memory" / "MEMORY.md").write_text("# Facts\n\n- something else\n")

    result = sync_folder(source, by=by())

    assert texts(ana)["office/MEMORY.md"] == "- Ana drinks coffee"
    assert [problem.outcome for problem in result.tally.problems] == ["rejected"]
    assert "another folder" in result.tally.problems[0].what


def test_a_removed_folder_is_not_read_and_keeps_its_memory(ana, source, office):
    remove_folder(source, by=by())
    add_message(office, "later")

    assert sync_folders(ana, by=by()) == []
    assert messages(ana)["cli:direct@office"] == ["I would like coffee"]

    again = add_folder(ana, office, by=by())
    sync_folder(again, by=by())

    assert (again.pk, again.label) == (source.pk, "office")
    assert messages(ana)["cli:direct@office"] == ["I would like coffee", "later"]
    actions = AuditRecord.objects.filter(action__startswith="workspace.folder").order_by("pk")
    assert [row.action for row in actions] == [
        "workspace.folder_added",
        "workspace.folder_removed",
        "workspace.folder_added",
    ]


def test_a_folder_that_is_gone_is_a_failure_that_needs_attention_until_it_is_back(ana, source, office):
    office.rename(office.with_name("away"))

    (_, error), *_ = sync_folders(ana, by=by())

    everything = Workspace.objects.all()
    assert error.code == "folder_missing"
    assert [row.source_error for row in folders(everything, timezone.now())] == [error.message]
    assert messages(ana)["cli:direct@office"] == ["I would like coffee"]

    office.with_name("away").rename(office)
    sync_folders(ana, by=by())

    assert not folders(everything, timezone.now()).exists()


def test_an_emptied_folder_is_refused(ana, source, office):
    shutil.rmtree(office)
    office.mkdir()

    with raises_code("folder_missing"):
        sync_folder(source, by=by())


def test_a_folder_is_added_once_and_under_its_own_label(ana, source, home, office, tmp_path):
    with raises_code("known_folder"):
        add_folder(ana, office, by=by())
    with raises_code("known_folder"):
        add_folder(ana, home, by=by())
    for label in ("office", "no spaces", "../x"):
        with raises_code("bad_label"):
            add_folder(ana, nanobot(tmp_path / f"of-{len(label)}", "milk"), label=label, by=by())
    with raises_code("not_a_folder"):
        add_folder(ana, office / "memory" / "MEMORY.md", by=by())

    third = add_folder(ana, nanobot(tmp_path / "third", "milk"), by=by())
    fourth = add_folder(ana, nanobot(tmp_path / "fourth", "milk"), by=by())

    assert (third.label, fourth.label) == ("nanobot", "nanobot-2")


def test_the_worker_follows_further_folders_until_they_are_removed(ana, source):
    SourceFolder.objects.update(is_followed=True)

    assert followed_workspaces() == [source]

    remove_folder(source, by=by())

    assert followed_workspaces() == []


def test_an_export_has_the_documents_of_all_folders(ana, source, tmp_path):
    export_workspace(ana, tmp_path / "copy", "hub", by=by())
    copy = import_workspace(tmp_path / "copy", by=by(), name="Copy").workspace

    assert texts(copy) == texts(ana)
    assert messages(copy) == messages(ana)


def test_the_command_adds_syncs_lists_and_removes_folders(ana, office, command):
    preview = command("import_workspace", str(office), "--into", "ana", "--label", "office", "--dry-run")
    added = command("import_workspace", str(office), "--into", "ana", "--label", "office", "--follow")
    again = command("import_workspace", str(office), "--into", "ana")
    synced = command("sync", "ana")
    status = command("sync", "ana", "--status")
    removed = command("sync", "ana", "--remove-folder", "office")

    assert preview["added"] == added["added"]
    assert (added["workspace"], added["folder"], again["added"]) == ("ana", "office", {})
    assert list(synced["folders"]) == ["office"]
    assert [(one["label"], one["follow"]) for one in status["folders"]] == [("office", True)]
    assert removed["folders"] == []
    assert command("sync", "ana", "--remove-folder", "x", status=1)["error"]["code"] == "unknown_folder"


def test_the_page_adds_shows_and_removes_folders(ana, office, settings, tmp_path, django_user_model):
    settings.MEMORYHUB_ROOTS = [tmp_path]
    client = client_of(django_user_model.objects.create_superuser("olga"))

    client.post("/w/ana/sync/folders/", {"path": str(office)})
    run_jobs()
    page = client.get("/w/ana/sync/").content.decode()
    folder = SourceFolder.objects.get()

    assert (folder.label, folder.is_followed) == ("nanobot", True)
    assert str(office) in page
    assert messages(ana)["cli:direct@nanobot"] == ["I would like coffee"]

    client.post(f"/w/ana/sync/folders/{folder.pk}/", {"follow": "off"})
    assert not SourceFolder.objects.get().is_followed
    client.post(f"/w/ana/sync/folders/{folder.pk}/", {"remove": "on"})
    assert SourceFolder.objects.get().removed_at is not None


def test_only_operators_of_the_hub_add_folders(ana, office, settings, tmp_path, django_user_model):
    settings.MEMORYHUB_ROOTS = [tmp_path]
    user = django_user_model.objects.create_user("otto")
    Membership.objects.create(workspace=ana, user=user, role="operator")

    assert client_of(user).post("/w/ana/sync/folders/", {"path": str(office)}).status_code in (403, 404)
    assert not SourceFolder.objects.exists()
    assert "Add folder" not in client_of(user).get("/w/ana/sync/").content.decode()


def test_the_page_refuses_folders_outside_the_roots(ana, office, settings, django_user_model):
    settings.MEMORYHUB_ROOTS = []
    client = client_of(django_user_model.objects.create_superuser("olga"))

    answer = client.post("/w/ana/sync/folders/", {"path": str(office)}, follow=True)

    assert "MEMORYHUB_ROOTS" in answer.content.decode()
    assert not SourceFolder.objects.exists()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared samples aren't there")
def test_three_agents_of_one_project_share_a_workspace(tmp_path):
    for name in ("claude-code", "codex", "gemini-cli"):
        shutil.copytree(FIXTURES / name, tmp_path / name)
    projects = {"claude-code": "", "codex": "", "gemini-cli": ""}
    workspace = import_workspace(tmp_path / "claude-code", by=by(), name="Atlas").workspace
    before = Entry.objects.count()
    for name in ("codex", "gemini-cli"):
        sync_folder(add_folder(workspace, tmp_path / name, project=projects[name], by=by()), by=by())

    channels = set(Session.objects.filter(workspace=workspace).values_list("channel", flat=True))
    assert {"codex", "gemini"} < channels
    assert Entry.objects.filter(workspace=workspace).count() > before
    assert Workspace.objects.count() == 1
    assert check_memory().broken == []
    for _, again in sync_folders(workspace, by=by(), full=True):
        assert (dict(+again.tally.added), dict(+again.tally.updated)) == ({}, {})

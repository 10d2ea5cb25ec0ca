import io
import json
import os
import shlex
import zipfile
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import HygieneScore, KeyValue
from memoryhub.lib.problem_groups import problem_lines
from memoryhub.runs.executing import execute
from memoryhub.sync.forms import ImportForm
from sessions_app.models import ImportReport, Run, Session, Workspace
from tests.hub import run_jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(settings, tmp_path):
    settings.MEMORYHUB_ROOTS = [tmp_path]
    return tmp_path


@pytest.fixture
def agent(root):
    folder = root / "agent"
    folder.mkdir()
    (folder / "kv.json").write_text(json.dumps({"theme": "dark"}))
    return folder


def post(client, **values):
    """Request an import, let the worker carry it out, and return the report's page."""
    response = client.post(reverse("import"), values)
    run_jobs()
    assert response.status_code == 302
    return client.get(response["Location"])


def test_a_folder_is_imported_and_reported(admin_client, agent):
    response = post(admin_client, path=str(agent), name="Forge")

    report = ImportReport.objects.get()
    assert report.status == "done"
    assert report.added == {"key_values": 1}
    assert "Open Forge" in response.content.decode()
    assert KeyValue.objects.get().workspace.name == "Forge"


def test_a_first_import_is_scanned_once(admin_client, agent):
    for _ in range(2):
        post(admin_client, path=str(agent))
        run = Run.objects.get(kind="scan")
        execute(run.pk, now=timezone.now)

    assert HygieneScore.objects.count() == 1


def test_importing_again_goes_to_the_same_workspace(admin_client, agent):
    post(admin_client, path=str(agent))

    admin_client.post(reverse("import-again", args=[Workspace.objects.get().slug]))
    run_jobs()

    assert ImportReport.objects.latest("id").unchanged == {"key_values": 1}
    assert Workspace.objects.count() == 1


@pytest.mark.parametrize("path", ["/etc", "relative", "/", "../..", "~root/x\x00y"])
def test_a_path_outside_the_roots_is_refused(admin_client, root, path):
    response = admin_client.post(reverse("import"), {"path": path})

    assert response.status_code == 422
    assert not ImportReport.objects.exists()


def test_a_found_folder_is_imported_with_one_click(admin_client, agent, monkeypatch):
    monkeypatch.setattr("memoryhub.sync.found_folders.USUAL_PLACES", (str(agent),))
    page = admin_client.get(reverse("import")).content.decode()
    assert f'<input type="hidden" name="path" value="{agent}">' in page

    post(admin_client, path=str(agent))

    assert KeyValue.objects.get().workspace.name == "agent"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_refusal_names_the_setting_that_would_allow_the_folder(admin_client, settings, tmp_path, method):
    roots = [tmp_path / "one", tmp_path / "two"]
    settings.MEMORYHUB_ROOTS = roots
    folder = tmp_path / "ana's agent"
    folder.mkdir()

    form = getattr(admin_client, method)(reverse("import"), {"path": str(folder)}).context["form"]

    [refusal] = form.errors["path"]
    words = shlex.split(refusal.replace(",", " ").replace(".", " . "))
    value = os.pathsep.join(map(str, [*roots, folder]))
    assert f"MEMORYHUB_ROOTS={value}" in words
    assert str(folder) in words
    settings.MEMORYHUB_ROOTS = [Path(part) for part in value.split(os.pathsep)]
    assert ImportForm({"path": str(folder), "layout": "auto"}).is_valid()


def test_the_hub_s_own_folder_gets_no_hint(admin_client, settings):
    page = admin_client.post(reverse("import"), {"path": str(settings.MEMORYHUB_HOME)})

    assert page.context["form"].errors["path"] == ["This is MemoryHub's own data folder, not an agent's folder."]


def test_a_link_out_of_the_roots_is_refused(admin_client, root):
    (root / "way-out").symlink_to("/etc")

    assert admin_client.post(reverse("import"), {"path": str(root / "way-out")}).status_code == 422


def test_the_hubs_own_folder_is_refused(admin_client, settings):
    settings.MEMORYHUB_ROOTS = [settings.MEMORYHUB_HOME.parent]

    assert admin_client.post(reverse("import"), {"path": str(settings.MEMORYHUB_HOME)}).status_code == 422


def test_a_folder_without_memory_lists_the_expected_files(admin_client, root):
    response = post(admin_client, path=str(root))

    assert "Supported are" in response.content.decode()
    assert ImportReport.objects.get().error_code == "unknown_layout"


def test_an_uploaded_export_is_imported(admin_client):
    export = {"sessionId": "s-1", "entries": [{"id": "a", "type": "message", "role": "user", "content": "hi"}]}
    upload = io.BytesIO(json.dumps(export).encode())
    upload.name = "../../desk.json"

    post(admin_client, upload=upload)

    assert Session.objects.get().key == "s-1"
    assert Workspace.objects.get().name == "desk"


def test_an_uploaded_archive_is_imported(admin_client):
    upload = io.BytesIO()
    with zipfile.ZipFile(upload, "w") as archive:
        archive.writestr("forge/kv.json", '{"a": "1"}')
    upload.seek(0)
    upload.name = "forge.zip"

    post(admin_client, upload=upload)

    assert KeyValue.objects.get().key == "a"


def test_an_archive_with_unsafe_names_is_refused_with_a_message(admin_client):
    upload = io.BytesIO()
    with zipfile.ZipFile(upload, "w") as archive:
        archive.writestr("../outside.md", "x")
    upload.seek(0)
    upload.name = "bad.zip"

    response = post(admin_client, upload=upload)

    assert "leads outside the folder" in response.content.decode()
    assert not Workspace.objects.exists()


@pytest.mark.parametrize("values", [{}, {"path": "", "upload": ""}])
def test_a_form_without_one_source_is_refused(admin_client, values):
    assert admin_client.post(reverse("import"), values).status_code == 422


def test_polling_stops_when_the_import_is_finished(admin_client, agent):
    post(admin_client, path=str(agent))
    url = reverse("import-report", args=[ImportReport.objects.get().pk])

    response = admin_client.get(f"{url}?poll=1", headers={"HX-Request": "true"})

    assert response.status_code == 286
    assert b'hx-trigger="every' not in response.content


def test_a_report_is_only_visible_to_members_of_its_workspace(admin_client, agent, stranger_client):
    post(admin_client, path=str(agent))
    url = reverse("import-report", args=[ImportReport.objects.get().pk])

    assert stranger_client.get(url).status_code == 404


@pytest.mark.slow
@pytest.mark.postgres
def test_equal_problems_take_one_row_and_are_listed_on_demand(admin_client, root):
    sessions = root / "agent" / "sessions"
    sessions.mkdir(parents=True)
    for number in range(30):
        head = {"_type": "metadata", "key": f"cli:{number}"}
        (sessions / f"cli_{number}.jsonl").write_text(json.dumps(head) + "\n" * (number + 1) + '{"role": 1}\n')
    post(admin_client, path=str(root / "agent"))
    report = ImportReport.objects.get()
    page = reverse("import-report", args=[report.pk])

    shown = admin_client.get(page).content.decode()
    listed = admin_client.get(f"{page}?like={report.problems.latest('id').pk}").content.decode()

    assert report.problem_count == 30
    assert (shown.count("The record has no role."), listed.count("The record has no role.")) == (1, 30)
    assert "29 more of this kind" in shown


@pytest.mark.parametrize(
    ("layout", "version", "label"),
    [("nanobot", "0.3", "nanobot 0.3"), ("grip", "1", "Grip"), ("agterm", "2", "AgTerm"), ("", "", "")],
)
def test_programs_are_named_with_a_version_only_if_it_matters(editor, workspace, layout, version, label):
    Workspace.objects.filter(pk=workspace.pk).update(layout=layout or "hub", layout_version=version)
    report = ImportReport.objects.create(workspace=workspace, status="done", layout=layout, layout_version=version)

    assert report.program == label
    assert f'<span translate="no">{label or "MemoryHub"}</span>' in editor.get("/w/atlas/").content.decode()


def test_the_command_prints_three_of_each_kind():
    rows = [
        {"file": f"{n}", "line": n, "what": f"entry {n} is odd", "action": "skipped", "outcome": "x"}
        for n in range(9)
    ]

    assert problem_lines(rows)[2:] == [
        "x: 2, line 2: entry 2 is odd: skipped",
        "x: and 6 more of this kind; --json lists them",
    ]


def test_the_command_prints_one_of_what_is_ignored():
    rows = [
        {"file": f"{n}", "line": None, "what": f"has more: a ({n})", "action": "left out", "outcome": "ignored"}
        for n in range(9)
    ]

    assert problem_lines(rows) == [
        "ignored: 0: has more: a (0): left out",
        "ignored: and 8 more of this kind; --json lists them",
    ]


@pytest.mark.parametrize(("outcome", "is_warning"), [("ignored", False), ("noted", False), ("repaired", True)])
def test_what_is_only_left_out_is_no_warning(editor, workspace, outcome, is_warning):
    report = ImportReport.objects.create(
        workspace=workspace, status="done", problem_count=1, finished_at=timezone.now()
    )
    report.problems.create(file="a", what="has more", action="left out", outcome=outcome)
    page = editor.get(reverse("import-report", args=[report.pk])).content.decode()

    assert ["couldn't be imported is listed" in page, "What was left out is listed" in page] == [
        is_warning,
        not is_warning,
    ]

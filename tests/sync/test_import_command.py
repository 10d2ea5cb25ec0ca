"""The command import: folders and archives, and tables as before."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from knowledge_app.models import KnowledgeEntry
from sessions_app.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(capsys):
    def call(*arguments: str):
        call_command(*arguments, "--json")
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text("# Memory\n\n- likes tea\n")
    return tmp_path


def test_import_of_a_folder_is_import_workspace(folder, document):
    options = (str(folder), "--layout", "nanobot", "--name", "Ana")

    preview = document("import", *options, "--dry-run")
    assert (preview["dry_run"], Workspace.objects.exists()) == (True, False)
    imported = document("import", *options)
    again = document("import_workspace", str(folder))

    assert imported.keys() == again.keys()
    assert (imported["layout"], Workspace.objects.get().name) == ("nanobot", "Ana")
    assert imported["workspace"] == again["workspace"]


def test_a_folder_may_have_the_name_of_a_table(folder, document, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename(folder.parent / "knowledge")

    assert document("import", "knowledge")["workspace"]


def test_import_of_a_table_takes_options_anywhere(workspace, document, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("workspace,content\natlas,likes tea\n")

    assert document("import", "knowledge", "--format", "csv", str(file), "--dry-run")["new"] == 1
    assert document("import", "--format", "csv", "knowledge", str(file))["new"] == 1
    assert KnowledgeEntry.objects.get().content == "likes tea"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: path"),
        (("knowledge",), "a file is missing: use import_table knowledge FILE"),
        (("a", "b"), "give one folder, file or archive, or one of the tables"),
        (("a", "--format", "csv"), "--format is for tables: use import_table TABLE FILE"),
        (("a", "--overwrite"), "--overwrite is for tables: use import_table TABLE FILE"),
        (("knowledge", "a.csv", "--name", "Ana"), "--name and --layout are for folders and archives, not for tables"),
    ],
)
def test_wrong_arguments_of_import_are_explained(arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("import", *arguments)

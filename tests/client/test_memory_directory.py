"""The commands of Claude's memory tool, against the real API."""

import pytest

from knowledge_app.services.rows.key_values import write_value
from memoryhub.client.adapters.memory_directory import CommandError, MemoryDirectory
from sessions_app.services.audit import By
from tests.client.test_against_the_hub import ALL, _the_connection_stays, token_for, waiting  # noqa: F401
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
NOTES = "/memories/work/notes.md"


@pytest.mark.slow
def test_files_are_created_changed_and_removed(workspace):
    hub = waiting(token_for(workspace, *ALL))
    directory = MemoryDirectory(hub)

    def run(command, **arguments):
        return directory.run({"command": command, **arguments})

    assert run("view", path="/memories").endswith("/memories:")
    run("create", path=NOTES, file_text="one\ntwo\n")
    run("str_replace", path=NOTES, old_str="two", new_str="2")
    run("insert", path=NOTES, insert_line=1, insert_text="between\n")
    assert hub.read("memories/work/notes.md") == "one\nbetween\n2\n"
    assert run("view", path=NOTES, view_range=[2, 2]).endswith("     2\tbetween")
    run("rename", old_path="/memories/work", new_path="/memories/old")
    assert run("view", path="/memories").endswith("/memories/old/notes.md")
    run("delete", path="/memories/old")
    assert "notes" not in run("view", path="/memories")


def test_a_deletion_that_waits_for_a_person_says_so(workspace):
    hub = waiting(token_for(workspace, *ALL))
    directory = MemoryDirectory(hub)
    directory.run({"command": "create", "path": NOTES, "file_text": "one one"})
    write_value(workspace, "memories/work/notes.md", "two, says Olga", by=By(PERSON, NOW))

    deleted = directory.run({"command": "delete", "path": NOTES})
    renamed = directory.run({"command": "rename", "old_path": NOTES, "new_path": "/memories/new.md"})

    assert "a person reviews the deletion first" in deleted
    assert renamed.startswith("Copied to /memories/new.md. ")
    assert hub.read("memories/work/notes.md") == hub.read("memories/new.md") == "two, says Olga"


def test_a_file_whose_new_name_waits_for_a_person_stays(workspace):
    hub = waiting(token_for(workspace, *ALL))
    directory = MemoryDirectory(hub)
    directory.run({"command": "create", "path": NOTES, "file_text": "one one"})
    write_value(workspace, "memories/plans.md", "two, says Olga", by=By(PERSON, NOW))

    renamed = directory.run({"command": "rename", "old_path": NOTES, "new_path": "/memories/Plans.md"})

    assert "stays" in renamed
    assert hub.read("memories/work/notes.md") == "one one"


@pytest.mark.parametrize(
    "command",
    [
        {"command": "view", "path": "/memories/../etc/passwd"},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "view", "path": "/memories/none"},
        {"command": "create", "path": NOTES, "file_text": "again"},
        {"command": "create", "path": NOTES},
        {"command": "str_replace", "path": NOTES, "old_str": "none", "new_str": ""},
        {"command": "str_replace", "path": NOTES, "old_str": "one", "new_str": ""},
        {"command": "insert", "path": NOTES, "insert_line": 9, "insert_text": "x"},
        {"command": "delete", "path": "/memories"},
        {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/other"},
        {"command": "view", "path": NOTES, "view_range": [1, 2, 3]},
        {"command": "view", "path": 7},
        {"command": "format"},
    ],
)
def test_invalid_commands_are_refused(workspace, command):
    hub = waiting(token_for(workspace, *ALL))
    directory = MemoryDirectory(hub)
    directory.run({"command": "create", "path": NOTES, "file_text": "one one"})

    with pytest.raises(CommandError):
        directory.run(command)
    assert hub.read("memories/work/notes.md") == "one one"

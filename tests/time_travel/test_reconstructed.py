"""Documents of a moment before their first revision, rebuilt from the agent's tool calls."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.outside_edits import import_document
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.time_travel.parsing import url_time
from memoryhub.time_travel.reconstructed import reconstructed_documents, text_after
from sessions_app.models import Workspace
from tests.hub import NOW, add, open_at

pytestmark = pytest.mark.django_db
PATH = "/srv/agent/memory/MEMORY.md"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


def call(days: int, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    row = {"id": f"c{days}", "type": "function", "function": function}
    at = (NOW + timedelta(days=days)).isoformat()
    return {"role": "assistant", "content": "", "tool_calls": [row], "timestamp": at}


@pytest.fixture
def atlas(workspace: Workspace) -> Workspace:
    """A workspace whose MEMORY.md was imported 20 days after its agent wrote it."""
    calls = [
        call(0, "write_file", path=PATH, content=f"- tea at four\n- key {SECRET}\n"),
        call(1, "read_file", path=PATH),
        call(2, "write_file", path="/srv/agent/notes/OTHER.md", content="- coffee\n"),
        call(3, "edit_file", path=PATH, old_text="four", new_text="five"),
        call(5, "edit_file", path=PATH, old_text="not in it", new_text="six"),
        call(7, "Write", file_path=PATH, content="- rum at six\n"),
    ]
    later = NOW + timedelta(days=20)
    for number, row in enumerate(calls):
        add(open_at(workspace), [row], key=str(number), now=later)
    Workspace.objects.update(created_at=later)
    record = DocumentRecord("MEMORY.md", "- now\n")
    import_document(workspace=workspace, record=record, path=PATH, now=later, dry_run=False)
    return workspace


@pytest.mark.parametrize(
    ("days", "texts"),
    [
        (-1, []),
        (1, ["- tea at four"]),
        (4, ["- tea at five"]),
        (6, []),  # an edit that doesn't fit: the text is unknown
        (8, ["- rum at six"]),
        (21, []),  # the hub has a revision
    ],
)
def test_each_moment_has_the_text_that_the_calls_left(atlas, days, texts):
    found = reconstructed_documents(atlas, NOW + timedelta(days=days))

    assert [one.text.splitlines()[0] for one in found] == texts


def test_the_snapshot_marks_the_text_as_reconstructed(atlas, viewer_client):
    def snapshot(days: int) -> str:
        at = url_time(NOW + timedelta(days=days))
        return viewer_client.get(reverse("past", args=["atlas"]), {"at": at}).content.decode()

    html = snapshot(4)
    assert "Reconstructed" in html
    assert "- tea at five" in html
    assert "from 2 tool calls" in html
    assert SECRET not in html
    assert "Reconstructed" not in snapshot(21)
    assert MemoryDocument.objects.get().head.content == "- now\n"


@pytest.mark.parametrize(
    ("before", "name", "arguments", "after"),
    [
        ("a a", "Edit", {"old_string": "a", "new_string": "b"}, "b a"),
        ("a a", "Edit", {"old_string": "a", "new_string": "b", "replace_all": True}, "b b"),
        (None, "Edit", {"old_string": "a", "new_string": "b"}, None),
        ("a", "append_file", {"content": "b"}, None),
        ("a", "write_file", {"content": "b", "append": True}, None),
    ],
)
def test_a_call_changes_the_text_or_makes_it_unknown(before, name, arguments, after):
    assert text_after(before, name, arguments) == after

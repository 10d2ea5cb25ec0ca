"""Round trips: a session's file, imported and exported, says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryhub.forgetting.import_filter import remembered
from memoryhub.integrity import check_memory
from memoryhub.sync.exporting import export_workspace
from sessions_app.models import Entry, Session, Summary, Workspace
from sessions_app.services import export
from sessions_app.services.audit import By
from sessions_app.services.transfer import export_session, import_session, session_parts
from tests.hub import NOW, PERSON, add, compress, open_at, raises_code, talk
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
OWN_SAMPLES = Path(__file__).resolve().parent.parent / "samples"
DAMAGED = ("whatsapp_447700900123_s.whatsapp.net.json",)  # cut in the middle, rejected whole
FILES = [
    path
    for folder, pattern in (
        (FIXTURES / "nanobot-0.1", "**/sessions/*.jsonl"),
        (FIXTURES / "nanobot-current", "**/sessions/**/*.jsonl"),
        (FIXTURES / "grip", "**/sessions/*.json"),
        (OWN_SAMPLES, "**/sessions/*.jsonl"),
    )
    for path in sorted(folder.glob(pattern))
    if path.name not in DAMAGED and not path.name.endswith(".checkpoint.json")
]


def layout_of(path: Path) -> str:
    return "nanobot" if path.suffix == ".jsonl" else "grip"


def workspace_of(layout: str, slug: str = "w") -> Workspace:
    return Workspace.objects.create(slug=slug, name=slug, layout=layout)


def parsed(line: str) -> dict | None:
    """Return a record; a line that was cut in the middle is reported by the import, not taken."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def records(text: str, layout: str) -> list[dict]:
    """Return a file's head and its messages."""
    if layout == "nanobot":
        lines = [line for line in (parsed(line) for line in text.split("\n") if line.strip()) if line]
        return [line for line in lines if line.get("_type") != "provider_state"]
    value = json.loads(text)
    return [{name: item for name, item in value.items() if name != "messages"}, *value["messages"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_file_of_a_real_program_comes_back_as_it_was(tmp_path, path):
    layout = layout_of(path)
    workspace = workspace_of(layout)
    import_session(workspace, path, by=By(PERSON, NOW), remember=remembered)

    _, text = export_session(Session.objects.get())

    was, now = records(path.read_text(), layout), records(text, layout)
    assert now[1:] == was[1:]
    assert {name: now[0].get(name) for name in was[0]} == was[0]


@pytest.mark.parametrize("layout", ["nanobot", "grip", "agterm"])
def test_what_is_exported_imports_to_the_same(tmp_path, layout):
    session = open_at(workspace_of("hub"))
    add(session, [{"role": "user", "content": "héllo \u2028 標籤"}])
    talk(session, 8)
    name, text = export_session(session, layout)
    (tmp_path / name).write_text(text)
    other = workspace_of(layout, "other")

    import_session(other, tmp_path / name, by=By(PERSON, NOW), remember=remembered)

    copy = Session.objects.get(workspace=other)
    assert export_session(copy, layout)[1] == text
    kept = list(Entry.objects.filter(session=session).order_by("position").values_list("content", flat=True))
    texts = list(Entry.objects.filter(session=copy).order_by("position").values_list("content", flat=True))
    if layout != "agterm":
        assert texts == kept
    assert len(texts) == len(kept)
    assert not check_memory().broken


@pytest.mark.slow
def test_an_agterm_state_keeps_its_summaries_and_what_they_fold(tmp_path):
    session = open_at(workspace_of("hub"))
    for number in range(10):
        talk(session, 5, first=number * 5)
        compress(Session.objects.get())
    assert Summary.objects.filter(parent__isnull=False).exists()
    name, text = export_session(session, "agterm")
    (tmp_path / name).write_text(text)
    other = workspace_of("agterm", "other")

    import_session(other, tmp_path / name, by=By(PERSON, NOW), remember=remembered)

    copy = Session.objects.get(workspace=other)
    session.refresh_from_db()
    assert (copy.active_entry_count, copy.active_tokens) == (session.active_entry_count, session.active_tokens)
    assert copy.summary_tokens == session.summary_tokens
    assert export_session(copy, "agterm")[1] == text
    assert not check_memory().broken


def test_importing_again_adds_nothing(tmp_path):
    session = open_at(workspace_of("hub"))
    talk(session, 3)
    name, text = export_session(session, "nanobot")
    (tmp_path / name).write_text(text)
    other = workspace_of("nanobot", "other")
    import_session(other, tmp_path / name, by=By(PERSON, NOW), remember=remembered)

    again = import_session(other, tmp_path / name, by=By(PERSON, NOW), remember=remembered)

    assert not +again.added
    assert not +again.updated


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", "not json"])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)

    with raises_code("unknown_session_file"):
        import_session(workspace_of("hub"), tmp_path / "x.json", by=By(PERSON, NOW), remember=remembered)


def test_an_unknown_program_is_refused():
    with raises_code("unknown_export"):
        export_session(open_at(workspace_of("hub")), "eliza")


@pytest.mark.parametrize(("layout", "start"), [("nanobot", '{"_type"'), ("grip", '{"key"'), ("agterm", "{\n")])
def test_an_export_reads_entries_while_it_is_sent(workspace, monkeypatch, layout, start):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": f"message {number}"} for number in range(40)])
    read = []
    make = export._entry
    monkeypatch.setattr(export, "_entry", lambda entry, names: read.append(entry.pk) or make(entry, names))

    _, parts = session_parts(session, layout)
    first = next(parts)

    assert (first.startswith(start), read) == (True, [])
    next(parts)
    assert len(read) == 1
    assert len(list(parts)) >= 39


@pytest.mark.parametrize("layout", ["nanobot", "grip", "agterm", "hub"])
def test_an_export_of_a_workspace_reads_entries_while_it_writes(workspace, tmp_path, monkeypatch, layout):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": f"message {number}"} for number in range(40)])
    read = []
    make = export._entry
    monkeypatch.setattr(export, "_entry", lambda entry, names: read.append(entry.pk) or make(entry, names))
    at_steps = []

    report = export_workspace(
        workspace, tmp_path / "out", layout, by=By(PERSON, NOW), step=lambda *_: at_steps.append(len(read))
    )

    assert report.written["entries"] == 40
    assert {1, 20, 40} <= set(at_steps)

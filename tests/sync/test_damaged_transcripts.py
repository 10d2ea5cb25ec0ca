"""Damaged logs of agents: what can be read is imported once, and each loss names its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.utils import timezone

from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.cline_tasks import HISTORY
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.source_workspace import known_layout
from sessions_app.models import Entry, SourceFile, Workspace
from sessions_app.services.audit import By
from sessions_app.services.sources import path_hash
from tests.hub import PERSON
from tests.lib.layouts import claude_records as claude
from tests.lib.layouts import openclaw_home as openclaw
from tests.lib.layouts import test_codex as codex
from tests.lib.layouts import test_gemini_cli as gemini

pytestmark = pytest.mark.django_db
TEXTS = ["tea for one", "tea for two", "tea for three", "tea for four"]
BAD = 4  # the line that is damaged, that of the third text
UNKNOWN = b'{"type": "hologram", "payload": {}}'
LONG = b'"' + b"x" * (9 * 2**20) + b'"'


def claude_lines() -> list[dict]:
    parents = [None, "a1", "a2", "a3"]
    said = [claude.user(f"a{n + 1}", parents[n], text, n) for n, text in enumerate(TEXTS)]
    return [{"type": "mode", "sessionId": claude.SESSION}, *said]


def codex_lines() -> list[dict]:
    return [codex.meta(), *(codex.said("user", text, number) for number, text in enumerate(TEXTS, 1))]


def gemini_lines() -> list[dict]:
    return [gemini.HEAD, *(gemini.user(f"u{number}", text) for number, text in enumerate(TEXTS, 1))]


def openclaw_lines() -> list[dict]:
    said = [openclaw.message(f"m{number}", None, "user", text) for number, text in enumerate(TEXTS)]
    return [{"type": "session", "version": 3, "id": "s1"}, *said]


def grid_lines() -> list[dict]:
    said = [{"_type": "event", "type": "user", "content": text} for text in TEXTS]
    return [{"_type": "header", "id": "s1"}, *said]


HOMES = {
    "claude-code": (f"projects/-home-ana-atlas/{claude.SESSION}.jsonl", claude_lines),
    "codex": (f"sessions/2026/11/22/rollout-2026-11-22T11-00-00-{codex.FIRST}.jsonl", codex_lines),
    "gemini-cli": (gemini.CHAT, gemini_lines),
    "openclaw": ("agents/main/sessions/s1.jsonl", openclaw_lines),
    "grid": ("sessions/s1.jsonl", grid_lines),
}
DAMAGES = {
    "cut": (lambda lines: [*lines[:-1], lines[-1][:40]], [TEXTS[3]], 5),
    "garbage": (lambda lines: [*lines[: BAD - 1], b"{nonsense", *lines[BAD:]], [TEXTS[2]], BAD),
    "long": (lambda lines: [*lines[: BAD - 1], LONG, *lines[BAD:]], [TEXTS[2]], BAD),
    "not an object": (lambda lines: [*lines[: BAD - 1], b"[]", *lines[BAD - 1 :]], [], BAD),
    "unknown": (
        lambda lines: [*lines[: BAD - 1], UNKNOWN, *lines[BAD - 1 :]],
        [],
        BAD,
    ),
    "bytes": (lambda lines: [one.replace(b"three", b"thr\xffe") for one in lines], [TEXTS[2]], BAD),
    "twice": (lambda lines: [copy for one in lines for copy in (one, one)], [], None),
    "mark": (lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]], [], None),
    "joined": (lambda lines: [*lines[: BAD - 1], lines[BAD - 1] + lines[BAD], *lines[BAD + 1 :]], [], None),
    "killed": (lambda lines: [*lines[: BAD - 1], lines[BAD - 1][:-9] + lines[BAD]], [TEXTS[2]], BAD),
    "windows": (lambda lines: [one + b"\r" for one in lines], [], None),
}


def write(home: Path, path: str, lines: list[bytes]) -> None:
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_bytes(b"\n".join(lines) + b"\n")
    if path.startswith("sessions/s1"):
        (home / "kv.json").write_text("{}")
    if path.startswith("agents/"):
        (home / "openclaw.json").write_text("{}")
        (home / "agents/main/sessions/sessions.json").write_text("{}")


NOT_OF_GRID = ("twice", "unknown")  # its messages have no ids, and its events many types
CASES = [(layout, damage) for layout in HOMES for damage in DAMAGES if layout != "grid" or damage not in NOT_OF_GRID]


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "damage"), CASES)
def test_what_can_be_read_is_imported_and_each_loss_names_its_line(tmp_path, settings, layout, damage):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES[layout]
    alter, lost, place = DAMAGES[damage]
    write(tmp_path / "home", path, alter([json.dumps(one, ensure_ascii=False).encode() for one in make()]))

    results = [import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())) for _ in range(2)]

    contents = sorted(Entry.objects.values_list("content", flat=True))
    assert [text for text in contents if text in TEXTS] == sorted(set(TEXTS) - set(lost))
    assert len(contents) == len(set(contents))
    losses = [one for one in results[0].tally.problems if one.outcome == "rejected" or one.line is not None]
    assert [one.line for one in losses] == ([place] if place else [])
    assert not any((+results[1].tally.added, +results[1].tally.updated))


@pytest.mark.parametrize(("end", "outcome"), [(b"", "noted"), (b"\n", "rejected"), (b"\r\n", "rejected")])
@pytest.mark.parametrize("layout", HOMES)
def test_a_damaged_last_line_is_lost_if_it_is_complete(tmp_path, settings, layout, end, outcome):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES[layout]
    write(tmp_path / "home", path, [json.dumps(one).encode() for one in make()])
    with (tmp_path / "home" / path).open("ab") as file:
        file.write(b'{"type": "us' + end)

    problems = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally.problems

    assert [problem.outcome for problem in problems if problem.line == 6] == [outcome]


TIMED = ("claude-code", "codex", "gemini-cli", "grid")  # the messages of OpenClaw have times of their own


@pytest.mark.parametrize("unit", [1, 1000])
@pytest.mark.parametrize("layout", TIMED)
def test_times_in_seconds_or_milliseconds_are_read(tmp_path, settings, layout, unit):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES[layout]
    records = [one | {"timestamp": (1_793_000_000 + number) * unit} for number, one in enumerate(make())]
    write(tmp_path / "home", path, [json.dumps(one).encode() for one in records])

    tally = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally

    assert [int(one.occurred_at.timestamp()) for one in Entry.objects.order_by("position")] == [
        1_793_000_000 + number for number in range(1, 5)
    ]
    assert [problem.what for problem in tally.problems if problem.outcome == "repaired"] == []


@pytest.mark.parametrize("layout", TIMED)
def test_a_time_that_is_none_is_reported(tmp_path, settings, layout):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES[layout]
    write(tmp_path / "home", path, [json.dumps(one | {"timestamp": ["now"]}).encode() for one in make()])

    tally = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally

    assert Entry.objects.count() == len(TEXTS)
    assert any("timestamp is invalid" in problem.what for problem in tally.problems)


@pytest.mark.parametrize(("time", "is_valid"), [(1_793_000_000, True), (1_793_000_000_000, True), (["now"], False)])
@pytest.mark.parametrize("layout", ["agterm", "cline"])
def test_times_in_files_of_json_are_read_or_reported(tmp_path, settings, layout, time, is_valid):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    if layout == "agterm":
        entry = {"type": "message", "role": "user", "content": TEXTS[0], "timestamp": time}
        path, value = "s1.json", {"sessionId": "s1", "entries": [entry]}
    else:
        path, value = f"tasks/17/{HISTORY}", [{"role": "user", "content": TEXTS[0], "ts": time}]
    write(tmp_path / "home", path, [json.dumps(value).encode()])

    tally = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally

    [entry] = Entry.objects.all()
    assert (entry.occurred_at and entry.occurred_at.timestamp()) == (1_793_000_000 if is_valid else None)
    assert bool(tally.problems) != is_valid
    assert is_valid or entry.occurred_at_text == '["now"]'


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\x00" * 1000])
def test_a_known_file_that_looks_like_no_program_s_is_reported_by_name(tmp_path, settings, damage):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    export, by = {"sessionId": "s1", "entries": [{"type": "message", "content": "tea"}]}, By(PERSON, timezone.now())
    write(tmp_path / "home", "s1.json", [json.dumps(export).encode()])
    workspace = import_workspace(tmp_path / "home", by=by).workspace
    (tmp_path / "home" / "s1.json").write_bytes(damage)

    again = import_workspace(tmp_path / "home", by=by)

    assert again.workspace == workspace
    assert [(one.file, one.outcome) for one in again.tally.problems] == [("s1.json", "rejected")]
    (tmp_path / "home" / "s1.json").unlink()
    with pytest.raises(Invalid):
        import_workspace(tmp_path / "home", by=by)


def test_of_two_workspaces_of_a_damaged_folder_the_newest_that_has_a_file_there_tells_the_layout(tmp_path):
    (tmp_path / "s1.json").touch()
    layouts = [("grid", "s1.json"), ("agterm", "s1.json"), ("grip", "gone.json")]
    for number, (layout, file) in enumerate(layouts):
        row = Workspace.objects.create(
            slug=layout, name=layout, path=str(tmp_path), project=str(number), layout=layout
        )
        SourceFile.objects.create(workspace=row, path=file, path_hash=path_hash(file), kind="session", status="read")

    with Folder(tmp_path) as folder:
        assert known_layout(folder, tmp_path) == "agterm"


def test_a_line_of_very_many_records_is_read_in_time(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES["codex"]
    records = [json.dumps(one).encode() for one in make()]
    write(tmp_path / "home", path, [*records[:2], records[2] * 5_000, *records[3:]])

    tally = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally

    assert sorted(Entry.objects.values_list("content", flat=True)) == sorted(TEXTS)
    assert [problem.line for problem in tally.problems if problem.outcome == "rejected"] == [3]


@pytest.mark.parametrize("end", [b"}", b"}]", b"}]}"])
def test_a_part_of_an_incomplete_record_is_no_record(tmp_path, settings, end):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path, make = HOMES["openclaw"]
    lines = [json.dumps(one).encode() for one in make()]
    cut = b'{"type": "message", "id": "m9", "message": {"role": "user", "content": [{"type": "text", "text": "tea"'
    write(tmp_path / "home", path, [*lines, cut + end])

    tally = import_workspace(tmp_path / "home", by=By(PERSON, timezone.now())).tally

    assert sorted(Entry.objects.values_list("content", flat=True)) == sorted(TEXTS)
    assert [(one.line, one.outcome) for one in tally.problems] == [(6, "rejected")]

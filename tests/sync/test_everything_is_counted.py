"""Whatever is in a folder is imported, known already, or reported: nothing is lost in silence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import Problem
from memoryhub.sync import importing
from memoryhub.sync.export_plan import plan_export
from memoryhub.sync.exporting import export_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
EXAMPLES = 40 if connection.vendor == "sqlite" else 12  # files are read alike for both databases
cheaply = settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=EXAMPLES)
numbers = count()
ROWS = ("entries", "summaries", "history", "knowledge", "observations", "key_values", "cached_responses", "terms")
ODD: list[Any] = [None, True, -1, 1.5, "", "x", [], ["x"], {}, {"a": 1}]
TIME = "2026-03-01T12:00:00"


@dataclass
class Present:
    """Files to import: their bytes and the number of records in each."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)

    def add(self, path: str, text: str | bytes, records: int) -> None:
        self.files[path] = (text if isinstance(text, bytes) else text.encode(), records)


def altered(base: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a record as it should be, or with a field of another type, missing or unknown, or another value."""
    fields = st.sampled_from(sorted(base))
    return st.one_of(
        st.just(base),
        st.builds(lambda name, value: base | {name: value}, fields, st.sampled_from(ODD)),
        st.builds(lambda name: {key: value for key, value in base.items() if key != name}, fields),
        st.just(base | {"unheard_of": 1}),
        st.sampled_from(ODD),
    )


def rows(base: dict[str, Any], *names: str) -> st.SearchStrategy[list[Any]]:
    """Return up to four records; ``names``: the fields that identify them, which may repeat."""

    def numbered(records: list[Any], digits: list[int]) -> list[Any]:
        return [
            row | {name: f"{row[name]}{digit}" for name in names if isinstance(row.get(name), str)}
            if isinstance(row, dict) else row
            for row, digit in zip(records, digits, strict=False)
        ]  # fmt: skip

    return st.builds(
        numbered, st.lists(altered(base), max_size=4), st.lists(st.integers(0, 3), min_size=4, max_size=4)
    )


def as_object(pairs: list[tuple[str, Any]]) -> str:
    """Return a JSON object whose keys may repeat."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"


def lines(values: list[Any]) -> bytes:
    return b"".join((value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n" for value in values)


MESSAGE = {
    "role": "user",
    "content": "hello",
    "timestamp": TIME,
    "name": "ana",
    "tool_calls": [],
    "tool_call_id": "c",
}
METADATA = {
    "key": "cli:a", "created_at": TIME, "updated_at": TIME, "metadata": {},
    "last_consolidated": 0,
}  # fmt: skip


def as_metadata(row: Any) -> dict[str, Any]:
    return {"_type": "metadata"} | (row if isinstance(row, dict) else METADATA)


JOURNAL = {"cursor": 1, "timestamp": "2026-03-01 12:00", "content": "done", "session_key": "cli:a"}
BROKEN = st.sampled_from([b'{"role": ', b"\xff\xfe", b"[]", b'{"_type": "provider_state"}', b'{"_type": "new"}'])
texts = st.lists(
    st.sampled_from(["# Log", "[2026-03-01 12:00] one", "more", "", "[2026-13-01 12:00] odd"]), max_size=5
)


def mixed(base: dict[str, Any], *names: str) -> st.SearchStrategy[list[Any]]:
    return st.builds(lambda good, bad: [*good, *bad], rows(base, *names), st.lists(BROKEN, max_size=2))


@st.composite
def nanobot(draw: st.DrawFn) -> Present:
    present = Present()
    head = draw(st.lists(altered(METADATA).map(as_metadata), min_size=1, max_size=1))
    messages = draw(mixed(MESSAGE, "content"))
    present.add("sessions/cli_a.jsonl", lines([*head, *messages]), len(head) + len(messages) - 1)
    entries = draw(mixed(JOURNAL, "content"))
    present.add("memory/history.jsonl", lines(entries), len(entries))
    _stray(draw, present, ["sessions/notes.txt", "memory/2026-03-01.md", "memory/old/MEMORY.md"])
    return present


@st.composite
def grip(draw: st.DrawFn) -> Present:
    present = Present()
    messages = draw(rows(MESSAGE, "content"))
    session = {"key": "cli:a", "messages": messages, "summary": None, "created_at": 1.5, "updated_at": 2.5}
    name = draw(st.sampled_from(["key", "summary", "created_at", "updated_at"]))
    session |= {name: draw(st.sampled_from([session[name], *ODD]))}
    present.add("sessions/cli_a.json", json.dumps(session), len(messages))
    entry = {
        "id": "k", "category": "learned_fact", "content": "c", "source": "s", "tags": [], "created_at": 1.5,
        "accessed_at": 1.5, "access_count": 0,
    }  # fmt: skip
    knowledge = draw(rows(entry, "id", "content"))
    version = draw(st.sampled_from([1, 1, 9, "x"]))
    present.add("memory/knowledge.json", json.dumps({"version": version, "entries": knowledge}), len(knowledge))
    response = {"response": "r", "model": "m", "created_at": 1.5, "accessed_at": 1.5, "message_preview": "p"}
    cached = [(draw(st.sampled_from(["a", "b"])), row) for row in draw(rows(response))]
    present.add("state/semantic_cache.json", as_object(cached), len(cached))
    log = draw(texts)
    present.add("memory/HISTORY.md", "".join(f"{line}\n" for line in log), _log_records(log))
    _stray(draw, present, ["sessions/a.txt", "memory/facts.md", "memory/HISTORY.archive.old.md"])
    return present


def _log_records(log: list[str]) -> int:
    """Return the number of entries of a log, with the lines of text before the first as one each."""
    starts = [number for number, line in enumerate(log) if line.startswith("[")]
    return len(starts) + sum(bool(line) and not line.startswith("#") for line in log[: starts[0] if starts else None])


@st.composite
def grid(draw: st.DrawFn) -> Present:
    present = Present()
    pairs = draw(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(ODD)), max_size=4))
    present.add("kv.json", as_object(pairs), len(pairs))
    term = {"embedding": [1.0, 0.0]}
    terms = [(draw(st.sampled_from(["a", "b", ""])), row) for row in draw(rows(term))]
    meta = draw(altered({"provider": "p", "model": "m", "dimensions": 2, "built_at": TIME, "base_url": "b"}))
    present.add("semantic_graph.json", f'{{"meta": {json.dumps(meta)}, "terms": {as_object(terms)}}}', len(terms))
    observation = {"id": "0123456789", "category": "finding", "content": "c", "source": "s", "created_at": TIME}
    observations = draw(rows(observation, "id", "content"))
    present.add("observations-export.json", json.dumps(observations), len(observations))
    ids = draw(st.lists(st.sampled_from(["01234567", "89abcdef"]), max_size=3))
    listed = "".join(f"{number}. [{name}] text {number}\n" for number, name in enumerate(ids, 1))
    present.add("list.txt", f"=== Findings ({len(ids)}) ===\n{listed}", len(ids))
    event = {"_type": "event", "type": "user", "content": "hi", "timestamp": TIME, "tool": "t", "corr_id": "c"}
    events = draw(mixed(event, "content"))
    heads = [{"_type": "header", "id": "s"}] * draw(st.integers(1, 2))
    present.add("sessions/s.jsonl", lines([*heads, *events]), len(heads) + len(events) - 1)
    _stray(draw, present, ["kv.json.bak", "sessions/a.txt"])
    return present


@st.composite
def agterm(draw: st.DrawFn) -> Present:
    present = Present()
    entry = {"id": "e", "type": "message", "role": "user", "content": "hi", "timestamp": TIME, "tokenCount": 3}
    entries = draw(rows(entry | {"compressed": False, "summaryId": "s1"}, "id"))
    summary = {
        "id": "s", "content": "sum", "originalEntryIds": ["e0"], "tokenCount": 1, "originalTokenCount": 3,
        "compressionRatio": 3, "createdAt": TIME, "timeRange": {"start": TIME, "end": TIME},
    }  # fmt: skip
    summaries = draw(rows(summary, "id"))
    export = {"sessionId": "s", "entries": entries, "summaries": summaries, "totalTokens": 3}
    name = draw(st.sampled_from(["sessionId", "totalTokens"]))
    export |= {name: draw(st.sampled_from([export[name], *ODD]))}
    present.add("s.json", json.dumps(export), len(entries) + len(summaries))
    _stray(draw, present, ["more/t.json"])
    return present


HASH = "0" * 64


@st.composite
def hub(draw: st.DrawFn) -> Present:
    present = Present()
    present.add("memoryhub.json", '{"format": "memoryhub", "version": 1}', 0)
    head = {"session": {"key": "cli:a", "pointer": draw(st.integers(0, 2))}}
    entry = {"kind": "message", "role": "user", "content": "x", "source_hash": HASH, "summary_source_id": "s1"}
    summary = {"source_id": "s", "content": "x", "entry_source_ids": []}
    parts = [{"entry": row} for row in draw(rows(entry, "content"))]
    parts += [{"summary": row} for row in draw(rows(summary, "source_id"))]
    parts += draw(st.lists(BROKEN, max_size=1))
    present.add("sessions/a.jsonl", lines([head, *parts]), len(parts))
    tables: list[tuple[str, dict[str, Any]]] = [
        ("history.jsonl", {"content": "x"}),
        ("knowledge.jsonl", {"content_id": "k", "category": "learned_fact", "content": "x"}),
        ("observations.jsonl", {"uid": "k", "category": "finding", "content": "x"}),
        ("key-values.jsonl", {"key": "k", "value": "x"}),
        ("cached-responses.jsonl", {"key": "k", "model": "m", "response": "x"}),
    ]
    for name, base in tables:
        records = draw(mixed(base, next(iter(base))))
        present.add(name, lines(records), len(records))
    terms = [{"term": {"text": name, "related": []}} for name in draw(st.lists(st.sampled_from("abc"), max_size=3))]
    heads = [{"graph": {"provider": "", "model": "", "base_url": "", "dimensions": 0, "built_at_text": ""}}]
    heads *= draw(st.integers(1, 2))
    present.add("terms.jsonl", lines([*heads, *terms]), len(heads) - 1 + len(terms))
    _stray(draw, present, ["more.jsonl", "sessions/a.txt", "documents/NOTES.md"])
    return present


def _stray(draw: st.DrawFn, present: Present, paths: list[str]) -> None:
    for path in draw(st.lists(st.sampled_from(paths), max_size=2, unique=True)):
        present.add(path, "{}", 0)
    present.links += draw(st.sampled_from([[], [f"{next(iter(present.files)).rpartition('/')[0] or '.'}/link.json"]]))


@contextmanager
def counted_by_file() -> Iterator[dict[str, ImportCounts]]:
    found: dict[str, ImportCounts] = {}
    original = importing.import_source_file

    def spy(workspace: Any, read: Any, *args: Any, **options: Any) -> ImportCounts:
        found[read.path] = original(workspace, read, *args, **options)
        return found[read.path]

    with mock.patch.object(importing, "import_source_file", spy):
        yield found


def lost(problem: Problem) -> int:
    """Return the number of records that a problem says were not imported."""
    if times := re.search(r"a key appears twice.*?(?:\((\d+) times\))?$", problem.what):
        return int(times[1] or 1)
    if problem.outcome not in ("rejected", "ignored") or problem.what == "meta is not an object":
        return 0
    several = re.match(r"has ([\d,]+) ", problem.what)
    return int(several[1].replace(",", "")) if several else 1


def check(folder: Path, present: Present) -> None:
    for path, (raw, _) in present.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)
    for path in present.links:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(folder)
    for step in ("new", "known"):
        with counted_by_file() as by_file:
            tally = importing.import_workspace(folder, by=By(PERSON, NOW)).tally
        named = {*by_file, *(problem.file for problem in tally.problems), "memoryhub.json"}
        assert {str(Path(path)) for path in (*present.files, *present.links)} - named == set(), step
        for path, (raw, records) in present.files.items():
            counts = by_file.get(path, ImportCounts())
            taken = sum(sum(kept[kind] for kind in ROWS) for kept in (counts.added, counts.updated, counts.unchanged))
            reported = sum(map(lost, counts.problems))
            is_rejected = not taken and bool(reported)  # as a whole
            words = [f"{problem.outcome}: {problem.what}" for problem in counts.problems]
            assert is_rejected or taken + reported == records, (step, path, raw, taken, words)
            if step == "known":
                assert (+counts.added, +counts.updated) == ({}, {}), (path, raw)
    silent = [path for path in present.files if path in by_file and not by_file[path].problems]
    check_export(folder, Workspace.objects.get(path=str(folder)), silent)


def check_export(folder: Path, workspace: Workspace, silent: list[str]) -> None:
    """Check that files without problems are exported with every value that they have."""
    out = folder.with_name(f"{folder.name}-out")
    if not plan_export(workspace, "auto").written:
        return
    export_workspace(workspace, out, by=By(PERSON, NOW))
    for path in silent:
        if path.endswith((".json", ".jsonl")) and (out / path).exists():
            was, now = parsed(folder / path), parsed(out / path)
            more = now[: len(was)] if path.startswith("observations") else now  # those of lists follow
            assert is_within(was, more), (path, (folder / path).read_bytes())


def parsed(path: Path) -> Any:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def is_within(part: Any, whole: Any) -> bool:
    """Tell whether a value has all values of another. Objects may have further fields, lists have none."""
    if isinstance(part, dict) and isinstance(whole, dict):
        present = {name: value for name, value in part.items() if value is not None}
        return all(name in whole and is_within(value, whole[name]) for name, value in present.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(is_within, part, whole))
    return bool(part == whole) and isinstance(part, bool) == isinstance(whole, bool)


@pytest.mark.slow
@cheaply
@given(st.one_of(nanobot(), grip(), grid(), agterm(), hub()))
def test_records_present_are_imported_known_or_reported(tmp_path_factory, present):
    check(tmp_path_factory.mktemp(f"agent{next(numbers)}"), present)

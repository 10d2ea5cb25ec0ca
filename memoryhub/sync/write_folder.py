"""Convert a workspace to the files of a program's folder: text and bytes only, without disk or database.

nanobot 0.1 and Grip use their workspace folder. nanobot 0.3 keeps sessions outside it, so its folder is the parent of
``workspace`` (``~/.nanobot``). grid's and AgTerm's files are in one folder.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from memoryhub.lib.json_numbers import dump_json, respelled
from memoryhub.lib.layouts import hub
from memoryhub.lib.layouts.file_names import distinct_name, session_names
from memoryhub.lib.layouts.nanobot.layout import CHECKPOINT
from memoryhub.lib.layouts.records import DocumentRecord, KnowledgeRecord, ObservationRecord, SessionRecord
from memoryhub.lib.layouts.snapshot import Snapshot, program_of
from memoryhub.lib.layouts.write import session_parts
from memoryhub.lib.layouts.write_rows import cache_json, key_values_json, knowledge_json, observations_json
from memoryhub.sync.write_history import grip_log, nanobot_journal, nanobot_log

T = TypeVar("T")
DOCUMENT_PATHS = {"MEMORY.md": "memory/MEMORY.md", "SOUL.md": "SOUL.md", "USER.md": "USER.md"}


@dataclass(frozen=True)
class OutFile:
    """A file: its path relative to the folder, with ``/``, and its content as parts that can be read once."""

    path: str
    parts: Iterable[str]
    raw: bytes | None = None  # instead of the parts

    def chunks(self) -> Iterator[bytes]:
        if self.raw is not None:
            yield self.raw
            return
        for part in self.parts:
            yield part.encode()


def write_folder(snapshot: Snapshot, layout: str, written: Counter[str]) -> Iterator[OutFile]:
    """Yield the files of a workspace in a layout of ``snapshot.LAYOUTS``; the same memory gives the same bytes.

    Read each file's parts before the next file. ``written`` counts the items by kind as files are read. Memory use is
    bounded by all rows of one kind, except entries. Raises KeyError for an unknown layout.
    """
    writers: dict[str, Callable[[Snapshot, Counter[str]], Iterator[OutFile]]] = {
        "nanobot": _nanobot,
        "nanobot-current": _nanobot_current,
        "grip": _grip,
        "grid": _grid,
        "agterm": _agterm,
        "hub": _hub,
    }
    for file in writers[layout](snapshot, written):
        if file.raw is not None:
            yield file
        elif (first := next(parts := iter(file.parts), None)) is not None:
            yield OutFile(file.path, itertools.chain([first], parts))


def _nanobot(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    names = session_names(snapshot.keys, "nanobot")
    for session in snapshot.sessions:
        yield _session(session, f"sessions/{names[session.key]}.jsonl", "nanobot", snapshot, written)
    yield from _documents(snapshot, "", written, with_knowledge=True)
    entries = _counted(snapshot.history, "history", written)
    yield OutFile("memory/HISTORY.md", nanobot_log(entries, snapshot.zone))


def _nanobot_current(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    place = f"sessions/{snapshot.identity}"
    names = session_names(snapshot.keys, "nanobot-current")
    old_names = session_names(snapshot.keys, "nanobot")
    yield OutFile("workspace/.nanobot/workspace-id", [f"{snapshot.identity}\n"])
    yield OutFile(f"{place}/.workspace", [f"/moved/{snapshot.identity}/workspace\n"])  # the program replaces it
    for session in snapshot.sessions:
        name = names[session.key] if session.is_visible_to_agent else old_names[session.key]
        yield _session(session, f"{place}/{name}.jsonl", "nanobot-current", snapshot, written)
        if snapshot.program == "nanobot" and "checkpoint" in session.extra:
            found = respelled({"checkpoint": session.extra["checkpoint"]}, session.extra)["checkpoint"]
            text = dump_json(found, separators=(",", ":"))
            yield OutFile(f"{place}/{name}{CHECKPOINT}", [text])
    yield from _documents(snapshot, "workspace/", written, with_knowledge=True)
    last: list[int] = []
    extra = snapshot.history_extra if snapshot.program == "nanobot" else {}
    entries = _counted(snapshot.history, "history", written)
    yield OutFile("workspace/memory/history.jsonl", nanobot_journal(entries, snapshot.zone, last, extra))
    for name in (".cursor", ".dream_cursor"):  # everything exported is already in MEMORY.md
        yield OutFile(f"workspace/memory/{name}", (str(cursor) for cursor in last))


def _grip(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    names = session_names(snapshot.keys, "grip")
    for session in snapshot.sessions:
        written["summaries"] += len(session.summaries)
        yield _session(session, f"sessions/{names[session.key]}.json", "grip", snapshot, written)
    yield from _documents(snapshot, "", written, with_knowledge=False)
    logs: defaultdict[str, list[str]] = defaultdict(list)
    entries = _counted(snapshot.history, "history", written)
    for name, text in grip_log(entries, snapshot.created_at):
        logs[name].append(text)
    preamble = snapshot.history_extra.get("preamble") if snapshot.program == "grip" else None
    if logs and isinstance(preamble, str):
        logs[min(logs)].insert(0, f"{preamble}\n")
    for name in sorted(logs):
        yield OutFile(f"memory/{name}", logs[name])
    knowledge = list(_counted(snapshot.knowledge, "knowledge", written))
    if knowledge:
        yield OutFile("memory/knowledge.json", [knowledge_json(knowledge)])
    cached = list(_counted(snapshot.cached, "cached_responses", written))
    if cached:
        yield OutFile("state/semantic_cache.json", [cache_json(cached)])


def _grid(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    rows = list(_counted(snapshot.key_values, "key_values", written))
    if rows:
        yield OutFile("kv.json", [key_values_json(rows)])
    terms = sum(1 for _ in snapshot.graph_rows)
    if terms:
        written["terms"] += terms
        yield OutFile("semantic_graph.json", snapshot.graph)
    observations = list(_counted(snapshot.observations, "observations", written))
    if observations:
        yield OutFile("observations-export.json", [observations_json(observations)])


def _agterm(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    names = session_names(snapshot.keys, "agterm")
    for session in snapshot.sessions:
        written["summaries"] += len(session.summaries)
        yield _session(session, f"{names[session.key]}.json", "agterm", snapshot, written)


def _hub(snapshot: Snapshot, written: Counter[str]) -> Iterator[OutFile]:
    """Yield the files of the hub's own layout (see ``memoryhub.lib.layouts.hub``)."""
    yield OutFile(hub.MANIFEST, [hub.manifest(snapshot)])
    for session in snapshot.sessions:
        epoch = session.epoch or 0
        name = f"sessions/{distinct_name(session.key, 'grip')}-{epoch:05}.jsonl"
        written["summaries"] += len(session.summaries)
        yield OutFile(name, hub.session_lines(session, _counted(session.entries, "entries", written)))
    written["sessions"] += len(set(snapshot.keys))
    infos: list[str] = []
    for document in _counted(snapshot.documents, "documents", written):
        infos += hub.document_lines([document])
        yield OutFile(f"documents/{document.name}", [], document.raw or document.content.encode())
    if infos:
        yield OutFile(hub.DOCUMENT_INFO, infos)
    rows: list[tuple[str, str, Iterable[object]]] = [
        ("history.jsonl", "history", snapshot.history),
        ("knowledge.jsonl", "knowledge", snapshot.knowledge),
        ("observations.jsonl", "observations", snapshot.observations),
        ("key-values.jsonl", "key_values", snapshot.key_values),
        ("cached-responses.jsonl", "cached_responses", snapshot.cached),
    ]
    for path, kind, records in rows:
        yield OutFile(path, hub.lines(_counted(records, kind, written), path))
    yield OutFile(
        "terms.jsonl", hub.graph_lines(_counted(snapshot.graph_rows, "terms", written), snapshot.graph_meta)
    )


def _session(session: SessionRecord, path: str, layout: str, snapshot: Snapshot, written: Counter[str]) -> OutFile:
    written["sessions"] += 1
    is_native = snapshot.program == program_of(layout)
    parts = session_parts(session, layout, zone=snapshot.zone, is_native=is_native, written=written)
    return OutFile(path, parts)


def _documents(snapshot: Snapshot, below: str, written: Counter[str], *, with_knowledge: bool) -> Iterator[OutFile]:
    """Yield the memory documents; add rows that the program can't store otherwise to MEMORY.md, as bullets."""
    knowledge = list(_counted(snapshot.knowledge, "knowledge", written)) if with_knowledge else []
    learnt = learnt_text(knowledge, list(_counted(snapshot.observations, "observations", written)))
    for document in snapshot.documents:
        written["documents"] += 1
        added = learnt if document.name == "MEMORY.md" else ""
        learnt = "" if document.name == "MEMORY.md" else learnt
        yield OutFile(f"{below}{DOCUMENT_PATHS.get(document.name, document.name)}", [], _with_learnt(document, added))
    if learnt:
        yield OutFile(f"{below}memory/MEMORY.md", [f"# Memory\n\n{learnt}"])


def learnt_text(knowledge: Iterable[KnowledgeRecord], observations: Iterable[ObservationRecord]) -> str:
    """Return knowledge entries and observations as two sections of MEMORY.md, with lines ``- [category] text``."""
    parts = []
    for title, records in (("Knowledge", knowledge), ("Observations", observations)):
        bullets = [f"- [{record.category}] {' '.join(record.content.split())}\n" for record in records]
        if bullets:
            parts.append(f"## {title}\n\n{''.join(bullets)}")
    return "\n".join(parts)


def _with_learnt(document: DocumentRecord, learnt: str) -> bytes:
    raw = document.raw or document.content.encode()
    if not learnt:
        return raw
    return raw.rstrip(b"\n") + b"\n\n" + learnt.encode() if raw.strip() else learnt.encode()


def _counted(records: Iterable[T], kind: str, written: Counter[str]) -> Iterator[T]:
    for record in records:
        written[kind] += 1
        yield record

"""What happened in the hub between the demo's imports: runs of a scripted model, edits, reads and scans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any

from knowledge_app.models import Fact, HeldChange, HistoryEntry, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.editing import curate_facts, save_text
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import head_text
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.agents.api_tokens import issue_token
from memoryhub.demo.agterm import desk_routine
from memoryhub.demo.nanobot import atlas_routine
from memoryhub.demo.script import Script, blocks, edited, moment
from memoryhub.hygiene.scanning import DAILY_SCAN, request_scan
from memoryhub.lib.llm import scripted_model
from memoryhub.models import AccessedRow, AccessRecord, ApiToken
from memoryhub.runs.executing import execute
from memoryhub.runs.review import approve
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.access_log import Seen, seen_revision, seen_rows
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import request_run

INES = Actor("person", "Ines")
SCANNED = (-35, -9, 0)
READ_DAYS = 28
TOKENS = {"Atlas": "nanobot", "Pilot": "release-bot", "Forge": "grid", "Desk": "agterm"}
MODEL = {"model_base_url": "https://demo.invalid/v1", "consolidation_model": "demo-model"}
RUNS = 3  # of each kind at a stage


def happen_between(name: str, workspace: Workspace, days: range, last_day: date) -> None:
    """Do what people and the agent did in the hub on some days between two imports."""
    for day, action in ACTIONS.get(name, []):
        if day in days:
            action(workspace, By(INES, moment(last_day, day, "16:20")))
    _read(name, workspace, [day for day in days if day > -READ_DAYS], last_day)


def happen_after_import(name: str, workspace: Workspace, days: range, last_day: date, at: datetime) -> None:
    """Run what the hub runs after an import: compression, consolidation and scans. ``days``: since the one before."""
    if name == "Desk":
        _consolidate(workspace, _ended(desk_routine(last_day), days, last_day), at)
    if name == "Atlas":
        _compress(workspace, _ended(atlas_routine(last_day), days, last_day), at)
        if days[-1] == -1:
            _propose(workspace, By(Actor("agent", "Atlas"), at))
    if days.stop in SCANNED:
        scanned_at = at + timedelta(minutes=25)
        run, _ = request_scan(workspace, by=By(DAILY_SCAN, scanned_at))
        execute(run.pk, now=lambda: scanned_at)


def _ended(scripts: Sequence[Script], days: range, last_day: date) -> list[Script]:
    """Return the first sessions that ended in a period."""
    first, last = (last_day + timedelta(days=day) for day in (days.start, days.stop))
    return [script for script in scripts if first < script.turns[-1].at.date() <= last][:RUNS]


def _consolidate(workspace: Workspace, scripts: Sequence[Script], at: datetime) -> None:
    """Consolidate and compress sessions; the scripted model knows their facts."""
    for number, script in enumerate(scripts):
        session = Session.objects.get(workspace=workspace, key=script.key)
        memory = head_text(MemoryDocument.objects.filter(workspace=workspace, name="MEMORY.md").first())
        for _day, section, fact in script.facts:
            if _beginning(fact) not in memory:
                memory = edited(memory, [f"+ {section} | - {fact}"])
        text = "; ".join(fact for _day, _section, fact in script.facts)
        history = f"[{script.turns[-1].at:%Y-%m-%d %H:%M}] {text}."
        options = {"archive_all": True, "once": True}
        with _model(workspace, {"history_entry": history, "memory_update": memory}):
            _run(session, Run.Kind.CONSOLIDATION, options, at + timedelta(minutes=2 * number))
        for change in HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING):
            approve(change, by=By(INES, at + timedelta(minutes=2 * number + 1)))
    _compress(workspace, scripts, at + timedelta(minutes=10))


def _beginning(fact: str) -> str:
    """Return the words by which a fact about the same subject is recognised."""
    return " ".join(fact.split()[:4])


def _compress(workspace: Workspace, scripts: Sequence[Script], at: datetime) -> None:
    for number, script in enumerate(scripts):
        session = Session.objects.get(workspace=workspace, key=script.key)
        summary = "\n".join(f"- {fact} ({day})" for day, _section, fact in script.facts)
        with _model(workspace, summary):
            _run(session, Run.Kind.COMPRESSION, {"once": True}, at + timedelta(minutes=number))


def _run(session: Session, kind: str, options: dict[str, Any], at: datetime) -> None:
    run, _ = request_run(session, kind, options=options, by=By(INES, at))
    execute(run.pk, now=lambda: at)


@contextmanager
def _model(workspace: Workspace, answer: str | dict[str, str]) -> Iterator[None]:
    """Connect a model to a workspace that always gives this answer: a text, or the arguments of save_memory."""
    before = {name: getattr(workspace, name) for name in MODEL}
    message: dict[str, Any] = {"content": answer}
    if isinstance(answer, dict):
        function = {"name": "save_memory", "arguments": json.dumps(answer)}
        message = {"content": None, "tool_calls": [{"id": "demo", "type": "function", "function": function}]}

    def reply(messages: list[dict[str, str]]) -> dict[str, Any]:
        size = sum(len(one["content"]) for one in messages) // 4
        usage = {"prompt_tokens": size, "completion_tokens": len(str(answer)) // 4}
        return {"choices": [{"finish_reason": "stop", "message": message}], "usage": usage}

    Workspace.objects.filter(pk=workspace.pk).update(**MODEL)
    try:
        with scripted_model(reply):
            yield
    finally:
        Workspace.objects.filter(pk=workspace.pk).update(**before)


def _read(name: str, workspace: Workspace, days: Sequence[int], last_day: date) -> None:
    """Log what the agent read on some days: its document, facts, knowledge, observations and history in turn."""
    choices = _readable(workspace)
    if not days or not choices:
        return
    token = ApiToken.objects.filter(workspace=workspace, name=TOKENS[name]).first()
    if token is None:
        token, _text = issue_token(workspace, TOKENS[name], ["read"], by=By(INES, moment(last_day, days[0], "07:00")))
    rows = []
    for day in days:
        for number in range((day * 7 + len(name)) % 4 + 1):
            action, via, seen = choices[(day + number) % len(choices)]
            access = AccessRecord(
                workspace=workspace,
                token=token,
                actor_kind="agent",
                actor_name=token.name,
                via=via,
                action=action,
                row_count=sum(one.last - one.first + 1 for one in seen),
                at=moment(last_day, day, f"{8 + number * 3:02}:{day * 11 % 60:02}"),
            )
            access.save(force_insert=True)
            rows += [AccessedRow(access=access, **asdict(one)) for one in seen]
    AccessedRow.objects.bulk_create(rows)
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=moment(last_day, days[-1], "17:10"))


def _readable(workspace: Workspace) -> list[tuple[str, str, list[Seen]]]:
    found: list[tuple[str, str, list[Seen]]] = []
    for document in MemoryDocument.objects.filter(workspace=workspace, name="MEMORY.md").select_related("head"):
        if document.head:
            found.append(("document.read", "mcp", [seen_revision(document.pk, document.head.number)]))
        facts = list(Fact.objects.filter(document=document, died=None).order_by("pk").values_list("pk", flat=True))
        found.append(("facts.read", "mcp", seen_rows("facts", facts[:5])))
    for table, model in (("knowledge", KnowledgeEntry), ("observations", Observation), ("history", HistoryEntry)):
        pks = list(model.objects.filter(workspace=workspace).order_by("pk").values_list("pk", flat=True))
        found += [("search.read", "rest", seen_rows(table, pks[start : start + 4])) for start in (0, 4)]
    return [one for one in found if one[2]]


def _pin_rules(workspace: Workspace, by: By) -> None:
    document = MemoryDocument.objects.get(workspace=workspace, name="MEMORY.md")
    rules = Fact.objects.filter(document=document, died=None, text__contains="One owner for each alert")
    curate_facts(document, list(rules.values_list("pk", flat=True)), pinned=True, verified=True, by=by)


def _correct(name: str, workspace: Workspace, by: By) -> None:
    document = MemoryDocument.objects.select_related("head").get(workspace=workspace, name="MEMORY.md")
    text = edited(head_text(document), blocks("memory.txt")[f"{name} corrections"])
    number = document.head.number if document.head else 0
    save_text(document, text, base_number=number, by=by, reason="Corrected after the meeting")


def _propose(workspace: Workspace, by: By) -> None:
    """Let the agent propose a memory with a poisoned line."""
    document = MemoryDocument.objects.get(workspace=workspace, name="MEMORY.md")
    text = edited(head_text(document), blocks("memory.txt")["atlas proposal"])
    propose_text(document, text, base_number=None, by=by, reason="Tidied up after 1.9")


def _curate_knowledge(workspace: Workspace, by: By) -> None:
    rows = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None).order_by("pk")
    pks = list(rows.values_list("pk", flat=True))
    edit_rows(workspace, "knowledge", "verify", pks[:3], by=by)
    moved = {"category": "system_behavior", "add": ["safety"], "remove": []}
    edit_rows(workspace, "knowledge", "recategorise", pks[5:7], values=moved, reason="They are rules", by=by)


def _verify_observations(workspace: Workspace, by: By) -> None:
    pks = list(Observation.objects.filter(workspace=workspace).order_by("pk").values_list("pk", flat=True)[:4])
    edit_rows(workspace, "observations", "verify", pks, by=by)


ACTIONS: dict[str, list[tuple[int, Any]]] = {
    "Atlas": [
        (-19, _pin_rules),
        (-3, lambda workspace, by: _correct("atlas", workspace, by)),
    ],
    "Pilot": [(-22, _curate_knowledge), (-6, lambda workspace, by: _correct("pilot", workspace, by))],
    "Forge": [(-12, _verify_observations)],
}

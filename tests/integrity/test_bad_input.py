"""Hostile and damaged inputs end as the pack's index allows, and what always holds holds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from knowledge_app.models import (
    HeldChange,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Term,
    TermRelation,
)
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.conversations.context import build_context
from memoryhub.integrity import check_memory
from memoryhub.lib.errors import MemoryHubError
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import Actor, By
from tests.markup import live_markup
from tests.shared import BADINPUT, badinput_cases, packlib

NOW = datetime(2026, 4, 1, tzinfo=UTC)
ACTOR = Actor("command", "test")
KINDS = ("nanobot_session", "grip_session", "memory_md", "history", "kv", "semantic_graph", "knowledge", "workspace")
CASES = badinput_cases(*KINDS)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not BADINPUT.exists(), reason="the bad-input pack isn't beside the clone"),
]


def take(path: Path):
    return import_workspace(path, by=By(ACTOR, NOW))


def outcomes(result) -> list[str]:
    return [problem.outcome for problem in result.tally.problems]


def entries(key: str) -> list[Entry]:
    return list(Entry.objects.filter(session__key=key).order_by("epoch", "position"))


def facts_of(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    return {
        str(file): (file.read_bytes(), file.stat().st_mode, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink() and file.stat().st_size < 2**20
    }


def canaries() -> set[str]:
    found = set(Entry.objects.filter(content__startswith="canary-").values_list("content", flat=True))
    found |= set(HistoryEntry.objects.filter(content__contains="canary-").values_list("content", flat=True))
    found |= {
        line for doc in MemoryDocument.objects.all() for line in doc.head.content.split("\n") if "canary-" in line
    }
    found |= set(KnowledgeEntry.objects.filter(content__startswith="canary-").values_list("content", flat=True))
    found |= set(KeyValue.objects.filter(key__startswith="canary-").values_list("value", flat=True))
    return found | set(Term.objects.filter(text__startswith="canary-").values_list("text", flat=True))


def expected_canaries(case) -> set[str]:
    base = packlib().BASE_OF_KIND.get(case["kind"], "nanobot")
    placed = {item["place"] for step in case.get("steps", []) for item in step} | {
        op.get("at", "") for op in case.get("ops", [])
    }
    nano = {f"canary-nano {i}" for i in range(6)}
    history = {"canary-history first entry", "canary-history second entry"}
    grip = {f"canary-grip {i}" for i in range(6)} | {"- [user_preference] canary-memory dark mode"}
    wanted = {
        "nanobot": nano
        | ({"- canary-memory"} if "memory/MEMORY.md" not in placed else set())
        | (history if "memory/HISTORY.md" not in placed else set()),
        "grip": grip
        | {"User: canary-history"}
        | ({"canary-knowledge"} if "memory/knowledge.json" not in placed else set()),
        "grid": ({"canary-value"} if "kv.json" not in placed else set())
        | ({"canary-term", "canary-other"} if "semantic_graph.json" not in placed else set()),
    }[base]
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_ends_as_the_index_allows(case, tmp_path, admin_client):
    folder = tmp_path / "ws"
    pack = packlib()
    steps = max(len(case.get("steps", [])), 1)
    for step in range(1, steps + 1):
        pack.layout(case, folder, step, BADINPUT)
        before = facts_of(folder) if folder.exists() else {}
        started = time.process_time()
        result = attempt(folder)
        assert time.process_time() - started < 30
        if folder.exists():
            assert facts_of(folder) == before
        if step < steps and case["id"] in BETWEEN:
            BETWEEN[case["id"]]()
    CHECKS[case["id"]](result)

    again = attempt(folder)
    if result is not None and again is not None:
        assert not +again.tally.added
        assert not +again.tally.updated
    assert expected_canaries(case) <= canaries()
    assert check_memory().broken == []
    if connection.vendor == "sqlite":  # what a page makes of a row is no matter of the database
        assert_pages_work(admin_client)


def attempt(folder: Path):
    try:
        return take(folder)
    except MemoryHubError:
        return None


def assert_pages_work(client: Client) -> None:
    for workspace in Workspace.objects.all():
        base = f"/w/{workspace.slug}/"
        pages = [base, f"{base}sessions/", f"{base}history/", f"{base}knowledge/", f"{base}observations/"]
        pages += [f"{base}key-values/", f"{base}terms/", f"{base}memory/", f"{base}statistics/", f"{base}imports/"]
        pages += [f"{base}sessions/{pk}/" for pk in Session.objects.values_list("pk", flat=True)]
        pages += [f"{base}sessions/{pk}/context/" for pk in Session.objects.values_list("pk", flat=True)]
        pages += [f"{base}key-values/{pk}/" for pk in KeyValue.objects.values_list("pk", flat=True)]
        pages += [f"{base}terms/{pk}/" for pk in Term.objects.values_list("pk", flat=True)]
        pages += [f"{base}memory/{pk}/" for pk in MemoryDocument.objects.values_list("pk", flat=True)]
        pages += [f"{base}review/{pk}/" for pk in HeldChange.objects.values_list("pk", flat=True)]
        for page in pages:
            started = time.process_time()
            response = client.get(page)
            assert response.status_code == 200, page
            assert time.process_time() - started < 2, page
            assert live_markup(response.content.decode()) == []


def edit_f10() -> None:
    document = MemoryDocument.objects.get(name="MEMORY.md")
    text = document.head.content.replace("- F10: Daily stand-up is at 09:30", "- F10: Daily stand-up is at 09:45")
    assert text != document.head.content
    revise_document(document, text, base=document.head, by=By(Actor("person", "ana"), NOW), reason="edited")


BETWEEN = {"mm-002": edit_f10}


def check_ns_001(result):
    assert len(entries("discord:77")) == 3
    assert [(p.file, p.line) for p in result.tally.problems if p.outcome == "rejected"] == [
        ("sessions/discord_77.jsonl", 3)
    ]


def check_ns_002(result):
    assert len(entries("discord:77")) == 4
    assert outcomes(result) == []


def check_ns_003(result):
    session = Session.objects.get(key="discord:77")
    assert len(entries("discord:77")) == 4
    assert 0 <= session.last_consolidated <= 4
    assert "repaired" in outcomes(result)


def check_ns_004(result):
    assert [entry.role for entry in entries("discord:77")] == ["tool", "assistant", "user"]
    context = build_context(Session.objects.get(key="discord:77"))
    assert [part.message["role"] for part in context.parts if part.source == "entry"] == ["user"]


def check_ns_005(result):
    assert [p.line for p in result.tally.problems] == [3]
    assert [entry.content for entry in entries("discord:77")] == ["say 0", "say 1"]


def check_ns_006(result):
    assert entries("discord:77")[0].content == "first\u2029second"
    assert len(entries("discord:77")) == 2


def check_ns_007(result):
    assert len(entries("discord:77")) == 2
    assert "repaired" in outcomes(result)


def check_ns_008(result):
    assert len(entries("discord:77")) == 2


def check_ns_009(result):
    assert len(entries("discord:77")) == 9
    assert Session.objects.get(key="discord:77").last_consolidated == 3
    assert "held" in outcomes(result)


def check_ns_010(result):
    assert [entry.content for entry in entries("discord:77")][:9] == [f"line {i}" for i in range(9)]
    assert [entry.content for entry in entries("discord:77")][9:] == ["new talk", "hello again"]


def check_ns_011(result):
    assert [(p.file, p.line) for p in result.tally.problems] == [("sessions/wide.jsonl", 2)]


def check_gs_001(result):
    assert len(entries("slack:9")) == 4
    [problem] = [p for p in result.tally.problems if p.outcome in ("rejected", "held")]
    assert problem.line == 1
    assert "column" in problem.what


def check_gs_002(result):
    assert [entry.content for entry in entries("slack:9")] == [f"step {i}" for i in range(16)]
    assert Session.objects.get(key="slack:9").summary_text == "steps 0 to 9 were done"


def check_gs_003(result):
    assert len(entries("slack:9")) == 4
    assert outcomes(result) == ["repaired", "repaired"]
    assert Session.objects.get(key="slack:9").created_at == datetime(2026, 3, 1, 8, tzinfo=UTC)


def check_gs_004(result):
    assert len(entries("slack:9")) == 4
    assert "repaired" in outcomes(result)


def check_mm_001(result):
    change = HeldChange.objects.get()
    assert change.flags == ["removes 20 of 40 facts"]
    assert change.document.head.content.count("- F") == 40


def check_mm_002(result):
    change = HeldChange.objects.get()
    assert "09:30" in change.base.content
    assert "09:45" in change.ours.content
    assert "09:30" not in change.proposed
    assert change.document.head == change.ours


def check_flagged_document_waits(result):
    """Links and images of other hosts, and active markup, wait for review (the pack is older than that rule)."""
    assert outcomes(result) == ["held"]
    assert HeldChange.objects.get().flags


def check_mm_007(result):
    """The line that gives orders waits for review (the pack is older than that rule), and no fact is lost."""
    assert outcomes(result) == ["held"]
    change = HeldChange.objects.get()
    assert change.document.head.content.count("- F") == 40
    assert "leave them out" not in change.document.head.content


def check_mm_006(result):
    assert outcomes(result) == ["repaired"]
    revision = MemoryRevision.objects.get()
    assert revision.content.startswith("- Straße 7 – café")
    assert bytes(revision.raw).endswith(b"\r\n")


def check_hi_001(result):
    assert list(HistoryEntry.objects.order_by("position").values_list("content", flat=True)) == ["a\nmore of a", "b"]


def check_kv_001(result):
    values = {row.key: (row.value, row.is_json) for row in KeyValue.objects.all()}
    assert values == {
        "flag": ("false", True),
        "none": ("null", True),
        "deep": ('{"a": [1, 2]}', True),
        "long": ("90071992547409931", True),
    }


def check_kv_002(result):
    assert set(KeyValue.objects.values_list("key", flat=True)) == {"../x", "", "<i>"}


def check_sg_001(result):
    assert Term.objects.count() == 2
    assert TermRelation.objects.count() == 2


def check_kn_001(result):
    rejected = outcomes(result).count("rejected")
    assert KnowledgeEntry.objects.count() + rejected == 2


def check_ws_001(result):
    assert Session.objects.count() == 1
    assert any(p.file == "sessions/out.jsonl" for p in result.tally.problems)
    os_release = Path("/etc/os-release").read_text().split("\n")[0]
    assert not Entry.objects.filter(content__contains=os_release).exists()


def check_ws_002(result):
    assert HistoryEntry.objects.count() == 0
    assert Session.objects.count() == 1


def check_ws_003(result):
    assert result is None
    assert len(entries("cli:extra")) == 2
    assert Workspace.objects.get().unavailable_since is not None


CHECKS = {
    name.removeprefix("check_").replace("_", "-"): check
    for name, check in globals().items()
    if name.startswith("check_")
} | dict.fromkeys(("mm-003", "mm-004", "mm-005"), check_flagged_document_waits)


def test_every_case_of_these_kinds_has_a_check():
    assert {case["id"] for case in CASES} <= CHECKS.keys()


@pytest.mark.parametrize("key", [case["value"] for case in badinput_cases("session_key")])
def test_any_session_key_is_data(key, tmp_path, admin_client):
    folder = tmp_path / "ws"
    (folder / "sessions").mkdir(parents=True)
    (folder / "sessions" / "one.jsonl").write_text(
        packlib().jsonl(packlib().nb_meta(key), packlib().nb_msg("user", "hello"))
    )
    outside = facts_of(tmp_path)

    take(folder)

    session = Session.objects.get(key=key)
    assert admin_client.get(f"/w/{session.workspace.slug}/sessions/{session.pk}/").status_code == 200
    assert facts_of(tmp_path) == outside


def test_broken_links_of_an_export_are_reported(tmp_path):
    [case] = badinput_cases("export")
    packlib().layout(case, tmp_path / "ws", 1, BADINPUT)

    result = take(tmp_path / "ws" / "incoming" / "session-export.json")

    assert [entry.content for entry in entries("agterm-7")] == ["hi"]
    assert outcomes(result) == ["repaired", "noted", "repaired"]
    assert build_context(Session.objects.get()).messages[-1]["content"] == "hi"


def test_an_archive_that_climbs_and_expands_is_refused(tmp_path):
    [case] = badinput_cases("archive")
    packlib().layout(case, tmp_path / "ws", 1, BADINPUT)
    before = set(tmp_path.rglob("*"))

    with pytest.raises(MemoryHubError, match="outside"):
        take(tmp_path / "ws" / "incoming" / "backup.zip")

    assert set(tmp_path.rglob("*")) == before
    assert not Workspace.objects.exists()


def test_a_title_of_markup_is_shown_as_text(tmp_path, admin_client, capsys):
    [case] = badinput_cases("ui_text")
    title = case["value"]
    folder = tmp_path / "ws"
    (folder / "sessions").mkdir(parents=True)
    pack = packlib()
    (folder / "sessions" / "one.jsonl").write_text(
        pack.jsonl(pack.nb_meta("cli:x") | {"metadata": {"title": title}}, pack.nb_msg("user", "hello"))
    )

    call_command("import_workspace", str(folder))

    session = Session.objects.get()
    assert session.title == title
    for page in ("", f"{session.pk}/"):
        html = admin_client.get(f"/w/{session.workspace.slug}/sessions/{page}").content.decode()
        assert "&lt;/title&gt;&lt;script&gt;" in html
        assert "<script>window" not in html

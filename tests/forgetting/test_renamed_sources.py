"""A row is from a source that it has or had, whatever a person calls it; it stays forgotten by every name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge_app.models import Forgotten, KnowledgeEntry, Observation
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.backups.revocations import Receipt
from memoryhub.forgetting import forget as flow
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.hub_erasure import Person, erase_person, new_receipt
from memoryhub.forgetting.reapply import reapply_receipts
from memoryhub.forgetting.requests import request_forgetting
from memoryhub.forgetting.sources import rows_from
from memoryhub.lib.layouts.grip import content_id
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By
from tests.api.conftest import caller, token_for
from tests.forgetting.remaining import NAME, TEXT, remains
from tests.hub import NOW, PERSON, by, open_at, run_jobs

pytestmark = pytest.mark.django_db(transaction=True)
MISSPELT, SOURCE = "intervew", "interview"


def erase(
    workspace: Workspace, kind: str, name: str, *, session: Session | None = None, via_job: bool = True
) -> None:
    wish = ErasureRequest(kind, () if session else (name,), session=session)
    expected = plan_forget(workspace, wish).total
    if via_job:
        request_forgetting(workspace, wish, expected=expected, reason="", by=by())
        run_jobs()
    else:
        flow.forget(workspace, wish, expected=expected, reason="", by=by())


def learned(workspace: Workspace, text: str, source: str) -> KnowledgeEntry:
    return add_knowledge(workspace, text, category="learned_fact", source=source, by=By(PERSON, NOW)).entry


def rename(workspace: Workspace, row: KnowledgeEntry | Observation, source: str) -> None:
    table = "knowledge" if isinstance(row, KnowledgeEntry) else "observations"
    edit_rows(workspace, table, "assign", [row.pk], values={"source": source}, by=by())


def grip_home(tmp_path: Path) -> Path:
    """Return an agent's folder with three entries, of which two are of the misspelt source."""
    folder = tmp_path / "agents" / "grip"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "MEMORY.md").write_text("# Memory\n\n- fact one\n")

    def entry(text: str, source: str) -> dict[str, object]:
        dates = {"created_at": 1770000000.0, "last_accessed": 1770000000.0, "access_count": 1}
        named = {"id": content_id("learned_fact", text), "category": "learned_fact", "content": text}
        return named | {"source": source, "tags": []} | dates

    entries = [entry(TEXT, MISSPELT), entry("Another talk", MISSPELT), entry(f"{NAME} is old", SOURCE)]
    (folder / "memory" / "knowledge.json").write_text(json.dumps(entries))
    return folder


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("via_job", [True, False])
def test_what_a_person_moved_to_a_source_does_not_return_from_the_file(home, tmp_path, via_job):
    folder = grip_home(tmp_path)
    workspace = import_workspace(folder, layout="grip", by=by()).workspace
    rename(workspace, KnowledgeEntry.objects.get(content=TEXT), SOURCE)

    erase(workspace, "source", SOURCE, via_job=via_job)

    assert remains(home) == set()
    (folder / "memory" / "later.txt").write_text("")
    (folder / "memory" / "knowledge.json").write_text((folder / "memory" / "knowledge.json").read_text() + "\n")
    import_workspace(folder, layout="grip", by=by())
    assert remains(home) == set()
    assert [entry.content for entry in KnowledgeEntry.objects.all()] == ["Another talk"]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("row", ["knowledge", "observations"])
@pytest.mark.parametrize("kind", ["source", "session"])
def test_rows_are_forgotten_by_a_source_that_they_had(home, workspace, row, kind):
    session = open_at(workspace, "cli:x") if kind == "session" else None
    if row == "knowledge":
        made = learned(workspace, TEXT, "cli:x")
    else:
        made = store(workspace, [NewObservation("finding", TEXT, "cli:x")], by=By(PERSON, NOW)).added[0]
    rename(workspace, made, "mail")
    rename(workspace, made, "post")
    learned(workspace, "The office is in Porto", "mail")

    erase(workspace, kind, "cli:x", session=session)

    assert remains(home) == set()
    assert KnowledgeEntry.objects.get().source == "mail"
    assert not Observation.objects.exists()


def test_blanks_around_a_source_do_not_matter(home, workspace):
    KnowledgeEntry.objects.filter(pk=learned(workspace, TEXT, SOURCE).pk).update(source=f" {SOURCE}")

    erase(workspace, "source", SOURCE)

    assert remains(home) == set()


@pytest.mark.slow
@pytest.mark.postgres
def test_answers_by_an_earlier_name_are_erased(home, workspace):
    agent = caller(token_for(workspace))
    body = {"content": TEXT, "category": "learned_fact", "source": MISSPELT}
    assert agent("POST", "/knowledge", body, Idempotency_Key="1").status_code == 201
    rename(workspace, KnowledgeEntry.objects.get(), SOURCE)

    erase(workspace, "source", SOURCE)

    assert remains(home) == set()


def receipt_of(found: Forgotten) -> Receipt:
    place = (found.workspace_id, found.workspace.slug if found.workspace else "")
    return Receipt(found.pk, *place, found.kind, found.digests, found.counts, "", "olga", found.forgotten_at)


def test_a_restored_backup_with_the_earlier_name_is_erased_again(home, workspace):
    rename(workspace, learned(workspace, TEXT, MISSPELT), SOURCE)
    erase(workspace, "source", SOURCE)
    learned(workspace, TEXT, MISSPELT)  # as in the backup
    learned(workspace, "Another talk", MISSPELT)

    assert reapply_receipts([receipt_of(Forgotten.objects.get())], by=by()) == []

    assert [entry.content for entry in KnowledgeEntry.objects.all()] == ["Another talk"]


@pytest.mark.slow
@pytest.mark.postgres
def test_rows_of_a_persons_session_stay_forgotten_by_an_earlier_name(home, workspace):
    open_at(workspace, "cli:x")
    rename(workspace, learned(workspace, TEXT, MISSPELT), "cli:x")
    receipt = new_receipt(Person(("Waldemar",), ("cli:x",)), reason="", by=by())
    erase_person(receipt, by=by())
    assert remains(home) == set()
    learned(workspace, TEXT, MISSPELT)

    assert reapply_receipts([receipt_of(receipt)], by=by()) == []

    assert not KnowledgeEntry.objects.exists()


def test_a_row_is_from_a_source_that_only_an_edit_still_names(workspace):
    entry = learned(workspace, TEXT, MISSPELT)
    rename(workspace, entry, SOURCE)
    KnowledgeEntry.history.all().delete()
    KnowledgeEntry.objects.update(corrected={})

    assert ("knowledge", entry.pk) in rows_from(workspace, lambda row: row.source == MISSPELT)

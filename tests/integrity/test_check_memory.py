"""Each promise is broken behind the services' back, and the check names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import (
    Fact,
    FactSource,
    Forgotten,
    HeldChange,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    RowVector,
    Term,
)
from knowledge_app.services.documents.history import import_history
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.revisions import content_hash
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub import integrity
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.graph.neighbours import import_graph
from memoryhub.integrity import CHECKS, check_memory, database
from memoryhub.integrity.database import protections
from memoryhub.lib.database.append_only import remove_sql
from memoryhub.lib.layouts.records import (
    DocumentRecord,
    GraphRecord,
    HistoryLog,
    HistoryRecord,
    SummaryRecord,
    TermRecord,
)
from memoryhub.lib.search import operations
from sessions_app.models import (
    AppendReceipt,
    AuditRecord,
    DailyTotal,
    Entry,
    MutationGuard,
    Run,
    Session,
    SourceFile,
    Summary,
    Workspace,
)
from sessions_app.services.audit import By, record
from sessions_app.services.importing import import_conversation
from sessions_app.services.sources import path_hash
from tests.hub import PERSON, add, compress, open_at, talk, turn
from tests.records import entry_record, session_record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)
FACTS = "# Team\n" + "\n".join(f"- fact {i} of the team" for i in range(20))


@pytest.fixture
def healthy(workspace: Workspace) -> Workspace:
    fill(workspace, "cli:main")
    session = open_at(workspace, "cli:hub")
    add(session, turn(0), key="first")
    talk(session, 9, first=1)
    compress(session)
    entries = [HistoryRecord(word, "", file="HISTORY.md") for word in ("first", "second", "third")]
    import_history(workspace=workspace, log=HistoryLog(entries), path="HISTORY.md", now=NOW, dry_run=False)
    for content in (FACTS, FACTS + "\n- one more", "\n".join(FACTS.split("\n")[:8])):
        record = DocumentRecord("MEMORY.md", content)
        import_document(workspace=workspace, record=record, path="MEMORY.md", now=NOW, dry_run=False)
    curate(workspace)
    return workspace


def curate(workspace: Workspace) -> None:
    by = By(PERSON, NOW)
    entry = add_knowledge(workspace, "likes tea", category="learned_fact", by=by).entry
    edit_rows(workspace, "knowledge", "tag", [entry.pk], values={"add": ["drinks"]}, by=by)
    store(workspace, [NewObservation("finding", "tea is hot")], by=by)
    write_value(workspace, "password", "hunter2", by=by)
    terms = [TermRecord("tea", [1.0, 0.0], ["hot"]), TermRecord("hot", [0.0, 1.0], ["tea"])]
    graph = GraphRecord("test", "m", "", 2, NOW, "", terms)
    import_graph(workspace=workspace, graph=graph, path="semantic_graph.json", now=NOW, dry_run=False)


def fill(workspace: Workspace, key: str) -> None:
    record = session_record("a", "b", "c", "d", key=key, pointer=2)
    record.entries[3] = entry_record("folded", minute=3, summary_source_id="s", source_id="e")
    record.summaries.append(SummaryRecord("s", "d was said", ["e"], token_count=2, original_token_count=9))
    _, source = import_conversation(workspace=workspace, record=record, path=key, now=NOW, dry_run=False)
    assert source is not None
    source.path_hash, source.kind, source.status = path_hash(key), "session", "read"
    source.save()


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def unindex(table):
    if connection.vendor == "postgresql":
        execute("SET CONSTRAINTS ALL IMMEDIATE")  # no table can be altered while its checks are pending
    for statement in operations.remove_sql(connection, table):
        execute(statement)


def unprotect(table: str) -> None:
    [protection] = [row for row in protections() if row.table == table]
    execute(*remove_sql(connection, protection))


def remove_one_entry() -> None:
    unprotect("sessions_app_entry")
    Entry.objects.filter(position=1).delete()


def move_entry_to_another_workspace() -> None:
    unprotect("sessions_app_entry")
    other = Workspace.objects.create(slug="other", name="Other")
    Entry.objects.filter(position=0).update(workspace=other)


def rewrite_revision() -> None:
    unprotect("knowledge_app_memoryrevision")
    MemoryRevision.objects.filter(number=1).update(content="forged")


def renumber_revision() -> None:
    unprotect("knowledge_app_memoryrevision")
    MemoryRevision.objects.filter(number=2).update(number=7)


def remove_one_history_entry() -> None:
    unprotect("knowledge_app_historyentry")
    HistoryEntry.objects.filter(position=1).delete()


def forget_audit() -> None:
    unprotect("sessions_app_auditrecord")
    AuditRecord.objects.filter(object_kind="revision").delete()


def start_two_runs() -> None:
    execute("DROP INDEX run_one_running_per_session")
    session = Session.objects.get(key="cli:main")
    for _ in range(2):
        Run.objects.create(workspace=session.workspace, session=session, kind="compression", status="running")


def deliver_nothing() -> None:
    MemoryDocument.objects.update(written_at=NOW)


def compare_with_another_document() -> None:
    change = HeldChange.objects.get()
    other = MemoryDocument.objects.create(workspace=change.workspace, name="USER.md")
    HeldChange.objects.update(document=other)


def name_a_message_as_the_writing_call() -> None:
    message = Entry.objects.filter(kind="message")[0]
    FactSource.objects.create(fact=Fact.objects.all()[0], entry=message, kind="written_by")


def store_short_vector() -> None:
    values = {"kind": "entry", "object_id": 1, "fingerprint": "ollama/tiny/64", "text_hash": ""}
    RowVector.objects.create(workspace=Workspace.objects.get(), vector=b"1234", **values)


def add_to(model: type, **amounts: int) -> Callable[[], None]:
    def change() -> None:
        row = model.objects.order_by("pk").first()
        model.objects.filter(pk=row.pk).update(**{name: getattr(row, name) + n for name, n in amounts.items()})

    return change


def forge_audit_record() -> None:
    columns = [field.column for field in AuditRecord._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join("'forged'" if column == "mac" else f'"{column}"' for column in columns)
    execute(f"INSERT INTO sessions_app_auditrecord ({names}) SELECT {values} FROM sessions_app_auditrecord LIMIT 1")


BREAKING: dict[str, Callable[[], None]] = {
    "append_only.triggers": lambda: unprotect("sessions_app_entry"),
    "audit.chain": forge_audit_record,
    "append_only.guard": lambda: MutationGuard.objects.create(reason="left open"),
    "search.indexes": lambda: unindex("knowledge_app_fact"),
    "search.vectors": store_short_vector,
    "tenancy": move_entry_to_another_workspace,
    "entries.positions": remove_one_entry,
    "sessions.pointer": lambda: Session.objects.update(entry_count=99, last_consolidated=50),
    "sessions.length": lambda: Session.objects.update(next_position=1),
    "sessions.totals": add_to(Session, total_tokens=1),
    "sessions.sources": lambda: SourceFile.objects.update(epoch=7),
    "daily.totals": lambda: DailyTotal.objects.filter(session__isnull=False).delete(),
    "daily.workspace": lambda: DailyTotal.objects.filter(session__isnull=True).delete(),
    "runs.tile": lambda: Run.objects.exclude(kind="edit").update(from_position=1),
    "runs.one_running": start_two_runs,
    "runs.compressions": lambda: Run.objects.filter(kind="compression").update(status="failed"),
    "appends.receipts": lambda: AppendReceipt.objects.update(entry_count=999),
    "summaries.links": add_to(Summary, entry_count=1),
    "revisions.chain": renumber_revision,
    "revisions.hash": rewrite_revision,
    "documents.head": lambda: MemoryDocument.objects.update(head=MemoryRevision.objects.get(number=1)),
    "documents.written": deliver_nothing,
    "facts.in_step": lambda: Fact.objects.filter(line=3).update(text="forged"),
    "facts.origins": name_a_message_as_the_writing_call,
    "held.bases": compare_with_another_document,
    "held.decisions": lambda: HeldChange.objects.update(status="approved", decided_at=NOW),
    "held.rows": lambda: record(By(PERSON, NOW), "row.held", "knowledge", KnowledgeEntry.objects.get().pk, "held"),
    "forgotten.receipts": lambda: Forgotten.objects.create(kind="phrase", forgotten_by="x", lifted_at=NOW),
    "history.positions": remove_one_history_entry,
    "audit.revisions": forget_audit,
    "knowledge.identity": lambda: KnowledgeEntry.objects.update(identity="forged"),
    "key_values.secrets": lambda: KeyValue.objects.update(is_secret=False),
    "rows.history": lambda: Observation.objects.update(content="forged"),
    "graph.terms": lambda: Term.objects.filter(text="tea").update(embedding=b"1234"),
}


def test_a_healthy_workspace_breaks_nothing(healthy):
    result = check_memory()

    assert result.broken == []
    assert result.checked.keys() == CHECKS.keys()
    assert result.checked["entries.positions"] == 44


def test_every_promise_has_a_case():
    assert CHECKS.keys() - BREAKING.keys() == {"database.integrity"}


@pytest.mark.slow
@pytest.mark.postgres
def test_each_broken_promise_is_named_with_its_place(healthy):
    """One test, because a healthy workspace takes half a second to fill."""
    for name, break_promise in BREAKING.items():
        with transaction.atomic():
            break_promise()
            found = [row for row in check_memory().broken if row.invariant == name]
            transaction.set_rollback(True)

        assert found, name
        assert all(row.what and row.where for row in found), name


def remove_a_line_from_the_text() -> None:
    """Change the text of a person or an agent with everything that is derived from it."""
    unprotect("knowledge_app_memoryrevision")
    revision = MemoryDocument.objects.select_related("head").get().head
    text = revision.content.replace("\n- one more", "")
    MemoryRevision.objects.filter(pk=revision.pk).update(content=text, content_hash=content_hash(text))
    Fact.objects.filter(text="one more").delete()


def remove_a_pinned_fact() -> None:
    Fact.objects.filter(line=3).delete()


def swap_the_held_text() -> None:
    HeldChange.objects.update(proposed="forged", proposed_hash=content_hash("forged"))


def swap_the_base_of_a_held_change() -> None:
    HeldChange.objects.update(base=MemoryRevision.objects.get(number=1))


def point_the_file_at_another_document() -> None:
    other = MemoryDocument.objects.create(workspace=Workspace.objects.get(), name="USER.md")
    MemoryDocument.objects.filter(pk=other.pk).update(synced_revision=MemoryRevision.objects.get(number=1))


MORE = {
    remove_a_line_from_the_text: ("audit.revisions", "its text isn't the recorded one"),
    remove_a_pinned_fact: ("facts.in_step", "its facts are not those of its text"),
    swap_the_held_text: ("held.bases", "its text isn't the recorded one"),
    swap_the_base_of_a_held_change: ("held.bases", "its revisions aren't the recorded ones"),
    point_the_file_at_another_document: ("documents.written", "its file's text is of another document"),
}


@pytest.mark.slow
@pytest.mark.postgres
def test_a_forger_who_knows_the_tables_is_found(healthy):
    for forge, expected in MORE.items():
        with transaction.atomic():
            forge()
            found = {(row.invariant, row.what) for row in check_memory().broken}
            transaction.set_rollback(True)

        assert expected in found, forge.__name__


@pytest.mark.slow
@pytest.mark.postgres
def test_texts_that_were_erased_are_not_taken_for_forged(healthy):
    for words in ("fact 3", "one more"):
        request = ErasureRequest("phrase", (words,))
        expected = plan_forget(healthy, request).total
        apply_forget(healthy, request, expected=expected, reason="", by=By(PERSON, NOW))

    assert check_memory().broken == []


def test_a_row_that_names_a_missing_one_is_found(healthy):
    """PostgreSQL refuses such a row outright; SQLite does so only at the end of the transaction."""
    if connection.vendor != "sqlite":
        execute(
            "SET CONSTRAINTS ALL IMMEDIATE",
            "ALTER TABLE sessions_app_summary ADD CONSTRAINT odd CHECK (token_count < 0) NOT VALID",
        )
    else:
        execute("UPDATE sessions_app_run SET session_id = 999")

    broken = [row.where for row in check_memory().broken if row.invariant == "database.integrity"]
    execute(
        "UPDATE sessions_app_run SET session_id = (SELECT id FROM sessions_app_session)"
        if connection.vendor == "sqlite"
        else "ALTER TABLE sessions_app_summary DROP CONSTRAINT odd"
    )

    assert broken


def test_the_pointer_without_a_run_is_found(healthy):
    Run.objects.all().delete()

    assert ("runs.tile", "the pointer moved without a run") in [
        (row.invariant, row.what) for row in check_memory().broken
    ]


def test_the_command_tells_good_from_bad_by_its_exit_status(healthy, capsys):
    call_command("check_memory", "--json")
    assert json.loads(capsys.readouterr().out)["broken"] == []

    add_to(Session, total_tokens=1)()
    with pytest.raises(SystemExit) as status:
        call_command("check_memory", "--json")

    broken = json.loads(capsys.readouterr().out)["broken"]
    assert status.value.code == 1
    assert broken[0].keys() == {"invariant", "what", "where"}


def test_each_invariant_lists_a_limited_number_of_findings(healthy, monkeypatch):
    monkeypatch.setattr(integrity, "MAX_FINDINGS", 2)
    for number in range(5):
        fill(healthy, f"cli:{number}")
    Session.objects.update(summary_tokens=77)

    assert len([row for row in check_memory().broken if row.invariant == "sessions.totals"]) == 2


@pytest.mark.slow
@pytest.mark.postgres
def test_more_rows_take_no_more_queries(healthy):
    with CaptureQueriesContext(connection) as few:
        check_memory()
    for number in range(20):
        fill(healthy, f"cli:{number}")

    with CaptureQueriesContext(connection) as many:
        check_memory()

    assert len(many) == len(few)


def test_an_old_sqlite_causes_a_warning(monkeypatch):
    monkeypatch.setattr(database.sqlite3, "sqlite_version_info", (3, 40, 1))

    assert bool(database.warnings()) == (connection.vendor == "sqlite")

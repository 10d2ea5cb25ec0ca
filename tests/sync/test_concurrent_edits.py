"""Imports and erasures at the same time as an edit: neither waits for the other for ever."""

from __future__ import annotations

from threading import Barrier

import pytest

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents import editing
from knowledge_app.services.documents.editing import save_text, start_document
from memoryhub.forgetting import erasure
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict
from memoryhub.lib.files.safe_folder import FileInfo
from memoryhub.lib.layouts.records import DocumentRecord, FileRead
from memoryhub.sync import importing
from memoryhub.sync.importing import import_source_file
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.races import at_once, meet_after

pytestmark = pytest.mark.django_db(transaction=True)
BY = By(PERSON, NOW)


@pytest.fixture
def document(workspace, monkeypatch) -> MemoryDocument:
    monkeypatch.setattr(db_retry, "ATTEMPTS", 1)  # a deadlock raises an error
    document = start_document(workspace, "MEMORY.md")
    save_text(document, "- Anna likes tea\n- Two\n", base_number=0, by=BY, reason="")
    return document


def save(document: MemoryDocument) -> object:
    return save_text(document, "- Anna likes tea\n- Ours\n", base_number=1, by=BY, reason="")


def test_an_import(workspace, document, monkeypatch):
    both_locked = Barrier(2)
    meet_after(monkeypatch, editing, "lock_document", both_locked)
    meet_after(monkeypatch, importing, "import_rules", both_locked)
    item = DocumentRecord("MEMORY.md", "- Anna likes tea\n- Two\n- Theirs\n")
    read = FileRead("memory/MEMORY.md", "document", FileInfo(10, 0, "0" * 64, "stamp"), [item])

    saved, imported = at_once(lambda: save(document), lambda: import_source_file(workspace, read, NOW, dry_run=False))

    assert not isinstance(saved, Exception)
    assert not isinstance(imported, Exception)


def test_an_erasure(workspace, document, monkeypatch):
    wish = ErasureRequest("phrase", ("Anna",))
    total = plan_forget(workspace, wish).total
    both_locked = Barrier(2)
    meet_after(monkeypatch, editing, "lock_document", both_locked)
    meet_after(monkeypatch, erasure, "_rules", both_locked)

    saved, erased = at_once(
        lambda: save(document), lambda: apply_forget(workspace, wish, expected=total, reason="", by=BY)
    )

    assert not isinstance(saved, Exception) or isinstance(erased, erasure.Forgotten)
    assert isinstance(erased, erasure.Forgotten | Conflict)

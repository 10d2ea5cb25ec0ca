from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction

from knowledge_app.models import HistoryEntry
from knowledge_app.services.documents.history import import_history
from memoryhub.lib.layouts.records import HistoryLog, HistoryRecord
from sessions_app.models import Session, Workspace

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(slug="w", name="W")


def take(workspace, *contents, archived=0, **values):
    entries = [
        HistoryRecord(content, "", file="memory/HISTORY.md", is_archived=place < archived, **values)
        for place, content in enumerate(contents)
    ]
    return import_history(workspace=workspace, log=HistoryLog(entries), path="HISTORY.md", now=NOW, dry_run=False)


def kept() -> list[str]:
    return list(HistoryEntry.objects.order_by("position").values_list("content", flat=True))


def test_a_log_is_taken_once_and_grows(workspace):
    take(workspace, "a", "b")

    assert not +take(workspace, "a", "b").added
    assert +take(workspace, "a", "b", "b").added == {"history": 1}
    assert kept() == ["a", "b", "b"]


def test_a_rotation_marks_entries_as_archived_and_adds_none(workspace):
    take(workspace, "a", "b", "c")

    assert not +take(workspace, "a", "b", "c", archived=2).added
    assert list(HistoryEntry.objects.order_by("position").values_list("is_archived", flat=True)) == [
        True,
        True,
        False,
    ]


def test_a_trimmed_journal_loses_nothing(workspace):
    take(workspace, "a", "b", "c", "d")

    assert +take(workspace, "c", "d", "e").added == {"history": 1}
    assert kept() == ["a", "b", "c", "d", "e"]


def test_a_log_begun_anew_is_appended_and_reported(workspace):
    take(workspace, "a", "b")

    tally = take(workspace, "x", "y")

    assert kept() == ["a", "b", "x", "y"]
    assert [problem.outcome for problem in tally.problems] == ["noted"]


def test_an_emptied_log_removes_nothing(workspace):
    take(workspace, "a", "b")

    tally = take(workspace)

    assert kept() == ["a", "b"]
    assert [problem.outcome for problem in tally.problems] == ["held"]


def test_an_entry_links_to_its_session(workspace):
    session = Session.objects.create(workspace=workspace, key="cli:x", channel="cli")

    take(workspace, "a", session_key="cli:x")

    assert HistoryEntry.objects.get().session == session


def test_history_cannot_be_rewritten(workspace):
    take(workspace, "a")

    for change in (lambda: HistoryEntry.objects.update(content="x"), lambda: HistoryEntry.objects.all().delete()):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()

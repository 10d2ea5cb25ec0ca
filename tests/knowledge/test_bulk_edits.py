"""Bulk edits of facts, rows and runs, and undo."""

from __future__ import annotations

import pytest
from django.test import Client

from knowledge_app.models import Fact, HeldChange, HistoryEntry, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.fact_edits import recategorise_facts, undo_revision
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, url
from tests.searches import log

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
ACTION_OF = {"edit-runs": "retry", "decide-changes": "approve", "knowledge:edit-knowledge": "verify"}


def act(client: Client, address: str, rows=(), **values) -> str:
    response = client.post(address, {"row": [row.pk for row in rows], **values}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def undo(client: Client) -> str:
    """Press Undo for the newest edit."""
    run = Run.objects.filter(kind=Run.Kind.EDIT).latest("pk")
    return client.post(url("undo-run", run.pk), {"next": url("runs")}, follow=True).content.decode()


@pytest.fixture
def document(workspace: Workspace) -> MemoryDocument:
    found = open_document(workspace, "MEMORY.md")
    revise_document(found, "# Pool\n\n- tea\n* [drink] milk\n- rum\n", base=None, reason="r", by=BY)
    return found


def test_facts_are_pinned_and_dated_and_that_is_undone(editor, document):
    facts = list(Fact.objects.order_by("line"))
    address = url("documents:curate-facts", document.pk)

    assert "2 facts pinned." in act(editor, address, facts[:2], action="pin")
    act(editor, address, facts[:1], action="review", **{"review-value": "2026-12-24"})
    assert list(Fact.objects.order_by("line").values_list("pinned", flat=True)) == [True, True, False]
    undo(editor)
    assert Fact.objects.filter(review_by__isnull=False).count() == 0
    assert "Enter a valid date." in act(editor, address, facts, action="review", **{"review-value": "soon"})


def test_facts_get_a_category_in_the_text_and_keep_their_identity(workspace, document):
    facts = list(Fact.objects.order_by("line"))

    revised = recategorise_facts(document, [fact.pk for fact in facts], "drink", by=BY)

    document.refresh_from_db()
    assert revised.count == 2
    assert document.head.content == "# Pool\n\n- [drink] tea\n* [drink] milk\n- [drink] rum\n"
    assert set(Fact.objects.filter(died=None)) == set(facts)
    recategorise_facts(document, [facts[1].pk], "", by=BY)
    document.refresh_from_db()
    assert "* milk\n" in document.head.content


def test_restored_facts_keep_their_pins_and_later_additions(editor, document):
    tea = Fact.objects.get(text="tea")
    Fact.objects.filter(pk=tea.pk).update(pinned=True)

    html = act(editor, url("documents:curate-facts", document.pk), [tea], action="remove")
    assert f'action="{url("documents:undo-revision", document.pk, 2)}"' in html
    document.refresh_from_db()
    revise_document(document, document.head.content + "- gin\n", base=document.head, reason="r", by=BY)
    editor.post(url("documents:undo-revision", document.pk, 2))

    document.refresh_from_db()
    assert document.head.content == "# Pool\n\n- tea\n* [drink] milk\n- rum\n- gin\n"
    assert Fact.objects.get(text="tea", died=None).pinned


def test_undoing_the_undo_of_a_revision_is_called_redo(editor, document):
    act(editor, url("documents:curate-facts", document.pk), [Fact.objects.get(text="tea")], action="remove")

    undone = editor.post(url("documents:undo-revision", document.pk, 2), follow=True).content.decode()
    again = f"{url('documents:undo-revision', document.pk, 3)}?redo=1"
    redone = editor.post(again, follow=True).content.decode()

    assert "Undone." in undone
    assert f'action="{again}"' in undone
    assert ">Redo</button>" in undone
    assert "Redone." in redone
    assert f'action="{url("documents:undo-revision", document.pk, 4)}"' in redone
    assert ">Undo</button>" in redone


def test_the_first_revision_can_not_be_undone(document):
    with pytest.raises(Exception, match="no revision before revision 1"):
        undo_revision(document, 1, by=BY)


def test_history_is_archived_and_unarchived(workspace, editor):
    entries = [log(workspace, f"happened {number}") for number in range(2)]

    assert "2 history entries archived." in act(editor, url("documents:edit-history"), entries, action="archive")
    assert HistoryEntry.objects.filter(is_archived=True).count() == 2
    undo(editor)
    assert not HistoryEntry.objects.filter(is_archived=True).exists()


def test_selected_rows_are_exported_without_secrets(workspace, editor):
    write_value(workspace, "api_key", "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c", by=BY)
    write_value(workspace, "colour", "blue", by=BY)

    response = editor.post(url("knowledge:edit-key-values"), {"all": "1", "expected": "2", "action": "export:csv"})

    assert response["Content-Disposition"].startswith("attachment")
    assert "blue" in response.content.decode()
    assert "sk-live" not in response.content.decode()
    assert editor.post(url("knowledge:edit-key-values"), {"row": "1", "action": "export:exe"}).status_code == 404


def test_duplicates_among_the_selected_rows_are_merged(workspace, editor):
    said = ["The pool is two metres deep", "The pool is two metres deep!", "The tea is cold"]
    rows = [add_knowledge(workspace, text, category="learned_fact", by=BY).entry for text in said]

    html = act(editor, url("knowledge:edit-knowledge"), rows, action="merge")

    assert "1 knowledge entry merged. 1 is not a duplicate." in html
    assert "No duplicates among the selected" in act(
        editor, url("knowledge:edit-knowledge"), rows[2:], action="merge"
    )


@pytest.mark.parametrize(
    ("page", "values", "model"),
    [
        ("new-knowledge", {"content": "likes tea", "category": "learned_fact"}, KnowledgeEntry),
        ("new-observation", {"content": "the courier is late", "category": "finding"}, Observation),
        ("new-key-value", {"key": "colour", "value": "blue"}, KeyValue),
    ],
)
def test_undoing_an_addition_withdraws_it_and_undoing_that_restores_it(workspace, editor, page, values, model):
    html = editor.post(url(f"knowledge:{page}"), values, follow=True).content.decode()

    run = Run.objects.get(kind=Run.Kind.EDIT)
    assert f'action="{url("undo-run", run.pk)}"' in html
    undo(editor)
    assert model.objects.get().withdrawn_at is not None
    undo(editor)
    assert model.objects.get().withdrawn_at is None


def test_overwriting_a_value_can_be_undone(workspace, editor):
    write_value(workspace, "colour", "blue", by=BY)

    editor.post(url("knowledge:new-key-value"), {"key": "colour", "value": "green"})
    undo(editor)

    assert KeyValue.objects.get().value == "blue"


def test_held_changes_are_decided_together_except_unfit_ones(workspace, editor, document):
    names = ("SOUL.md", "USER.md")
    for name in names:
        propose_text(open_document(workspace, name), "- sun\n", base_number=None, reason="r", by=BY)
    changes = list(HeldChange.objects.filter(status="pending"))
    if not changes:
        pytest.skip("nothing is held")
    HeldChange.objects.filter(pk=changes[0].pk).update(status="rejected")

    html = act(editor, url("decide-changes"), changes, action="approve")

    assert f"{len(changes) - 1} change" in html
    assert not HeldChange.objects.filter(status="pending").exists()


def test_failed_runs_are_retried_and_others_reported(workspace, editor):
    runs = [
        Run.objects.create(workspace=workspace, kind=Run.Kind.EXTRACTION, status=status, created_at=NOW)
        for status in ("failed", "done", "parked")
    ]

    html = act(editor, url("edit-runs"), runs, action="retry")

    assert "2 runs queued again. 1 skipped. Only failed, parked and cancelled runs" in html
    assert [Run.objects.get(pk=run.pk).status for run in runs] == ["queued", "done", "queued"]
    assert "2 runs cancelled." in act(
        editor, url("edit-runs") + "?state=live", all="1", expected="2", action="cancel"
    )


@pytest.mark.parametrize(
    "name", ["edit-sessions", "edit-runs", "decide-changes", "documents:edit-history", "knowledge:edit-knowledge"]
)
def test_an_empty_or_too_large_selection_is_refused(workspace, editor, name, monkeypatch):
    assert 'data-level="problem"' in act(editor, url(name), action="archive")
    monkeypatch.setattr("memoryhub.lib.bulk_selection.MAX_BOXES", 1)
    action = ACTION_OF.get(name, "archive")
    assert "at most 1 rows" in act(editor, url(name), action=action, kept="1,2")
    assert not Run.objects.exists()


def test_lists_offer_actions_only_to_editors(workspace, editor, viewer_client, sessions):
    keep(workspace, "How deep?", "small", "Two metres", now=NOW)

    for name in ("sessions:list", "knowledge:cached-responses"):
        assert "choosing-actions" in editor.get(url(name)).content.decode()
        assert 'name="row"' not in viewer_client.get(url(name)).content.decode()


def test_commands_archive_several_sessions_and_curate_facts(workspace, sessions, document, command):
    done = command("session", "archive", "atlas", "cli:one", "cli:two")

    assert done["run"]["changed"] == 2
    assert [row["key"] for row in command("session", "list", "atlas")["sessions"]] == ["telegram:three"]
    assert len(command("session", "list", "atlas", "--archived")["sessions"]) == 2
    command("session", "unarchive", "atlas", "cli:one")
    assert command("session", "archive", "atlas", "nowhere", status=1)["error"]["code"] == "not_found"
    facts = command("facts", "list", "atlas")["facts"]
    assert command("facts", "pin", "atlas", str(facts[0]["id"]))["run"]["changed"] == 1
    removed = command("facts", "withdraw", "atlas", str(facts[0]["id"]))
    assert removed == {"changed": 1, "revision": 2}
    assert command("facts", "undo", "atlas", "2") == {"revision": 3}
    place = log(workspace, "happened").position
    assert command("history", "archive", "atlas", str(place))["run"]["changed"] == 1
    assert command("history", "list", "atlas")["entries"][0]["archived"]

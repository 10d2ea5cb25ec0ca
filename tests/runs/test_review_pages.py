import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry, MemoryDocument
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import AuditRecord, Entry, Run, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, head, open_at, talk, url
from tests.runs.consolidations import memory

pytestmark = pytest.mark.django_db
WORDS = "one two three four five six seven eight nine ten"
FACTS = [f"fact {word} of the team" for word in WORDS.split()]


def take(workspace, *facts: str) -> None:
    record = DocumentRecord("MEMORY.md", memory(*facts))
    import_document(workspace=workspace, record=record, path="MEMORY.md", now=NOW, dry_run=False)


@pytest.fixture
def change(workspace) -> HeldChange:
    take(workspace, *FACTS)
    take(workspace, *FACTS[2:5], *FACTS[8:])
    return HeldChange.objects.get()


def test_the_list_of_held_changes_is_in_the_inbox(change, viewer_client):
    answer = viewer_client.get(url("review"))

    assert answer["Location"] == "/w/atlas/inbox/?kind=change"
    page = viewer_client.get(url("inbox"), {"kind": "conflict"}).content.decode()
    assert f'href="/w/atlas/inbox/?kind=conflict&amp;item=change-{change.pk}"' in page
    assert '1<span class="visually-hidden"> waiting</span>' in page


def test_parts_of_a_change_are_accepted(change, editor):
    shown = editor.get(url("held-change", change.pk))
    assert "Part 1 of 2" in shown.content.decode()

    decisions = {"decisions": "1", "decision-0": "accept", "decision-1": "reject"}
    answer = editor.post(url("approve-held-change", change.pk), decisions, follow=True)

    assert "1 of 2 changes accepted into MEMORY.md" in answer.content.decode()
    assert head() == memory(*FACTS[2:])
    for page in (url("decided-changes"), url("held-change", change.pk)):
        assert "1 of 2 parts accepted" in editor.get(page).content.decode()
    editor.post(f"{url('undo-decisions')}?change={change.pk}")
    change.refresh_from_db()
    assert change.decision == "Pending"


def test_long_texts_are_shown_when_asked_for(change, editor, monkeypatch):
    shown = editor.get(url("held-change", change.pk)).content.decode()
    assert "The agent&#x27;s text</summary>" in shown
    assert "Show the full texts" not in shown

    monkeypatch.setattr("memoryhub.runs.views.review.SHOWN_TEXTS", 100)
    page = url("held-change", change.pk)
    short = editor.get(page).content.decode()
    assert "The agent&#x27;s text</summary>" not in short
    assert f'href="{page}?texts=1#texts"' in short
    assert "The agent&#x27;s text</summary>" in editor.get(page, {"texts": "1"}).content.decode()
    part = editor.get(page, {"texts": "1"}, headers={"HX-Request": "true"}).content.decode()
    assert part.startswith('<div id="texts"><details')
    assert "<textarea" not in part


def test_showing_the_whole_texts_reveals_nothing_more(workspace, editor, monkeypatch):
    monkeypatch.setattr("memoryhub.runs.views.review.SHOWN_TEXTS", 100)
    secret = "key sk-ant-api03-" + "aB3dE5fG7h" * 9
    take(workspace, *FACTS)
    take(workspace, secret, *FACTS[2:5], *FACTS[8:])
    page = url("held-change", HeldChange.objects.get().pk)

    assert secret in editor.get(page).content.decode()
    part = editor.get(page, {"texts": "1"}, headers={"HX-Request": "true"}).content.decode()

    assert secret not in part
    assert AuditRecord.objects.filter(action="document.revealed").count() == 1
    editor.get(page, {"texts": "1"})
    assert AuditRecord.objects.filter(action="document.revealed").count() == 2


def test_accepting_no_part_asks_for_a_selection(change, editor):
    editor.post(url("approve-held-change", change.pk), {"decisions": "1"})

    change.refresh_from_db()
    assert change.status == "pending"


def test_change_is_edited_before_it_is_accepted(change, editor):
    editor.post(url("approve-held-change", change.pk), {"text": memory(*FACTS[2:], "by hand")})

    assert "by hand" in head()


def test_a_change_is_rejected_with_a_reason(change, editor):
    editor.post(url("reject-held-change", change.pk), {"reason": "they matter"})

    change.refresh_from_db()
    assert (change.status, change.decision_reason, head()) == ("rejected", "they matter", memory(*FACTS))
    again = editor.post(url("reject-held-change", change.pk), follow=True)
    assert "decided already" in again.content.decode()


def test_an_empty_inbox_says_so(workspace, viewer_client):
    assert "Inbox zero" in viewer_client.get(url("inbox")).content.decode()
    assert "No decisions yet" in viewer_client.get(url("decided-changes")).content.decode()


def test_consolidation_is_requested_from_a_session_page(workspace, editor):
    session = open_at(workspace)

    response = editor.post(url("consolidate-session", session.pk), {"archive_all": "1"})

    run = Run.objects.get()
    assert (run.kind, run.options) == ("consolidation", {"archive_all": True})
    assert response["Location"] == url("run", run.pk)
    assert editor.get(url("run", run.pk)).status_code == 200


def test_selected_duplicate_lines_are_removed(workspace, editor):
    take(workspace, *FACTS, "fact one of the team!", "the pool limit is 4", "the pool limit is 5")
    document = MemoryDocument.objects.get()
    address = reverse("documents:compact", args=["atlas", document.pk])
    page = editor.get(address, {"threshold": "1"}).content.decode()
    assert "fact one of the team!" in page
    assert "the numbers or a negation differ" in page
    gone = Fact.objects.get(text="fact one of the team!")

    stale = editor.post(address, {"base": "9", "line": [gone.line]}, follow=True)
    assert "has changed. Review" in stale.content.decode()
    editor.post(address, {"base": "1", "line": [gone.line]})

    assert "team!" not in head()
    assert Fact.objects.get(pk=gone.pk).died is not None


def test_note_is_appended_to_the_history(workspace, editor, viewer_client):
    assert viewer_client.post(url("documents:note-history"), {"text": "x"}).status_code == 404

    editor.post(url("documents:note-history"), {"text": "We moved to Porto."})

    entry = HistoryEntry.objects.get()
    assert (entry.content, entry.position, entry.source) == ("We moved to Porto.", 0, "")
    assert "We moved to Porto." in viewer_client.get(url("documents:history")).content.decode()


def test_session_links_to_its_facts(workspace, viewer_client):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": "tea is at four"}])
    take(workspace, *FACTS)
    FactSource.objects.create(fact=Fact.objects.first(), entry=Entry.objects.get())

    page = viewer_client.get(url("documents:learnt", session.pk)).content.decode()

    assert "fact one of the team" in page
    assert url("sessions:entry", Entry.objects.get().pk) in page
    assert (
        "Nothing learned yet"
        in viewer_client.get(url("documents:learnt", open_at(workspace, "cli:b").pk)).content.decode()
    )


@pytest.mark.parametrize(
    ("day", "number"), [("2026-04-01", 1), ("2030-01-01", 2), ("2020-01-01", 2), ("2026-02-31", 2)]
)
def test_document_is_shown_as_of_a_date(workspace, viewer_client, day, number):
    take(workspace, *FACTS)
    document = MemoryDocument.objects.select_related("head").get()
    revise_document(document, "later\n", base=document.head, by=By(PERSON, timezone.now()), reason="x")

    page = viewer_client.get(url("documents:document", document.pk), {"as_of": day})

    assert page.context["shown"].number == number


def test_due_sessions_are_consolidated(workspace, editor, viewer_client):
    Workspace.objects.update(memory_window=4)
    talk(open_at(workspace), 2)
    open_at(workspace, "cli:empty")
    assert viewer_client.post(url("consolidate-due")).status_code == 404

    editor.post(url("consolidate-due"))

    assert [run.session.key for run in Run.objects.select_related("session")] == ["cli:main"]


def test_history_is_filtered_by_session(workspace, viewer_client):
    one, other = open_at(workspace, "cli:one"), open_at(workspace, "cli:other")
    for session in (one, other):
        add_note(workspace, f"of {session.key}", by=By(PERSON, NOW), session_key=session.key)

    page = viewer_client.get(url("documents:history"), {"session": one.pk}).content.decode()

    assert "of cli:one" in page
    assert "of cli:other" not in page

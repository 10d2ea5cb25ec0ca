"""Parts of a held change whose lines have changed in the document since."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.revisions import revise_document
from knowledge_app.services.documents.undone_decisions import undo_decision
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs.review import decide_parts
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, recorded_supersessions
from tests.inbox.test_inbox import ORDER, TEXT, decide, head, propose
from tests.runs.consolidations import FACTS, answer, consolidate, memory, saved, write_as_person

pytestmark = pytest.mark.django_db
PROPOSED = TEXT.replace("tea at four", "tea at half past four").replace("Ana leads", "Ana leads Bo")
EDITED = TEXT.replace("tea at four", "tea at noon")


@pytest.fixture
def change(workspace) -> HeldChange:
    """Return a change of two parts. A person has edited the line of the first one since."""
    found = propose(workspace, PROPOSED)
    edit(EDITED)
    return found


def edit(text: str) -> None:
    document = MemoryDocument.objects.select_related("head").get(name="MEMORY.md")
    revise_document(document, text, base=document.head, reason="by hand", by=By(PERSON, timezone.now()))


def submit(client, change: HeldChange, **values: str):
    url = reverse("approve-held-change", args=["atlas", change.pk])
    return client.post(url, {"decisions": "1"} | values, follow=True)


def text_of(answer) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", answer.content.decode()))


def test_a_stale_part_is_shown_again_and_the_others_are_applied(change, editor):
    shown = editor.get(reverse("held-change", args=["atlas", change.pk]))
    assert [part.decision for part in shown.context["parts"]] == ["wait", "accept"]
    assert "Someone has changed these lines of MEMORY.md since." in text_of(shown)

    after = submit(editor, change, **{"decision-0": "accept", "decision-1": "accept"})

    rest = HeldChange.objects.get(status="pending")
    [part] = after.context["parts"]
    assert head() == EDITED.replace("Ana leads", "Ana leads Bo")
    assert after.request["PATH_INFO"] == reverse("held-change", args=["atlas", rest.pk])
    assert "1 of 2 changes accepted into MEMORY.md." in text_of(after)
    assert "1 part wasn't applied" in text_of(after)
    assert [line.line.text for line in part.lines if line.line.mark != "same"] == [
        "- tea at noon",
        "- tea at half past four",
    ]
    submit(editor, rest, all="accept")
    assert head() == PROPOSED
    assert not check_memory().broken


def test_a_change_of_stale_parts_only_is_replaced(change, editor):
    after = submit(editor, change, **{"decision-0": "accept"})

    change.refresh_from_db()
    rest = HeldChange.objects.get(status="pending")
    assert (change.status, head()) == ("superseded", EDITED)
    assert recorded_supersessions() == [change.pk]
    assert rest.proposed == PROPOSED
    assert "1 part still waits." in text_of(after)
    assert "Undo" not in text_of(after)
    again = submit(editor, change, **{"decision-0": "accept"})
    assert "decided already" in text_of(again)


def test_rejected_parts_are_not_in_what_is_shown_again(change, editor):
    submit(editor, change, **{"decision-0": "accept", "decision-1": "reject"})

    change.refresh_from_db()
    rest = HeldChange.objects.get(status="pending")
    assert (change.decision, head()) == ("1 of 2 parts rejected", EDITED)
    assert rest.proposed == TEXT.replace("tea at four", "tea at half past four")
    undo_decision(change, by=By(PERSON, timezone.now()))
    assert [one.pk for one in HeldChange.objects.filter(status="pending")] == [change.pk]


def test_accepting_all_applies_what_fits(change, editor):
    submit(editor, change, all="accept")

    assert head() == EDITED.replace("Ana leads", "Ana leads Bo")
    assert HeldChange.objects.get(status="pending").reason == "tidied up"


def test_the_inbox_shows_the_stale_part_next(change, editor):
    other = propose(change.workspace, EDITED + "- one\n")

    values = {"decisions": "1", "decision-0": "accept", "decision-1": "accept"}
    after = decide(editor, f"change-{change.pk}", "parts", back=f"/w/atlas/inbox/?item=change-{other.pk}", **values)

    rest = HeldChange.objects.exclude(pk=other.pk).get(status="pending")
    assert after.context["selected"].key == f"change-{rest.pk}"
    assert "1 part wasn't applied" in text_of(after)


def test_a_form_that_is_refused_keeps_its_choices(change, editor):
    HeldChange.objects.update(proposed=PROPOSED + f"- {ORDER}\n")
    values = {"decision-0": "reject", "reason": "my comment", "text": TEXT.replace("four", "five") + "- mine\n"}

    answer = submit(editor, change, **values)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert answer.context["parts"][0].decision == "reject"
    assert "- mine</textarea>" in page.replace("\n</textarea>", "</textarea>")
    assert 'value="my comment"' in page
    assert head() == EDITED


def test_a_stale_part_of_the_agents_file_waits_with_both_texts(workspace, editor):
    take(workspace, *FACTS)
    take(workspace, *FACTS[:3], "tea at four", *FACTS[9:])
    change = HeldChange.objects.get()
    edit(memory(*FACTS).replace(FACTS[5], "coffee at six"))

    shown = editor.get(reverse("held-change", args=["atlas", change.pk])).content.decode()
    submit(editor, change, all="accept")

    rest = HeldChange.objects.get(status="pending")
    assert "coffee at six" in head()
    assert rest.proposed == memory(*FACTS[:3], "tea at four", *FACTS[9:])
    assert "The hub&#x27;s text" in shown
    assert "The agent&#x27;s text" in shown
    submit(editor, rest, all="accept")
    assert head() == memory(*FACTS[:3], "tea at four", *FACTS[9:])
    assert not check_memory().broken


def take(workspace, *facts: str) -> None:
    record = DocumentRecord("MEMORY.md", memory(*facts))
    import_document(workspace=workspace, record=record, path="MEMORY.md", now=NOW, dry_run=False)


def test_a_held_consolidation_waits_with_its_stale_part(session, httpserver):
    answer(httpserver, saved(memory("fact one reworded", *FACTS[1:])))
    run = consolidate(session, hold=True)
    write_as_person(memory("fact one by hand", *FACTS[1:]))
    change = HeldChange.objects.get()

    decided = decide_parts(change, accepted=[0], rejected=[], by=By(PERSON, timezone.now()))

    run.refresh_from_db()
    assert (run.status, decided.stale, decided.rest.run) == ("held", 1, run)
    decide_parts(decided.rest, accepted=[0], rejected=[], by=By(PERSON, timezone.now()))
    run.refresh_from_db()
    assert (run.status, head()) == ("done", memory("fact one reworded", *FACTS[1:]))
    assert not check_memory().broken

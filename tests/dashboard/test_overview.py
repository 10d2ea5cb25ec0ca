"""The overview: what the agent remembers, what changed later the last visit, and figures."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.editing import save_text, start_document
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document
from memoryhub.dashboard.recent_changes import last_visit, latest_changes
from memoryhub.dashboard.revised_texts import reworded
from memoryhub.models import AccessRecord
from memoryhub.runs.review import approve
from sessions_app.models import Run
from sessions_app.services.audit import By, record
from sessions_app.services.runs import WORKER
from tests.hub import AGENT, NOW, PERSON
from tests.memory.test_memory_list import SECRET, import_text

pytestmark = pytest.mark.django_db


def visit(workspace, minutes: int, name: str = "vera") -> None:
    AccessRecord.objects.create(
        workspace=workspace,
        actor_kind="person",
        actor_name=name,
        via="page",
        action="memory.read",
        row_count=1,
        at=NOW - timedelta(minutes=minutes),
    )


def test_memory_comes_before_changes_decisions_and_statistics(workspace, viewer_client):
    import_text(workspace, f"# Team\n- Ana leads\n- The key is {SECRET}\n")
    assert not HeldChange.objects.exists()

    html = viewer_client.get("/w/atlas/").content.decode()

    places = [html.index(f'id="{name}"') for name in ("remembers", "lately", "needs-you", "health")]
    assert places == sorted(places)
    assert "<li>Ana leads</li>" in html
    assert reverse("memory", args=["atlas"]) + "?kind=memory" in html
    assert SECRET not in html


def test_what_needs_attention_comes_first(workspace, editor):
    import_text(workspace, "# Team\n- Ana leads\n")
    propose_text(
        open_document(workspace, "MEMORY.md"), "- Ben leads\n", base_number=None, by=By(AGENT, NOW), reason=""
    )

    html = editor.get("/w/atlas/").content.decode()

    places = [html.index(f'id="{name}"') for name in ("needs-you", "remembers", "lately", "health")]
    assert places == sorted(places)
    assert html.count('id="needs-you"') == 1
    assert "rows needs one-line" in html


def test_changes_of_documents_are_told_with_their_words(workspace):
    document = start_document(workspace, "MEMORY.md")
    lines = ["- Ana leads", "- Staging is read-only until 09:00 on Mondays", f"- The key is {SECRET}"]
    save_text(document, "\n".join(lines[:2]), base_number=0, by=By(PERSON, NOW), reason="")
    lines[1] = lines[1].replace("09:00", "08:00")
    save_text(document, "\n".join(lines), base_number=1, by=By(PERSON, NOW), reason="")
    save_text(document, "\n".join(lines[1:]), base_number=2, by=By(PERSON, NOW), reason="")
    save_text(document, "\n".join(lines[1:2]), base_number=3, by=By(PERSON, NOW), reason="")
    save_text(document, "- Staging is open", base_number=4, by=By(PERSON, NOW), reason="")
    change = propose_text(document, "- Staging is open\n- Be polite", base_number=None, by=By(AGENT, NOW), reason="")
    approve(change, by=By(PERSON, NOW))

    changes, _ = latest_changes(workspace, reader="olga")

    told = [(change.text, change.actor) for change in changes if change.record.action == "document.revised"]
    assert told == [
        ("Added to MEMORY.md: Be polite", "Proposed by atlas, accepted by you"),
        ("MEMORY.md: Staging is read-only until 08:00 on Mondays → open", "you"),
        ("Removed from MEMORY.md: The key is •••", "you"),
        ("Removed from MEMORY.md: Ana leads", "you"),
        ("MEMORY.md: 2 lines added, 1 removed", "you"),
        ("Added to MEMORY.md: Ana leads, and 1 more line", "you"),
    ]
    assert "change.approved" not in [change.record.action for change in changes]


def test_two_wordings_have_their_common_words_once():
    assert (
        reworded("Staging opens at 09:00 daily", "Staging opens at 08:00 daily")
        == "Staging opens at 09:00 → 08:00 daily"
    )
    assert reworded("Ana leads", "Ana leads the team") == "Ana leads → Ana leads the team"


def test_an_empty_workspace_offers_to_connect_an_agent(workspace, viewer_client):
    html = viewer_client.get("/w/atlas/").content.decode()

    assert "What the agent learns appears here" in html
    assert 'id="health"' not in html
    assert 'id="growth"' not in html


def test_the_last_visit_ends_before_a_break(workspace):
    assert last_visit(workspace, "vera", now=NOW) is None
    visit(workspace, 300)
    visit(workspace, 290)
    visit(workspace, 20)
    visit(workspace, 5)
    visit(workspace, 60, name="olga")

    assert last_visit(workspace, "vera", now=NOW) == NOW - timedelta(minutes=290)
    assert last_visit(workspace, "vera", now=NOW + timedelta(hours=2)) == NOW - timedelta(minutes=5)


def test_a_run_is_one_change(workspace):
    scan = Run.objects.create(workspace=workspace, kind=Run.Kind.SCAN)
    for by, action, status in [
        (PERSON, "run.requested", "queued"),
        (WORKER, "run.started", "running"),
        (WORKER, "run.finished", "done"),
    ]:
        text = f"Scan {scan.pk} {action}"
        record(
            By(by, NOW), action, "run", scan.pk, text, workspace=workspace, detail={"kind": "scan", "status": status}
        )

    changes, has_more = latest_changes(workspace)

    assert [(change.text, change.actor, change.run) for change in changes] == [
        ("Scan finished", "background job", str(scan.pk))
    ]
    assert not has_more
    assert latest_changes(workspace, since=NOW) == ([], False)


def test_changes_are_those_since_the_last_visit(workspace, viewer_client, time_machine):
    visit(workspace, 60)
    record(By(PERSON, NOW - timedelta(hours=2)), "term.related", "term", 1, "An old change", workspace=workspace)
    record(By(PERSON, NOW - timedelta(minutes=50)), "term.related", "term", 1, "A new change", workspace=workspace)
    time_machine.move_to(NOW)

    html = viewer_client.get("/w/atlas/").content.decode()

    assert "Changed since your last visit" in html
    assert "A new change" in html
    assert "An old change" not in html

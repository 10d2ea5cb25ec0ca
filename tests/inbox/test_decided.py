from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import Concern, HeldRow, KnowledgeEntry
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.proposed_edits import propose_edit
from memoryhub.models import Job
from sessions_app.models import ImportReport, Membership, Run, Workspace
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW
from tests.hygiene.test_scanning import TOKEN, knowledge, scan
from tests.inbox.test_attention import end_job, imported, stop
from tests.inbox.test_inbox import ORDER, TEXT, decide, head, propose

pytestmark = pytest.mark.django_db
DECIDED = "/w/atlas/review/decided/"
HUB = "/inbox/decided/"


def flagged(workspace, text: str = ORDER) -> HeldRow:
    entry = add_knowledge(workspace, text, category="learned_fact", by=By(AGENT, NOW)).entry
    return HeldRow.objects.get(knowledge=entry)


def decided(client, **query: str):
    return client.get(DECIDED, query).context["decisions"]


def undo(client, one) -> str:
    return client.post(one.undo, {"next": DECIDED}, follow=True).content.decode()


def test_changes_say_who_decided_what_and_can_be_undone(workspace, editor):
    change = propose(workspace, TEXT + "- one more\n")
    decide(editor, f"change-{change.pk}", "parts", all="accept")

    [one] = decided(editor)
    assert (one.label, one.outcome, one.line) == ("Change", "Approved", ("+", "- one more"))
    assert (one.url, one.record.actor_name) == (f"/w/atlas/review/{change.pk}/", "edda")
    assert "Undone" in undo(editor, one)

    assert head() == TEXT
    [one] = decided(editor)
    assert (one.is_undone, one.undo) == (True, "")


def test_accepted_and_rejected_additions_are_listed_with_their_text(workspace, editor):
    accepted, rejected = flagged(workspace), flagged(workspace, f"{ORDER} Twice.")
    decide(editor, f"row-{accepted.pk}", "accept")
    decide(editor, f"row-{rejected.pk}", "reject")

    second, first = decided(editor)

    assert [(one.label, one.outcome) for one in (first, second)] == [
        ("Addition", "Accepted"),
        ("Addition", "Rejected"),
    ]
    assert (first.title, second.title) == (ORDER, f"{ORDER} Twice.")
    assert first.url == f"/w/atlas/knowledge/{accepted.knowledge_id}/"
    for one in (first, second):
        undo(editor, one)
    assert HeldRow.objects.waiting().count() == 2
    assert [one.is_undone for one in decided(editor)] == [True, True]


def test_withdrawing_a_row_that_nothing_flagged_is_no_decision(workspace, editor):
    entry = add_knowledge(workspace, "tea", category="learned_fact", by=By(AGENT, NOW)).entry
    editor.post("/w/atlas/knowledge/edit/", {"row": str(entry.pk), "action": "withdraw"})
    assert KnowledgeEntry.objects.get().withdrawn_at

    assert decided(editor) == []


def test_rejected_history_entries_are_listed_too(workspace, editor):
    for number in range(3):
        add_note(workspace, f"{ORDER} {number}", by=By(AGENT, NOW))
    first = HeldRow.objects.order_by("pk").first()
    decide(editor, f"row-{first.pk}", "reject")
    editor.post("/w/atlas/review/rows/remove/", {"up_to": "999"})

    assert [(one.title, one.undo) for one in decided(editor)] == [
        ("2 flagged history entries withdrawn", ""),
        (f"{ORDER} 0", ""),
    ]


def test_runs_that_waited_are_listed_with_who_let_them_go_on(workspace, editor):
    entry = add_knowledge(workspace, "the port is 80", category="learned_fact", by=By(AGENT, NOW)).entry
    reason = "it moved"
    values = {"content": "the port is 81"}
    proposed = [
        propose_edit(entry, "knowledge", "assign", values=one, fields=["content"], reason=reason, by=By(AGENT, NOW))
        for one in (values, values | {"category": "user_preference"})
    ]
    decide(editor, f"run-{proposed[0].pk}", "approve")
    decide(editor, f"run-{proposed[1].pk}", "cancel")
    decide(editor, f"run-{stop(workspace, 'parked', kind='scan').pk}", "dismiss")

    found = decided(editor)

    assert [(str(one.label), str(one.outcome)) for one in found] == [
        ("Run", "Dismissed"),
        ("Run", "Rejected"),
        ("Run", "Approved"),
    ]
    assert found[1].title == "the port is 81"
    assert [bool(one.undo) for one in found] == [False, False, True]


def test_findings_are_listed_with_the_text_that_they_are_about(workspace, editor):
    knowledge(workspace, TOKEN)
    scan(workspace)
    concern = Concern.objects.get(kind="secret")
    decide(editor, f"finding-{concern.pk}", "dismiss")

    [one] = decided(editor)

    assert (one.label, one.outcome) == ("Finding", "Dismissed")
    assert TOKEN not in str(one)
    assert one.url == f"/w/atlas/runs/{Run.objects.get(kind='edit').pk}/"
    undo(editor, one)
    concern.refresh_from_db()
    assert concern.status == "open"
    assert [one.is_undone for one in decided(editor)] == [True]


def test_dismissed_imports_and_jobs_can_be_restored_by_those_who_may(workspace, editor, admin_client):
    report, job = imported(workspace, status="failed"), end_job(workspace, "failed")
    decide(admin_client, f"import-{report.pk}", "dismiss")
    decide(admin_client, f"job-{job.pk}", "dismiss")

    assert [bool(one.undo) for one in decided(editor)] == [True, False]
    for one in decided(admin_client):
        undo(admin_client, one)
    assert (ImportReport.objects.get().dismissed_at, Job.objects.get().dismissed_at) == (None, None)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_list_is_filtered_and_paged(workspace, editor, viewer_client):
    for number in range(30):
        decide(editor, f"row-{flagged(workspace, f'{ORDER} {number}').pk}", "reject")
    change = propose(workspace, TEXT + "- one more\n")
    decide(editor, f"change-{change.pk}", "parts", all="reject")

    first = decided(viewer_client)
    assert (len(first), first[0].label, any(one.undo for one in first)) == (25, "Change", False)
    page = viewer_client.get(DECIDED).content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', page)
    assert len(viewer_client.get(DECIDED + older[1]).context["decisions"]) == 6
    assert [one.label for one in decided(viewer_client, kind="change")] == ["Change"]
    assert decided(viewer_client, kind="finding") == []
    assert decided(viewer_client, who="nobody") == []
    assert decided(viewer_client, until="2020-01-01") == []
    assert "No matches" in viewer_client.get(DECIDED, {"who": "nobody"}).content.decode()


def test_the_hub_lists_the_decisions_of_the_readers_workspaces_only(workspace, editor, admin_client):
    other = Workspace.objects.create(slug="nova", name="Nova")
    mine = flagged(workspace)
    theirs = add_knowledge(other, f"{ORDER} In Nova.", category="learned_fact", by=By(AGENT, NOW)).entry
    decide(editor, f"row-{mine.pk}", "reject")
    decide(admin_client, f"row-{HeldRow.objects.get(knowledge=theirs).pk}", "accept")
    decide(admin_client, f"import-{imported(None, status='failed').pk}", "dismiss")

    [one] = editor.get(HUB).context["decisions"]
    assert (one.title, bool(one.undo)) == (ORDER, True)
    page = editor.get(HUB, {"who": "admin"}).content.decode()
    assert ("In Nova" in page, "Nova" in page, "No matches" in page) == (False, False, True)

    found = admin_client.get(HUB).context["decisions"]
    assert [(str(one.label), getattr(one.record.workspace, "name", "")) for one in found] == [
        ("Import", ""),
        ("Addition", "Nova"),
        ("Addition", "Atlas"),
    ]
    assert all(one.undo for one in found)
    assert found[1].url == f"/w/nova/knowledge/{theirs.pk}/"
    assert '<a href="/w/nova/"><bdi>Nova</bdi></a>' in admin_client.get(HUB).content.decode()
    for one in found:
        undo(admin_client, one)
    assert HeldRow.objects.waiting().count() == 2
    assert ImportReport.objects.get().dismissed_at is None


def test_the_hub_offers_undo_by_the_role_in_each_workspace(workspace, viewer, viewer_client, editor, admin_client):
    other = Workspace.objects.create(slug="nova", name="Nova")
    Membership.objects.create(workspace=other, user=viewer, role=Membership.Role.EDITOR)
    for one in (workspace, other):
        entry = add_knowledge(one, ORDER, category="learned_fact", by=By(AGENT, NOW)).entry
        decide(admin_client, f"row-{HeldRow.objects.get(knowledge=entry).pk}", "accept")

    found = viewer_client.get(HUB).context["decisions"]

    assert [(one.record.workspace.slug, bool(one.undo)) for one in found] == [("nova", True), ("atlas", False)]
    assert editor.get(HUB).context["decisions"][0].record.workspace == workspace


def test_somebody_without_a_workspace_sees_no_decisions(workspace, editor, client):
    decide(editor, f"row-{flagged(workspace).pk}", "reject")
    client.force_login(User.objects.create_user("nemo"))

    assert client.get(HUB).context["decisions"] == []


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("address", [DECIDED, HUB])
def test_a_page_of_decisions_takes_few_queries(workspace, editor, address):
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            editor.get(address)
        return len(queries)

    decide(editor, f"row-{flagged(workspace).pk}", "reject")
    few = count()
    for number in range(8):
        decide(editor, f"row-{flagged(workspace, f'{ORDER} {number}').pk}", "reject")
    assert count() == few


def test_a_link_to_an_item_that_was_decided_says_so(workspace, editor):
    first, second = propose(workspace, TEXT + "- one\n"), propose(workspace, TEXT + "- two\n")
    decide(editor, f"change-{first.pk}", "parts", all="reject")
    gone = "This item is no longer in the inbox."

    assert gone in editor.get(f"/w/atlas/inbox/?item=change-{first.pk}").content.decode()
    assert gone not in editor.get(f"/w/atlas/inbox/?item=change-{second.pk}").content.decode()
    assert gone not in editor.get("/w/atlas/inbox/").content.decode()

"""Polling for changes of an open page."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.revisions import revise_document
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.audit.changes import EVERYTHING, changed_kinds, read_changes
from sessions_app.models import AuditRecord, Session, Workspace
from sessions_app.services.audit import By, record
from tests.hub import AGENT, NOW, add, open_at, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace: Workspace) -> Session:
    session = open_at(workspace)
    talk(session, 1)
    session.refresh_from_db()
    return session


def newest() -> int:
    return AuditRecord.objects.latest("id").pk


def ask(client: Client, name: str = "changes", *args: str, **query: object) -> dict[str, dict[str, object]]:
    """Return the events of a response by name."""
    response = client.get(reverse(name, args=args or (() if name == "hub-changes" else ("atlas",))), query)
    assert (response.status_code, response.content) == (204, b"")
    return json.loads(response.headers.get("HX-Trigger", "{}"))


def test_without_changes_there_are_no_events(session, viewer_client):
    first = ask(viewer_client, after=newest())["memory-changed"]

    assert (first["after"], first["kinds"]) == (newest(), [])
    assert ask(viewer_client, after=first["after"], seen=first["seen"]) == {}


def test_a_new_entry_has_events_for_its_kind_and_session(session, viewer_client):
    after = newest()
    talk(session, 1, first=5)

    events = ask(viewer_client, after=after)

    assert {"changed-entries", "changed-activity", f"changed-session-{session.pk}"} <= set(events)
    assert "changed-knowledge" not in events
    assert events["memory-changed"]["after"] == newest()
    assert events["memory-changed"]["sessions"] == [session.pk]


def test_new_knowledge_has_no_events_for_sessions(workspace, viewer_client):
    add_knowledge(
        workspace, category=KnowledgeEntry.Category.LEARNED_FACT, content="Tides", by=By(AGENT, timezone.now())
    )

    assert set(ask(viewer_client)) == {"memory-changed", "changed-knowledge", "changed-activity"}


def test_an_import_counts_as_a_change_of_everything(workspace, viewer_client):
    record(By(AGENT, NOW), "workspace.imported", "workspace", workspace.pk, "Imported", workspace=workspace)

    events = ask(viewer_client)

    assert set(events["memory-changed"]["kinds"]) == {*EVERYTHING, "activity"}
    assert "changed-any-session" in events


def test_an_unknown_action_counts_as_a_change_of_everything():
    assert changed_kinds(["tide.turned"]) == EVERYTHING
    assert changed_kinds(["key_value.revealed"]) == frozenset()


def test_a_transaction_that_commits_late_is_noticed(session):
    # PostgreSQL assigns ids before commit: a record may appear below one that was seen.
    records = AuditRecord.objects.filter(workspace=session.workspace)
    late, last = [one.pk for one in records.order_by("-id")[:2]][::-1]
    before = records.exclude(pk=late)
    seen = read_changes(before, after=last)
    assert seen is not None

    news = read_changes(records, after=last, seen=seen.seen)

    assert news is not None
    assert news.newest == last
    assert "activity" in news.kinds
    again = read_changes(records, after=last, seen=news.seen)
    assert again is not None
    assert not again.kinds


def test_polling_without_changes_runs_three_queries_and_no_writes(session, viewer_client, django_assert_num_queries):
    url, query = reverse("changes", args=["atlas"]), {"after": newest(), "seen": 256}
    viewer_client.get(url, query)

    with django_assert_num_queries(3) as asked:  # session, user, records
        response = viewer_client.get(url, query)

    assert all(one["sql"].startswith("SELECT") for one in asked.captured_queries)
    assert not response.cookies


def test_other_workspaces_are_404(session, stranger_client):
    for slug in ("atlas", "missing"):
        assert stranger_client.get(reverse("changes", args=[slug]), {"after": 0}).status_code == 404
    assert ask(stranger_client, "hub-changes", after=0) == {}
    assert stranger_client.get(reverse("sessions:arrivals", args=["atlas", session.pk])).status_code == 404


def test_hub_changes_cover_visible_workspaces(session, viewer_client):
    after = newest()
    hidden = open_at(Workspace.objects.create(slug="other", name="Other"))
    assert ask(viewer_client, "hub-changes", after=after, seen=256) == {}
    assert hidden.pk

    talk(session, 1, first=5)

    assert "changed-activity" in ask(viewer_client, "hub-changes", after=after, seen=256)


def test_polling_ends_when_signed_out(workspace, client):
    assert client.get(reverse("changes", args=["atlas"])).status_code == 286


def test_a_page_polls_from_before_it_was_rendered(session, viewer_client):
    html = viewer_client.get(reverse("sessions:list", args=["atlas"])).content.decode()

    assert f'"after": {newest()}' in html
    assert "changed-sessions from:body" in html


def test_later_pages_of_a_list_do_not_poll(session, viewer_client):
    html = viewer_client.get(reverse("sessions:list", args=["atlas"]), {"after": "x"}).content.decode()

    assert "changed-entries from:body" not in html


def test_new_entries_are_appended(session, viewer_client):
    page = viewer_client.get(reverse("sessions:detail", args=["atlas", session.pk]))
    url = page.context["arrivals_url"]
    assert viewer_client.get(url).status_code == 204
    add(session, [{"role": "user", "content": "Is the heron back?"}])

    html = viewer_client.get(url).content.decode()

    assert html.count('class="turn"') == 1
    assert "Is the heron back?" in html
    assert f"from={session.next_position + 1}" in html
    assert 'id="session-numbers"' in html


def test_a_pending_tool_call_is_sent_again_with_its_result(session, viewer_client):
    call = {"id": "late", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    add(session, [{"role": "assistant", "content": "", "tool_calls": [call]}])
    page = viewer_client.get(reverse("sessions:detail", args=["atlas", session.pk]))
    add(session, [{"role": "tool", "tool_call_id": "late", "name": "shell", "content": "low tide"}])

    html = viewer_client.get(page.context["arrivals_url"]).content.decode()

    assert html.count('class="turn"') == 1
    assert "low tide" in html


def test_an_open_document_shows_that_it_has_a_later_revision(workspace, viewer_client):
    document = MemoryDocument.objects.create(workspace=workspace, name="MEMORY.md")
    first = revise_document(document, "- one\n", base=None, by=By(AGENT, NOW), reason="begun")
    url = reverse("documents:document-news", args=["atlas", document.pk])
    assert "revision" not in viewer_client.get(url, {"since": 1}).content.decode()
    revise_document(document, "- one\n- two\n", base=first, by=By(AGENT, NOW), reason="more")

    assert "MEMORY.md has revision 2 now" in viewer_client.get(url, {"since": 1}).content.decode()


def test_the_navigation_marks_the_current_page(session, viewer_client):
    page = "http://testserver" + reverse("sessions:detail", args=["atlas", session.pk])
    headers = {"HX-Request": "true", "HX-Current-URL": page}

    html = viewer_client.get(reverse("live-navigation", args=["atlas"]), headers=headers).content.decode()

    assert 'data-go="c" aria-current="page"' in html

"""What an open page asks while it stays open, and what it gets: cheap, and only of what the person may see."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.revisions import revise_document
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.audit.changes import EVERYTHING, kinds_of, read_news
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
    """Return the events of an answer by name."""
    response = client.get(reverse(name, args=args or (() if name == "hub-changes" else ("atlas",))), query)
    assert (response.status_code, response.content) == (204, b"")
    return json.loads(response.headers.get("HX-Trigger", "{}"))


def test_nothing_new_says_nothing_but_how_many_records_were_seen(session, viewer_client):
    first = ask(viewer_client, after=newest())["memory-changed"]

    assert (first["after"], first["kinds"]) == (newest(), [])
    assert ask(viewer_client, after=first["after"], seen=first["seen"]) == {}


def test_a_new_entry_names_its_kind_and_its_session(session, viewer_client):
    after = newest()
    talk(session, 1, first=5)

    events = ask(viewer_client, after=after)

    assert {"changed-entries", "changed-activity", f"changed-session-{session.pk}"} <= set(events)
    assert "changed-knowledge" not in events
    assert events["memory-changed"]["after"] == newest()
    assert events["memory-changed"]["sessions"] == [session.pk]


def test_knowledge_that_was_added_leaves_sessions_alone(workspace, viewer_client):
    add_knowledge(
        workspace, category=KnowledgeEntry.Category.LEARNED_FACT, content="Tides", by=By(AGENT, timezone.now())
    )

    assert set(ask(viewer_client)) == {"memory-changed", "changed-knowledge", "changed-activity"}


def test_an_import_may_have_changed_everything_and_any_session(workspace, viewer_client):
    record(By(AGENT, NOW), "workspace.imported", "workspace", workspace.pk, "Imported", workspace=workspace)

    events = ask(viewer_client)

    assert set(events["memory-changed"]["kinds"]) == {*EVERYTHING, "activity"}
    assert "changed-any-session" in events


def test_an_unknown_action_counts_as_any_change():
    assert kinds_of(["tide.turned"]) == EVERYTHING
    assert kinds_of(["key_value.revealed"]) == frozenset()


def test_a_transaction_that_ends_late_is_told_of(session):
    """PostgreSQL gives the number at the start: the record may appear below one that was seen."""
    told = AuditRecord.objects.filter(workspace=session.workspace)
    late, last = [one.pk for one in told.order_by("-id")[:2]][::-1]
    before = told.exclude(pk=late)
    seen = read_news(before, after=last)
    assert seen is not None

    news = read_news(told, after=last, seen=seen.seen)

    assert news is not None
    assert news.newest == last
    assert "activity" in news.kinds
    again = read_news(told, after=last, seen=news.seen)
    assert again is not None
    assert not again.kinds


def test_asking_while_nothing_is_new_costs_three_queries_and_writes_nothing(
    session, viewer_client, django_assert_num_queries
):
    url, query = reverse("changes", args=["atlas"]), {"after": newest(), "seen": 256}
    viewer_client.get(url, query)

    with django_assert_num_queries(3) as asked:  # the login session, the person, the records
        response = viewer_client.get(url, query)

    assert all(one["sql"].startswith("SELECT") for one in asked.captured_queries)
    assert not response.cookies


def test_a_foreign_workspace_is_not_found_like_a_missing_one(session, stranger_client):
    for slug in ("atlas", "missing"):
        assert stranger_client.get(reverse("changes", args=[slug]), {"after": 0}).status_code == 404
    assert ask(stranger_client, "hub-changes", after=0) == {}
    assert stranger_client.get(reverse("sessions:arrivals", args=["atlas", session.pk])).status_code == 404


def test_the_hub_tells_of_every_workspace_that_the_person_may_see(session, viewer_client):
    after = newest()
    hidden = open_at(Workspace.objects.create(slug="other", name="Other"))
    assert ask(viewer_client, "hub-changes", after=after, seen=256) == {}
    assert hidden.pk

    talk(session, 1, first=5)

    assert "changed-activity" in ask(viewer_client, "hub-changes", after=after, seen=256)


def test_signed_out_the_asking_ends(workspace, client):
    assert client.get(reverse("changes", args=["atlas"])).status_code == 286


def test_a_page_asks_from_before_it_was_read(session, viewer_client):
    html = viewer_client.get(reverse("sessions:list", args=["atlas"])).content.decode()

    assert f'"after": {newest()}' in html
    assert "changed-sessions from:body" in html


def test_a_later_page_of_a_list_never_changes_by_itself(session, viewer_client):
    html = viewer_client.get(reverse("sessions:list", args=["atlas"]), {"after": "x"}).content.decode()

    assert "changed-entries from:body" not in html


def test_new_turns_come_after_those_shown(session, viewer_client):
    page = viewer_client.get(reverse("sessions:detail", args=["atlas", session.pk]))
    url = page.context["arrivals_url"]
    assert viewer_client.get(url).status_code == 204
    add(session, [{"role": "user", "content": "Is the heron back?"}])

    html = viewer_client.get(url).content.decode()

    assert html.count('class="turn"') == 1
    assert "Is the heron back?" in html
    assert f"from={session.next_position + 1}" in html
    assert 'id="session-numbers"' in html


def test_a_call_that_waits_for_its_result_comes_again_with_it(session, viewer_client):
    call = {"id": "late", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    add(session, [{"role": "assistant", "content": "", "tool_calls": [call]}])
    page = viewer_client.get(reverse("sessions:detail", args=["atlas", session.pk]))
    add(session, [{"role": "tool", "tool_call_id": "late", "name": "shell", "content": "low tide"}])

    html = viewer_client.get(page.context["arrivals_url"]).content.decode()

    assert html.count('class="turn"') == 1
    assert "low tide" in html


def test_an_open_document_says_that_it_has_a_later_revision(workspace, viewer_client):
    document = MemoryDocument.objects.create(workspace=workspace, name="MEMORY.md")
    first = revise_document(document, "- one\n", base=None, by=By(AGENT, NOW), reason="begun")
    url = reverse("documents:document-news", args=["atlas", document.pk])
    assert "revision" not in viewer_client.get(url, {"since": 1}).content.decode()
    revise_document(document, "- one\n- two\n", base=first, by=By(AGENT, NOW), reason="more")

    assert "MEMORY.md has revision 2 now" in viewer_client.get(url, {"since": 1}).content.decode()


def test_the_navigation_knows_the_page_that_asks(session, viewer_client):
    page = "http://testserver" + reverse("sessions:detail", args=["atlas", session.pk])
    headers = {"HX-Request": "true", "HX-Current-URL": page}

    html = viewer_client.get(reverse("live-navigation", args=["atlas"]), headers=headers).content.decode()

    assert 'data-go="s" aria-current="page"' in html

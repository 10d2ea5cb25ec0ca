"""Tokens that read other workspaces too."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, KeyValue
from knowledge_app.services.documents.editing import find_or_start_document
from knowledge_app.services.documents.proposals import write_text
from memoryhub.agents.api_tokens import BadToken, Caller, authenticate, end_read_grant, issue_token, revoke_token
from memoryhub.agents.operations import corrections, knowledge, memory, queries
from memoryhub.lib.errors import NotFound
from memoryhub.models import AccessRecord, ReadGrant
from memoryhub.search import recall
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, raises_code
from tests.searches import know, observe, say

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
LINE = "The harbour closes at dusk"


@pytest.fixture
def team() -> Workspace:
    """A workspace that others read: one row of several kinds about the harbour, and one held for review."""
    team = Workspace.objects.create(slug="team", name="Team")
    say(team, "When does the harbour open?", key="cli:plan")
    know(team, "The harbour opens at dawn")
    observe(team, "The harbour floods in March")
    KeyValue.objects.create(workspace=team, key="harbour", value="Pier 4")
    document = find_or_start_document(team, "MEMORY.md")
    write_text(document, f"# Harbour\n\n- {LINE}\n", base_number=0, by=BY, reason="r")
    return team


def caller(workspace, *reads):
    name = "sharing" if reads else f"own {uuid4().hex}"
    _token, text = issue_token(workspace, name, ["read", "append", "edit"], by=BY, reads=reads)
    return authenticate(text, via="rest", now=NOW)


def found(agent, text="harbour") -> set[tuple[str, str]]:
    results = queries.search(agent, text, now=NOW)["results"]
    return {(one["workspace"], one["kind"]) for one in results}


def test_search_and_recall_include_the_workspaces_that_a_token_may_read(workspace, team):
    know(workspace, "Our boat is in the harbour")
    own, sharing = caller(workspace), caller(workspace, team)

    assert {place for place, _ in found(own)} == {"atlas"}
    assert {place for place, _ in found(sharing)} == {"atlas", "team"}
    assert ("team", "entry") in found(sharing)
    for rows in (
        knowledge.recall_together(sharing, "harbour", now=NOW)["results"],
        knowledge.recall_for(sharing, "harbour", now=NOW)["memories"],
        queries.recent(sharing, "7d", now=NOW),
    ):
        assert {one["workspace"] for one in rows} == {"atlas", "team"}


def test_a_token_without_grants_takes_no_query_for_them(workspace, team, django_assert_num_queries):
    own, sharing = caller(workspace), caller(workspace, team)

    with django_assert_num_queries(0):
        assert own.readable == [workspace]
    with django_assert_num_queries(1):
        assert sharing.readable == [workspace, team]


def test_recall_makes_each_text_once(workspace, monkeypatch):
    know(workspace, "The harbour opens at dawn")
    made = []
    monkeypatch.setattr(recall, "text_of", lambda kind, row: made.append(row.pk) or row.content)

    answer = knowledge.recall_for(caller(workspace), "harbour", now=NOW)

    assert [one["text"] for one in answer["memories"]] == ["The harbour opens at dawn"]
    assert len(made) == 1
    assert AccessRecord.objects.get().row_count == 1


def test_what_is_read_is_logged_where_it_is(workspace, team):
    sharing = caller(workspace, team)

    queries.search(sharing, "harbour", now=NOW)
    memory.read_document(sharing, "MEMORY.md", workspace="team", now=NOW)

    logged = AccessRecord.objects.values_list("workspace__slug", "action", "actor_name")
    assert set(logged) == {("team", "search.read", "sharing"), ("team", "document.read", "sharing")}


def test_documents_and_explanations_can_be_read(workspace, team):
    sharing = caller(workspace, team)
    fact = Fact.objects.get(workspace=team)

    assert LINE in memory.read_document(sharing, "MEMORY.md", workspace="team", now=NOW)["content"]
    assert [one["name"] for one in memory.list_documents(sharing, workspace="team")] == ["MEMORY.md"]
    assert memory.explain_fact(sharing, fact.pk, now=NOW)["fact"]["text"] == LINE
    for read in (memory.read_document, memory.list_documents):
        given = {"name": "MEMORY.md", "now": NOW} if read is memory.read_document else {}
        with raises_code("no_such_workspace"):
            read(caller(workspace), workspace="team", **given)


def test_nothing_there_can_be_changed(workspace, team):
    sharing = caller(workspace, team)
    fact, entry = Fact.objects.get(workspace=team), know(team, "The harbour is blue")
    records = AuditRecord.objects.filter(workspace=team).count()

    for change in (
        lambda: corrections.correct(sharing, "memory", fact.pk, "The harbour is shut", now=NOW),
        lambda: corrections.withdraw(sharing, "knowledge", entry.pk, now=NOW),
        lambda: knowledge.correct_knowledge(sharing, entry.pk, {"content": "red"}, now=NOW),
        lambda: memory.replace_line(sharing, "MEMORY.md", f"- {LINE}", "", now=NOW),
    ):
        with pytest.raises(NotFound):
            change()
    entry.refresh_from_db()
    assert entry.content == "The harbour is blue"
    assert AuditRecord.objects.filter(workspace=team).count() == records


def test_a_grant_ends_at_once(workspace, team):
    sharing = caller(workspace, team)
    grant = ReadGrant.objects.get()

    assert end_read_grant(grant, by=BY)
    assert not end_read_grant(grant, by=BY)
    assert found(Caller(sharing.token, "rest")) == set()
    assert AuditRecord.objects.filter(workspace=team, action="token.read_ended").count() == 1


@pytest.mark.parametrize("scopes", [["append"], ["read"]])
def test_only_tokens_that_read_may_read_other_workspaces(workspace, team, scopes):
    with pytest.raises(BadToken, match="other workspaces only"):
        issue_token(workspace, "x", scopes, by=BY, reads=[team if scopes == ["append"] else workspace])


def test_operators_share_the_workspaces_that_they_operate(workspace, team, client, django_user_model):
    user = django_user_model.objects.create_user("olga")
    hidden = Workspace.objects.create(slug="hidden", name="Hidden")
    for place, role in ((workspace, "operator"), (team, "operator"), (hidden, "editor")):
        Membership.objects.create(workspace=place, user=user, role=role)
    client.force_login(user)
    new, wish = reverse("new-token", args=["atlas"]), {"name": "pilot", "scopes": ["read"], "per_minute": "600"}

    assert "Hidden" not in client.get(new).content.decode().partition('<form class="form"')[2]
    assert client.post(new, wish | {"reads": ["hidden"]}).status_code == 422
    assert client.post(new, wish | {"reads": ["team"]}).status_code == 200
    grant = ReadGrant.objects.get(workspace=team)
    assert "Also reads <bdi>Team</bdi>" in client.get(reverse("agents", args=["atlas"])).content.decode()
    listed = reverse("agents", args=["team"])
    assert "Stop access" in client.get(listed).content.decode()

    page = client.post(reverse("end-reading", args=["team", grant.pk]), follow=True).content.decode()

    assert "pilot can no longer read this workspace." in page
    assert "Stop access" not in page


def test_readers_that_can_no_longer_read_are_not_listed(workspace, team, admin_client):
    caller(workspace, team)
    revoke_token(ReadGrant.objects.get().token, by=BY)

    assert "Stop access" not in admin_client.get(reverse("agents", args=["team"])).content.decode()

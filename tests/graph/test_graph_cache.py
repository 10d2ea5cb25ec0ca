"""The cached graph: current, never with forgotten text, and not in backups."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from knowledge_app.models import GraphLayout
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.graph import graph_cache
from memoryhub.graph.graph_cache import drop_stale_graphs, graph_of
from sessions_app.models import Membership, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, client_of, open_at

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


@pytest.fixture
def known(workspace: Workspace) -> Workspace:
    add_knowledge(workspace, "Maya wants badgers", category="learned_fact", by=BY)
    add_knowledge(workspace, "Ask Maya about herons", category="learned_fact", by=BY)
    add(open_at(workspace), [{"role": "user", "content": "badgers and herons"}])
    return workspace


def words(workspace: Workspace) -> set[str]:
    return {node.label for node in graph_of(workspace, NOW).nodes}


def stored() -> str:
    return "".join(json.dumps(cached.data) for cached in GraphLayout.objects.all())


def test_an_unchanged_memory_is_not_computed_again(known, monkeypatch):
    first = graph_of(known, NOW)
    monkeypatch.setattr(graph_cache, "build_graph", None)

    assert graph_of(known, NOW) == first


def test_a_change_of_the_memory_shows_at_once(known):
    assert "badgers" in words(known)
    entry = known.knowledge_entries.order_by("pk")[0]

    edit_rows(known, "knowledge", "assign", [entry.pk], values={"content": "Maya wants otters"}, by=BY)

    assert {"otters"} <= words(known)


def test_a_few_messages_are_added_later_and_many_at_once(known):
    session = Session.objects.get()
    graph_of(known, NOW)
    add(session, [{"role": "user", "content": "walrus walrus"}])
    assert "walrus" not in words(known)

    add(session, [{"role": "user", "content": text} for text in ["walrus"] * 4 + ["and so on"] * 20])

    assert "walrus" in words(known)


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_forgetting_deletes_the_cached_graph(known, kind):
    graph_of(known, NOW)
    assert "Maya" in stored()
    wish = ErasureRequest(kind, ("Maya",))

    apply_forget(known, wish, expected=plan_forget(known, wish).total, reason="", by=BY)

    assert stored() == ""
    assert "Maya" not in words(known)


def test_a_graph_from_before_a_change_is_never_stored(known, monkeypatch):
    build = graph_cache.build_graph

    def build_while_forgetting(*args, **options):
        wish = ErasureRequest("phrase", ("badgers",))
        apply_forget(known, wish, expected=plan_forget(known, wish).total, reason="", by=BY)
        return build(*args, **options)

    texts = list(graph_cache.memory_texts(known))
    monkeypatch.setattr(graph_cache, "memory_texts", lambda _workspace: texts)
    monkeypatch.setattr(graph_cache, "build_graph", build_while_forgetting)
    graph_of(known, NOW)

    assert stored() == ""


def test_stale_graphs_are_deleted_by_the_sweep_and_current_ones_stay(known):
    graph_of(known, NOW)
    drop_stale_graphs()
    assert stored() != ""
    add_knowledge(known, "Lions roar", category="learned_fact", by=BY)

    drop_stale_graphs()

    assert stored() == ""


def test_without_javascript_the_page_names_its_table(known, viewer_client):
    html = viewer_client.get("/w/atlas/graph/").content.decode()

    assert (
        '<noscript><p class="muted">The picture needs JavaScript. The table has all of its nodes.</p></noscript>'
        in html
    )


def test_the_page_lists_the_nodes_and_filters_them(known, viewer_client):
    page = viewer_client.get(reverse("graph", args=["atlas"]))
    found = viewer_client.get(reverse("graph", args=["atlas"]), {"q": "bad"}, headers={"HX-Request": "true"})

    assert "nodes" in page.content.decode()
    assert "badgers" in found.content.decode()
    assert "herons" not in found.content.decode()
    assert "<html" not in found.content.decode()


def test_an_empty_graph_names_the_next_step(workspace, viewer_client):
    page = viewer_client.get(reverse("graph", args=["atlas"])).content.decode()

    assert "Nothing to draw yet" in page
    assert reverse("connect", args=["atlas"]) in page


@pytest.mark.parametrize("name", ["graph-node", "graph-facts"])
def test_a_node_shows_what_mentions_it(known, viewer_client, name):
    found = viewer_client.get(reverse(name, args=["atlas"]), {"node": "person:maya"}).content.decode()

    assert "Maya wants badgers" in found
    assert viewer_client.get(reverse(name, args=["atlas"]), {"node": "person:nobody"}).status_code == 404


def test_each_kind_of_node_shows_its_rows(known):
    client = client_of(Membership.objects.create(workspace=known, user=_user(), role="viewer").user)

    for node in graph_of(known, NOW).nodes:
        found = client.get(reverse("graph-node", args=["atlas"]), {"node": node.key}, headers={"HX-Request": "true"})
        assert "data-row" in found.content.decode(), node


def _user():
    from django.contrib.auth.models import User

    return User.objects.create_user("vera")


def test_the_data_has_every_node_and_edge(known, viewer_client):
    graph = graph_of(known, NOW)

    data = viewer_client.get(reverse("graph-data", args=["atlas"])).json()

    assert [row[0] for row in data["nodes"]] == [node.key for node in graph.nodes]
    assert len(data["edges"]) == len(graph.edges)

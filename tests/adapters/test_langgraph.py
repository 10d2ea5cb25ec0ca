from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("langgraph", reason="see make adapters")

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from memoryhub.client.adapters.langgraph import HubStore

USER = ("users", "olga/7")


def test_nodes_read_and_write_the_store(hub):
    def node(state: MessagesState, *, store: BaseStore) -> dict:
        known = store.get(USER, "tabs")
        store.put(USER, "tabs", {"text": "prefers tabs"})
        return {"messages": [("ai", known.value["text"] if known else "noted")]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph = builder.compile(store=HubStore(hub))

    answers = [graph.invoke({"messages": [("human", "Hi")]})["messages"][-1].content for _ in range(2)]

    assert answers == ["noted", "prefers tabs"]
    assert list(hub.keys()) == ["langgraph/users/olga%2F7/tabs"]


def test_items_are_updated_and_deleted(hub):
    store = HubStore(hub)
    store.put(USER, "region", {"text": "eu-west-1"})
    first = store.get(USER, "region")
    store.put(USER, "region", {"text": "eu-west-2"})
    second = asyncio.run(store.aget(USER, "region"))

    assert (second.namespace, second.key, second.value) == (USER, "region", {"text": "eu-west-2"})
    assert second.created_at == first.created_at <= first.updated_at <= second.updated_at
    store.delete(USER, "region")
    assert store.get(USER, "region") is None
    assert store.search(USER) == store.list_namespaces() == []


@pytest.mark.parametrize("text", ["prefers spaces", "[]", '{"value": 1}'])
def test_a_value_that_is_not_an_item_is_replaced(hub, text):
    store = HubStore(hub)
    hub.write("langgraph/users/olga%2F7/tabs", text)

    assert store.get(USER, "tabs") is None
    assert store.search(USER) == []
    store.put(USER, "tabs", {"text": "prefers tabs"})
    assert store.get(USER, "tabs").value == {"text": "prefers tabs"}


def test_items_are_searched(hub):
    store = HubStore(hub)
    for key, text, age in (("a", "Deploys go to the north region", 1), ("b", "Olga likes tabs", 2), ("c", "Tea", 3)):
        store.put(USER, key, {"text": text, "age": age})
    store.put(("users", "other"), "d", {"text": "Tabs", "age": 2})

    assert [item.key for item in store.search(USER, limit=2)] == ["a", "b"]
    assert [item.key for item in store.search(USER, offset=2)] == ["c"]
    assert [item.key for item in store.search(("users",), filter={"age": 2})] == ["b", "d"]
    assert [item.key for item in store.search(USER, filter={"age": {"$gte": 2, "$lt": 3}})] == ["b"]
    [found] = store.search(USER, query="tabs")
    assert (found.key, found.value["age"], found.score is None) == ("b", 2, False)


def test_namespaces_are_listed(hub):
    store = HubStore(hub)
    for namespace in (USER, ("users", "vera", "work"), ("teams", "work")):
        store.put(namespace, "key", {"text": "x"})

    assert store.list_namespaces(prefix=("users",)) == [USER, ("users", "vera", "work")]
    assert store.list_namespaces(suffix=("work",)) == [("teams", "work"), ("users", "vera", "work")]
    assert store.list_namespaces(prefix=("*", "vera")) == [("users", "vera", "work")]
    assert store.list_namespaces(max_depth=1) == [("teams",), ("users",)]

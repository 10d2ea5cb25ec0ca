"""A LangGraph store whose items are key-values of the hub, which people can search and correct.

from memoryhub.client.adapters.langgraph import HubStore

graph = builder.compile(store=HubStore(hub))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp

from memoryhub.client.adapters.langgraph_filters import matches, passes
from memoryhub.client.errors import Conflict, NotFound
from memoryhub.client.hub import MemoryHub


class HubStore(BaseStore):
    """Keys are ``PREFIX/NAMESPACE/…/KEY``. A deleted item is an empty value. Needs the scopes read and edit."""

    def __init__(self, hub: MemoryHub, prefix: str = "langgraph") -> None:
        self._hub = hub
        self._prefix = prefix

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        return [self._result(op) for op in ops]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _result(self, op: Any) -> Any:
        if isinstance(op, GetOp):
            return self._read(self._key(op.namespace, op.key))
        if isinstance(op, PutOp):
            return self._write(self._key(op.namespace, op.key), op.value)
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _key(self, *parts: Any) -> str:
        names = [self._prefix, *(name for part in parts for name in ((part,) if isinstance(part, str) else part))]
        return "/".join(quote(name, safe="") for name in names)

    def _read(self, key: str) -> Item | None:
        try:
            text = self._hub.read(key)
        except (Conflict, NotFound):  # a value that waits for a person's review, or none
            return None
        *namespace, name = [unquote(name) for name in key.split("/")][1:]
        try:
            return Item(**json.loads(text), key=name, namespace=tuple(namespace)) if text else None
        except (TypeError, ValueError):  # a person made it another text
            return None

    def _write(self, key: str, value: Any) -> None:
        now, known = datetime.now(UTC), self._read(key)
        times = {"created_at": (known.created_at if known else now).isoformat(), "updated_at": now.isoformat()}
        if value is not None or known:
            self._hub.write(key, "" if value is None else json.dumps({"value": value} | times, ensure_ascii=False))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        items = {key: self._read(key) for key in self._hub.keys(self._key(op.namespace_prefix) + "/")}
        found = {key: item for key, item in items.items() if item and passes(item.value, op.filter or {})}
        scores: dict[str, float | None] = dict.fromkeys(found)
        if op.query:
            hits = self._hub.search(op.query, kinds=["key_value"], limit=200)["results"]
            scores = {key: hit["score"] for hit in hits if (key := hit["text"].partition(" = ")[0]) in found}
        page = list(scores.items())[op.offset : op.offset + op.limit]
        return [SearchItem(**found[key].dict(), score=score) for key, score in page]

    def _namespaces(self, op: Any) -> list[tuple[str, ...]]:
        keys = [key for key in self._hub.keys(self._prefix + "/") if self._read(key)]
        names = {tuple(unquote(name) for name in key.split("/")[1:-1]) for key in keys}
        names = {one for one in names if all(matches(condition, one) for condition in op.match_conditions or ())}
        return sorted({one[: op.max_depth] for one in names})[op.offset : op.offset + op.limit]

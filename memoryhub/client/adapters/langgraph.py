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
        names = [unquote(name) for name in key.split("/")][1:]
        return Item(**json.loads(text), key=names[-1], namespace=tuple(names[:-1])) if text else None

    def _write(self, key: str, value: Any) -> None:
        now, known = datetime.now(UTC), self._read(key)
        times = {"created_at": (known.created_at if known else now).isoformat(), "updated_at": now.isoformat()}
        if value is not None or known:
            self._hub.write(key, "" if value is None else json.dumps({"value": value} | times, ensure_ascii=False))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = {
            key: item for key in self._hub.keys(self._key(op.namespace_prefix) + "/") if (item := self._read(key))
        }
        items = [(key, item) for key, item in found.items() if passes(item.value, op.filter or {})]
        scores: dict[str, float | None] = dict.fromkeys(found)
        if op.query:
            matches = self._hub.search(op.query, kinds=["key_value"], limit=200)["results"]
            scores = {match["text"].partition(" = ")[0]: match["score"] for match in matches}
            items = sorted((one for one in items if one[0] in scores), key=lambda one: list(scores).index(one[0]))
        page = items[op.offset : op.offset + op.limit]
        return [SearchItem(**item.dict(), score=scores[key]) for key, item in page]

    def _namespaces(self, op: Any) -> list[tuple[str, ...]]:
        keys = [key for key in self._hub.keys(self._prefix + "/") if self._read(key)]
        names = {tuple(unquote(name) for name in key.split("/")[1:-1]) for key in keys}
        names = {one for one in names if all(matches(condition, one) for condition in op.match_conditions or ())}
        return sorted({one[: op.max_depth] for one in names})[op.offset : op.offset + op.limit]

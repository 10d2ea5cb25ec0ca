"""Describe the calls of the REST API: what to send and how to read the answer. Sends nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx2

from memoryhub.client import results
from memoryhub.client.errors import BadRequest
from memoryhub.client.results import Page

T = TypeVar("T")
Row = Mapping[str, Any]
Entries = str | Row | Iterable[Row]  # a text, one entry, or several


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call. With ``changes`` it is sent with an idempotency key, so that a retry has no second effect."""

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    params: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    changes: bool = False


def next_page(call: Call[Page[T]], page: Page[T]) -> Call[Page[T]] | None:
    """Return the call for the page after ``page``, None after the last page."""
    return None if page.next is None else replace(call, params=call.params | {"cursor": page.next})


def read_object(response: httpx2.Response) -> Any:
    """Return the JSON object of a response. Raises ValueError if it isn't an object."""
    document = response.json()
    if not isinstance(document, dict):
        raise ValueError("the response isn't a JSON object")
    return document


def read_page(response: httpx2.Response) -> Page[Any]:
    """Return a page of a list. Lists without paging are plain arrays."""
    document = response.json()
    return Page(document, None) if isinstance(document, list) else Page(document["items"], document["next"])


def _part(name: str) -> Callable[[httpx2.Response], Any]:
    return lambda response: read_object(response)[name]


def _given(**values: Any) -> dict[str, Any]:
    """Return the values that aren't None or empty."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def _list(path: str, **params: Any) -> Call[Page[Any]]:
    return Call("GET", path, read_page, params=_given(**params))


def _get(path: str, **params: Any) -> Call[Any]:
    return Call("GET", path, read_object, params=_given(**params))


def _change(method: str, path: str, body: dict[str, Any], **params: Any) -> Call[Any]:
    return Call(method, path, read_object, params=params, body=body, changes=True)


def me() -> Call[results.Me]:
    return _get("/me")


def skill() -> Call[str]:
    return Call("GET", "/skill", _part("text"))


def sessions(key: str, channel: str) -> Call[Page[results.Session]]:
    return _list("/sessions", key=key, channel=channel)


def open_session(key: str, title: str) -> Call[results.Session]:
    return _change("POST", "/sessions", {"key": key, **_given(title=title)})


def session(session_id: int) -> Call[results.Session]:
    return _get(f"/sessions/{session_id}")


def entries(session_id: int, epoch: int | None, *, active: bool) -> Call[Page[results.Entry]]:
    return _list(f"/sessions/{session_id}/entries", epoch=epoch, active="true" if active else None)


def append(session: str | int, entries: Entries, role: str) -> Call[results.Appended]:
    """Append to a session by key, which creates it if needed, or by id."""
    rows = _rows(entries, role)
    if isinstance(session, int):
        return _change("POST", f"/sessions/{session}/entries", {"entries": rows})
    return _change("POST", "/entries", {"session": session, "entries": rows})


def _rows(entries: Entries, role: str) -> list[dict[str, Any]]:
    if isinstance(entries, str):
        return [{"role": role, "content": entries}]
    return [dict(entries)] if isinstance(entries, Mapping) else [dict(row) for row in entries]


def context(
    session: str | int, max_messages: int | None, max_tokens: int | None, *, text: bool
) -> Call[results.Context]:
    limits = {"max_messages": max_messages, "max_tokens": max_tokens, "text": "true" if text else None}
    if isinstance(session, int):
        return _get(f"/sessions/{session}/context", **limits)
    return _get("/context", session=session, **limits)


def stats(session_id: int) -> Call[results.Figures]:
    return _get(f"/sessions/{session_id}/stats")


def compress(session_id: int, prompt: str) -> Call[results.Run]:
    return _change("POST", f"/sessions/{session_id}/compress", _given(prompt=prompt))


def consolidate(session_id: int) -> Call[results.Run]:
    return _change("POST", f"/sessions/{session_id}/consolidate", {})


def clear(session_id: int, entries: Sequence[Mapping[str, Any]]) -> Call[results.Session]:
    return _change("POST", f"/sessions/{session_id}/clear", {"entries": list(entries)} if entries else {})


def archive_and_clear(session_id: int) -> Call[results.Run]:
    return _change("POST", f"/sessions/{session_id}/archive-and-clear", {})


def export_session(session_id: int, layout: str, epoch: int | None) -> Call[bytes]:
    params = _given(layout=layout, epoch=epoch)
    return Call("GET", f"/sessions/{session_id}/export", lambda response: response.content, params=params)


def import_session(name: str, content: str) -> Call[results.Imported]:
    return _change("POST", "/sessions/import", {"name": name, "content": content})


def documents(workspace: str) -> Call[Page[results.Revision]]:
    return _list("/documents", workspace=workspace)


def document(name: str, revision: int | None, workspace: str) -> Call[results.Document]:
    return _get(_document_path(name), revision=revision, workspace=workspace)


def revisions(name: str) -> Call[Page[results.Revision]]:
    return _list(f"{_document_path(name)}/revisions")


def why(fact_id: int) -> Call[results.Why]:
    return _get(f"/facts/{fact_id}/why")


def write_document(name: str, content: str, base: int, reason: str) -> Call[results.Written]:
    call: Call[results.Written] = _change("PUT", _document_path(name), {"content": content, **_given(reason=reason)})
    return replace(call, headers={"If-Match": f'"{base}"'})


def add_fact(fact: str, name: str) -> Call[results.Written]:
    return _change("POST", f"{_document_path(name)}/facts", {"fact": fact})


def propose(name: str, content: str, base: int | None, reason: str) -> Call[results.Proposal]:
    return _change(
        "POST", f"{_document_path(name)}/proposals", {"content": content, **_given(base=base, reason=reason)}
    )


def _document_path(name: str) -> str:
    if name.strip(".") == "":  # URLs resolve these as relative paths
        raise BadRequest(f"There is no document {name!r}.", code="bad_name")
    return f"/documents/{quote(name, safe='')}"


def proposals() -> Call[Page[results.Proposal]]:
    return _list("/proposals")


def proposal(proposal_id: int) -> Call[results.Proposal]:
    return _get(f"/proposals/{proposal_id}")


def history(text: str) -> Call[Page[results.HistoryEntry]]:
    return _list("/history", text=text)


def note(text: str, session: str) -> Call[results.HistoryEntry]:
    return _change("POST", "/history", {"text": text, **_given(session=session)})


def knowledge(text: str, category: str) -> Call[Page[results.KnowledgeEntry]]:
    return _list("/knowledge", text=text, category=category)


def knowledge_entry(entry_id: int) -> Call[results.KnowledgeEntry]:
    return _get(f"/knowledge/{entry_id}")


def learn(content: str, category: str, source: str, tags: Sequence[str]) -> Call[results.KnowledgeEntry]:
    body = {"content": content, "category": category, "tags": list(tags), **_given(source=source)}
    return _change("POST", "/knowledge", body)


def change_knowledge(entry_id: int, changes: Row) -> Call[results.KnowledgeChanged]:
    return _change("PATCH", f"/knowledge/{entry_id}", dict(changes))


def knowledge_prompt(max_chars: int | None) -> Call[str]:
    return Call("GET", "/knowledge/prompt", _part("text"), params=_given(max_chars=max_chars))


def observations(category: str) -> Call[Page[results.Observation]]:
    return _list("/observations", category=category)


def remember(content: str | Iterable[Row], category: str, source: str) -> Call[results.Remembered]:
    """Add one observation, or several rows with their own content, category and source."""
    given = [{"content": content}] if isinstance(content, str) else content
    rows = [{"category": category, **_given(source=source), **row} for row in given]
    return _change("POST", "/observations", {"observations": rows})


def recall(query: str, limit: int | None) -> Call[results.Recalled]:
    return _get("/recall", query=query, limit=limit)


def keys(prefix: str) -> Call[Page[str]]:
    return _list("/keys", prefix=prefix)


def read(key: str) -> Call[str]:
    return Call("GET", "/value", _part("value"), params={"key": key})


def write(key: str, value: str) -> Call[results.ValueWritten]:
    return _change("PUT", "/value", {"value": value}, key=key)


def cached_response(message: str, model: str) -> Call[str | None]:
    """Look up a cached response. A POST because messages are long; it needs no idempotency key."""
    body = {"message": message, "model": model}
    return Call("POST", "/cache/lookup", _response_if_hit, body=body)


def _response_if_hit(response: httpx2.Response) -> str | None:
    document = read_object(response)
    return str(document["response"]) if document["hit"] else None


def keep_response(message: str, model: str, response: str) -> Call[bool]:
    body = {"message": message, "model": model, "response": response}
    return Call("PUT", "/cache", _part("kept"), body=body, changes=True)


def extract(text: str, source: str) -> Call[results.Run]:
    return _change("POST", "/extract", {"text": text, **_given(source=source)})


def search(query: str, kinds: Iterable[str], limit: int | None, mode: str, **wishes: bool) -> Call[results.Found]:
    chosen = {name: "true" for name, is_wished in wishes.items() if is_wished}
    return _get("/search", query=query, kinds=",".join(kinds), limit=limit, mode=mode, **chosen)


def runs(kind: str, status: str) -> Call[Page[results.Run]]:
    return _list("/runs", kind=kind, status=status)


def run(run_id: int) -> Call[results.Run]:
    return _get(f"/runs/{run_id}")

"""The context: exactly what would be sent to the model, in order, with token counts and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from knowledge_app.models import MemoryDocument
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Entry, Session, Summary
from sessions_app.services.windows import DEFAULT_MAX_MESSAGES, Dropped, safe_window

DOCUMENT_ORDER = ("SOUL.md", "USER.md", "MEMORY.md")
PREVIEW_LIMIT = 5_000  # entries looked at when no smaller limit is asked for


@dataclass(frozen=True)
class ContextPart:
    """One message of the context. ``source`` says where it comes from; ``entry`` is set for a conversation's."""

    message: dict[str, Any]
    tokens: int
    source: str
    entry: Entry | None = None


@dataclass(frozen=True)
class Context:
    parts: list[ContextPart]
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [part.message for part in self.parts]


def build_context(session: Session, *, max_messages: int = DEFAULT_MAX_MESSAGES) -> Context:
    """Return memory documents and summaries as system messages, then the safe window of active entries.

    ``max_messages`` counts entries; 0 or below is no limit of the agent's, only the hub's of 5,000. The order and
    shape are the OpenAI chat messages that nanobot's history gives (formats.md section 1).
    """
    parts = [*_documents(session), *_summaries(session)]
    limit = max_messages if 0 < max_messages < PREVIEW_LIMIT else PREVIEW_LIMIT
    active = Entry.objects.filter(session=session).active()
    latest = list(active.order_by("-position")[: limit + 1])[::-1]
    window = safe_window(latest, max_messages=limit)
    skipped = active.count() - len(latest)
    dropped = [Dropped(latest[0].position - 1, f"{skipped:,} earlier entries beyond the limit")] if skipped else []
    parts += [ContextPart(provider_message(entry), entry.token_count, "entry", entry) for entry in window.kept]
    return Context(parts, dropped + window.dropped)


def provider_message(entry: Entry) -> dict[str, Any]:
    """Return an entry as an OpenAI chat message: role, content, and the tool fields that it has."""
    message: dict[str, Any] = {"role": entry.role, "content": entry.content}
    original = entry.extra.get("content")
    if isinstance(original, list):
        message["content"] = original
    if entry.tool_calls:
        message["tool_calls"] = entry.tool_calls
    if entry.tool_call_id:
        message["tool_call_id"] = entry.tool_call_id
    if entry.name:
        message["name"] = entry.name
    return message


def _documents(session: Session) -> list[ContextPart]:
    found = MemoryDocument.objects.filter(workspace_id=session.workspace_id, head__isnull=False)
    by_name = {document.name: document for document in found.select_related("head")}
    parts = []
    for name in DOCUMENT_ORDER:
        document = by_name.get(name)
        if document and document.head and document.head.content.strip():
            parts.append(_system(f"## {name}\n\n{document.head.content.strip()}", name))
    return parts


def _summaries(session: Session) -> list[ContextPart]:
    parts = [_system(session.summary_text, "summary text")] if session.summary_text else []
    summaries = Summary.objects.filter(session=session, epoch=session.epoch, parent=None)
    return parts + [
        _system(f"[Summary of earlier conversation]\n{summary.content}", "summary")
        for summary in summaries.order_by("first_position", "id")
    ]


def _system(content: str, source: str) -> ContextPart:
    return ContextPart({"role": "system", "content": content}, count_tokens(content), source)

"""Sessions and contexts as Markdown, to copy or download."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_GET

from memoryhub.conversations.context import ContextPart, build_context, seen_in
from memoryhub.lib.http.downloads import markdown_response
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.text import as_markdown
from memoryhub.permissions import get_session, log_page_access, readable_parts, readable_text
from sessions_app.models import Summary
from sessions_app.services.access_log import seen_epoch, seen_rows
from sessions_app.services.context_window import DEFAULT_MAX_MESSAGES
from sessions_app.services.export import session_as_markdown


@require_GET
def session(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """Stream one epoch of a session, or with ``?summary=`` one of its summaries."""
    found = get_session(request, slug, pk)
    if number := parse_int(request.GET.get("summary")):
        summary = get_object_or_404(Summary, session=found, pk=number)
        text = as_markdown.summary(summary.content, summary.first_position, summary.last_position)
        parts, action, seen = (
            as_markdown.join_blocks([text]),
            "summary.exported",
            seen_rows("summaries", [summary.pk]),
        )
    else:
        epoch = parse_int(request.GET.get("epoch"), digits=5)
        parts = session_as_markdown(
            found, epoch=epoch, originals="originals" in request.GET, zone=timezone.get_current_timezone()
        )
        action, seen = "session.exported", seen_epoch(found, epoch)
    parts = readable_parts(request, found.workspace, parts, f"the session {found.key}")
    response = markdown_response(request, parts, found.key)
    log_page_access(request, found.workspace, action, seen)
    return response


@require_GET
def context(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    found = get_session(request, slug, pk)
    given = parse_int(request.GET.get("max_messages"), digits=8)
    built = build_context(
        found,
        max_messages=DEFAULT_MAX_MESSAGES if given is None else given,
        max_tokens=parse_int(request.GET.get("max_tokens"), digits=8),
    )
    text = as_markdown.context(found.key, [_part(part) for part in built.parts], tokens=built.tokens)
    log_page_access(request, found.workspace, "context.read", seen_in(built))
    text = readable_text(request, found.workspace, text, f"the context of {found.key}")
    return markdown_response(request, text, f"context-{found.key}")


def _part(part: ContextPart) -> as_markdown.Message:
    source = f"#{part.entry.position}" if part.entry else part.source
    content: Any = part.message["content"]
    text = part.entry.content if part.entry else part.text or str(content or "")
    role = part.message["role"] if part.entry else "memory"
    return as_markdown.Message(role, source, text, part.message.get("tool_calls", ()))

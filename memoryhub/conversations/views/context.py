from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from memoryhub.conversations.context import build_context, context_text, seen_in
from memoryhub.lib.htmx import render_page
from memoryhub.lib.masked_text import masked
from memoryhub.lib.pagination import parse_int
from memoryhub.lib.validation import json_text
from memoryhub.permissions import get_workspace, log_page_access
from sessions_app.models import Session
from sessions_app.services.context_window import DEFAULT_MAX_MESSAGES, Dropped


def session_context(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    given_messages = parse_int(request.GET.get("max_messages"), digits=8)
    max_messages = DEFAULT_MAX_MESSAGES if given_messages is None else given_messages
    given_tokens = parse_int(request.GET.get("max_tokens"), digits=8)
    max_tokens = workspace.max_tokens if given_tokens is None else given_tokens
    built = build_context(session, max_messages=max_messages, max_tokens=max_tokens)
    log_page_access(request, workspace, "context.read", seen_in(built))
    shown = built.parts
    context = {
        "workspace": workspace,
        "session": session,
        "max_messages": max_messages,
        "max_tokens": max_tokens,
        "text": masked(context_text(built)) if request.GET.get("form") == "text" else None,
        "context": built,
        "dropped": _dropped_ranges(built.dropped),
        "system_parts": [part for part in shown if part.source != "entry"],
        "entry_parts": [
            (part, masked(json_text(part.message["tool_calls"])) if "tool_calls" in part.message else "")
            for part in shown
            if part.source == "entry"
        ],
    }
    return render_page(request, "conversations/context.html", context, fragment="context")


def _dropped_ranges(dropped: Sequence[Dropped]) -> list[tuple[int | None, int | None, str]]:
    """Merge neighbouring drops with the same reason into (first position, last position, reason)."""
    ranges: list[tuple[int | None, int | None, str]] = []
    for drop in dropped:
        first, last, why = ranges[-1] if ranges else (None, None, "")
        if last is not None and drop.position == last + 1 and drop.why == why:
            ranges[-1] = (first, drop.position, why)
        else:
            ranges.append((drop.position, drop.position, drop.why))
    return ranges

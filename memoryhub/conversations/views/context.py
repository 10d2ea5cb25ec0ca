"""The context of a session: how it uses its budget, its parts, and the same as JSON for providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods

from memoryhub.conversations.context import Context, ContextPart, build_context, context_text, seen_in
from memoryhub.conversations.context_budget import (
    budget_parts,
    call_lines,
    count_entries,
    next_drop,
    since_last_call,
    source_of,
)
from memoryhub.conversations.provider_shapes import anthropic_body, openai_body
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.masked_text import masked
from memoryhub.permissions import (
    EDITOR,
    get_session,
    get_workspace,
    has_role,
    log_page_access,
    readable_text,
    record_reveal,
)
from sessions_app.models import Session, Workspace
from sessions_app.services.context_window import DEFAULT_MAX_MESSAGES, Dropped

SHOWN_ENTRIES = 100  # the latest; more on request
SHORT = 240  # characters of a block that is not collapsed
SHOWN_CHARS = 4_000  # of a block
SHAPES = {"openai": openai_body, "anthropic": anthropic_body}


@dataclass(frozen=True)
class Block:
    """A part of the context on the page. ``start``: its first characters; ``is_long``: whether it is collapsed.

    ``is_cut``: whether ``text`` is only its beginning.
    """

    part: ContextPart
    source: str
    start: str
    text: str
    is_long: bool
    is_cut: bool
    calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Limits:
    """The chosen limits of a context, and the largest that their sliders offer."""

    max_messages: int
    max_tokens: int
    most_messages: int
    most_tokens: int


def session_context(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _page(request, get_workspace(request, slug), pk, is_revealed=False)


@require_http_methods(["GET", "POST"])
def reveal_context(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a context with its secrets once, and record it. Reloading redirects to the context."""
    if request.method == "GET":
        get_workspace(request, slug)
        return redirect("session-context", slug, pk)
    session = get_session(request, slug, pk, role=EDITOR)
    record_reveal(request, session.workspace, f"the context of {session.key}")
    return _page(request, session.workspace, pk, is_revealed=True)


def _page(request: HttpRequest, workspace: Workspace, pk: int, *, is_revealed: bool) -> HttpResponse:
    show = show_invisible if is_revealed else masked
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    limits = _limits(request, workspace, session)
    built = build_context(session, max_messages=limits.max_messages, max_tokens=limits.max_tokens)
    log_page_access(request, workspace, "context.read", seen_in(built))
    entries = [part for part in built.parts if part.entry]
    shown = entries if "all" in request.GET else entries[-SHOWN_ENTRIES:]
    context = {
        "workspace": workspace,
        "session": session,
        "limits": limits,
        "text": show(context_text(built)) if request.GET.get("form") == "text" else None,
        "context": built,
        "bar": budget_parts(built),
        "kept": count_entries(built),
        "left_out": max(0, session.active_entry_count - count_entries(built)),
        "next": next_drop(built, session, limits.max_messages),
        "since": since_last_call(built, session),
        "dropped": _dropped_ranges(built.dropped),
        "memory_blocks": [_block(part, show) for part in built.parts if part.entry is None],
        "entry_blocks": [_block(part, show) for part in shown],
        "is_revealed": is_revealed,
        "may_edit": has_role(request.user, workspace, EDITOR),
        "earlier": len(entries) - len(shown),
    }
    return render_page(request, "conversations/context.html", context, fragment="context")


@require_GET
def context_json(request: HttpRequest, slug: str, pk: int, shape: str) -> HttpResponse:
    """Return the context as JSON for a provider, or as plain text, to copy."""
    session = get_session(request, slug, pk)
    if shape != "plain" and shape not in SHAPES:
        raise Http404
    limits = _limits(request, session.workspace, session)
    built = build_context(session, max_messages=limits.max_messages, max_tokens=limits.max_tokens)
    log_page_access(request, session.workspace, "context.read", seen_in(built))
    text = readable_text(request, session.workspace, _shaped(built, shape), f"the context of {session.key}")
    headers = {"Content-Security-Policy": "sandbox"}
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)


def _shaped(built: Context, shape: str) -> str:
    if shape == "plain":
        return context_text(built)
    return json.dumps(SHAPES[shape](built), ensure_ascii=False, indent=2)


def _limits(request: HttpRequest, workspace: Workspace, session: Session) -> Limits:
    messages = parse_int(request.GET.get("max_messages"), digits=8)
    tokens = parse_int(request.GET.get("max_tokens"), digits=8)
    max_messages = DEFAULT_MAX_MESSAGES if messages is None else messages
    max_tokens = workspace.max_tokens if tokens is None else tokens
    return Limits(
        max_messages,
        max_tokens,
        most_messages=max(max_messages, min(5_000, max(DEFAULT_MAX_MESSAGES, session.active_entry_count))),
        most_tokens=max(max_tokens, 2 * workspace.max_tokens),
    )


def _block(part: ContextPart, show: Callable[[str], str]) -> Block:
    content = part.text or part.message.get("content") or ""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    shown = show(text[: SHOWN_CHARS + 1_000])[:SHOWN_CHARS]  # a secret at the end is masked as a whole
    calls = (
        [(name, show(arguments[:SHOWN_CHARS])) for name, arguments in call_lines(part.entry)] if part.entry else []
    )
    size = len(text) + sum(len(arguments) for _, arguments in calls)
    return Block(
        part,
        source_of(part),
        " ".join(shown[: SHORT * 2].split())[: SHORT // 2],
        shown,
        is_long=part.entry is None or size > SHORT,
        is_cut=len(text) > len(shown),
        calls=calls,
    )


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

from __future__ import annotations

from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from knowledge_app.models import MemoryDocument
from memoryhub.dashboard.health import health_of
from memoryhub.dashboard.recent_changes import last_visit, latest_changes
from memoryhub.inbox.attention import attention_items
from memoryhub.inbox.attention_rows import attention_context
from memoryhub.insights.charts import Insights
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.memory.filters import KINDS, Matches, MemoryFilters
from memoryhub.memory.listing import count_kinds, newest_items
from memoryhub.memory.views.rows import shown_item
from memoryhub.permissions import get_workspace, has_role, log_page_access
from memoryhub.role_scope import role_scope
from memoryhub.search.kinds import KINDS as SEARCHED
from memoryhub.search.shown_rows import seen_results
from sessions_app.models import Membership, Session, Workspace
from sessions_app.services.access_log import seen_revision
from sessions_app.services.stats import latest_import

EXCERPT_CHARS = 1_500
NEWEST = 6


def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what the agent remembers, what changed since the last visit, what needs attention, and figures."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    sessions = Session.objects.filter(workspace=workspace, archived_at=None)
    in_context = F("active_tokens") + F("summary_tokens")
    is_operator = has_role(request.user, workspace, Membership.Role.OPERATOR)
    since = last_visit(workspace, request.user.get_username(), now=now)
    changes, has_more = latest_changes(workspace, since=since, reader=request.user.get_username())
    context: dict[str, Any] = {
        "workspace": workspace,
        "health": health_of([workspace], now=now)[workspace.pk],
        "largest": sessions.filter(is_visible_to_agent=True).order_by(in_context.desc(), "-id").first(),
        "growth": Insights(workspace).card("messages"),
        "sessions": sessions.order_by("-updated_at", "-id")[:6],
        "since": since,
        "changes": changes,
        "has_more": has_more,
        "report": latest_import(workspace),
        "may_import": bool(workspace.path) and is_operator,
        "may_end": is_operator,
    }
    context |= _memory_context(request, workspace)
    context["is_empty"] = not (context["kinds"] or context["document"] or context["health"].figures.entries)
    context |= attention_context(attention_items(role_scope(request.user).within(workspace), now=now), request.GET)
    return render_page(request, "dashboard/overview.html", context)


def _memory_context(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    """Return the beginning of the most important document, the newest rows and the number of rows of each kind."""
    now = timezone.now()
    matches = Matches(workspace, MemoryFilters(), now)
    counts = count_kinds(matches)
    items = newest_items(matches, NEWEST)
    document = _main_document(workspace)
    seen = seen_results([{"kind": item.kind.name, "id": item.row.pk} for item in items])
    if document and document.head:
        seen.append(seen_revision(document.pk, document.head.number))
    log_page_access(request, workspace, "memory.read", seen)
    return {
        "document": document,
        "excerpt": _excerpt(document.head.content) if document and document.head else "",
        "newest": [shown_item(item, workspace.slug, [], timezone.localdate(now)) for item in items],
        "kinds": [
            (SEARCHED[kind], counts[kind], MemoryFilters().query_string(kind=kind))
            for kind in KINDS
            if counts[kind] and kind != "document"
        ],
    }


def _main_document(workspace: Workspace) -> MemoryDocument | None:
    """Return MEMORY.md, or else the first document with a text."""
    documents = MemoryDocument.objects.filter(workspace=workspace, head__isnull=False).select_related("head")
    return min(documents, key=lambda document: (document.name != "MEMORY.md", document.name), default=None)


def _excerpt(content: str) -> SafeString:
    """Return the beginning of a document up to a line's end, rendered, with secrets masked."""
    text = masked(content[: 2 * EXCERPT_CHARS])
    if len(text) > EXCERPT_CHARS:
        text = text[: text.rfind("\n", 0, EXCERPT_CHARS)] if "\n" in text[:EXCERPT_CHARS] else text[:EXCERPT_CHARS]
    return render_markdown(text)

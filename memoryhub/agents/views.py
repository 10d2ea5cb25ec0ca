"""The tokens page and the Connect page."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from memoryhub.agents.api_tokens import (
    SCOPES,
    BadToken,
    end_read_grant,
    issue_token,
    revoke_token,
    valid_tokens,
    with_deactivated_creator,
)
from memoryhub.agents.forms import TokenForm
from memoryhub.agents.hub_url import MCP_PATH, hub_address
from memoryhub.agents.oauth.delegation import connection_of
from memoryhub.agents.oauth.redirects import destination
from memoryhub.agents.snippets import PROGRAMS, http_config, program_snippets, stdio_config
from memoryhub.audit.access_log import access_label
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.models import AccessRecord, ApiToken, ReadGrant
from memoryhub.permissions import OPERATOR, by_person, get_workspace, has_role, person
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By

SOON = timedelta(days=14)  # before a token's expiry, when the list warns
DAY = timedelta(days=1)
WAITING_SECONDS = 600
STOP_POLLING = 286
FOLDERS = [  # layout, title, example path, what is imported
    ("nanobot", _("nanobot folder"), "~/.nanobot", _("The hub reads its conversations, MEMORY.md and HISTORY.md.")),
    (
        "grip",
        _("Grip folder"),
        "~/.grip",
        _("The hub reads its conversations, memory, knowledge and response cache."),
    ),
    (
        "grid",
        _("grid folder"),
        "~/.local/grid",
        _("The hub reads its exact values, semantic graph and observations."),
    ),
    ("agterm", _("AgTerm export"), "session-export.json", _("The hub reads sessions exported by AgTerm.")),
]
KINDS = (*PROGRAMS, "mcp-http", "mcp-stdio", "rest", "python", *(layout for layout, *_ in FOLDERS))


@dataclass(frozen=True)
class ShownToken:
    token: ApiToken
    state: str
    ends_soon: bool
    reading_count: int
    scopes: list[tuple[str, str]]
    reads: list[Workspace]
    is_maker_off: bool
    client: str  # where an OAuth client gets its answers; "" for other tokens


def agents(request: HttpRequest, slug: str) -> HttpResponse:
    """List the valid tokens of a workspace, or all."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    now = timezone.now()
    tokens = ApiToken.objects.filter(workspace=workspace).select_related("connection")
    wants_all = request.GET.get("state") == "all"
    page = keyset_page(tokens if wants_all else tokens.filter(valid_tokens(now)), order=("-id",), params=request.GET)
    context = {
        "workspace": workspace,
        "page": page,
        "tokens": _token_rows(page.rows, now),
        "wants_all": wants_all,
        "has_any": bool(page.rows) or tokens.exists(),
        "readers": _readers(workspace, now),
        "scopes": SCOPES.items(),
    }
    return render_page(request, "agents/agents.html", context, fragment="token-list")


def _readers(workspace: Workspace, now: datetime) -> QuerySet[ReadGrant]:
    """Return the grants with which valid tokens of other workspaces read this one."""
    tokens = ApiToken.objects.filter(valid_tokens(now))
    grants = ReadGrant.objects.filter(workspace=workspace, ended_at=None, token__in=tokens)
    return grants.select_related("token__workspace").order_by("token__workspace__name", "token__name", "id")


def _token_rows(tokens: list[ApiToken], now: datetime) -> list[ShownToken]:
    recent = AccessRecord.objects.filter(token__in=[token.pk for token in tokens], at__gte=now - DAY)
    counts = dict(recent.order_by().values_list("token").annotate(Count("id")))
    deactivated = with_deactivated_creator(tokens)
    reads: defaultdict[int, list[Workspace]] = defaultdict(list)
    grants = ReadGrant.objects.filter(token__in=tokens, ended_at=None).select_related("workspace")
    for grant in grants.order_by("workspace__name", "id"):
        reads[grant.token_id].append(grant.workspace)
    return [
        ShownToken(
            token,
            _state(token, now),
            not _client(token) and token.expires_at is not None and now < token.expires_at <= now + SOON,
            counts.get(token.pk, 0),
            [(scope, str(SCOPES.get(scope, ""))) for scope in token.scopes],
            reads[token.pk],
            token.pk in deactivated,
            _client(token),
        )
        for token in tokens
    ]


def _client(token: ApiToken) -> str:
    connection = connection_of(token)
    if connection is None:
        return ""
    return destination(connection.redirect_uri) or gettext("a program on the person's computer")


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "ended" if token.expires_at is not None and token.expires_at <= now else "living"


def new_token(request: HttpRequest, slug: str) -> HttpResponse:
    """Create a token. Only the response to the POST shows it, because its text isn't stored."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    others = Workspace.objects.operated_by(request.user).exclude(pk=workspace.pk).order_by("name", "slug")
    form = TokenForm(request.POST or None, shareable=others)
    if form.is_bound and form.is_valid():
        now = timezone.now()
        try:
            token, text = issue_token(workspace, by=By(person(request), now), **form.options(now))
        except BadToken as error:
            form.add_error(None, error.message)
        else:
            context = _connect_context(request, workspace, text=text, token=token)
            return render_page(request, "agents/connect.html", context)
    context = {"workspace": workspace, "form": form}
    return render_page(request, "agents/token_new.html", context, status=422 if form.errors else 200)


def revoke(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Confirm and revoke a token."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    token: ApiToken = get_object_or_404(
        ApiToken.objects.select_related("workspace", "connection"), workspace=workspace, pk=pk
    )
    if request.method == "POST":
        was_valid = revoke_token(token, by=by_person(request))
        message = gettext("Token %(name)s revoked.") if was_valid else gettext("Token %(name)s was already revoked.")
        messages.success(request, message % {"name": token.name})
        return redirect("agents", slug)
    context = {"workspace": workspace, "shown": _token_rows([token], timezone.now())[0]}
    return render_page(request, "agents/token_revoke.html", context)


@require_POST
def end_reading(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Stop a token of another workspace from reading this one."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    grants = ReadGrant.objects.select_related("token", "workspace")
    grant: ReadGrant = get_object_or_404(grants, workspace=workspace, pk=pk)
    end_read_grant(grant, by=by_person(request))
    message = gettext("%(name)s can no longer read this workspace.")
    messages.success(request, message % {"name": grant.token.name})
    return redirect("agents", slug)


@require_GET
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how to connect an agent, with snippets to copy."""
    workspace = get_workspace(request, slug)
    return render_page(request, "agents/connect.html", _connect_context(request, workspace))


def _connect_context(
    request: HttpRequest, workspace: Workspace, *, text: str = "", token: ApiToken | None = None
) -> dict[str, Any]:
    """Return the context of the Connect page. ``text``: a token that was just created."""
    now = timezone.now()
    since = int(now.timestamp())
    query = f"since={since}" + (f"&token={token.pk}" if token else "")
    chosen = request.GET.get("kind", "")
    may_make = has_role(request.user, workspace, OPERATOR)
    base = hub_address(request, settings.MEMORYHUB_URL)
    shown_token = text or "mh_…"
    manage = settings.BASE_DIR / "manage.py"
    return {
        "workspace": workspace,
        "base": base,
        "base_shown": format_html("<bdi>{}</bdi>", base),
        "text": text,
        "shown_token": shown_token,
        "programs": program_snippets(base + MCP_PATH, shown_token),
        "http_config": http_config(base + MCP_PATH, shown_token),
        "stdio_config": stdio_config(sys.executable, manage, settings.MEMORYHUB_HOME, shown_token),
        "token": token,
        "folders": FOLDERS,
        "sync_url": _sync_url(workspace) if may_make else "",
        "kind": chosen if chosen in KINDS else KINDS[0],
        "may_make": may_make,
        "may_be_called": ApiToken.objects.filter(valid_tokens(now), workspace=workspace).exists(),
        "first_call_url": f"{reverse('first-call', args=[workspace.slug])}?{query}",
        "manage": manage,
    }


def _sync_url(workspace: Workspace) -> str:
    try:
        return reverse("sync", args=[workspace.slug])
    except NoReverseMatch:
        return ""


@require_GET
def first_call(request: HttpRequest, slug: str) -> HttpResponse:
    """Tell the Connect page about the first call: 204 before it, 286 (stop polling) after it or after a timeout."""
    workspace = get_workspace(request, slug)
    now = timezone.now()
    since = parse_int(request.GET.get("since"), digits=11) or 0
    tokens = ApiToken.objects.filter(workspace=workspace, last_used_at__isnull=False)
    token_id = parse_int(request.GET.get("token"))
    if token_id is not None:
        tokens = tokens.filter(pk=token_id)
    latest = tokens.order_by("-last_used_at", "-id").first()
    called = latest if latest and latest.last_used_at and latest.last_used_at.timestamp() >= since else None
    if called is None and now.timestamp() - since < WAITING_SECONDS:
        return HttpResponse(status=204)
    context = {"workspace": workspace, "called": called, "did": _first_action(called, since) if called else ""}
    return render(request, "agents/first_call.html", context, status=STOP_POLLING)


def _first_action(token: ApiToken, since: int) -> str:
    """Return the first thing an agent wrote or read since a time, or ""."""
    start = datetime.fromtimestamp(since, tz=UTC)
    audit = AuditRecord.objects.filter(workspace=token.workspace_id, actor_kind="agent", actor_name=token.name)
    wrote = audit.filter(at__gte=start).order_by("id").first()
    read = AccessRecord.objects.filter(token=token, at__gte=start).order_by("id").first()
    if wrote and (read is None or wrote.at <= read.at):
        return wrote.text
    return access_label(read.action, read.row_count) if read else ""

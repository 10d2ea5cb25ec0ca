"""The inbox of a workspace and of the hub: a queue of items, and the detail of the selected one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from knowledge_app.models import HeldRow
from memoryhub.inbox.decisions import Outcome, decide
from memoryhub.inbox.details import detail_context, load_row
from memoryhub.inbox.items import KINDS, InboxItem, item_title, load_items, needed_role
from memoryhub.inbox.queue import QueueScope, count_by_kind, find_in_queue, queue_page
from memoryhub.inbox.safe_changes import safe_pks
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import EDITOR, get_workspace, has_role, is_hub_operator, visible_workspaces
from sessions_app.models import Workspace

PAGE_ITEMS = 25
MAX_AHEAD = 6  # items that a page fetches at once before they are shown
STILL_WAITS = ("row_changed", "nothing_chosen")  # errors after which the item itself is shown again


def inbox(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    scope = QueueScope(Workspace.objects.filter(pk=workspace.pk))
    return _render(request, scope, reverse("inbox", args=[slug]), workspace)


def hub_inbox(request: HttpRequest) -> HttpResponse:
    scope = QueueScope(visible_workspaces(request), of_hub=is_hub_operator(request.user))
    return _render(request, scope, reverse("hub-inbox"), None)


@dataclass(frozen=True)
class ListPage:
    """A page of the queue. ``base``: the URL of the list with its filter, without a page or an item."""

    base: str
    kind: str
    number: int
    last: int
    items: list[InboxItem]

    def url(self, key: str = "", number: int = 0) -> str:
        number = number or self.number
        query = {"kind": self.kind, "page": str(number) if number > 1 else "", "item": key}
        text = urlencode({name: value for name, value in query.items() if value})
        return f"{self.base}{f'?{text}' if text else ''}"

    def neighbours(self, selected: InboxItem | None) -> tuple[str, str]:
        """Return the URLs of the items before and after the selected one, "" at the ends."""
        keys = [item.key for item in self.items]
        at = keys.index(selected.key) if selected and selected.key in keys else -1
        before = self.url(keys[at - 1]) if at > 0 else self.url(number=self.number - 1) if self.number > 1 else ""
        if at + 1 < len(keys):
            return before, self.url(keys[at + 1])
        return before, self.url(number=self.number + 1) if self.number < self.last else ""


def _render(request: HttpRequest, scope: QueueScope, base: str, workspace: Workspace | None) -> HttpResponse:
    counts = count_by_kind(scope)
    if workspace:
        request.waiting_count = counts.total()  # type: ignore[attr-defined]  # for the navigation
    page = _list_page(request, scope, base, counts)
    if keys := request.GET.getlist("ahead")[:MAX_AHEAD]:
        ahead = [_item_context(request, scope, page, item) for item in page.items if item.key in keys]
        shown = {"workspace": workspace, "list_url": page.url(), "ahead": ahead}
        return render_page(request, "inbox/ahead.html", shown)
    key = request.GET.get("item", "")
    selected = next((item for item in page.items if item.key == key), None) or _find(request, scope, key)
    context: dict[str, Any] = {
        "workspace": workspace,
        "list": page,
        "list_url": page.url(),
        "pages": {
            "previous": page.url(number=page.number - 1) if page.number > 1 else "",
            "next": page.url(number=page.number + 1) if page.number < page.last else "",
        },
        "rows": [(item, page.url(item.key)) for item in page.items],
        "chips": [(kind, label, counts[kind]) for kind, (label, _) in KINDS.items() if counts[kind]],
        "total": counts.total(),
        "is_open": selected is not None,
    }
    selected = selected or (page.items[0] if page.items else None)
    context |= {"selected": selected, **_bulk(request, workspace, page.kind, counts)}
    if request.GET.get("part") == "after-decision":  # the page shows the next item already
        return render_page(request, "inbox/inbox.html#after-decision", context)
    if request.htmx.target == "inbox-list":  # type: ignore[attr-defined]  # an open page renews its list
        return render_page(request, "inbox/inbox.html", context, fragment="list")
    if key and not context["is_open"] and not request.htmx:  # type: ignore[attr-defined]
        messages.info(request, gettext("This item is no longer in the inbox."))
    return render_page(request, "inbox/inbox.html", context | _item_context(request, scope, page, selected))


def _item_context(request: HttpRequest, scope: QueueScope, page: ListPage, item: InboxItem | None) -> dict[str, Any]:
    """Return what ``inbox/item.html`` shows of an item."""
    previous_url, next_url = page.neighbours(item)
    return {
        "selected": item,
        "previous_url": previous_url,
        "next_url": next_url,
        "back_url": next_url or previous_url or page.url(),
        "detail": detail_context(request, item, workspaces=scope.workspaces) if item else {},
    }


def _bulk(request: HttpRequest, workspace: Workspace | None, kind: str, counts: Counter[str]) -> dict[str, Any]:
    """Return what can be done with all items of a kind."""
    if workspace is None or not has_role(request.user, workspace, EDITOR):
        return {}
    newest = None
    if kind == "addition":
        rows = HeldRow.objects.filter(workspace=workspace).waiting()
        newest = rows.order_by("-id").values_list("pk", flat=True).first()
    safe = len(safe_pks(workspace)) if counts["change"] else 0
    return {"safe_count": safe, "newest_row": newest, "row_count": counts["addition"]}


def _list_page(request: HttpRequest, scope: QueueScope, base: str, counts: Counter[str]) -> ListPage:
    kind = request.GET.get("kind", "")
    kind = kind if kind in KINDS and counts[kind] else ""  # once all of a kind are decided: the whole queue
    total = counts[kind] if kind else counts.total()
    last = max(1, -(-total // PAGE_ITEMS))
    number = min(last, max(1, parse_int(request.GET.get("page"), digits=9) or 1))
    rows = queue_page(scope, kind=kind, start=(number - 1) * PAGE_ITEMS, size=PAGE_ITEMS)
    return ListPage(base, kind, number, last, load_items(rows, request.user, scope.workspaces))


def _find(request: HttpRequest, scope: QueueScope, key: str) -> InboxItem | None:
    """Return an item that isn't on the page of the list."""
    row = find_in_queue(scope, key) if key else None
    return next(iter(load_items([row], request.user, scope.workspaces)), None) if row else None


@require_POST
def decide_item(request: HttpRequest) -> HttpResponse:
    """Decide the item of the query string, and redirect to ``back``."""
    table, _, number = request.GET.get("item", "").rpartition("-")
    pk = parse_int(number)
    row = _load_for_decision(request, table, pk or 0)
    back = request.POST.get("back", "")
    title = item_title(table, pk or 0)
    try:
        if row is None:
            raise Conflict(gettext("This has been decided already."), code="already_decided")
        outcome = decide(request, table, row, request.POST.get("action", ""))
    except MemoryHubError as error:
        messages.error(request, _named(error.message, title))
        if error.code in STILL_WAITS:
            back = _address(row, f"{table}-{pk}")
    else:
        _report(request, outcome, title)
        back = _address(row, outcome.item) if outcome.item else back
    is_own = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if is_own else "hub-inbox")


def _address(row: Any, key: str) -> str:
    return f"{reverse('inbox', args=[row.workspace.slug])}?{urlencode({'item': key})}"


def _report(request: HttpRequest, outcome: Outcome, title: str) -> None:
    if outcome.text:
        messages.success(request, _named(outcome.text, title), extra_tags=outcome.undo)
    if outcome.warning:
        messages.warning(request, _named(outcome.warning, title))


def _named(text: str, title: str) -> str:
    """Return a message with the title of its item: by now, the page shows another one."""
    return gettext("%(text)s “%(title)s”") % {"text": text, "title": title} if title else text


def _load_for_decision(request: HttpRequest, table: str, pk: int) -> Any:
    """Return the row if the person may decide it, None if it is gone. Raises Http404.

    A row that is gone, or in another workspace than the form says, is answered alike. The warnings of imports are one
    item over all workspaces; those of others are left out when they are dismissed.
    """
    try:
        row = load_row(table, pk)
    except KeyError:
        raise Http404 from None
    if of := request.POST.get("of", ""):
        shown_in = get_workspace(request, of, role=EDITOR)
        row = row if row is not None and getattr(row, "workspace_id", shown_in.pk) == shown_in.pk else None
        if row is None:
            return None
    if row is None:
        raise Http404
    workspace = row if isinstance(row, Workspace) else getattr(row, "workspace", None)
    slug = request.POST.get("workspace", "") if table == "note" else workspace.slug if workspace else ""
    if slug:
        get_workspace(request, slug, role=needed_role(table, workspace))
    elif table != "note" and not is_hub_operator(request.user):
        raise Http404
    return row

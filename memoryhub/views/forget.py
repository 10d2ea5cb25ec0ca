"""Forgetting: what would go, and then that it went."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import Forgotten
from knowledge_app.services.forget import Wish, lift, plan_forget, receipts
from memoryhub.flows import forget as flow
from memoryhub.forms import ForgetForm
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.htmx import render_page
from memoryhub.templatetags.memoryhub import tokens
from memoryhub.views.people import OPERATOR
from sessions_app.access import get_workspace, is_hub_operator, person
from sessions_app.models import Session, Workspace

ROWS = {  # by the names of tables in receipts
    "access records": ngettext_lazy("%(shown)s access record", "%(shown)s access records", "count"),
    "api tokens": ngettext_lazy("%(shown)s api token", "%(shown)s api tokens", "count"),
    "append receipts": ngettext_lazy("%(shown)s append receipt", "%(shown)s append receipts", "count"),
    "audit records": ngettext_lazy("%(shown)s audit record", "%(shown)s audit records", "count"),
    "cached responses": ngettext_lazy("%(shown)s cached response", "%(shown)s cached responses", "count"),
    "concerns": ngettext_lazy("%(shown)s concern", "%(shown)s concerns", "count"),
    "confirmations": ngettext_lazy("%(shown)s confirmation", "%(shown)s confirmations", "count"),
    "deleted sessions": ngettext_lazy("%(shown)s deleted session", "%(shown)s deleted sessions", "count"),
    "earlier states of key values": ngettext_lazy(
        "%(shown)s earlier state of key values", "%(shown)s earlier states of key values", "count"
    ),
    "earlier states of knowledge entries": ngettext_lazy(
        "%(shown)s earlier state of knowledge entries", "%(shown)s earlier states of knowledge entries", "count"
    ),
    "earlier states of observations": ngettext_lazy(
        "%(shown)s earlier state of observations", "%(shown)s earlier states of observations", "count"
    ),
    "edited rows": ngettext_lazy("%(shown)s edited row", "%(shown)s edited rows", "count"),
    "entries": ngettext_lazy("%(shown)s entry", "%(shown)s entries", "count"),
    "facts": ngettext_lazy("%(shown)s fact", "%(shown)s facts", "count"),
    "forgotten": ngettext_lazy("%(shown)s forgotten", "%(shown)s forgotten", "count"),
    "held changes": ngettext_lazy("%(shown)s held change", "%(shown)s held changes", "count"),
    "history entries": ngettext_lazy("%(shown)s history entry", "%(shown)s history entries", "count"),
    "idempotent calls": ngettext_lazy("%(shown)s idempotent call", "%(shown)s idempotent calls", "count"),
    "import problems": ngettext_lazy("%(shown)s import problem", "%(shown)s import problems", "count"),
    "import reports": ngettext_lazy("%(shown)s import report", "%(shown)s import reports", "count"),
    "jobs": ngettext_lazy("%(shown)s job", "%(shown)s jobs", "count"),
    "key values": ngettext_lazy("%(shown)s key value", "%(shown)s key values", "count"),
    "knowledge entries": ngettext_lazy("%(shown)s knowledge entry", "%(shown)s knowledge entries", "count"),
    "log entries": ngettext_lazy("%(shown)s log entry", "%(shown)s log entries", "count"),
    "memory documents": ngettext_lazy("%(shown)s memory document", "%(shown)s memory documents", "count"),
    "memory revisions": ngettext_lazy("%(shown)s memory revision", "%(shown)s memory revisions", "count"),
    "observations": ngettext_lazy("%(shown)s observation", "%(shown)s observations", "count"),
    "recent searches": ngettext_lazy("%(shown)s recent search", "%(shown)s recent searches", "count"),
    "runs": ngettext_lazy("%(shown)s run", "%(shown)s runs", "count"),
    "saved searches": ngettext_lazy("%(shown)s saved search", "%(shown)s saved searches", "count"),
    "semantic graphs": ngettext_lazy("%(shown)s semantic graph", "%(shown)s semantic graphs", "count"),
    "sessions": ngettext_lazy("%(shown)s session", "%(shown)s sessions", "count"),
    "source files": ngettext_lazy("%(shown)s source file", "%(shown)s source files", "count"),
    "summaries": ngettext_lazy("%(shown)s summary", "%(shown)s summaries", "count"),
    "sync states": ngettext_lazy("%(shown)s sync state", "%(shown)s sync states", "count"),
    "Task Results": ngettext_lazy("%(shown)s Task Result", "%(shown)s Task Results", "count"),
    "terms": ngettext_lazy("%(shown)s term", "%(shown)s terms", "count"),
    "webhook deliveries": ngettext_lazy("%(shown)s webhook delivery", "%(shown)s webhook deliveries", "count"),
}


def forget(request: HttpRequest, slug: str) -> HttpResponse:
    """The first step shows what would go; the second, with its number of rows and a tick, does it.

    Both are posts: what is to be forgotten belongs into no address and no log.
    """
    workspace = get_workspace(request, slug, role=OPERATOR)
    form = ForgetForm(request.POST or None, workspace=workspace)
    context = {"workspace": workspace, "form": form, "receipts": _receipts(workspace), "preview": None}
    if form.is_bound and form.is_valid():
        values = form.cleaned_data
        try:
            wish = _wish(workspace, values, everywhere=is_hub_operator(request.user))
            if values["expected"] and values["is_sure"]:
                return _forget(request, workspace, wish, values)
            context["preview"] = plan_forget(workspace, wish)
        except MemoryHubError as error:
            form.add_error(None, error.message)
    return render_page(request, "memoryhub/forget.html", context, status=422 if form.errors else 200)


def _receipts(workspace: Workspace) -> list[tuple[Forgotten, list[str]]]:
    """Return the receipts of a workspace, each with its rows by table in words."""
    return [(receipt, [_counted(name, count) for name, count in receipt.listed]) for receipt in receipts(workspace)]


def _counted(name: str, count: int) -> str:
    words = ROWS.get(name)
    return words % {"count": count, "shown": tokens(count)} if words else f"{tokens(count)} {name}"


def _wish(workspace: Workspace, values: dict[str, Any], *, everywhere: bool) -> Wish:
    if values["kind"] == Forgotten.Kind.SESSION:
        session = Session.objects.select_related("workspace").get(workspace=workspace, key=values["words"].strip())
        return Wish(values["kind"], session=session, everywhere=everywhere)
    words = values["words"]
    if values["kind"] == Forgotten.Kind.PHRASE:
        return Wish(values["kind"], (words,), everywhere=everywhere)
    names = tuple(line for line in words.splitlines() if line.strip())
    return Wish(values["kind"], names, everywhere=everywhere)


def _forget(request: HttpRequest, workspace: Workspace, wish: Wish, values: dict[str, Any]) -> HttpResponse:
    receipt, is_clean = flow.forget(
        workspace,
        wish,
        expected=values["expected"],
        reason=values["reason"],
        actor=person(request),
        now=timezone.now(),
    )
    total = sum(receipt.counts.values())
    words = ngettext("Forgotten in %(count)s row.", "Forgotten in %(count)s rows.", total)
    messages.success(request, words % {"count": f"{total:,}"})
    if not is_clean:
        words = gettext(
            "The database's file still holds traces of deleted rows: run `python3 manage.py vacuum` at a quiet time."
        )
        messages.warning(request, words)
    return redirect("forget", workspace.slug)


@require_POST
def allow(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Let imports bring it back."""
    workspace = get_workspace(request, slug, role=OPERATOR)
    receipt = get_object_or_404(Forgotten.objects.select_related("workspace"), workspace=workspace, pk=pk)
    lift(receipt, actor=person(request), now=timezone.now())
    messages.success(request, gettext("The next import may bring it back."))
    return redirect("forget", slug)

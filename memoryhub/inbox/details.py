"""The detail of an item of the inbox: what the person decides about, and the template that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import Concern, HeldChange, HeldRow, MemoryDocument
from memoryhub.forgetting.agent_files import BAR, text_of_file
from memoryhub.hygiene.clusters import sides_of_concerns
from memoryhub.hygiene.concern_rows import rows_of_concerns
from memoryhub.inbox import sources
from memoryhub.inbox.decisions import buttons, noted_imports
from memoryhub.inbox.items import InboxItem
from memoryhub.inbox.seen import seen_hash
from memoryhub.lib.document_size import shown_part
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.diff import diff_lines
from memoryhub.models import Job
from memoryhub.permissions import OPERATOR, has_role, log_page_access
from memoryhub.runs.change_context import change_context
from memoryhub.runs.document_changes import document_changes
from memoryhub.runs.views.edits import edit_context
from memoryhub.runs.views.held_rows import held_row_context
from memoryhub.sync.import_requests import PROBLEM_OUTCOMES
from memoryhub.sync.problem_rows import ProblemRow, problem_rows
from sessions_app.models import ImportProblem, ImportReport, Run, Session, WebhookDelivery, Workspace
from sessions_app.services.access_log import seen_revision

SHOWN_SESSIONS = 10
SHOWN_PROBLEMS = 20
RELATED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "change": (HeldChange, ("document", "base", "ours", "decided_by", "run__session", "run__workspace", "workspace")),
    "row": (HeldRow, ("knowledge", "observation", "key_value", "history_entry", "workspace")),
    "finding": (Concern, ("workspace",)),
    "duplicate": (Concern, ("workspace",)),
    "document": (MemoryDocument, ("workspace", "head", "synced_revision")),
    "run": (Run, ("workspace", "session")),
    "job": (Job, ("workspace",)),
    "import": (ImportReport, ("workspace",)),
    "note": (ImportReport, ("workspace",)),
    "webhook": (WebhookDelivery, ("webhook__workspace",)),
    "late": (Workspace, ()),
    "budget": (Workspace, ()),
    "folder": (Workspace, ()),
}


def load_row(table: str, pk: int) -> Any:
    """Return the row of an item, None if it was deleted."""
    model, related = RELATED[table]
    return model.objects.select_related(*related).filter(pk=pk).first()


def detail_context(request: HttpRequest, item: InboxItem, *, workspaces: Any) -> dict[str, Any]:
    """Return the context of the item's detail; empty if its row was deleted meanwhile."""
    row = load_row(item.row.table, item.row.pk)
    if row is None:
        return {}
    table = item.row.table
    build = CONTEXTS.get(table)
    context = build(request, row, workspaces) if build else {}
    shown = [] if item.refusal else buttons(table, row)
    return context | {
        "template": f"inbox/detail_{TEMPLATES.get(table, 'problem')}.html",
        "row": row,
        "seen": seen_hash(table, row),
        "buttons": shown,
    }


def _change(request: HttpRequest, change: HeldChange, _workspaces: Any) -> dict[str, Any]:
    return change_context(request, change)


def _held_row(request: HttpRequest, held: HeldRow, _workspaces: Any) -> dict[str, Any]:
    return held_row_context(request, held)


def _finding(request: HttpRequest, concern: Concern, _workspaces: Any) -> dict[str, Any]:
    may_forget = has_role(request.user, concern.workspace, OPERATOR)
    [(_, sides)] = rows_of_concerns(concern.workspace, [concern], may_forget=may_forget)
    return {"concern": concern, "sides": sides}


def _duplicate(_request: HttpRequest, concern: Concern, _workspaces: Any) -> dict[str, Any]:
    [(_, _sides, cluster)] = sides_of_concerns(concern.workspace, [concern])
    return {"cluster": cluster}


def _document(request: HttpRequest, document: MemoryDocument, _workspaces: Any) -> dict[str, Any]:
    revisions = [revision for revision in (document.synced_revision, document.head) if revision]
    seen = [seen_revision(document.pk, revision.number) for revision in revisions]
    log_page_access(request, document.workspace, "document.read", seen)
    old = text_of_file(document)
    new = document.head.content if document.head else ""
    url = reverse("documents:document", args=[document.workspace.slug, document.pk])
    diff = diff_lines(masked(shown_part(old)), masked(shown_part(new)), around=2)
    return {"diff": diff, "has_forgotten": BAR in old, "document_url": url}


def _run(request: HttpRequest, run: Run, _workspaces: Any) -> dict[str, Any]:
    changes = document_changes(run)
    seen = [seen_revision(change.document_pk, number) for change in changes for number in change.revisions]
    if seen:
        log_page_access(request, run.workspace, "document.read", seen)
    url = reverse("run", args=[run.workspace.slug, run.pk])
    edit = edit_context(run) if run.kind == Run.Kind.EDIT else None
    reason = run.proposal.get("reason", "") if run.status == Run.Status.HELD else ""
    return {"changes": changes, "error": run.error or reason, "edit": edit, "page_url": url}


def _imports(_request: HttpRequest, report: ImportReport, _workspaces: Any) -> dict[str, Any]:
    return {"reports": _with_problems([report])}


def _notes(_request: HttpRequest, _report: ImportReport, workspaces: Any) -> dict[str, Any]:
    pks = noted_imports(workspaces, timezone.now())
    reports = ImportReport.objects.select_related("workspace").filter(pk__in=pks).order_by("-pk")
    return {"reports": _with_problems(list(reports))}


def _with_problems(reports: list[ImportReport]) -> list[tuple[ImportReport, list[ProblemRow]]]:
    found = ImportProblem.objects.filter(outcome__in=PROBLEM_OUTCOMES).order_by("id")
    return [
        (report, problem_rows(report, list(found.filter(report=report)[:SHOWN_PROBLEMS]), {}))
        for report in reports[:SHOWN_PROBLEMS]
    ]


def _budget(_request: HttpRequest, workspace: Workspace, _workspaces: Any) -> dict[str, Any]:
    rows = sources.over_budget(Workspace.objects.filter(pk=workspace.pk), timezone.now())
    in_context = F("active_tokens") + F("summary_tokens")
    sessions: list[Session] = list(rows.annotate(in_context=in_context).order_by("-in_context")[:SHOWN_SESSIONS])
    return {"sessions": sessions, "page_url": reverse("compress-due", args=[workspace.slug])}


TEMPLATES = {
    "change": "change",
    "row": "row",
    "finding": "finding",
    "duplicate": "duplicate",
    "document": "document",
    "run": "run",
    "import": "imports",
    "note": "imports",
    "budget": "budget",
}
CONTEXTS: dict[str, Callable[[HttpRequest, Any, Any], dict[str, Any]]] = {
    "change": _change,
    "row": _held_row,
    "finding": _finding,
    "duplicate": _duplicate,
    "document": _document,
    "run": _run,
    "import": _imports,
    "note": _notes,
    "budget": _budget,
}

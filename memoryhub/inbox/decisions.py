"""What a person can decide about an item of the inbox: its buttons, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge_app.models import Concern, HeldRow, MemoryDocument
from knowledge_app.services.rows.held_row_decisions import approve_row, remove_row
from memoryhub.hygiene import resolution
from memoryhub.hygiene.rows import ENTRIES
from memoryhub.inbox.dismissals import MAX_CHOSEN, set_dismissed
from memoryhub.inbox.failures import unfixed_imports
from memoryhub.jobs.queue import retry_job
from memoryhub.models import Job
from memoryhub.permissions import by_person
from memoryhub.role_scope import role_scope
from memoryhub.runs.part_decisions import decide_posted, undo_approval_url, undo_url
from memoryhub.runs.review import approve_run
from memoryhub.sync.sync_requests import request_sync
from sessions_app.models import ImportReport, Run, Workspace
from sessions_app.services.runs import cancel_run, dismiss_run, retry_run


@dataclass(frozen=True)
class Button:
    """A decision. ``key``: its shortcut. ``style``: a class of the button."""

    action: str
    label: str | Promise
    key: str = ""
    style: str = ""


@dataclass(frozen=True)
class Outcome:
    """What to tell the person, and where to undo it ("" if it can't be undone).

    ``warning``: what wasn't carried out. ``item``: the key of the item to show next, if not the next one.
    """

    text: str
    undo: str = ""
    warning: str = ""
    item: str = ""


RELEASE = Button("accept", gettext_lazy("Accept"), "a")  # of what was flagged: not what the page suggests
REJECT = Button("reject", gettext_lazy("Reject"), "r", "danger")
VERIFY = Button("verify", gettext_lazy("Still true"), "a", "primary")
WITHDRAW = Button("withdraw", gettext_lazy("Withdraw"), "r", "danger")
SEND = Button("send", gettext_lazy("Send to agent"), "a", "primary")
RETRY = Button("retry", gettext_lazy("Retry"), "a", "primary")
APPROVE = Button("approve", gettext_lazy("Approve"), "a", "primary")
CANCEL = Button("cancel", gettext_lazy("Reject"), "r", "danger")
DISMISS = Button("dismiss", gettext_lazy("Dismiss"), "d", "quiet")


def buttons(table: str, row: Any) -> list[Button]:
    """Return the decisions about an item. Changes, contradictions and duplicates also have forms of their own."""
    if isinstance(row, Concern):
        can_withdraw = not row.other_table and row.table != ENTRIES
        verify = [VERIFY] if row.kind == Concern.Kind.STALE else []
        return [*verify, *([WITHDRAW] if can_withdraw else []), DISMISS]
    if isinstance(row, Run):
        by_status = {Run.Status.PARKED: [RETRY, DISMISS], Run.Status.HELD: [APPROVE, CANCEL]}
        return by_status.get(Run.Status(row.status), [RETRY])
    of_table = {"row": [RELEASE, REJECT], "document": [SEND], "job": [RETRY, DISMISS]}
    return of_table.get(table, [DISMISS] if table in ("import", "note") else [])


def decide(request: HttpRequest, table: str, row: Any, action: str) -> Outcome:
    """Carry out a decision. Raises Http404 for an unknown one, and the errors of its service.

    Raises Conflict if the form's ``seen``, the ``seen_hash`` of the item, isn't that of the texts stored now.
    """
    found = DECISIONS.get((table, action))
    if found is None:
        raise Http404
    return found(request, row, action)


def _change(request: HttpRequest, change: Any, _action: str) -> Outcome:
    posted = decide_posted(request, change)
    decided = posted.decided
    is_undoable = decided.accepted or decided.rejected
    item = f"change-{decided.rest.pk}" if decided.stale and decided.rest else ""
    return Outcome(posted.message, undo_url([change]) if is_undoable else "", posted.warning, item)


def _held_row(request: HttpRequest, held: HeldRow, action: str) -> Outcome:
    seen = request.POST.get("seen", "")
    if action == "accept":
        approval = approve_row(held, seen=seen, by=by_person(request))
        return Outcome(_("Accepted. Agents can use it now."), undo_approval_url(approval))
    run = remove_row(held, seen=seen, by=by_person(request))
    return Outcome(_("Rejected."), _undo(run) if run else "")


def _finding(request: HttpRequest, concern: Concern, action: str) -> Outcome:
    by, pks, seen = by_person(request), [concern.pk], request.POST.get("seen", "")
    if action == "keep-first" or action == "keep-other":
        run = resolution.keep(concern.workspace, pks, other=action == "keep-other", seen=seen, by=by)
    else:
        run = RESOLVE[action](concern.workspace, pks, seen=seen, by=by)
    return _resolved(run)


RESOLVE: dict[str, Callable[..., Run]] = {
    "verify": resolution.verify,
    "withdraw": resolution.withdraw,
    "dismiss": resolution.dismiss,
}


def _duplicate(request: HttpRequest, concern: Concern, action: str) -> Outcome:
    by, workspace, seen = by_person(request), concern.workspace, request.POST.get("seen", "")
    if action == "dismiss":
        return _resolved(resolution.dismiss_cluster(workspace, concern, seen=seen, by=by))
    table, _sign, pk = request.POST.get("stays", "").rpartition("-")
    stays = (table, int(pk) if pk.isascii() and pk.isdigit() else 0)
    text = request.POST.get("text", "")
    return _resolved(resolution.keep_one(workspace, concern, stays=stays, text=text, seen=seen, by=by))


def _resolved(run: Run) -> Outcome:
    if run.is_live:
        return Outcome(_("The background worker is making this change."))
    return Outcome(f"{run.options['along']['words']}.", _undo(run))


def _undo(run: Run) -> str:
    return reverse("undo-run", args=[run.workspace.slug, run.pk])


def _document(request: HttpRequest, document: MemoryDocument, _action: str) -> Outcome:
    request_sync(document.workspace, by=by_person(request), send=True)
    return Outcome(_("Sending %(document)s to the agent.") % {"document": document.name})


def _run(request: HttpRequest, run: Run, action: str) -> Outcome:
    by = by_person(request)
    if action == "retry":
        retry_run(run, by=by)
        return Outcome(_("The run is tried again."))
    if action == "dismiss":
        dismiss_run(run, note="dismissed in the inbox", by=by)
        return Outcome(_("Dismissed."))
    if action == "approve":
        approve_run(run, by=by)
        return Outcome(_("Approved."))
    cancel_run(run, by=by)
    return Outcome(_("Rejected."))


def _job(request: HttpRequest, job: Job, action: str) -> Outcome:
    if action == "retry":
        retry_job(job, by=by_person(request))
        return Outcome(_("The job is tried again."))
    return _dismissed(request, "job", [job.pk])


def _import(request: HttpRequest, report: ImportReport, _action: str) -> Outcome:
    return _dismissed(request, "import", [report.pk])


def _notes(request: HttpRequest, _report: ImportReport, _action: str) -> Outcome:
    """Dismiss the warnings of all imports that the group has for this person."""
    scope = role_scope(request.user)
    workspace: Workspace | None = getattr(request, "memory_workspace", None)
    operated = scope.operated.filter(pk=workspace.pk) if workspace else scope.operated
    pks = noted_imports(operated, by_person(request).at)
    if not pks:
        raise Http404
    return _dismissed(request, "import", pks)


def noted_imports(workspaces: Any, now: Any) -> list[int]:
    """Return the keys of the imports with warnings in some workspaces, the latest first."""
    rows = unfixed_imports(workspaces, now).exclude(status=ImportReport.Status.FAILED)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:MAX_CHOSEN])


def _dismissed(request: HttpRequest, table: str, pks: list[int]) -> Outcome:
    set_dismissed({table: pks}, role_scope(request.user), dismissed=True, by=by_person(request))
    return Outcome(_("Dismissed."), f"{reverse('undo-dismissal')}?{urlencode([(table, pk) for pk in pks])}")


DECISIONS: dict[tuple[str, str], Callable[[HttpRequest, Any, str], Outcome]] = {
    ("change", "parts"): _change,
    ("row", "accept"): _held_row,
    ("row", "reject"): _held_row,
    ("finding", "verify"): _finding,
    ("finding", "withdraw"): _finding,
    ("finding", "dismiss"): _finding,
    ("finding", "keep-first"): _finding,
    ("finding", "keep-other"): _finding,
    ("duplicate", "keep"): _duplicate,
    ("duplicate", "dismiss"): _duplicate,
    ("document", "send"): _document,
    ("run", "retry"): _run,
    ("run", "dismiss"): _run,
    ("run", "approve"): _run,
    ("run", "cancel"): _run,
    ("job", "retry"): _job,
    ("job", "dismiss"): _job,
    ("import", "dismiss"): _import,
    ("note", "dismiss"): _notes,
}

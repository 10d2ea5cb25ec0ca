"""Run pages, and the actions on a run."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseStopPolling

from knowledge_app.models import MemoryRevision
from knowledge_app.services.documents.consolidation import is_due
from memoryhub.jobs.views import work_context
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page
from memoryhub.lib.validation import MAX_REASON
from memoryhub.permissions import EDITOR, by_person, get_session, get_workspace, has_role, log_page_access, person
from memoryhub.runs.compress_preview import preview_compression
from memoryhub.runs.document_changes import document_changes
from memoryhub.runs.executing import undo_run
from memoryhub.runs.forms import CompressForm
from memoryhub.runs.review import approve_run, flagged_text
from memoryhub.runs.views.bulk import ACTIONS, TABS, matching_runs
from memoryhub.runs.views.edits import REDO, edit_context, edit_size, is_undo
from sessions_app.models import Run, Session, Summary
from sessions_app.services.access_log import seen_revision
from sessions_app.services.compressing.model_choice import model_for
from sessions_app.services.runs import cancel_run, dismiss_run, request_run, retry_run


def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    state = request.GET.get("state", "")
    tabs = [(name, label, matching_runs(workspace, name).count()) for name, label in TABS.items()]
    shown = matching_runs(workspace, state).select_related("session")
    context = {
        "workspace": workspace,
        "page": keyset_page(shown, order=("-id",), params=request.GET),
        "tabs": tabs,
        "state": state,
        "count": shown.count(),
        "actions": ACTIONS.get(state, ()),
        "may_edit": has_role(request.user, workspace, EDITOR),
    }
    return render_page(request, "runs/runs.html", context | work_context(request, workspace), fragment="runs")


def run_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = _find(request, slug, pk)
    changes = document_changes(run)
    seen = [seen_revision(change.document_pk, number) for change in changes for number in change.revisions]
    if seen:
        log_page_access(request, run.workspace, "document.read", seen)
    context = {
        "workspace": run.workspace,
        "run": run,
        "changes": changes,
        "proposal": run.proposal,
        "summary": Summary.objects.filter(run=run).first(),
        "may_decide": has_role(request.user, run.workspace, EDITOR),
        "memory_url": _memory_url(run, slug),
        "edit": edit_context(run) if run.kind == Run.Kind.EDIT else None,
    }
    response = render_page(request, "runs/run.html", context, fragment="run")
    if not run.is_live and request.GET.get("poll"):
        return HttpResponseStopPolling(response.content)
    return response


def _memory_url(run: Run, slug: str) -> str:
    revision = MemoryRevision.objects.filter(run=run).order_by("-number").first()
    return reverse("documents:document", args=[slug, revision.document_id]) if revision else ""


def _find(request: HttpRequest, slug: str, pk: int, *, role: str = "viewer") -> Run:
    workspace = get_workspace(request, slug, role=role)
    run: Run = get_object_or_404(Run.objects.select_related("workspace", "session"), workspace=workspace, pk=pk)
    return run


@require_POST
def cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = cancel_run(_find(request, slug, pk, role=EDITOR), by=by_person(request))
    if run.kind == Run.Kind.EDIT:
        text = _("Cancelled. %(done)s of %(total)s rows were changed.")
        messages.info(request, text % {"done": f"{run.edited_rows.count():,}", "total": f"{edit_size(run):,}"})
    return redirect("run", slug, pk)


@require_POST
def retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    retry_run(_find(request, slug, pk, role=EDITOR), by=by_person(request))
    return redirect("run", slug, pk)


@require_POST
def fold_by_rule(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Retry without a model: compress by rule, or archive the messages of a consolidation as they are."""
    run = _find(request, slug, pk, role=EDITOR)
    retry_run(run, by=by_person(request), method="heuristic")
    return redirect("run", slug, pk)


@require_POST
def skip(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Move a consolidation's pointer past messages that its model rejects, with a note in the history."""
    run = _find(request, slug, pk, role=EDITOR)
    note = request.POST.get("note", "").strip()[:MAX_REASON] or "no reason given"
    retry_run(run, by=by_person(request), method="heuristic", note=f"{note} ({person(request).name})")
    return redirect("run", slug, pk)


@require_POST
def dismiss(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    note = request.POST.get("note", "").strip()[:MAX_REASON] or "no reason given"
    dismiss_run(_find(request, slug, pk, role=EDITOR), note=note, by=by_person(request))
    return redirect("run", slug, pk)


@require_POST
def undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Undo a run and redirect to ``next``."""
    run = _find(request, slug, pk, role=EDITOR)
    undone = undo_run(run, by=by_person(request))
    if isinstance(undone, Run) and undone.is_live:
        return redirect("run", slug, undone.pk)
    _report_undone(request, undone, is_redo=is_undo(run))
    back = request.POST.get("next", "")
    is_own = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if is_own else reverse("run", args=[slug, pk]))


def _report_undone(request: HttpRequest, undone: Run | None, *, is_redo: bool) -> None:
    """Report how many rows were restored, and how many weren't because they have changed since.

    ``is_redo``: what was undone had itself undone an edit.
    """
    back = reverse("undo-run", args=[undone.workspace.slug, undone.pk]) if undone else ""
    back += "" if is_redo or not back else REDO
    changed = undone.proposal.get("changed", 0) if undone else 0
    skipped = undone.proposal.get("passed_over", 0) if undone else 0
    if undone is None or not skipped:
        messages.success(request, _("Redone.") if is_redo else _("Undone."), extra_tags=back)
    elif changed:
        text = ngettext(
            "Undone in %(count)s row. %(skipped)s have changed since and were skipped.",
            "Undone in %(count)s rows. %(skipped)s have changed since and were skipped.",
            changed,
        )
        counts = {"count": f"{changed:,}", "skipped": f"{skipped:,}"}
        messages.warning(request, text % counts, extra_tags=back)
    else:
        messages.warning(request, _("Nothing was undone. All rows have changed since."))


@require_POST
def approve(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = _find(request, slug, pk, role=EDITOR)
    if flagged := approve_run(run, by=by_person(request)):
        messages.warning(request, flagged_text(flagged))
    return redirect("run", slug, pk)


def compress(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what a compression would do; on POST, request it."""
    session = get_session(request, slug, pk, role=EDITOR)
    workspace = session.workspace
    model = model_for(workspace)
    initial = {"method": "llm" if model else "heuristic", "keep": workspace.recent_window}
    form = CompressForm(request.POST if request.method == "POST" else request.GET or None, initial=initial)
    form.fields["method"].disabled = model is None
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        method = "heuristic" if model is None else values["method"]
        options = {"method": method, "keep": values["keep"], "hold": values["hold"]}
        run, _ = request_run(session, Run.Kind.COMPRESSION, options=options, by=by_person(request))
        return redirect("run", slug, run.pk)
    values = form.cleaned_data if form.is_bound and form.is_valid() else {}
    method = values.get("method") or form.initial["method"]
    keep = values.get("keep") or workspace.recent_window
    context = {
        "workspace": workspace,
        "session": session,
        "form": form,
        "model": model,
        "preview": preview_compression(session, keep=keep, by_model=model is not None and method == "llm"),
    }
    status = 422 if request.method == "POST" else 200
    return render_page(request, "runs/compress.html", context, fragment="plan", status=status)


@require_POST
def consolidate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    session = get_session(request, slug, pk, role=EDITOR)
    options = {name: True for name in ("archive_all", "hold") if request.POST.get(name)}
    run, _ = request_run(session, Run.Kind.CONSOLIDATION, options=options, by=by_person(request))
    return redirect("run", slug, run.pk)


@require_POST
def consolidate_due(request: HttpRequest, slug: str) -> HttpResponse:
    """Request the consolidation of every due session of a workspace."""
    workspace = get_workspace(request, slug, role=EDITOR)
    active = Session.objects.filter(workspace=workspace, archived_at=None)
    sessions = active.filter(next_position__gt=F("last_consolidated"))
    due = [session for session in sessions.select_related("workspace").order_by("id") if is_due(session)]
    for session in due:
        request_run(session, Run.Kind.CONSOLIDATION, options={}, by=by_person(request))
    text = ngettext(
        "%(count)s session is being consolidated.", "%(count)s sessions are being consolidated.", len(due)
    )
    messages.success(request, text % {"count": f"{len(due):,}"} if due else _("No session is due."))
    return redirect("runs", slug)

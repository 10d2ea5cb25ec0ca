from __future__ import annotations

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from memoryhub.lib.charts import Mark, Minimap, Stretch, minimap
from memoryhub.lib.gate import json_text
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pages import number_of
from sessions_app.access import get_workspace, has_role
from sessions_app.forms import AppendForm
from sessions_app.models import AuditRecord, Entry, Membership, Session, Summary
from sessions_app.services.stats import figures_of
from sessions_app.services.transcript import PAGE_ENTRIES, Transcript, read_transcript

MAX_MAPPED_SUMMARIES = 200


def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    epochs = _epochs(session)
    epoch = number_of(request.GET.get("epoch"), digits=9)
    transcript = read_transcript(
        session, epoch=session.epoch if epoch is None else epoch, start=number_of(request.GET.get("from"), digits=9)
    )
    context = {
        "workspace": workspace,
        "session": session,
        "figures": figures_of(session),
        "epochs": epochs if len(epochs) > 1 else [],
        "transcript": transcript,
        "epoch_summary": _summary_text(session, transcript.epoch),
        "newest": _newest_record(session),
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
        "may_delete": has_role(request.user, workspace, Membership.Role.OPERATOR),
        "append_form": AppendForm(),
        "map": _map(session, transcript),
        "pages": _pages(transcript),
        "sources": session.source_files.order_by("path"),
        "extra": [(name, json_text(value)) for name, value in session.extra.items() if name != "checkpoint"],
        "checkpoint": json_text(session.extra["checkpoint"]) if "checkpoint" in session.extra else "",
    }
    return render_page(request, "sessions_app/detail.html", context, fragment="transcript")


def entry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The address of one entry for ever: it leads to the entry's place in its conversation."""
    workspace = get_workspace(request, slug)
    found = get_object_or_404(Entry, workspace=workspace, pk=pk)
    start = found.position - found.position % PAGE_ENTRIES
    page = reverse("sessions:detail", args=[slug, found.session_id])
    return redirect(f"{page}?epoch={found.epoch}&from={start}#entry-{found.pk}")


def _epochs(session: Session) -> list[dict[str, int]]:
    """Return the epochs that have entries, and the current one though it may have none yet."""
    counted = Entry.objects.filter(session=session).values("epoch").annotate(entries=Count("id")).order_by("epoch")
    epochs = [{"epoch": row["epoch"], "entries": row["entries"]} for row in counted]
    if not any(row["epoch"] == session.epoch for row in epochs):
        epochs.append({"epoch": session.epoch, "entries": 0})
    return epochs


def _summary_text(session: Session, epoch: int) -> str:
    """Return the agent's own text for what came before an epoch's entries; a clear keeps it with its epoch."""
    if epoch == session.epoch:
        return session.summary_text
    kept = Summary.objects.filter(session=session, epoch=epoch, entry_count=0, run=None, source_id="")
    return kept.values_list("content", flat=True).first() or ""


def _newest_record(session: Session) -> int:
    told = AuditRecord.objects.filter(session=session).order_by("-id")
    return told.values_list("id", flat=True).first() or 0


def _pages(transcript: Transcript) -> dict[str, str]:
    """Return the addresses for includes/pagination.html: pages begin at multiples of their size."""

    def url(start: int | None) -> str:
        return "" if start is None else f"?epoch={transcript.epoch}&from={start}"

    last = max(0, (transcript.length - 1) // PAGE_ENTRIES * PAGE_ENTRIES)
    return {
        "previous_url": url(transcript.previous),
        "next_url": url(transcript.next),
        "first_url": url(0) if transcript.start else "",
        "last_url": url(last) if transcript.next is not None else "",
    }


def _map(session: Session, transcript: Transcript) -> Minimap:
    """Draw where the pointer and the summaries lie in the epoch at hand."""
    length = transcript.length
    pointer = session.last_consolidated if transcript.epoch == session.epoch else length
    kind, words = (
        ("consolidated", "consolidated") if transcript.epoch == session.epoch else ("dropped", "earlier epoch")
    )
    stretches = [Stretch(kind, 0, pointer - 1, f"{pointer:,} entries {words}", _at(transcript, 0))] if pointer else []
    if pointer < length:
        href = _at(transcript, pointer)
        stretches.append(Stretch("live", pointer, length - 1, f"{length - pointer:,} entries in the context", href))
    summaries = Summary.objects.filter(session=session, epoch=transcript.epoch, entry_count__gt=0)
    for summary in summaries.order_by("first_position")[:MAX_MAPPED_SUMMARIES]:
        words = f"entries {summary.first_position} to {summary.last_position} folded"
        href = _at(transcript, summary.first_position)
        stretches.append(Stretch("folded", summary.first_position, summary.last_position, words, href))
    marks = [Mark("pointer", pointer, f"pointer at {pointer:,}")] if 0 < pointer < length else []
    return minimap(stretches, marks, length=max(length, 1))


def _at(transcript: Transcript, position: int) -> str:
    return f"?epoch={transcript.epoch}&from={position - position % PAGE_ENTRIES}"

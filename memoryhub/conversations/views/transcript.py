from __future__ import annotations

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods

from memoryhub.conversations.forms import AppendForm
from memoryhub.conversations.relatives import relatives_of
from memoryhub.lib.charts import EntryRange, Mark, Minimap, minimap
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.extra_fields import extra_fields
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.masked_text import masked
from memoryhub.lib.validation import json_text
from memoryhub.permissions import get_workspace, has_role, log_page_access, record_reveal
from sessions_app.models import Entry, Membership, Session, Summary, Workspace
from sessions_app.services.access_log import ENTRIES, Seen, seen_rows
from sessions_app.services.stats import figures_of
from sessions_app.services.transcript import PAGE_ENTRIES, Transcript, read_transcript

MAX_MAPPED_SUMMARIES = 200
LATE_TURNS = 20  # earlier calls without a result aren't expected to get one


def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a page of a transcript with its secrets masked."""
    return _page(request, get_workspace(request, slug), pk, is_revealed=False)


@require_http_methods(["GET", "POST"])
def reveal(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a page of a transcript with its secrets once, and record it. Reloading redirects to the transcript."""
    if request.method == "GET":
        get_workspace(request, slug)
        return redirect("sessions:detail", slug, pk)
    workspace = get_workspace(request, slug, role=Membership.Role.EDITOR)
    session: Session = get_object_or_404(Session, workspace=workspace, pk=pk)
    record_reveal(request, workspace, f"the session {session.key}")
    return _page(request, workspace, pk, is_revealed=True)


def _page(request: HttpRequest, workspace: Workspace, pk: int, *, is_revealed: bool) -> HttpResponse:
    session: Session = get_object_or_404(
        Session.objects.select_related("workspace", "parent", "forked_from"), workspace=workspace, pk=pk
    )
    epochs = _epochs(session)
    epoch = parse_int(request.GET.get("epoch"), digits=9)
    transcript = read_transcript(
        session,
        epoch=session.epoch if epoch is None else epoch,
        start=parse_int(request.GET.get("from"), digits=9),
        show=show_invisible if is_revealed else masked,
    )
    log_page_access(request, workspace, "entries.read", _seen(session, transcript))
    context = {
        "workspace": workspace,
        "session": session,
        "figures": figures_of(session),
        "epochs": epochs if len(epochs) > 1 else [],
        "transcript": transcript,
        "is_revealed": is_revealed,
        "epoch_summary": _summary_text(session, transcript.epoch),
        "live_url": _live_url(session, transcript, request.newest_record),  # type: ignore[attr-defined]
        "arrivals_url": _arrivals_url(session, transcript) if _is_last_page(session, transcript) else "",
        "session_event": f"session-{session.pk} any-session",
        "may_edit": has_role(request.user, workspace, Membership.Role.EDITOR),
        "may_delete": has_role(request.user, workspace, Membership.Role.OPERATOR),
        "append_form": AppendForm(),
        "map": _map(session, transcript),
        "pages": _pages(transcript),
        "sources": session.source_files.order_by("path"),
        "relatives": relatives_of(session),
        "extra": [field for field in extra_fields(session) if field[0] != "checkpoint"],
        "checkpoint": json_text(session.extra["checkpoint"]) if "checkpoint" in session.extra else "",
    }
    return render_page(request, "conversations/detail.html", context, fragment="transcript")


def _seen(session: Session, transcript: Transcript) -> list[Seen]:
    """Return the entries of a page, including tool results beyond its end, and its summaries."""
    turns = [turn for stretch in transcript.stretches for turn in stretch.turns]
    results = [call.result for turn in turns for call in turn.calls if call.result]
    beyond = sorted({result.position for result in results if result.position >= transcript.end})
    spans = [(transcript.start, transcript.end - 1)] if transcript.end > transcript.start else []
    spans += [(position, position) for position in beyond]
    summaries = [stretch.summary.pk for stretch in transcript.stretches if stretch.summary]
    entries = [Seen(ENTRIES, first, last, session.pk, transcript.epoch) for first, last in spans]
    return entries + seen_rows("summaries", summaries)


def entry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Redirect an entry's permanent URL to its place in the transcript."""
    workspace = get_workspace(request, slug)
    found = get_object_or_404(Entry, workspace=workspace, pk=pk)
    start = found.position - found.position % PAGE_ENTRIES
    page = reverse("sessions:detail", args=[slug, found.session_id])
    return redirect(f"{page}?epoch={found.epoch}&from={start}#entry-{found.pk}")


def _epochs(session: Session) -> list[dict[str, int]]:
    """Return the epochs with entries, and the current epoch."""
    counted = Entry.objects.filter(session=session).values("epoch").annotate(entries=Count("id")).order_by("epoch")
    epochs = [{"epoch": row["epoch"], "entries": row["entries"]} for row in counted]
    if not any(row["epoch"] == session.epoch for row in epochs):
        epochs.append({"epoch": session.epoch, "entries": 0})
    return epochs


def _summary_text(session: Session, epoch: int) -> str:
    """Return the agent's own summary text of an epoch. Clearing a session stores it as a summary."""
    if epoch == session.epoch:
        return session.summary_text
    kept = Summary.objects.filter(session=session, epoch=epoch, entry_count=0, run=None, source_id="")
    return kept.values_list("content", flat=True).first() or ""


def arrivals(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Return the new turns of an open transcript, from its last incomplete turn; 204 if there are none."""
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session.objects.select_related("workspace"), workspace=workspace, pk=pk)
    epoch, start = (parse_int(request.GET.get(name), digits=9) or 0 for name in ("epoch", "from"))
    if epoch != session.epoch or session.next_position <= start:
        return HttpResponse(status=204)
    transcript = read_transcript(session, epoch=epoch, start=start)
    context = {
        "workspace": workspace,
        "session": session,
        "transcript": transcript,
        "is_revealed": False,
        "figures": figures_of(session),
        "arrivals_url": _arrivals_url(session, transcript),
    }
    return render(request, "conversations/arrivals.html", context)


def _is_last_page(session: Session, transcript: Transcript) -> bool:
    return transcript.epoch == session.epoch and transcript.next is None


def _arrivals_url(session: Session, transcript: Transcript) -> str:
    """Return the URL of new turns: from the first recent call without a result, else after the last entry."""
    turns = [turn for stretch in transcript.stretches for turn in stretch.turns][-LATE_TURNS:]
    unanswered = (turn.entry.position for turn in turns if any(call.result is None for call in turn.calls))
    start = next(unanswered, transcript.end)
    page = reverse("sessions:arrivals", args=[session.workspace.slug, session.pk])
    return f"{page}?epoch={transcript.epoch}&from={start}"


def _live_url(session: Session, transcript: Transcript, newest: int) -> str:
    page = reverse("session-live", args=[session.workspace.slug, session.pk])
    has_later_pages = transcript.epoch == session.epoch and transcript.next is not None
    return f"{page}?after={newest}" + (f"&length={session.next_position}" if has_later_pages else "")


def _pages(transcript: Transcript) -> dict[str, str]:
    """Return the URLs for includes/pagination.html. Pages begin at multiples of their size."""

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
    """Return a map of the epoch with its pointer and summaries."""
    length = transcript.length
    pointer = session.last_consolidated if transcript.epoch == session.epoch else length
    kind = "consolidated" if transcript.epoch == session.epoch else "dropped"
    ranges = [EntryRange(kind, 0, pointer - 1, _count(kind, pointer), _at(transcript, 0))] if pointer else []
    if pointer < length:
        href = _at(transcript, pointer)
        ranges.append(EntryRange("live", pointer, length - 1, _count("live", length - pointer), href))
    summaries = Summary.objects.filter(session=session, epoch=transcript.epoch, entry_count__gt=0)
    for summary in summaries.order_by("first_position")[:MAX_MAPPED_SUMMARIES]:
        first, last = summary.first_position, summary.last_position
        label = gettext("messages %(first)s to %(last)s summarised") % {"first": first, "last": last}
        ranges.append(EntryRange("folded", first, last, label, _at(transcript, first)))
    label = gettext("pointer at %(position)s") % {"position": f"{pointer:,}"}
    marks = [Mark("pointer", pointer, label)] if 0 < pointer < length else []
    return minimap(ranges, marks, length=max(length, 1))


def _count(kind: str, count: int) -> str:
    """Return the label of a range of the map."""
    labels = {
        "consolidated": ngettext("%(count)s message consolidated", "%(count)s messages consolidated", count),
        "dropped": ngettext("%(count)s message in earlier parts", "%(count)s messages in earlier parts", count),
        "live": ngettext("%(count)s message in context", "%(count)s messages in context", count),
    }
    return labels[kind] % {"count": f"{count:,}"}


def _at(transcript: Transcript, position: int) -> str:
    return f"?epoch={transcript.epoch}&from={position - position % PAGE_ENTRIES}"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.text import slugify
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from knowledge_app.models import Fact, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.delivery import delivery_of, delivery_of_fact
from knowledge_app.services.documents.revisions import record_reveal
from memoryhub.documents.views.header import document_context, facts_url
from memoryhub.jobs.queue import LIVE
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.date_ranges import read_day
from memoryhub.lib.document_size import is_oversize, shown_part
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.lib.text.diff import diff_lines
from memoryhub.lib.text.facts import FactLine, Section, fact_lines, split_sections
from memoryhub.lib.text.markdown import MAX_RENDERED_CHARS, render_linked_markdown
from memoryhub.models import Job
from memoryhub.permissions import EDITOR, OPERATOR, by_person, get_workspace, has_role, log_page_access
from sessions_app.models import Workspace
from sessions_app.services.access_log import seen_revision

MAX_SECTIONS = 200  # larger documents are shown as one text


@dataclass(frozen=True)
class ShownSection:
    anchor: str
    title: str
    html: SafeString
    fact_count: int
    categories: list[str]


def delivery_context(request: HttpRequest, document: MemoryDocument, fact: Fact | None = None) -> dict[str, Any]:
    """Return the context of ``documents/delivery.html``, of a document or one of its facts."""
    workspace = document.workspace
    syncs = Job.objects.filter(workspace=workspace, kind=Job.Kind.SYNC, status__in=LIVE)
    delivery = delivery_of_fact(fact) if fact else delivery_of(document)
    return {
        "delivery": delivery,
        "is_sending": delivery is not None and delivery.state == "ahead" and (workspace.is_two_way or syncs.exists()),
        "may_send": has_role(request.user, workspace, EDITOR if workspace.write_back else OPERATOR),
    }


def delivery(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Tell an open page whether the agent's file has the document's text."""
    workspace = get_workspace(request, slug)
    rows = MemoryDocument.objects.select_related("head", "workspace")
    found = get_object_or_404(rows, workspace=workspace, pk=pk)
    context = {"workspace": workspace, "document": found} | delivery_context(request, found)
    return render(request, "documents/delivery.html", context)


def document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a document, or one of its revisions, with its secrets masked."""
    return _page(request, get_workspace(request, slug), pk, masked)


@require_http_methods(["GET", "POST"])
def reveal(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show a document with its secrets once, and record it in the audit log. Reloading redirects to the document."""
    if request.method == "GET":
        get_workspace(request, slug)
        return redirect("documents:document", slug, pk)
    workspace = get_workspace(request, slug, role=EDITOR)
    found = get_object_or_404(MemoryDocument.objects.select_related("head"), workspace=workspace, pk=pk)
    if found.head is not None:
        record_reveal(by_person(request), found, found.head)
    return _page(request, workspace, pk, show_invisible)


def _page(request: HttpRequest, workspace: Workspace, pk: int, show: Callable[[str], str]) -> HttpResponse:
    rows = MemoryDocument.objects.select_related("head__proposal", "workspace")
    found = get_object_or_404(rows, workspace=workspace, pk=pk)
    shown: MemoryRevision | None = found.head
    if as_of := read_day(request.GET.get("as_of", "")):
        shown = found.revisions.filter(created_at__date__lte=as_of).order_by("-number").first() or shown
    if number := request.GET.get("revision"):
        shown = get_object_or_404(found.revisions, number=parse_int(number, digits=9) or 0)
    text = show(shown_part(shown.content)) if shown else ""
    before = found.revisions.filter(number=shown.number - 1).first() if shown and shown.number > 1 else None
    wants_diff = "diff" in request.GET and before is not None
    read = [shown, *([before] if wants_diff else [])]
    log_page_access(request, workspace, "document.read", [seen_revision(found.pk, one.number) for one in read if one])
    is_head = shown == found.head
    is_source = request.GET.get("view") == "source"
    context = document_context(request, found, "read" if is_head and not wants_diff else "history") | {
        "shown": shown,
        "is_head": is_head,
        "is_source": is_source,
        "before": before,
        "diff": diff_lines(show(shown_part(before.content)), text) if wants_diff and before else None,
        "sections": [] if wants_diff or is_source else _sections(text, _fact_links(found) if is_head else {}),
        "text": text,
        "is_masked": show is masked
        and (any(one and has_secrets(shown_part(one.content)) for one in read[1:]) or _is_changed(text, shown)),
        "is_revealed": show is not masked,
        "is_cut": any(one and is_oversize(one.content) for one in read),
        "has_raw": bool(shown and shown.raw is not None),
        "held": _held(found).first(),
        "held_count": _held(found).count(),
    }
    context |= delivery_context(request, found)
    return render_page(request, "documents/document.html", context, fragment="document")


def _held(document: MemoryDocument) -> QuerySet[HeldChange]:
    pending = document.held_changes.filter(status=HeldChange.Status.PENDING)
    return pending.defer("proposed", "raw").order_by("-id")


def _is_changed(text: str, shown: MemoryRevision | None) -> bool:
    """Tell whether a shown text has masked parts."""
    return shown is not None and text != show_invisible(shown_part(shown.content))


def document_news(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Tell an open page or editor that the document has a newer revision."""
    workspace = get_workspace(request, slug)
    found = get_object_or_404(MemoryDocument.objects.select_related("head"), workspace=workspace, pk=pk)
    since = parse_int(request.GET.get("since"), digits=9) or 0
    context = {
        "workspace": workspace,
        "document": found,
        "since": since,
        "is_new": found.head is not None and found.head.number > since,
        "is_editing": "editing" in request.GET,
    }
    return render(request, "documents/document_news.html", context)


def _fact_links(document: MemoryDocument) -> dict[int, str]:
    """Return the pages of a document's present facts by line."""
    facts = Fact.objects.filter(document=document, died=None).values_list("line", "pk")
    start = facts_url(document.workspace.slug)
    return {line: f"{start}{pk}/" for line, pk in facts}


def _sections(text: str, links: dict[int, str]) -> list[ShownSection]:
    """Return the parts of a text that are shown rendered; none if the text is too large.

    ``links``: the page of each fact by line.
    """
    sections = split_sections(text)
    if len(text) > MAX_RENDERED_CHARS or len(sections) > MAX_SECTIONS:
        return []
    lines = text.split("\n")
    facts = {fact.line: fact for fact in fact_lines(text)}
    shown = [_shown(section, number, lines, facts, links) for number, section in enumerate(sections)]
    return [section for section, source in shown if source.strip()]


def _shown(
    section: Section, number: int, lines: list[str], facts: dict[int, FactLine], links: dict[int, str]
) -> tuple[ShownSection, str]:
    """Return a section as it is shown, and its source."""
    source = "\n".join(lines[section.start - 1 : section.end - 1])
    numbers = range(section.start, section.end)
    own = [facts[line] for line in numbers if line in facts]
    categories = sorted({fact.category for fact in own if fact.category})
    anchor = f"section-{number}-{slugify(section.title, allow_unicode=True)}".rstrip("-")
    of_section = {line - section.start + 1: links[line] for line in numbers if line in links}
    shown = render_linked_markdown(source, of_section, gettext("About this fact"))
    return ShownSection(anchor, section.title, shown, len(own), categories), source

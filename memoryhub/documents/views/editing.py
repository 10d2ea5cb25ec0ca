from __future__ import annotations

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from knowledge_app.models import Fact, FactSource, MemoryDocument
from knowledge_app.services.documents.compaction import apply_compaction, plan_compaction
from knowledge_app.services.documents.editing import (
    NAMES,
    EditConflict,
    bring_back,
    restore_revision,
    revise_fact,
    save_text,
    start_document,
)
from knowledge_app.services.documents.limits import excesses, limits_of
from knowledge_app.services.documents.revisions import content_hash, record_reveal
from memoryhub.documents.blame_runs import PAGE_LINES, blame_runs
from memoryhub.documents.forms import EditForm, FactForm
from memoryhub.documents.views.facts import undo_url
from memoryhub.documents.views.header import document_context, facts_url, find_document
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.document_size import MAX_DOCUMENT_CHARS, is_oversize, shown_fact, shown_part
from memoryhub.lib.errors import LimitExceeded, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int, parse_ints
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.lib.text.diff import diff_lines
from memoryhub.lib.text.facts import split_sections
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from memoryhub.permissions import by_person, get_workspace, log_page_access
from sessions_app.models import Entry, Membership, Session
from sessions_app.services.access_log import seen_entries, seen_revision, seen_rows

EDITOR = Membership.Role.EDITOR
MAX_SOURCES = 1_000  # shown per session
MAX_FIRST_PREVIEW = 10_000  # characters; the browser asks for the preview of a longer text when it has the page
THRESHOLDS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1")


def _log_read(request: HttpRequest, document: MemoryDocument) -> None:
    if document.head:
        seen = [seen_revision(document.pk, document.head.number)]
        log_page_access(request, document.workspace, "document.read", seen)


def _leads_back(request: HttpRequest, document: MemoryDocument) -> bool:
    """Tell whether a document is oversize, and flash a message about it."""
    if document.head is None or not is_oversize(document.head.content):
        return False
    words = gettext("%(document)s is too long for this page. Documents can have at most %(most)s characters.")
    messages.error(request, words % {"document": document.name, "most": f"{MAX_DOCUMENT_CHARS:,}"})
    return True


@require_POST
def start(request: HttpRequest, slug: str) -> HttpResponse:
    """Create a document for which the agent has no file yet."""
    workspace = get_workspace(request, slug, role=EDITOR)
    name = request.POST.get("name", "")
    document = start_document(workspace, name if name in NAMES else NAMES[0])
    return redirect("documents:edit-document", slug, document.pk)


def edit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Edit a document; a save is merged with concurrent changes, or shows both texts on a conflict."""
    document = find_document(request, slug, pk, role=EDITOR)
    if _leads_back(request, document):
        return redirect("documents:document", slug, pk)
    head = document.head
    start_values = {"text": head.content if head else "", "base": head.number if head else 0}
    form = EditForm(request.POST or None, initial=start_values)
    context = document_context(request, document, "edit") | {"form": form, "conflict": None}
    context |= {"limits": limits_of(document), "over_limit": _unconfirmed_excesses(request, document, form)}
    status = 200
    if form.is_bound and form.is_valid():
        try:
            saved = save_text(
                document,
                form.cleaned_data["text"],
                base_number=form.cleaned_data["base"],
                by=by_person(request),
                reason=form.cleaned_data["reason"] or "edited on its page",
            )
        except LimitExceeded as error:
            form.add_error(None, error.message)
            status = 422
        except EditConflict as error:
            conflict = diff_lines(show_invisible(error.base), show_invisible(error.head.content))
            data = request.POST.copy()
            data["base"] = str(error.head.number)
            context |= {"form": EditForm(data), "conflict": conflict, "head": error.head}
            status = 422
        else:
            _flash_saved(request, saved.revision is not None, is_merged=saved.is_merged)
            return redirect(f"{reverse('documents:document', args=[slug, pk])}?saved=1")
    elif form.is_bound:
        status = 422
    _log_read(request, document)
    text = str(context["form"]["text"].value() or "")
    if not form.is_bound and head is not None and has_secrets(head.content):
        record_reveal(by_person(request), document, head)
    context["preview"] = render_markdown(text) if len(text) <= MAX_FIRST_PREVIEW else None
    return render_page(request, "documents/edit.html", context, status=status)


def _unconfirmed_excesses(request: HttpRequest, document: MemoryDocument, form: EditForm) -> list[str]:
    """Return by how much a posted text is over the document's limits, and add an error to the form.

    Nothing if the person confirmed it. Saving itself refuses a text that the agent would refuse.
    """
    if document.separator or "over_limit" in request.POST or not (form.is_bound and form.is_valid()):
        return []
    over = excesses(document, form.cleaned_data["text"])
    if over:
        form.add_error(None, gettext("The agent doesn't read all of this text. Nothing was saved."))
    return over


def _flash_saved(request: HttpRequest, is_changed: bool, *, is_merged: bool) -> None:  # noqa: FBT001  private
    message = gettext("Saved and merged with other changes.") if is_merged else gettext("Saved.")
    messages.success(request, message if is_changed else gettext("No changes."))


@require_POST
def preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    find_document(request, slug, pk)
    context = {"preview": render_markdown(request.POST.get("text", "")[:MAX_DOCUMENT_CHARS])}
    return render(request, "documents/edit.html#preview", context)  # always a part of a page


@require_POST
def restore(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    document = find_document(request, slug, pk, role=EDITOR)
    get_object_or_404(document.revisions, number=number)
    base = parse_int(request.POST.get("base"), digits=9)
    try:
        restored = restore_revision(document, number, by=by_person(request), base_number=base)
    except MemoryHubError as error:
        messages.error(request, error.message)
        return redirect("documents:revisions", slug, pk)
    if restored:
        message = gettext("Revision %(number)s restored as revision %(as_number)s.")
        messages.success(request, message % {"number": number, "as_number": restored.number})
    else:
        messages.success(request, gettext("This revision is the current one."))
    return redirect("documents:document", slug, pk)


def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    document = find_document(request, slug, pk)
    revisions = list(
        document.revisions.order_by("-number").only("number", "reason", "created_at", "author_name")[:500]
    )
    newest = revisions[0].number if revisions else 0
    old = get_object_or_404(document.revisions, number=parse_int(request.GET.get("from")) or max(1, newest - 1))
    new = get_object_or_404(document.revisions, number=parse_int(request.GET.get("to")) or newest)
    seen = [seen_revision(document.pk, revision.number) for revision in (old, new)]
    log_page_access(request, document.workspace, "document.read", seen)
    context = document_context(request, document, "compare") | {
        "revisions": revisions,
        "old": old,
        "new": new,
        "diff": diff_lines(*(masked(shown_part(one.content)) for one in (old, new))),
        "is_cut": is_oversize(old.content) or is_oversize(new.content),
    }
    return render_page(request, "documents/compare.html", context)


def blame(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    document = find_document(request, slug, pk)
    if _leads_back(request, document):
        return redirect("documents:document", slug, pk)
    texts = masked(document.head.content).split("\n") if document.head else []
    first = min(max(1, parse_int(request.GET.get("from"), digits=9) or 1), max(1, len(texts)))
    last = min(first + PAGE_LINES - 1, len(texts))
    _log_read(request, document)
    context = document_context(request, document, "origins") | {
        "runs": blame_runs(document, texts, first=first),
        "facts_url": facts_url(slug),
        "first": first,
        "last": last,
        "count": len(texts),
        "previous": max(1, first - PAGE_LINES) if first > 1 else None,
        "next": last + 1 if last < len(texts) else None,
        "next_last": min(last + PAGE_LINES, len(texts)),
    }
    return render_page(request, "documents/blame.html", context, fragment="blame-part")


def edit_fact_line(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Reword, categorise or move a fact. A text that somebody else has changed meanwhile is shown before it is saved.

    If the fact was replaced since the link was shown, lead to the current facts.
    """
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = Fact.objects.select_related("document__head")
    fact: Fact = get_object_or_404(rows, workspace=workspace, pk=pk)
    if fact.died_id is not None:
        messages.info(request, gettext("This fact has changed or was removed. These are the current facts."))
        return redirect("documents:facts", slug, fact.document_id)
    content = fact.document.head.content if fact.document.head else ""
    titles = list(dict.fromkeys(section.title for section in split_sections(content)))
    start_values = {"text": fact.text, "category": fact.category, "section": fact.section}
    form = FactForm(request.POST or None, initial=start_values, sections=titles)
    based_on = content_hash(fact.text)
    is_outdated = request.POST.get("based_on", based_on) != based_on
    if is_outdated:
        words = gettext("Someone else has changed this fact. It now reads: %(text)s Save again to replace it.")
        form.add_error(None, words % {"text": f"“{masked(shown_fact(fact.text))}”."})
    elif form.is_bound and form.is_valid():
        try:
            edited, revision = revise_fact(fact, **form.cleaned_data, by=by_person(request))
        except MemoryHubError as error:
            form.add_error(None, error.message)
        else:
            messages.success(
                request, gettext("Saved."), extra_tags=undo_url(fact.document, revision.number, edited.pk)
            )
            return redirect(f"{reverse('documents:fact', args=[slug, edited.pk])}?saved=1")
    context = {"workspace": workspace, "document": fact.document, "fact": fact, "form": form, "based_on": based_on}
    return render_page(request, "documents/fact_edit.html", context, status=422 if form.errors else 200)


def compact(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show near-duplicate lines and remove the selected ones."""
    document = find_document(request, slug, pk, role=EDITOR)
    if _leads_back(request, document):
        return redirect("documents:document", slug, pk)
    if request.method == "POST":
        chosen = parse_ints(request.POST.getlist("line"))
        if document.head and request.POST.get("base") != str(document.head.number):
            messages.error(request, gettext("The document has changed. Review the duplicates again."))
            return redirect("documents:compact", slug, pk)
        revision = apply_compaction(document, chosen, by=by_person(request))
        if revision:
            message = gettext("Duplicates removed in revision %(number)s. They can still be found and restored.")
            messages.success(request, message % {"number": revision.number})
        else:
            messages.success(request, gettext("Nothing selected."))
        return redirect("documents:document", slug, pk)
    requested = request.GET.get("threshold", "")
    threshold = float(requested) if requested in THRESHOLDS else DEFAULT_THRESHOLD
    _log_read(request, document)
    context = document_context(request, document, "facts") | {
        "found": plan_compaction(document, threshold=threshold),
        "thresholds": THRESHOLDS,
        "threshold": f"{threshold:g}",
    }
    return render_page(request, "documents/compact.html", context)


@require_POST
def return_fact(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Restore a removed fact."""
    workspace = get_workspace(request, slug, role=EDITOR)
    fact = get_object_or_404(Fact, workspace=workspace, pk=pk, died__isnull=False)
    try:
        bring_back(fact, by=by_person(request))
        messages.success(request, gettext("Fact restored."))
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect("documents:document", slug, fact.document_id)


def learnt(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The facts learned from a session, each with its source messages."""
    workspace = get_workspace(request, slug)
    session: Session = get_object_or_404(Session, workspace=workspace, pk=pk)
    sources = FactSource.objects.filter(
        Q(entry__session=session) | Q(run__session=session), fact__workspace=workspace
    )
    by_fact: dict[int, tuple[Fact, list[Entry]]] = {}
    rows = sources.select_related("fact__document", "fact__died", "fact__born", "entry").order_by("-fact_id", "id")
    for source in rows[:MAX_SOURCES]:
        _, entries = by_fact.setdefault(source.fact_id, (source.fact, []))
        entries += [source.entry] if source.entry and source.entry.session_id == session.pk else []
    facts = [(fact, masked(shown_fact(fact.text)), entries) for fact, entries in by_fact.values()]
    said = [entry for _, entries in by_fact.values() for entry in entries]
    log_page_access(request, workspace, "facts.read", seen_rows("facts", by_fact) + seen_entries(said))
    context = {"workspace": workspace, "session": session, "facts": facts}
    return render_page(request, "documents/learnt.html", context)

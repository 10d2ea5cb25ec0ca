"""Curate the facts of a document, one by one or in bulk."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from knowledge_app.models import Fact, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.fact_edits import Revised, recategorise_facts, undo_revision, withdraw_facts
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.documents.views.documents import delivery_context
from memoryhub.documents.views.header import document_context, facts_url, find_document
from memoryhub.edit_responses import EXPORT, REVIEW, VERIFY, answer_edit, export_chosen, list_address
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.date_ranges import parse_day
from memoryhub.lib.document_size import shown_fact
from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import encode_cursor, keyset_page, parse_int, parse_ints
from memoryhub.lib.masked_text import masked
from memoryhub.permissions import by_person, log_page_access
from memoryhub.runs.views.edits import REDO
from sessions_app.models import Membership, Run
from sessions_app.services.access_log import seen_rows

EDITOR = Membership.Role.EDITOR
UNREAD = ("born__content", "born__raw", "corrected__content", "corrected__raw")
ACTIONS = (
    Action("pin", gettext_lazy("Pin")),
    Action("unpin", gettext_lazy("Unpin")),
    VERIFY,
    REVIEW,
    Action("recategorise", gettext_lazy("Category"), asks="text", label=gettext_lazy("Category (empty: none)")),
    Action("remove", gettext_lazy("Withdraw"), asks="text", label=gettext_lazy("Why (optional)")),
    EXPORT,
)
EDITS = ("pin", "unpin", "verify", "review")  # change only the fact's row; other actions change the text


def facts(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """List the facts of a document."""
    document = find_document(request, slug, pk)
    current = _matching(document, request)
    page = keyset_page(
        current.select_related("born", "corrected").defer(*UNREAD),
        order=("line", "id"),
        params=_from_fact(current, request.GET),
    )
    log_page_access(request, document.workspace, "facts.read", seen_rows("facts", [fact.pk for fact in page.rows]))
    context = document_context(request, document, "facts") | {
        "state": request.GET.get("state", ""),
        "page": page,
        "count": current.count(),
        "facts": [(fact, masked(shown_fact(fact.text))) for fact in page.rows],
        "facts_url": facts_url(slug),
        "actions": ACTIONS,
        "today": timezone.localdate(),
    }
    context |= delivery_context(request, document)
    return render_page(request, "documents/facts.html", context, fragment="facts")


def _from_fact(facts: QuerySet[Fact], params: QueryDict) -> QueryDict:
    """Let the page begin with the fact that the parameter ``fact`` names, if there is no cursor."""
    asked = parse_int(params.get("fact"))
    fact = facts.filter(pk=asked).first() if asked and not {"after", "before", "page"} & params.keys() else None
    chosen = params.copy()
    chosen.pop("fact", None)
    if fact is not None:
        chosen["after"] = encode_cursor([fact.line, fact.pk - 1])
    return chosen


def _matching(document: MemoryDocument, request: HttpRequest) -> QuerySet[Fact]:
    """Return the current facts of the page's tab: its rows, and the scope of "all that match"."""
    current = Fact.objects.filter(document=document, died=None)
    state = request.GET.get("state", "")
    if state == "pinned":
        return current.filter(pinned=True)
    if state == "due":
        return current.filter(review_by__lte=timezone.localdate())
    return current.filter(last_verified_at=None) if state == "unverified" else current


@require_POST
def curate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Apply an action to the selected facts, or to all facts of the tab."""
    document = find_document(request, slug, pk, role=EDITOR)
    address = list_address(request, slug, "documents:facts", pk)
    action = request.POST.get("action", "").partition(":")[0]
    if action in EDITS:
        return answer_edit(request, slug, address, lambda: (_edit(request, document, action), ""))
    try:
        chosen = _chosen(request, document)
        if action == "export":
            return export_chosen(request, document.workspace, "facts", chosen, logged_as="facts.exported")
        flash_revised(request, document, _revise(request, document, action, chosen), action)
    except MemoryHubError as error:
        messages.error(request, error.message)
    return redirect(address)


def _chosen(request: HttpRequest, document: MemoryDocument) -> list[int]:
    """Return the keys of chosen facts that live in the document. Raises Conflict, Invalid."""
    wanted = {*selected_keys(request, _matching(document, request)), *parse_ints(request.POST.getlist("fact"))}
    current = Fact.objects.filter(document=document, died=None).order_by("line").values_list("pk", flat=True)
    chosen = [pk for pk in current if pk in wanted]
    if not chosen:
        raise Invalid(_("Select at least one row."), code="nothing_chosen")
    return chosen


def _edit(request: HttpRequest, document: MemoryDocument, action: str) -> Run:
    values = {}
    if action == "review":
        day = request.POST.get("review_by", "") or action_value(request, "review")
        values = {"review_by": parse_day(day)}
    chosen = _chosen(request, document)
    return edit_rows(document.workspace, "facts", action, chosen, values=values, by=by_person(request))


def _revise(request: HttpRequest, document: MemoryDocument, action: str, chosen: list[int]) -> Revised:
    by, text = by_person(request), action_value(request, action)
    if action == "recategorise":
        return recategorise_facts(document, chosen, text, by=by)
    if action == "remove":
        return withdraw_facts(document, chosen, by=by, reason=text)
    raise Invalid(_("Choose an action."), code="nothing_chosen")


def flash_revised(
    request: HttpRequest, document: MemoryDocument, revised: Revised, action: str, fact: int | None = None
) -> None:
    """Flash the result of a change of facts, with a button to undo its revision.

    ``fact``: the one whose page shows the message.
    """
    if revised.revision is None:
        messages.info(request, _("No changes."))
        return
    if action == "remove":
        message = ngettext("%(count)s fact withdrawn.", "%(count)s facts withdrawn.", revised.count)
    else:
        message = ngettext("%(count)s fact re-categorised.", "%(count)s facts re-categorised.", revised.count)
    url = undo_url(document, revised.revision.number, fact)
    messages.success(request, message % {"count": f"{revised.count:,}"}, extra_tags=url)


@require_POST
def undo(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Undo a revision by a new one that keeps later changes. ``?fact``: the fact whose page asked for it."""
    document = find_document(request, slug, pk, role=EDITOR)
    fact = parse_int(request.GET.get("fact"))
    try:
        saved = undo_revision(document, number, by=by_person(request))
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        fact = fact and _fact_after(document, fact, saved.revision)
        _report_undone(request, document, saved.revision, fact)
    return redirect("documents:fact", slug, fact) if fact else redirect("documents:facts", slug, pk)


def _fact_after(document: MemoryDocument, fact: int, revision: MemoryRevision | None) -> int:
    """Return the fact to show after a revision: the same one, or the only one that came in its place."""
    living = document.facts.filter(died=None)
    if revision is None or living.filter(pk=fact).exists():
        return fact
    born = list(living.filter(born=revision).values_list("pk", flat=True)[:2])
    return born[0] if len(born) == 1 else fact


def _report_undone(
    request: HttpRequest, document: MemoryDocument, revision: MemoryRevision | None, fact: int | None
) -> None:
    if revision is None:
        messages.success(request, _("This revision is already undone."))
        return
    is_redo = "redo" in request.GET
    again = undo_url(document, revision.number, fact, is_redo=not is_redo)
    messages.success(request, _("Redone.") if is_redo else _("Undone."), extra_tags=again)


def undo_url(document: MemoryDocument, number: int, fact: int | None = None, *, is_redo: bool = False) -> str:
    """Return the URL that undoes a revision, and leads back to the page of a fact."""
    url = reverse("documents:undo-revision", args=[document.workspace.slug, document.pk, number])
    separator = "&" if is_redo else "?"
    return f"{url}{REDO if is_redo else ''}{f'{separator}fact={fact}' if fact else ''}"

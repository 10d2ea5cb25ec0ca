from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows import knowledge as service
from knowledge_app.services.rows.additions import edit_of, record_addition
from knowledge_app.services.rows.edits import edit_rows
from knowledge_app.services.rows.exporting import knowledge_file
from knowledge_app.services.rows.restoring import restore_row
from memoryhub.access import by_person, get_workspace, has_role, log_page_access
from memoryhub.bulk_edits import (
    EXPORT,
    RETURN,
    REVIEW,
    VERIFY,
    WITHDRAW,
    after_edit,
    answer_chosen,
    answer_edit,
    list_address,
    moves,
)
from memoryhub.knowledge.forms import KnowledgeFilterForm, KnowledgeForm
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.downloads import download, markdown_response
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.extra_fields import Fields, extra_fields, with_extra_fields
from memoryhub.lib.htmx import render_page
from memoryhub.lib.pagination import keyset_page, parse_int, parse_ints
from memoryhub.lib.text import as_markdown
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from memoryhub.lib.tokens import counter_for
from sessions_app.models import Membership, Run, Workspace
from sessions_app.services.access_log import seen_rows

ORDER = ("-access_count", "-id")
SHOWN_EACH = 20  # of a category, before it is asked for
SHOWN_STATES = 50
SHOWN_GROUPS = 200
THRESHOLDS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1")
EDITOR = Membership.Role.EDITOR
TAG = Action("tag", gettext_lazy("Add tags"), asks="text", label=gettext_lazy("Tags, between commas"))
UNTAG = Action("untag", gettext_lazy("Take tags away"), asks="text", label=gettext_lazy("Tags, between commas"))
MERGE = Action("merge", gettext_lazy("Merge those that say the same"))
IN_USE = (moves(KnowledgeEntry.Category.choices), TAG, UNTAG, VERIFY, REVIEW, WITHDRAW, MERGE, EXPORT)
WITHDRAWN = (RETURN, moves(KnowledgeEntry.Category.choices), TAG, UNTAG, VERIFY, EXPORT)


def knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    """All categories in Grip's order of priority, the most used first; one category pages by key."""
    workspace = get_workspace(request, slug)
    form = KnowledgeFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    entries = _fitting(workspace, request)
    chosen, state = wishes.get("category"), wishes.get("state")
    is_paged = bool(chosen or state)
    page = keyset_page(entries, order=ORDER, params=request.GET) if is_paged else None
    totals = dict(entries.order_by().values_list("category").annotate(Count("id")))
    groups = [] if is_paged else _groups(entries, totals)
    shown = page.rows if page else [entry for _, _, rows in groups for entry, _ in rows]
    log_page_access(request, workspace, "knowledge.read", seen_rows("knowledge", [entry.pk for entry in shown]))
    context = {
        "workspace": workspace,
        "form": form,
        "is_filtered": any(wishes.values()),
        "count": sum(totals.values()),
        "page": page,
        "entries": with_extra_fields(page.rows) if page else [],
        "groups": groups,
        "title": KnowledgeEntry.Category(chosen).label if chosen else _("Entries"),
        "actions": WITHDRAWN if state == "withdrawn" else IN_USE,
        "state": state,
        "may_edit": has_role(request.user, workspace, EDITOR),
        "today": timezone.localdate(),
        "withdrawn_count": 0 if totals else _withdrawn(workspace).count(),
    }
    return render_page(request, "knowledge/knowledge.html", context, fragment="knowledge-list")


def _withdrawn(workspace: Workspace) -> QuerySet[KnowledgeEntry]:
    return KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at__isnull=False)


def _fitting(workspace: Workspace, request: HttpRequest) -> QuerySet[KnowledgeEntry]:
    """Return the entries that a page's filters leave: its rows, and what "all that fit" means."""
    form = KnowledgeFilterForm(request.GET)
    wishes = form.cleaned_data if form.is_valid() else {}
    withdrawn = wishes.get("state") == "withdrawn"
    entries = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at__isnull=not withdrawn)
    if wishes.get("state") == "due":
        entries = entries.filter(review_by__lte=timezone.localdate())
    if category := wishes.get("category"):
        entries = entries.filter(category=category)
    return service.with_text(entries, wishes.get("q", ""))


def _groups(
    entries: QuerySet[KnowledgeEntry], totals: dict[str, int]
) -> list[tuple[KnowledgeEntry.Category, int, list[tuple[KnowledgeEntry, Fields]]]]:
    """Return each category with its count and its first rows: one query for each, five in all."""
    return [
        (
            category,
            totals.get(category.value, 0),
            with_extra_fields(entries.filter(category=category).order_by(*ORDER)[:SHOWN_EACH]),
        )
        for category in KnowledgeEntry.Category
    ]


@require_POST
def edit_many(request: HttpRequest, slug: str) -> HttpResponse:
    """Do one thing with the entries chosen on the list, or with all that fit its filters."""
    workspace = get_workspace(request, slug, role=EDITOR)
    rows = _fitting(workspace, request)
    address = list_address(request, slug, "knowledge:knowledge")
    return answer_chosen(
        request,
        workspace,
        "knowledge",
        address,
        noted_as="knowledge.exported",
        chosen=lambda: selected_keys(request, rows),
        edit=lambda pks: _edit(request, workspace, pks),
    )


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> tuple[Run, str]:
    """Carry out the form's action; return the run and what it left out, in words."""
    action, _colon, category = request.POST.get("action", "").partition(":")
    text = action_value(request, action)
    by = by_person(request)
    if action == "move" and category in KnowledgeEntry.Category.values:
        run, behind = service.recategorise(workspace, pks, category, by=by)
        words = ngettext(
            "%(count)s stays: the category says that already. Merge duplicates joins them.",
            "%(count)s stay: the category says that already. Merge duplicates joins them.",
            behind,
        )
        return run, words % {"count": f"{behind:,}"} if behind else ""
    if action == "merge":
        return _merge_chosen(request, workspace, pks)
    values: dict[str, object] = {"reason": text}
    if action in ("tag", "untag"):
        if not (tags := service.clean_tags(text.split(","))):
            raise service.BadKnowledge(_("Name at least one tag."))
        values = {"add" if action == "tag" else "remove": tags}
        action = "tag"
    elif action == "review":
        values = {"review_by": _day(request.POST.get("review_by", "") or text)}
    elif action not in ("withdraw", "return", "verify"):
        raise service.BadKnowledge(_("Choose an action."))
    return edit_rows(workspace, "knowledge", action, pks, values=values, by=by), ""


def _merge_chosen(request: HttpRequest, workspace: Workspace, pks: list[int]) -> tuple[Run, str]:
    """Merge those of some entries that say the same; the others are named as left."""
    groups = service.plan_merges(workspace, among=pks)
    units = [[group.keep.pk, *(other.pk for other in group.others)] for group in groups]
    if not units:
        raise service.NothingToMove(_("None of those chosen say the same: nothing was merged."))
    left = len(pks) - sum(map(len, units))
    words = ngettext("%(count)s says something else.", "%(count)s say something else.", left)
    run = service.merge_groups(workspace, units, by=by_person(request))
    return run, words % {"count": f"{left:,}"} if left else ""


def _day(text: str) -> str:
    """Return a day as ISO text, "" for none. Raises BadKnowledge."""
    try:
        return parse_date(text).isoformat() if text else ""  # type: ignore[union-attr]
    except (ValueError, AttributeError) as error:
        raise service.BadKnowledge(_("Enter a valid date.")) from error


def new_knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    form = KnowledgeForm(request.POST or None, initial={"category": request.GET.get("category")})
    if form.is_bound and form.is_valid():
        try:
            pk, run, words = _add(request, workspace, form.cleaned_data)
        except MemoryHubError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, words, extra_tags=str(run.pk) if run else "")
            return redirect("knowledge:knowledge-entry", slug, pk)
    context = {"workspace": workspace, "form": form}
    return render_page(request, "knowledge/new.html", context, status=422 if form.errors else 200)


def _add(request: HttpRequest, workspace: Workspace, values: dict[str, Any]) -> tuple[int, Run | None, str]:
    """Add an entry; return its key, the edit that undoes it (None where it was there) and what to say."""
    by = by_person(request)
    added = service.add_knowledge(workspace, by=by, **values)
    pk = added.entry.pk
    if added.is_new:
        return pk, record_addition(workspace, "knowledge", [pk], by=by), _("Added.")
    returned = edit_of(workspace, "knowledge", pk, at=by.at)
    return pk, returned, _("It was there already: this counts as one more use.")


def knowledge_entry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One entry with every state that it had; an editor changes it in place."""
    is_change = request.method == "POST"
    workspace = get_workspace(request, slug, role=EDITOR if is_change else Membership.Role.VIEWER)
    rows = KnowledgeEntry.objects.select_related("workspace")
    entry: KnowledgeEntry = get_object_or_404(rows, workspace=workspace, pk=pk)
    initial = {"content": entry.content, "category": entry.category, "source": entry.source, "tags": entry.tags}
    form = KnowledgeForm(request.POST if is_change else None, initial=initial)
    twin = None
    changes = form.changes(initial) if is_change and form.is_valid() else {}
    if is_change and form.is_valid():
        try:
            run = service.save_entry(entry, changes, by=by_person(request))
        except service.KnowledgeExists as error:
            twin = error.other
            form.add_error("content", error.message)
        except MemoryHubError as error:
            form.add_error(None, error.message)
        else:
            return after_edit(request, run, slug, reverse("knowledge:knowledge-entry", args=[slug, pk]))
    log_page_access(request, workspace, "knowledge.read", seen_rows("knowledge", [entry.pk]))
    context = {
        "workspace": workspace,
        "entry": entry,
        "form": form,
        "twin": twin,
        "fields": extra_fields(entry),
        "states": list(entry.history.order_by("-history_id")[:SHOWN_STATES]),
        "may_edit": has_role(request.user, workspace, EDITOR),
        "today": timezone.localdate(),
    }
    return render_page(request, "knowledge/entry.html", context, status=422 if form.errors else 200)


@require_POST
def edit_one(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Withdraw an entry, take it back in, verify it, date its review, or restore an earlier state."""
    workspace = get_workspace(request, slug, role=EDITOR)
    entry = get_object_or_404(KnowledgeEntry.objects.select_related("workspace"), workspace=workspace, pk=pk)
    state = parse_int(request.POST.get("state"))

    def edit() -> tuple[Run, str]:
        if state is None:
            return _edit(request, workspace, [entry.pk])
        known = parse_int(request.POST.get("known"))
        return restore_row(entry, state, known=known, by=by_person(request)), ""

    return answer_edit(request, slug, reverse("knowledge:knowledge-entry", args=[slug, pk]), edit)


def merge_knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    """Entries that say the same, group by group; a person chooses which are merged."""
    workspace = get_workspace(request, slug, role=EDITOR)
    wish = request.GET.get("threshold", "")
    threshold = float(wish) if wish in THRESHOLDS else DEFAULT_THRESHOLD
    groups = service.plan_merges(workspace, threshold=threshold)
    if request.method == "POST":
        chosen = set(parse_ints(request.POST.getlist("group")))
        wanted = [
            [group.keep.pk, *(other.pk for other in group.others)]
            for group in groups
            if request.POST.get("all") or group.keep.pk in chosen
        ]
        return answer_edit(
            request,
            slug,
            reverse("knowledge:knowledge", args=[slug]),
            lambda: (service.merge_groups(workspace, wanted, by=by_person(request)), ""),
        )
    shown = [entry.pk for group in groups[:SHOWN_GROUPS] for entry in (group.keep, *group.others)]
    log_page_access(request, workspace, "knowledge.read", seen_rows("knowledge", shown))
    context = {
        "workspace": workspace,
        "groups": groups[:SHOWN_GROUPS],
        "group_count": len(groups),
        "gone_count": sum(len(group.others) for group in groups),
        "thresholds": THRESHOLDS,
        "threshold": f"{threshold:g}",
    }
    return render_page(request, "knowledge/merge.html", context)


def knowledge_context(request: HttpRequest, slug: str) -> HttpResponse:
    """What of the knowledge would go into a prompt, within a budget of characters and tokens."""
    workspace = get_workspace(request, slug)
    max_chars = parse_int(request.GET.get("max_chars"), digits=8)
    max_chars = service.CONTEXT_CHARS if max_chars is None else max_chars
    max_tokens = parse_int(request.GET.get("max_tokens"), digits=8)
    chosen = service.context_lines(workspace, max_chars=max_chars, max_tokens=max_tokens)
    log_page_access(request, workspace, "knowledge.read", seen_rows("knowledge", [pk for pk, _ in chosen]))
    text = "\n".join(line for _, line in chosen)
    context = {
        "workspace": workspace,
        "text": text,
        "max_chars": max_chars,
        "max_tokens": max_tokens,
        "tokens": counter_for(workspace.model).count(text),
        "line_count": len(text.split("\n")) if text else 0,
        "count": KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None).count(),
    }
    return render_page(request, "knowledge/context.html", context)


@require_GET
def download_knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    pks = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None).values_list("pk", flat=True)
    log_page_access(request, workspace, "knowledge.exported", seen_rows("knowledge", pks))
    return download(knowledge_file(workspace), "knowledge.json")


@require_GET
def knowledge_markdown(request: HttpRequest, slug: str) -> HttpResponse:
    """All entries that fit the list's filters, by category, as Markdown."""
    workspace = get_workspace(request, slug)
    fitting = _fitting(workspace, request)
    as_markdown.check_amount(fitting.count())
    entries = list(fitting.order_by(*ORDER))
    log_page_access(request, workspace, "knowledge.exported", seen_rows("knowledge", [entry.pk for entry in entries]))
    with translation.override(settings.LANGUAGE_CODE):
        labels = {category: str(category.label) for category in KnowledgeEntry.Category}
    groups = [
        (label, [(entry.content, ", ".join(entry.tags)) for entry in entries if entry.category == category])
        for category, label in labels.items()
    ]
    text = as_markdown.listing(f"Knowledge of {workspace.name}", groups)
    return markdown_response(text, f"knowledge-{slug}", is_shown="copy" in request.GET)

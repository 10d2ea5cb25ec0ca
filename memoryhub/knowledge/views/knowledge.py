from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows import knowledge as service
from knowledge_app.services.rows.additions import edit_of, record_addition
from knowledge_app.services.rows.exporting import knowledge_file
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.edit_responses import EXPORT, RETURN, REVIEW, VERIFY, WITHDRAW, answer_edit, edit_chosen, move_action
from memoryhub.knowledge.forms import KnowledgeFilterForm, KnowledgeForm
from memoryhub.knowledge.kinds import EditableKind, Filters, Outcome
from memoryhub.knowledge.views.rows import matching_rows
from memoryhub.lib.bulk_selection import Action, action_value
from memoryhub.lib.errors import Invalid
from memoryhub.lib.http.downloads import markdown_response
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import parse_int, parse_ints
from memoryhub.lib.text import as_markdown
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from memoryhub.lib.tokens import counter_for
from memoryhub.permissions import EDITOR, by_person, get_workspace, log_page_access, readable_parts
from sessions_app.models import Run, Workspace
from sessions_app.services.access_log import seen_rows

SHOWN_GROUPS = 200
READ_AT_ONCE = 200
COMPARED_AT_ONCE = 1_000  # entries up to which the page itself compares them
THRESHOLDS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1")
TAG = Action("tag", gettext_lazy("Add tags"), asks="text", label=gettext_lazy("Tags, separated by commas"))
UNTAG = Action("untag", gettext_lazy("Remove tags"), asks="text", label=gettext_lazy("Tags, separated by commas"))
MERGE = Action("merge", gettext_lazy("Merge duplicates"))
MOVE = move_action(KnowledgeEntry.Category.choices)


def _matching(workspace: Workspace, filters: Filters) -> QuerySet[KnowledgeEntry]:
    state = filters.get("state")
    entries = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at__isnull=state != "withdrawn")
    if state == "due":
        entries = entries.filter(review_by__lte=timezone.localdate())
    if category := filters.get("category"):
        entries = entries.filter(category=category)
    return service.with_text(entries, filters.get("q", "")).select_related("hold")


def _actions(filters: Filters) -> tuple[Action, ...]:
    if filters.get("state") == "withdrawn":
        return (RETURN, MOVE, TAG, UNTAG, VERIFY, EXPORT)
    return (MOVE, TAG, UNTAG, VERIFY, REVIEW, WITHDRAW, MERGE, EXPORT)


def _list_context(workspace: Workspace, count: int) -> dict[str, Any]:
    withdrawn = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at__isnull=False)
    return {"withdrawn_count": 0 if count else withdrawn.count()}


def _edit(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Outcome:
    action, _colon, category = request.POST.get("action", "").partition(":")
    text = action_value(request, action)
    by = by_person(request)
    if action == "move" and category in KnowledgeEntry.Category.values:
        run, skipped = service.recategorise(workspace, pks, category, by=by)
        words = ngettext(
            "%(count)s was skipped: the category already contains it. Use Merge duplicates to merge them.",
            "%(count)s were skipped: the category already contains them. Use Merge duplicates to merge them.",
            skipped,
        )
        return run, words % {"count": f"{skipped:,}"} if skipped else ""
    if action == "merge":
        return _merge_selected(request, workspace, pks)
    if action in ("tag", "untag"):
        if not (tags := service.clean_tags(text.split(","))):
            raise Invalid(_("Enter at least one tag."), code="bad_knowledge")
        values = {"add" if action == "tag" else "remove": tags}
        return edit_rows(workspace, "knowledge", "tag", pks, values=values, by=by), ""
    if action == "review":
        day = {"review_by": _day(request.POST.get("review_by", "") or text)}
        return edit_rows(workspace, "knowledge", "review", pks, values=day, by=by), ""
    return edit_chosen(request, workspace, "knowledge", pks, allowed=("withdraw", "return", "verify"))


def _merge_selected(request: HttpRequest, workspace: Workspace, pks: list[int]) -> Outcome:
    """Merge the duplicates among the selected entries, and count the others."""
    units = _units(service.plan_merges(workspace, among=pks))
    if not units:
        raise Invalid(_("No duplicates among the selected entries."), code="nothing_to_move")
    others = len(pks) - sum(map(len, units))
    words = ngettext("%(count)s is not a duplicate.", "%(count)s are not duplicates.", others)
    run = service.merge_groups(workspace, units, by=by_person(request))
    return run, words % {"count": f"{others:,}"} if others else ""


def _units(groups: list[service.Group]) -> list[list[int]]:
    return [[group.keep.pk, *(other.pk for other in group.others)] for group in groups]


def _day(text: str) -> str:
    """Return a day as ISO text, "" for none. Raises Invalid."""
    try:
        return parse_date(text).isoformat() if text else ""  # type: ignore[union-attr]
    except (ValueError, AttributeError) as error:
        raise Invalid(_("Enter a valid date."), code="bad_knowledge") from error


def _add(request: HttpRequest, workspace: Workspace, values: dict[str, Any]) -> HttpResponse:
    """Add an entry; adding an existing one counts as a use of it."""
    by = by_person(request)
    added = service.add_knowledge(workspace, by=by, **values)
    pk = added.entry.pk
    if added.is_new:
        run: Run | None = record_addition(workspace, "knowledge", [pk], by=by)
        words = _("Added.")
    else:
        run = edit_of(workspace, "knowledge", pk, at=by.at)
        words = _("It already exists. This counts as one more use.")
    messages.success(request, words, extra_tags=str(run.pk) if run else "")
    return redirect("knowledge:knowledge-entry", workspace.slug, pk)


KNOWLEDGE = EditableKind(
    table="knowledge",
    access="knowledge",
    title=gettext_lazy("Knowledge"),
    list_id="knowledge-list",
    list_template="knowledge/knowledge.html",
    list_url="knowledge:knowledge",
    row_url="knowledge:knowledge-entry",
    edit_url="knowledge:edit-knowledge",
    filter_form=lambda data, _workspace: KnowledgeFilterForm(data),
    matching=_matching,
    order=("-access_count", "-id"),
    actions=_actions,
    edit=_edit,
    file=knowledge_file,
    file_name="knowledge.json",
    categories=KnowledgeEntry.Category,
    paged_by=("category", "state"),
    shown_each=20,
    list_context=_list_context,
    search_kind="knowledge",
    markdown_url="knowledge:knowledge-markdown",
    live="knowledge",
    new_title=gettext_lazy("New knowledge entry"),
    new_text=gettext_lazy("One fact. Adding one that its category already contains counts as a use."),
    new_button=gettext_lazy("Add"),
    form=KnowledgeForm,
    add=_add,
    row_template="knowledge/entry.html",
    edit_row_url="knowledge:edit-knowledge-entry",
    withdrawn_text=gettext_lazy("It isn't in prompts, searches or exports."),
    save=lambda row, values, by: service.save_entry(row, values, by=by),
)


def merge_knowledge(request: HttpRequest, slug: str) -> HttpResponse:
    """Groups of duplicate entries, from which a person selects those to merge.

    Comparing many entries takes seconds, so the page asks for their groups after it opens.
    """
    workspace = get_workspace(request, slug, role=EDITOR)
    given = request.GET.get("threshold", "")
    threshold = float(given) if given in THRESHOLDS else DEFAULT_THRESHOLD
    context = {
        "workspace": workspace,
        "thresholds": THRESHOLDS,
        "threshold": f"{threshold:g}",
        "groups_url": f"{request.path}?{urlencode({'threshold': f'{threshold:g}'})}",
    }
    if request.method == "GET" and not given and _count(workspace) > COMPARED_AT_ONCE:
        return render_page(request, "knowledge/merge.html", context | {"groups": None})
    groups = service.plan_merges(workspace, threshold=threshold)
    if request.method == "POST":
        chosen = set(parse_ints(request.POST.getlist("group")))
        selected = _units([group for group in groups if request.POST.get("all") or group.keep.pk in chosen])
        return answer_edit(
            request,
            slug,
            reverse("knowledge:knowledge", args=[slug]),
            lambda: (service.merge_groups(workspace, selected, by=by_person(request)), ""),
        )
    shown = [entry.pk for group in groups[:SHOWN_GROUPS] for entry in (group.keep, *group.others)]
    log_page_access(request, workspace, "knowledge.read", seen_rows("knowledge", shown))
    context |= {
        "groups": groups[:SHOWN_GROUPS],
        "group_count": len(groups),
        "gone_count": sum(len(group.others) for group in groups),
    }
    return render_page(request, "knowledge/merge.html", context, fragment="merge-groups")


def _count(workspace: Workspace) -> int:
    return KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None).count()


def knowledge_context(request: HttpRequest, slug: str) -> HttpResponse:
    """The knowledge that a prompt would contain, within a budget of characters and tokens."""
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
        "count": _count(workspace),
    }
    return render_page(request, "knowledge/context.html", context)


@require_GET
def knowledge_markdown(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream all entries that match the list's filters, by category, as Markdown."""
    workspace = get_workspace(request, slug)
    _form, _filters, matching = matching_rows(request, workspace, KNOWLEDGE)
    pks: dict[str, list[int]] = {category: [] for category in KnowledgeEntry.Category.values}
    for pk, category in matching.order_by(*KNOWLEDGE.order).values_list("pk", "category").iterator():
        pks[category].append(pk)
    with translation.override(settings.LANGUAGE_CODE):
        labels = {category.value: str(category.label) for category in KnowledgeEntry.Category}
    groups = ((labels[category], _items(matching, some)) for category, some in pks.items())
    parts = as_markdown.grouped_list(f"Knowledge of {workspace.name}", groups)
    parts = readable_parts(request, workspace, parts, "the knowledge")
    response = markdown_response(request, parts, f"knowledge-{slug}")
    log_page_access(request, workspace, "knowledge.exported", seen_rows("knowledge", chain(*pks.values())))
    return response


def _items(matching: QuerySet[KnowledgeEntry], pks: list[int]) -> Iterator[tuple[str, str]]:
    """Yield text and tags of the entries that still match, reading a few hundred at a time."""
    for start in range(0, len(pks), READ_AT_ONCE):
        some = pks[start : start + READ_AT_ONCE]
        rows = matching.in_bulk(some)
        yield from ((rows[pk].content, ", ".join(rows[pk].tags)) for pk in some if pk in rows)

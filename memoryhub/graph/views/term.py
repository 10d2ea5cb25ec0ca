from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from knowledge_app.models import KnowledgeEntry, Observation, Term, TermRelation
from memoryhub.graph.forms import RelateForm
from memoryhub.graph.layout import ring
from memoryhub.graph.neighbours import Related, neighbours_of
from memoryhub.graph.occurrences import rows_with_word
from memoryhub.graph.relations import decide, find_term
from memoryhub.lib.errors import NotFound
from memoryhub.lib.extra_fields import extra_fields
from memoryhub.lib.http.pagination import parse_int
from memoryhub.permissions import by_person, get_workspace, has_role
from sessions_app.models import Membership

SHOWN_NEIGHBOURS = 100
PICTURED = 16
EDITOR = Membership.Role.EDITOR
SAID = {
    "pin": gettext_lazy("%(one)s and %(other)s are pinned to each other."),
    "unpin": gettext_lazy("%(one)s and %(other)s are no longer pinned."),
    "remove": gettext_lazy("Removed, also from later builds. You can restore it below."),
    "restore": gettext_lazy("%(other)s is a neighbour of %(one)s again."),
}


def term(request: HttpRequest, slug: str, pk: int, form: RelateForm | None = None) -> HttpResponse:
    workspace = get_workspace(request, slug)
    found = get_object_or_404(Term, workspace=workspace, pk=pk)
    relations = neighbours_of(found.relations.order_by("is_removed", "rank", "id")[:SHOWN_NEIGHBOURS])
    neighbours = [neighbour for neighbour in relations if not neighbour.is_removed]
    naming = found.related_from.filter(is_removed=False).select_related("term").defer("term__embedding")
    shown = {neighbour.term.pk for neighbour in relations}
    context = {
        "workspace": workspace,
        "term": found,
        "dimensions": len(bytes(found.embedding)) // 4,
        "neighbours": neighbours,
        "removed": [neighbour for neighbour in relations if neighbour.is_removed],
        "naming": _links(
            slug,
            [
                relation.term
                for relation in naming.order_by("term__text")[:SHOWN_NEIGHBOURS]
                if relation.term_id not in shown
            ],
        ),
        "nodes": ring([_node(slug, neighbour) for neighbour in neighbours[:PICTURED]]),
        "fields": extra_fields(found),
        "observations": rows_with_word(Observation.objects.all(), workspace, found.text),
        "knowledge": rows_with_word(KnowledgeEntry.objects.all(), workspace, found.text),
        "may_edit": has_role(request.user, workspace, EDITOR),
        "form": form or RelateForm(),
    }
    return render(request, "graph/term.html", context, status=422 if form and form.errors else 200)


def _links(slug: str, terms: Iterable[Term]) -> SafeString:
    """Return links to terms for a message."""
    rows = ((reverse("term", args=[slug, one.pk]), one.text) for one in terms)
    return format_html_join(", ", '<a href="{}" dir="auto">{}</a>', rows)


def _node(slug: str, neighbour: Related) -> tuple[str, str, float | None]:
    address = reverse("term", args=[slug, neighbour.term.pk])
    return neighbour.term.text[:24], address, neighbour.cosine


@require_POST
def relate(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Relate a term to another one by name, and pin the relation."""
    workspace = get_workspace(request, slug, role=EDITOR)
    found = get_object_or_404(Term, workspace=workspace, pk=pk)
    form = RelateForm(request.POST)
    if form.is_valid():
        try:
            other = find_term(workspace, form.cleaned_data["name"])
        except NotFound as error:
            form.add_error("name", error.message)
        else:
            decide(found, other, "pin", by=by_person(request))
            messages.success(request, SAID["pin"] % {"one": found.text, "other": other.text})
            return redirect("term", slug, pk)
    return term(request, slug, pk, form)


@require_POST
def decide_relation(request: HttpRequest, slug: str, pk: int, *, action: str) -> HttpResponse:
    """Apply a decision to the relation of a term and the form's ``other``, a primary key."""
    workspace = get_workspace(request, slug, role=EDITOR)
    both = Term.objects.defer("embedding").select_related("workspace").filter(workspace=workspace)
    found = get_object_or_404(both, pk=pk)
    other = get_object_or_404(both, pk=parse_int(request.POST.get("other")) or 0)
    relations = TermRelation.objects.filter(term=found, related=other)
    get_object_or_404(relations)
    decide(found, other, action, by=by_person(request))
    messages.success(request, SAID[action] % {"one": found.text, "other": other.text})
    return redirect("term", slug, pk)

"""Decisions on relations of the graph: pin, remove and restore.

A decision applies in both directions and isn't changed by runs or imports.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import gettext

from knowledge_app.models import Term, TermRelation
from memoryhub.graph.neighbours import neighbours_of
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Invalid, NotFound
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

ACTIONS = {  # the fields that each sets, and its verb in the audit log
    "pin": ({"pinned": True, "is_removed": False}, "relation.pinned", "pinned"),
    "unpin": ({"pinned": False}, "relation.unpinned", "unpinned"),
    "remove": ({"is_removed": True}, "relation.removed", "removed"),
    "restore": ({"is_removed": False}, "relation.restored", "brought back"),
}


def find_term(workspace: Workspace, text: str) -> Term:
    """Return a term by its text, as it is written or else in lower case. Raises NotFound."""
    text = text.strip()
    found = Term.objects.defer("embedding").filter(workspace=workspace, text__in={text, text.lower()})
    terms = {term.text: term for term in found}
    if not terms:
        raise NotFound(gettext("The graph has no term %(term)s.") % {"term": repr(text)}, code="term_not_found")
    return terms.get(text) or terms[text.lower()]


@db_retry.retried
@transaction.atomic
def decide(one: Term, other: Term, action: str, *, by: By) -> None:
    """Pin or unpin the relation of two terms, remove it or bring it back: both ways.

    Pinning relates two that weren't. What was pinned and removed is pinned again when it is brought back. Raises
    Invalid for one and the same term, and for a relation that isn't there.
    """
    values, event, words = ACTIONS[action]
    if one.workspace_id != other.workspace_id or one.pk == other.pk:
        raise Invalid(gettext("A term is related to other terms only."), code="relation_not_fitting")
    if action == "pin":
        _relate(one, other)
        _relate(other, one)
    both = Q(term=one, related=other) | Q(term=other, related=one)
    if not TermRelation.objects.filter(both).update(**values):
        told = gettext("%(one)s and %(other)s are not related: pin them to relate them.")
        raise Invalid(told % {"one": repr(one.text), "other": repr(other.text)}, code="relation_not_fitting")
    record(
        by,
        event,
        "term",
        one.pk,
        f"The relation of terms {one.pk} and {other.pk} was {words}",
        workspace=one.workspace,
        detail={"terms": [one.pk, other.pk]},
    )


def _relate(one: Term, other: Term) -> None:
    """Create a missing relation after the term's other ones, with its cosine if known."""
    made, is_new = TermRelation.objects.get_or_create(term=one, related=other, defaults={"pinned": True})
    if is_new:
        last = TermRelation.objects.filter(term=one).exclude(pk=made.pk).aggregate(last=Max("rank"))["last"]
        made.rank = 0 if last is None else last + 1
        made.cosine = neighbours_of(TermRelation.objects.filter(pk=made.pk))[0].cosine
        made.save(update_fields=["rank", "cosine"])

"""What must hold of knowledge, observations, exact values and the semantic graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Exists, F, Model, OuterRef, Q, Subquery
from django.db.models.functions import Length

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation, RowVector, SemanticGraph, Term, TermRelation
from memoryhub.graph.row_vectors import SOURCES
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.secrets import looks_secret

Finding = tuple[str, str]
KEPT: dict[type[Model], tuple[str, ...]] = {  # what a row's latest state must say as the row does
    KnowledgeEntry: ("category", "content", "source", "tags"),
    Observation: ("category", "content", "source"),
    KeyValue: ("value",),
}


def check_identities() -> tuple[int, Iterable[Finding]]:
    """A knowledge entry's identity is Grip's hash of what it says now."""
    rows = KnowledgeEntry.objects.values_list("pk", "category", "content", "identity").iterator(chunk_size=500)
    found = (
        ("its identity is not that of what it says", f"knowledge entry {pk}")
        for pk, category, content, identity in rows
        if content_id(category, content) != identity
    )
    return KnowledgeEntry.objects.count(), found


def check_secrets() -> tuple[int, Iterable[Finding]]:
    """A value that looks like a secret is marked as one, so that pages mask it."""
    rows = KeyValue.objects.filter(is_secret=False).values_list("pk", "key", "value").iterator(chunk_size=500)
    found = (
        ("it looks like a secret and isn't masked", f"key-value {pk}")
        for pk, key, value in rows
        if looks_secret(key, value)
    )
    return KeyValue.objects.count(), found


def check_histories() -> tuple[int, Iterable[Finding]]:
    """The latest state in a row's history is the row: every change of it is there."""
    return sum(model._default_manager.count() for model in KEPT), _out_of_history()


def _out_of_history() -> Iterator[Finding]:
    for model, names in KEPT.items():
        states: Any = model.history.filter(id=OuterRef("pk")).order_by("-history_id")  # type: ignore[attr-defined]
        latest = {f"latest_{name}": Subquery(states.values(name)[:1]) for name in names}
        differs = Q(**{f"latest_{names[0]}__isnull": True})
        for name in names:
            differs |= ~Q(**{name: F(f"latest_{name}")})
        wrong = model._default_manager.annotate(**latest).filter(differs)
        for pk in wrong.order_by("pk").values_list("pk", flat=True)[:100]:
            yield "its history doesn't end with what it says", f"{model._meta.verbose_name} {pk}"


def check_graph() -> tuple[int, Iterable[Finding]]:
    """Relations join terms of one workspace; embeddings of the graph's own kind are as long as it says."""
    foreign = TermRelation.objects.exclude(term__workspace=F("related__workspace"))
    found: list[Finding] = [
        ("it joins terms of two workspaces", f"relation {pk}") for pk in foreign.values_list("pk", flat=True)[:100]
    ]
    for graph in SemanticGraph.objects.exclude(dimensions=0):
        kind = f"{graph.provider}/{graph.model}/{graph.dimensions}"
        terms = Term.objects.filter(workspace=graph.workspace_id, fingerprint=kind).only("pk", "embedding")
        found += [
            ("its embedding is not as long as its graph's", f"term {term.pk}")
            for term in terms.iterator(chunk_size=500)
            if len(bytes(term.embedding)) != 4 * graph.dimensions
        ]
    return TermRelation.objects.count() + Term.objects.count(), found


def check_vectors() -> tuple[int, Iterable[Finding]]:
    """Embeddings of rows are as long as their fingerprint says, and their rows belong to the same workspace."""
    found: list[Finding] = []
    for fingerprint in RowVector.objects.order_by().values_list("fingerprint", flat=True).distinct():
        length = fingerprint.rpartition("/")[2]
        made = RowVector.objects.filter(fingerprint=fingerprint).annotate(bytes=Length("vector"))
        wrong = made.exclude(bytes=4 * int(length)) if length.isdigit() else made
        found += [("it is not as long as it says", f"vector {pk}") for pk in wrong.values_list("pk", flat=True)[:100]]
    for kind, source in SOURCES.items():
        other = source.model._default_manager.filter(pk=OuterRef("object_id")).exclude(
            workspace=OuterRef("workspace")
        )
        foreign = RowVector.objects.filter(Exists(other), kind=kind)
        words = "its row is of another workspace"
        found += [(words, f"vector {pk}") for pk in foreign.values_list("pk", flat=True)[:100]]
    return RowVector.objects.count(), found

"""Invariants of knowledge, observations, key-values and the semantic graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from django.db.models import Exists, F, Max, OuterRef
from django.db.models.functions import Length

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation, RowVector, SemanticGraph, Term, TermRelation
from memoryhub.graph.row_vectors import SOURCES
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.secrets import looks_secret

Finding = tuple[str, str]
TRACKED = (KnowledgeEntry, Observation, KeyValue)
# Columns that may differ from the latest state: counted without a state, links to deleted runs, file's values that
# writing to the file removes, and ids and what is derived, which forgetting replaces state by state.
APART = {"access_count", "accessed_at", "run_id", "corrected", "content_id", "uid", "identity", "is_secret"}


def check_identities() -> tuple[int, Iterable[Finding]]:
    """A knowledge entry's identity is Grip's hash of its content."""
    rows = KnowledgeEntry.objects.values_list("pk", "category", "content", "identity").iterator(chunk_size=500)
    found = (
        ("its identity doesn't match its content", f"knowledge entry {pk}")
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
    """The latest state in a row's history equals the row, and says so if the row was deleted."""
    count = sum(model._default_manager.count() for model in TRACKED)
    return count, chain.from_iterable(map(_differing_states, TRACKED))


def _differing_states(model: Any) -> Iterator[Finding]:
    kept = {field.attname for field in model.history.model._meta.concrete_fields} - APART
    names = ["id", *(field.attname for field in model._meta.concrete_fields if field.attname in kept - {"id"})]
    newest = model.history.order_by().values("id").annotate(newest=Max("history_id")).values("newest")
    states = model.history.filter(pk__in=newest).exclude(history_type="-").order_by().values_list(*names)
    rows = model._default_manager.order_by().values_list(*names)
    for pk in sorted({row[0] for row in (*rows.difference(states)[:100], *states.difference(rows)[:100])}):
        yield "its latest state differs from it", f"{model._meta.verbose_name} {pk}"


def check_graph() -> tuple[int, Iterable[Finding]]:
    """Relations join terms of one workspace; embeddings have their graph's dimensions."""
    foreign = TermRelation.objects.exclude(term__workspace=F("related__workspace"))
    found: list[Finding] = [
        ("joins terms of two workspaces", f"relation {pk}") for pk in foreign.values_list("pk", flat=True)[:100]
    ]
    for graph in SemanticGraph.objects.exclude(dimensions=0):
        kind = f"{graph.provider}/{graph.model}/{graph.dimensions}"
        terms = Term.objects.filter(workspace=graph.workspace_id, fingerprint=kind).only("pk", "embedding")
        found += [
            ("its embedding doesn't have its graph's dimensions", f"term {term.pk}")
            for term in terms.iterator(chunk_size=500)
            if len(bytes(term.embedding)) != 4 * graph.dimensions
        ]
    return TermRelation.objects.count() + Term.objects.count(), found


def check_vectors() -> tuple[int, Iterable[Finding]]:
    """Vectors have the dimensions of their fingerprint, and belong to the workspace of their row."""
    found: list[Finding] = []
    for fingerprint in RowVector.objects.order_by().values_list("fingerprint", flat=True).distinct():
        length = fingerprint.rpartition("/")[2]
        vectors = RowVector.objects.filter(fingerprint=fingerprint).annotate(bytes=Length("vector"))
        wrong = vectors.exclude(bytes=4 * int(length)) if length.isdigit() else vectors
        found += [
            ("it doesn't have the dimensions of its fingerprint", f"vector {pk}")
            for pk in wrong.values_list("pk", flat=True)[:100]
        ]
    for kind, source in SOURCES.items():
        other = source.model._default_manager.filter(pk=OuterRef("object_id")).exclude(
            workspace=OuterRef("workspace")
        )
        foreign = RowVector.objects.filter(Exists(other), kind=kind)
        words = "its row belongs to another workspace"
        found += [(words, f"vector {pk}") for pk in foreign.values_list("pk", flat=True)[:100]]
    return RowVector.objects.count(), found

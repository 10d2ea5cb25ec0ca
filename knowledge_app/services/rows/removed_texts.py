"""Recognise rows of agents' files that say again what a person withdrew or corrected."""

from __future__ import annotations

from django.db.models import Model

from knowledge_app.models import EditedRow, KnowledgeEntry, Observation
from memoryhub.lib.text.facts import word_form
from sessions_app.models import Run, Workspace

TABLES: dict[type[Model], str] = {KnowledgeEntry: "knowledge", Observation: "observations"}


def removed_texts(workspace: Workspace, model: type[Model]) -> frozenset[str]:
    """Return the word forms of texts that people withdrew or replaced, without those that a row still has."""
    if model not in TABLES or workspace.pk is None:
        return frozenset()
    rows = model._default_manager.filter(workspace=workspace)
    gone = set(rows.exclude(withdrawn_at=None).values_list("content", flat=True))
    gone |= set(_replaced(workspace, TABLES[model]))
    if not gone:
        return frozenset()
    living = map(word_form, rows.filter(withdrawn_at=None).values_list("content", flat=True).iterator())
    return frozenset(map(word_form, gone)).difference(living)


def _replaced(workspace: Workspace, table: str) -> list[str]:
    """Return the texts that people replaced in rows of a table."""
    edits = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT).values_list("pk", "options")
    runs = [
        pk
        for pk, options in edits
        if options.get("table") == table
        and "content" in (options.get("values") or {})
        and (options.get("actor") or [""])[0] != "agent"
    ]
    befores = EditedRow.objects.filter(run__in=runs).values_list("before", flat=True)
    return [before["content"] for before in befores if before and before.get("content")]

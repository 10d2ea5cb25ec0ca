"""Find the rows that an erasure searches and affects, table by table. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from itertools import islice
from operator import or_
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db.models import ForeignKey, Model, Q, QuerySet

from knowledge_app.models import GraphLayout, HeldChange, HistoryEntry, HygieneScore, MemoryRevision
from memoryhub.forgetting.matching import composed, nothing, texts_in
from memoryhub.forgetting.rules import HAVE_SOURCES, Affected, Rules, find_changes, text_columns
from memoryhub.models import IdempotentCall, Invitation, OAuthClient, RecentSearch, SavedSearch
from sessions_app.models import Entry, Run, Session, SourceFile, SourceFolder, Summary, Webhook, Workspace

APPS = ("sessions_app", "knowledge_app", "memoryhub")
UNOWNED: tuple[type[Model], ...] = (
    Invitation,
    LogEntry,
    OAuthClient,
)  # of no workspace: only for operators of the hub
NEVER_MODELS = (Workspace, SourceFolder, Webhook, HygieneScore)  # settings and figures: only named in the preview
OF_SESSIONS = (  # affected by a link to an erased session, or by its key in one column
    SourceFile,
    Session,
    HeldChange,
    MemoryRevision,
    Run,
    RecentSearch,
    SavedSearch,
)
_APART = "\n<\n"  # no markup goes on after it
CACHES = (GraphLayout,)  # deleted by every erasure


def walk(workspace: Workspace | None, rules: Rules) -> Iterator[Affected]:
    """Yield the affected rows of a workspace, table by table; None for the rows of no workspace."""
    for row in candidates_of(workspace, rules):
        affected = find_changes(row, rules)
        if affected is not None:
            yield affected


def rows_of(workspace: Workspace | None, rules: Rules) -> Iterator[Model]:
    """Yield the rows of a workspace that are searched; None for the rows of no workspace."""
    for model in _models():
        yield from _rows(model, workspace, rules).iterator(chunk_size=500)


def candidates_of(
    workspace: Workspace | None, rules: Rules, *, may_match: Callable[[str], object] = nothing
) -> Iterator[Model]:
    """Yield the rows that rules may change, and those whose texts ``may_match``: a small part of ``rows_of``.

    Of the others, only the texts are read, and those of a row are searched together.
    """
    for model in _models():
        rows = _rows(model, workspace, rules)
        if _may_change_without_match(model, rules):
            yield from rows.iterator(chunk_size=500)
            continue
        redaction = rules.of(getattr(model, "instance_type", model))
        columns = [column.attname for columns in text_columns(model) for column in columns]
        chosen = (
            pk
            for pk, *values in rows.values_list("pk", *columns).iterator(chunk_size=2_000)
            if (text := composed(_APART.join(_plain(values)))) and (redaction.mentions(text) or may_match(text))
        )
        while pks := list(islice(chosen, 500)):
            yield from rows.filter(pk__in=pks)


def _may_change_without_match(model: type[Model], rules: Rules) -> bool:
    """Tell whether rules affect rows of a table by their source or session, too."""
    base = getattr(model, "instance_type", model)
    by_source = (*HAVE_SOURCES, HistoryEntry, IdempotentCall, Run) if rules.has_sources else ()
    return issubclass(base, (*by_source, *(OF_SESSIONS if rules.sessions else ())))


def _plain(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, bytes | memoryview):
            yield bytes(value).decode("utf-8", errors="replace")
        elif value:
            yield from texts_in(value)


def _models() -> list[type[Model]]:
    own = [model for label in APPS for model in apps.get_app_config(label).get_models()]
    mine = [model for model in own if _path_to_workspace(model) is not None and model not in (*NEVER_MODELS, *CACHES)]
    return mine + list(UNOWNED)


@lru_cache
def _path_to_workspace(model: type[Model], depth: int = 3) -> str | None:
    """Return the lookup from a table to its workspace, the shortest there is; None for a table of none."""
    if model is Workspace:
        return "pk"
    links = [item for item in model._meta.concrete_fields if isinstance(item, ForeignKey)]
    for link in links:
        if link.related_model is Workspace:
            return str(link.name)
    for link in links if depth else []:
        further = _path_to_workspace(link.related_model, depth - 1) if link.related_model is not model else None
        if further and link.related_model.__module__.split(".")[0] in APPS:
            return f"{link.name}__{further}"
    return None


def _rows(model: type[Model], workspace: Workspace | None, rules: Rules) -> QuerySet[Model]:
    path = _path_to_workspace(model)
    rows: QuerySet[Model] = model._base_manager.all()
    has_unowned = rules.everywhere or workspace is None
    if path is None:
        return rows if has_unowned else rows.none()
    places = [Q(**{f"{path}__isnull": True})] if has_unowned else []
    places += [Q(**{path: workspace.pk})] if workspace else []
    rows = rows.filter(reduce(or_, places))
    if rules.sessions and model in (Entry, Summary):
        rows = rows.exclude(session__in=rules.session_ids)  # deleted with their session
    if rules.sessions and model is Session:
        rows = rows.exclude(pk__in=rules.session_ids)
    return rows

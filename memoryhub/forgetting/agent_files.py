"""The agents' files that erased text came from. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db.models import Model, Q

from knowledge_app.models import (
    CachedResponse,
    Forgotten,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
)
from memoryhub.forgetting.rules import Affected, Rules
from memoryhub.lib.text.forgotten import MARK
from sessions_app.models import Entry, SourceFile, Summary, Workspace
from sessions_app.services.sources import SESSIONS

BAR = "█████"  # stands for forgotten text that a file may still have
KINDS: dict[type[Model], str] = {  # of the files from which the rows of a table are read
    KnowledgeEntry: "knowledge",
    Observation: "observations",
    KeyValue: "key_values",
    CachedResponse: "cache",
}


def files_of(found: Iterable[Affected], workspace: Workspace, rules: Rules) -> dict[str, str]:
    """Return the files of a workspace that affected rows may be from, as content hashes by id.

    Documents count if the text that their file was last seen to have is affected. Rows of other tables are from the
    files of their kind or session.
    """
    sessions: set[int] = set(rules.session_ids)
    documents, kinds, paths = set(), set(), set()
    for affected in found:
        row = affected.row
        if isinstance(row, Entry | Summary):
            sessions.add(row.session_id)
        elif isinstance(row, MemoryRevision) and "content" in (affected.values or {}):
            documents.add(row.pk)
        elif isinstance(row, HistoryEntry):
            paths.add(row.source)
        elif kind := KINDS.get(type(row)):
            kinds.add(kind)
    ids = _files_of_sessions(workspace, sessions)
    places = MemoryDocument.objects.filter(workspace=workspace, synced_revision__in=documents).exclude(path="")
    conditions = [Q(path=path, folder=folder) for path, folder in places.values_list("path", "folder")]
    wanted = reduce(or_, conditions, Q(kind__in=kinds) | Q(kind="history", path__in=paths) | Q(pk__in=ids))
    files = SourceFile.objects.filter(wanted, workspace=workspace).exclude(status=SourceFile.Status.MISSING)
    return {str(pk): digest for pk, digest in files.order_by("pk").values_list("pk", "content_hash")}


def _files_of_sessions(workspace: Workspace, sessions: set[int]) -> set[int]:
    files = SourceFile.objects.filter(workspace=workspace, kind="session")
    return {
        pk
        for pk, session, extra in files.values_list("pk", "session", "extra")
        if session in sessions or not sessions.isdisjoint(extra.get(SESSIONS, ()))
    }


def text_of_file(document: MemoryDocument) -> str:
    """Return the text of a document's file as last seen, with bars for forgotten text that it may still have."""
    text = document.synced_revision.content if document.synced_revision else ""
    return text.replace(MARK, BAR) if MARK in text and _has_forgotten_text(document) else text


def _has_forgotten_text(document: MemoryDocument) -> bool:
    """Tell whether a document's file is as it was when text of it was erased."""
    place = {"workspace": document.workspace_id, "folder": document.folder_id, "path": document.path}
    file = SourceFile.objects.filter(**place).first()
    receipts = Forgotten.objects.filter(Q(workspace=document.workspace_id) | Q(workspace=None))
    of_file = receipts.exclude(files={}).values_list("files", flat=True)
    return file is not None and any(files.get(str(file.pk)) == file.content_hash for files in of_file)

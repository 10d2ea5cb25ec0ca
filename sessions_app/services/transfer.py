"""Export and import single sessions as files of nanobot, Grip or AgTerm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.safe_folder import Folder, FolderMissing
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts import agterm, grip
from memoryhub.lib.layouts.nanobot import layout as nanobot
from memoryhub.lib.layouts.records import FileRead, Problem, SessionRecord
from memoryhub.lib.layouts.write import LAYOUTS
from memoryhub.lib.layouts.write import session_parts as layout_parts
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.export import exported_entries, session_record
from sessions_app.services.importing import import_conversation
from sessions_app.services.workspaces import lock_workspace

Remember = Callable[[Workspace, FileRead], FileRead]  # leaves out what was forgotten
Serve = Callable[[SessionRecord], SessionRecord]  # leaves out what its reader shouldn't get


def export_session(
    session: Session, layout: str = "", *, epoch: int | None = None, serve: Serve | None = None
) -> tuple[str, str]:
    """Return a session as a program's file: name and text. Importing it restores the same session.

    ``layout``: nanobot, grip or agterm; default: the workspace's, or agterm. Raises Invalid.
    """
    name, parts = session_parts(session, layout, epoch=epoch, serve=serve)
    return name, "".join(parts)


def session_parts(
    session: Session, layout: str = "", *, epoch: int | None = None, serve: Serve | None = None
) -> tuple[str, Iterator[str]]:
    """Return what ``export_session`` returns, in parts, for which entries are read when they are needed."""
    own = session.workspace.layout
    layout = layout or (own if own in LAYOUTS else "agterm")
    if layout not in LAYOUTS:
        words = gettext("Sessions can be exported for %(layouts)s, not for %(layout)s.")
        raise Invalid(words % {"layouts": ", ".join(LAYOUTS), "layout": layout}, code="unknown_export")
    found = session_record(session, epoch=epoch, is_streamed=True, exported=exported_entries(layout, own))
    found = serve(found) if serve else found
    parts = layout_parts(found, layout, zone=ZoneInfo(settings.TIME_ZONE), is_native=layout == own)
    stem = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in found.key)[:100]
    return f"{stem}.{LAYOUTS[layout]}", parts


def export_sessions(sessions: Iterable[Session], out: IO[bytes]) -> int:
    """Write sessions (see ``export_session``) as a zip archive, one folder per workspace; return their number.

    Duplicate names get a number, also where they differ only in case or Unicode form.
    """
    count = 0
    taken: set[str] = set()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for session in sessions:
            name, parts = session_parts(session)
            stem, _, suffix = f"{session.workspace.slug}/{name}".rpartition(".")
            free = next(
                place for number in range(1, len(taken) + 2)
                if (place := f"{stem}{f'-{number}' if number > 1 else ''}.{suffix}").lower() not in taken
            )  # fmt: skip
            taken.add(free.lower())
            with archive.open(free, "w") as out_file:
                for part in parts:
                    out_file.write(part.encode())
            count += 1
    return count


def import_session(workspace: Workspace, path: Path, *, by: By, remember: Remember) -> ImportCounts:
    """Import one session's file into a workspace; a repeated import adds only new entries.

    ``remember``: see ``memoryhub.forgetting.import_filter.remembered``. Raises FolderMissing, Invalid.
    """
    with Folder(path.parent, quiet_seconds=0) as folder:
        if not folder.exists(path.name):
            raise FolderMissing(f"There is no file {path.name}.")
        read = _read(folder, path.name)
    if not _sessions_in(read):
        raise Invalid(_no_session_in(path.name, read.problems), code="unknown_session_file")
    with transaction.atomic():
        lock_workspace(workspace.pk)  # nothing can be forgotten at the same time
        return _import_sessions(workspace, remember(workspace, read), by)


def _import_sessions(workspace: Workspace, read: FileRead, by: By) -> ImportCounts:
    tally = ImportCounts(problems=list(read.problems))
    for item in _sessions_in(read):
        taken, source = import_conversation(workspace=workspace, record=item, path="", now=by.at, dry_run=False)
        tally.include(taken)
        if source is None:  # refused
            continue
        text = f"{item.key}: imported from a file"
        detail = {"added": dict(+tally.added), "file": read.path}
        record(by, "session.imported", "workspace", workspace.pk, text, workspace=workspace, detail=detail)
    return tally


def _sessions_in(read: FileRead) -> list[SessionRecord]:
    return [item for item in read.items if isinstance(item, SessionRecord)]


def _no_session_in(name: str, problems: Sequence[Problem]) -> str:
    if not problems:
        return gettext("%(file)s isn't a session of nanobot, Grip or AgTerm.") % {"file": name}
    words = gettext("%(file)s isn't a session of nanobot, Grip or AgTerm: %(what)s.")
    return words % {"file": name, "what": problems[0].what}


def _read(folder: Folder, name: str) -> FileRead:
    zone = ZoneInfo(settings.TIME_ZONE)
    if name.endswith(".jsonl"):
        return nanobot.read_session(folder, nanobot.SessionFile(name, is_encoded=False, is_visible=True), zone)
    as_export = agterm.read_export(folder, name, zone)
    return as_export if as_export.items else grip.read_session(folder, name, zone)


def problems_of(tally: ImportCounts) -> list[str]:
    """Return the problems of an import as sentences."""
    return [_told(problem) for problem in tally.problems]


def _told(problem: Problem) -> str:
    values = {"file": problem.file or gettext("the file"), "what": problem.what, "action": problem.action}
    if problem.line:
        return gettext("%(file)s, line %(line)s: %(what)s: %(action)s") % {**values, "line": problem.line}
    return gettext("%(file)s: %(what)s: %(action)s") % values

from __future__ import annotations

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.as_json import run_document, session_document
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.forgetting.import_filter import remembered
from memoryhub.lib.errors import Conflict, NotFound
from memoryhub.lib.http.downloads import safe_name
from memoryhub.management.json_command import JsonCommand
from memoryhub.management.row_edits import edit_now, edit_summary
from memoryhub.runs.executing import complete
from sessions_app.models import DeletedSession, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.compressing.folding import archive_and_clear, fold_to_window
from sessions_app.services.export import session_as_markdown
from sessions_app.services.lifecycle import (
    SessionBusy,
    allow_again,
    clear_session,
    delete_session,
    open_session,
    rename_session,
)
from sessions_app.services.transfer import import_session, problems_of, session_parts

COMMAND = Actor("command", "session")
BULK = ("archive", "unarchive")  # accept several keys
ACTIONS = (
    "list",
    "show",
    "open",
    "rename",
    "clear",
    "prune",
    "delete",
    "allow",
    "export",
    "import",
    "markdown",
    *BULK,
)
POLL_SECONDS = 0.2


class Command(JsonCommand):
    help = "Create, rename, clear, prune, archive, delete, export and import sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("name", nargs="?", default="", help="the session's key; for import: the file")
        parser.add_argument("more", nargs="*", default=[], help="for archive and unarchive: more keys")
        parser.add_argument("--archived", action="store_true", help="for list: archived sessions")
        parser.add_argument("--title", default="", help="for open and rename")
        parser.add_argument("--archive", action="store_true", help="for clear: consolidate everything first")
        parser.add_argument("--wait", action="store_true", help="for clear: wait for a running run")
        parser.add_argument(
            "--window", type=int, help="for prune: number of entries to keep (default: the memory window)"
        )
        parser.add_argument("--confirm", default="", help="for delete: the session's key again")
        parser.add_argument("--reason", default="", help="for delete")
        parser.add_argument("--layout", choices=("nanobot", "grip", "agterm"), default="", help="for export")
        parser.add_argument("--epoch", type=int, help="for export and markdown (default: the current epoch)")
        parser.add_argument("--originals", action="store_true", help="for markdown: include summarised entries")
        parser.add_argument("--output", help="for export and markdown: write to this file")

    def run(self, *, action: str, workspace: str, name: str, **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if action == "list":
            rows = Session.objects.filter(workspace=found, archived_at__isnull=not options["archived"])
            sessions = rows.order_by("-updated_at", "-id")
            dated = [session_document(session) | {"archived_at": session.archived_at} for session in sessions]
            return {"sessions": dated}
        if action == "open":
            session, is_new = open_session(found, name, by=By(COMMAND, timezone.now()), title=options["title"])
            return {"session": session_document(session), "created": is_new}
        if action in BULK:
            return _archive(found, action, [name, *options["more"]])
        if action == "import":
            return _import(found, name)
        if action == "allow":
            return _allow(found, name)
        session = find_session(found, name)
        if action in ("export", "markdown"):
            return _write(session, options, as_text=action == "markdown")
        return _change(session, action, options)

    def show(self, result: dict[str, Any]) -> None:
        for session in result.get("sessions", [result["session"]] if "session" in result else []):
            self.line(
                f"{session['key']}: {session['entries']:,} entries, {session['active_entries']:,} active, "
                f"{session['original_tokens']:,} tokens, epoch {session['epoch']}"
            )
        for word in ("added", "problems", "deleted", "allowed", "file"):
            if result.get(word):
                self.line(f"{word}: {result[word]}")
        if "changed" in result.get("run", {}):
            self.line(edit_summary(result["run"]))
        if "text" in result:
            self.stdout.write(result["text"], ending="")


def _archive(workspace: Workspace, action: str, keys: list[str]) -> dict[str, Any]:
    """Archive or unarchive sessions as one edit. Raises NotFound before anything changes."""
    pks = [find_session(workspace, key).pk for key in keys]
    return {"run": edit_now(COMMAND, workspace, "sessions", action, pks)}


def _change(session: Session, action: str, options: dict[str, Any]) -> dict[str, Any]:
    now = timezone.now()
    document: dict[str, Any] = {}
    if action == "rename":
        rename_session(session, options["title"], by=By(COMMAND, now))
    elif action == "prune":
        run = fold_to_window(session, options["window"], by=By(COMMAND, now), once=True)
        document["run"] = run_document(complete(run, now=timezone.now))
    elif action == "clear":
        _clear(session, archive=options["archive"], wait=options["wait"])
    elif action == "delete":
        tombstone = delete_session(
            session, confirmation=options["confirm"], reason=options["reason"], by=By(COMMAND, now)
        )
        return {"deleted": {"key": tombstone.key, "entries": tombstone.entry_count, "tokens": tombstone.total_tokens}}
    session.refresh_from_db()
    return document | {"session": session_document(session)}


def _clear(session: Session, *, archive: bool, wait: bool) -> None:
    if archive:
        requested = archive_and_clear(session, by=By(COMMAND, timezone.now()), once=True)
        run = complete(requested, now=timezone.now)
        queued = Run.objects.filter(session=session, kind=run.kind, status=Run.Status.QUEUED)
        while run.status == Run.Status.DONE and (rest := queued.first()):  # of more entries than one run takes
            run = complete(rest, now=timezone.now)
        if run.status != Run.Status.DONE:
            reason = "the change to MEMORY.md is held for review." if run.status == Run.Status.HELD else run.error
            raise Conflict(f"Nothing was cleared: {reason}", code="not_archived", run=run.pk)
        return
    while True:
        try:
            clear_session(session, by=By(COMMAND, timezone.now()))
        except SessionBusy:
            if not wait:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _write(session: Session, options: dict[str, Any], *, as_text: bool) -> dict[str, Any]:
    if as_text:
        name = f"{safe_name(session.key)}.md"
        parts = session_as_markdown(
            session, epoch=options["epoch"], originals=options["originals"], zone=timezone.get_default_timezone()
        )
    else:
        name, parts = session_parts(session, options["layout"], epoch=options["epoch"])
    if not options["output"]:
        return {"name": name, "text": "".join(parts)}
    with Path(options["output"]).open("w", encoding="utf-8") as file:
        file.writelines(parts)
    return {"name": name, "file": options["output"]}


def _import(workspace: Workspace, file: str) -> dict[str, Any]:
    tally = import_session(workspace, Path(file).resolve(), by=By(COMMAND, timezone.now()), remember=remembered)
    return {
        "added": dict(+tally.added),
        "updated": dict(+tally.updated),
        "unchanged": dict(+tally.unchanged),
        "problems": problems_of(tally),
    }


def _allow(workspace: Workspace, key: str) -> dict[str, Any]:
    tombstone = DeletedSession.objects.filter(workspace=workspace, key=key).first()
    if tombstone is None:
        raise NotFound(f"{workspace.slug} has no deleted session {key!r}.")
    allow_again(tombstone, by=By(COMMAND, timezone.now()))
    return {"allowed": key}

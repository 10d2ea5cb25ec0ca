"""Following agents' folders: what they write is taken a quiet second later, what people save is written at once.

Changes are told by the operating system; every 30 seconds each folder is looked at anyway, for file systems that tell
nothing. One process follows a folder, whoever has its lock; the others try again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone
from filelock import FileLock, Timeout
from watchfiles import watch

from knowledge_app.services.documents.pending_writes import unwritten_documents
from knowledge_app.services.rows.knowledge_json import knowledge_mark
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.safe_folder import Folder
from memoryhub.sync.importing import ImportRefused
from memoryhub.sync.syncing import SyncResult, sync_workspace
from memoryhub.sync.watched_paths import places_to_watch
from sessions_app.models import SyncState, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.sources import path_hash

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.3  # between looks for what people saved, and for workspaces to follow
POLL_SECONDS = 30.0  # between syncs of a folder of which nothing was told
RETRY_SECONDS = 1.0  # after another sync or import had the folder
PATIENCE = 5  # quiet times that a folder may stay busy before it is looked at all the same
TURNS_AT_ONCE = 4
Marks = frozenset[tuple[object, ...]]
Told = Callable[[Workspace, SyncResult | MemoryHubError], None]


@dataclass
class Followed:
    """A folder that is followed: when its next sync is due (monotonic seconds), and what waits to be written."""

    workspace: Workspace
    lock: FileLock
    ended: Event = field(default_factory=Event)
    due_at: float = 0.0
    busy_since: float | None = None
    timing: Lock = field(default_factory=Lock)
    marks: Marks = frozenset()
    turn: Future[None] | None = None
    watcher: Thread | None = None


def follow_workspaces(
    stopping: Event, chosen: Callable[[], Collection[Workspace]], *, actor: Actor, told: Told = lambda *_: None
) -> None:
    """Keep folders in step until told to stop. ``chosen`` names the workspaces, asked for anew at every look.

    ``told`` hears of each sync that changed something, and of each that failed, in the thread that did it.
    """
    followed: dict[int, Followed] = {}
    elsewhere: set[int] = set()
    woken = Event()
    with ThreadPoolExecutor(TURNS_AT_ONCE, thread_name_prefix="sync") as pool:
        while not stopping.is_set():
            close_old_connections()
            try:
                for workspace in _choose(followed, chosen(), woken):
                    if workspace.pk not in elsewhere:
                        told(
                            workspace,
                            MemoryHubError(
                                "Another process follows this folder; this one stands by.", code="followed_elsewhere"
                            ),
                        )
                        elsewhere.add(workspace.pk)
                _look_for_saved(followed)
            except DatabaseError as error:
                logger.warning("the database can't be used: %s", error)
            except Exception:
                logger.exception("a look for what to sync failed")
            woken.clear()
            _start_turns(followed, pool, actor, told, woken)
            _wait(stopping, woken, followed)
        for one in followed.values():
            _let_go(one)
    connection.close()


def followed_workspaces() -> list[Workspace]:
    """Return the workspaces that are to be followed."""
    return list(Workspace.objects.filter(is_followed=True).exclude(path="").order_by("id"))


def _wait(stopping: Event, woken: Event, followed: dict[int, Followed]) -> None:
    """Wait for the next sync that is due, a change somewhere or the next look, whatever comes first."""
    next_due = min((one.due_at for one in followed.values() if one.turn is None), default=float("inf"))
    seconds = min(LOOK_SECONDS, max(0.0, next_due - time.monotonic()))
    if not stopping.is_set():
        woken.wait(seconds)


def _choose(followed: dict[int, Followed], wanted: Collection[Workspace], woken: Event) -> list[Workspace]:
    """Begin with new workspaces, end with those that are not wanted any more, and know their settings of now.

    Returns those that another process follows.
    """
    elsewhere = []
    by_id = {workspace.pk: workspace for workspace in wanted}
    for pk in followed.keys() - by_id.keys():
        _let_go(followed.pop(pk))
    for pk, workspace in by_id.items():
        if pk in followed:
            followed[pk].workspace = workspace
        elif (lock := _lock(workspace)) is not None:
            one = followed[pk] = Followed(workspace, lock)
            one.watcher = Thread(target=_watch, args=(one, woken), name="watch", daemon=True)
            one.watcher.start()
        else:
            elsewhere.append(workspace)
    return elsewhere


def _lock(workspace: Workspace) -> FileLock | None:
    """Return the lock of who follows a folder, held; None where another process has it."""
    locks = settings.MEMORYHUB_HOME / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / f"follow-{path_hash(workspace.path)[:16]}.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def _let_go(one: Followed) -> None:
    one.ended.set()
    if one.turn is not None:
        one.turn.exception()  # waits for its end
    one.lock.release()


def _watch(one: Followed, woken: Event) -> None:
    """Note that a folder changed, until it is followed no more; begin anew where its parts are others by now."""
    was_there = True
    while not one.ended.is_set():
        root = Path(one.workspace.path)
        try:
            with Folder(root) as folder:
                places = places_to_watch(folder)
            if not was_there:
                _note_change(one, woken)
            was_there = True
            _watch_places(one, woken, root, places)
        except (MemoryHubError, OSError, RuntimeError) as error:
            logger.debug("%s can't be watched: %s", root, error)
            was_there = False
            one.ended.wait(RETRY_SECONDS)


def _watch_places(one: Followed, woken: Event, root: Path, places: list[str]) -> None:
    paths = [root / place for place in places]
    options = {"recursive": False, "debounce": 100, "step": 20, "rust_timeout": 1000, "yield_on_timeout": True}
    for changes in watch(*paths, watch_filter=None, stop_event=one.ended, raise_interrupt=False, **options):  # type: ignore[arg-type]
        if any(".memoryhub-" not in Path(path).name for _, path in changes):
            _note_change(one, woken)
        with Folder(root) as folder:
            if places_to_watch(folder) != places:
                return


def _note_change(one: Followed, woken: Event) -> None:
    now, quiet = time.monotonic(), settings.MEMORYHUB_QUIET_SECONDS
    with one.timing:
        if one.busy_since is None:
            one.busy_since = now
        one.due_at = min(now + quiet, one.busy_since + quiet * PATIENCE)
    woken.set()


def _look_for_saved(followed: dict[int, Followed]) -> None:
    """Find what people saved and a folder doesn't have: that is written at once."""
    writing = {pk: one for pk, one in followed.items() if one.workspace.write_back}
    marks: dict[int, set[tuple[object, ...]]] = {pk: set() for pk in writing}
    rows = unwritten_documents().filter(workspace__in=writing) if writing else ()
    for row in rows:
        marks[row.workspace_id].add((row.pk, row.head_id))
    known = dict(SyncState.objects.filter(workspace__in=writing).values_list("workspace", "knowledge_mark"))
    for pk, one in writing.items():
        if one.workspace.layout == "grip" and (mark := knowledge_mark(one.workspace)) != known.get(pk):
            marks[pk].add(("knowledge", mark))
        found = frozenset(marks[pk])
        if found and found != one.marks:
            one.due_at = 0.0
        one.marks = found


def _start_turns(
    followed: dict[int, Followed], pool: ThreadPoolExecutor, actor: Actor, told: Told, woken: Event
) -> None:
    for one in followed.values():
        if one.turn is not None and one.turn.done():
            one.turn = None
        if one.turn is None and one.due_at <= time.monotonic():
            with one.timing:
                one.due_at, one.busy_since = time.monotonic() + POLL_SECONDS, None
            one.turn = pool.submit(_turn, one, actor, told, woken)


def _turn(one: Followed, actor: Actor, told: Told, woken: Event) -> None:
    """Sync one workspace. No error ends the following: what failed is tried again."""
    close_old_connections()
    again: float | None = None
    try:
        result = sync_workspace(one.workspace, by=By(actor, timezone.now()), wait=False)
        if result.copies_left or any(file.verdict == "waits" for file in result.written):
            again = settings.MEMORYHUB_QUIET_SECONDS
        if result.has_changed or result.tally.problems:
            told(one.workspace, result)
    except ImportRefused:
        again = RETRY_SECONDS
    except MemoryHubError as error:
        told(one.workspace, error)
    except DatabaseError as error:
        logger.warning("workspace %s was not synced: %s", one.workspace.pk, error)
        again = RETRY_SECONDS
    except Exception:
        logger.exception("a sync of workspace %s failed", one.workspace.pk)
    finally:
        connection.close()
    if again is not None:
        with one.timing:
            one.due_at = min(one.due_at, time.monotonic() + again)
    woken.set()

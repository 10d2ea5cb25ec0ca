"""Watch agents' folders: import what agents write after a quiet second, and write what people save at once.

The operating system reports changes. Each folder is also synced every 30 seconds, for file systems that report
nothing; a home with several projects is checked as a whole then, and only the projects that changed are synced. The
process that holds a folder's lock watches it; the others keep trying.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone
from watchfiles import watch

from knowledge_app.services.documents.pending_writes import unwritten_documents
from knowledge_app.services.rows.knowledge_json import knowledge_mark
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.projects import project_of_file
from memoryhub.lib.process_locks import ProcessLock, acquire_lock
from memoryhub.sync.importing import ImportRefused
from memoryhub.sync.instructions import has_changed_instructions
from memoryhub.sync.other_machines import is_left_to_others
from memoryhub.sync.source_folders import sync_folder
from memoryhub.sync.syncing import SyncResult, sync_workspace
from memoryhub.sync.watched_paths import Places, home_stamps, places_to_watch
from sessions_app.models import SourceFolder, SyncState, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.sources import path_hash
from sessions_app.services.syncing import record_idle

logger = logging.getLogger(__name__)
TICK_SECONDS = 0.3  # between checks for saved changes and for workspaces to watch
POLL_SECONDS = 30.0  # between syncs of a folder for which no change is reported
NEVER = float("inf")
RETRY_SECONDS = 1.0  # after another sync or import of the folder was running
MAX_QUIET_PERIODS = 5  # for which a sync of a busy folder is put off
MAX_CONCURRENT_SYNCS = 4
Marks = frozenset[tuple[object, ...]]
Stamps = dict[str, str]
OnResult = Callable[[Workspace, SyncResult | MemoryHubError], None]
Followed = Workspace | SourceFolder  # whose folder is watched


@dataclass
class FollowedWorkspace:
    """``due_at``: time of its next sync (monotonic seconds). ``marks``: its unwritten changes.

    ``source``: the workspace, for its own folder, or a further folder of one. ``paused_until``: after an unexpected
    error, it isn't synced before, whatever changes. ``error_code``: of its last sync.
    """

    source: Followed
    due_at: float = 0.0
    paused_until: float = 0.0
    error_code: str = ""
    busy_since: float | None = None
    timing: Lock = field(default_factory=Lock)
    marks: Marks = frozenset()
    running: Future[None] | None = None


@dataclass
class WatchedFolder:
    """A watched folder, with the workspaces imported from it: one, or several projects of a home.

    ``check_at``: when the files of a home are compared with ``stamps`` again (monotonic seconds), in ``checking``.
    ``stamps`` is None before the first check.
    """

    path: str
    lock: ProcessLock
    stopped: Event = field(default_factory=Event)
    workspaces: dict[Followed, FollowedWorkspace] = field(default_factory=dict)
    stamps: Stamps | None = None
    check_at: float = 0.0
    checking: Future[None] | None = None
    watcher: Thread | None = None

    @property
    def layout(self) -> str:
        return next((one.source.layout for one in list(self.workspaces.values())), "")

    @property
    def is_home(self) -> bool:
        return any(one.source.project for one in list(self.workspaces.values()))


def follow_workspaces(
    stopping: Event,
    get_workspaces: Callable[[], Collection[Followed]],
    *,
    actor: Actor,
    on_result: OnResult = lambda *_: None,
) -> None:
    """Sync folders until ``stopping`` is set. ``get_workspaces`` is called again every 0.3 seconds.

    ``on_result`` is called in the sync's thread for each sync that changed something or failed.
    """
    watched: dict[str, WatchedFolder] = {}
    watched_elsewhere: set[Followed] = set()
    wakeup = Event()
    with ThreadPoolExecutor(MAX_CONCURRENT_SYNCS, thread_name_prefix="sync") as pool:
        while not stopping.is_set():
            close_old_connections()
            try:
                for source in _update_watched(watched, get_workspaces(), wakeup):
                    if source not in watched_elsewhere:
                        on_result(
                            _workspace_of(source),
                            MemoryHubError(
                                "Another process watches this folder. This one takes over when that stops.",
                                code="followed_elsewhere",
                            ),
                        )
                        watched_elsewhere.add(source)
                _schedule_unwritten(_followed(watched))
            except DatabaseError as error:
                logger.warning("the database is not available: %s", error)
            except Exception:
                logger.exception("checking for unwritten changes failed")
            wakeup.clear()
            _start_due_checks(watched, pool, wakeup)
            _start_due_syncs(watched, pool, actor, on_result, wakeup)
            _wait(stopping, wakeup, watched)
        for one in watched.values():
            _release(one)
    connection.close()


def followed_workspaces() -> list[Followed]:
    """Return the workspaces whose folders the worker watches, and their further folders that it watches."""
    folders = SourceFolder.objects.filter(is_followed=True, removed_at=None).select_related("workspace")
    return [*Workspace.objects.filter(is_followed=True).exclude(path="").order_by("id"), *folders.order_by("id")]


def _workspace_of(source: Followed) -> Workspace:
    return source.workspace if isinstance(source, SourceFolder) else source


def _followed(watched: dict[str, WatchedFolder]) -> dict[Followed, FollowedWorkspace]:
    return {source: one for folder in watched.values() for source, one in folder.workspaces.items()}


def _wait(stopping: Event, wakeup: Event, watched: dict[str, WatchedFolder]) -> None:
    """Wait for the next due sync, a change, or the next tick."""
    idle = [one.due_at for one in _followed(watched).values() if one.running is None]
    seconds = min(TICK_SECONDS, max(0.0, min(idle, default=float("inf")) - time.monotonic()))
    if not stopping.is_set():
        wakeup.wait(seconds)


def _update_watched(watched: dict[str, WatchedFolder], wanted: Collection[Followed], wakeup: Event) -> list[Followed]:
    """Start watching new folders, stop watching others, and refresh their workspaces.

    Return the workspaces whose folders another process watches. A folder that isn't on this machine is left to
    workers of other machines; one that disappears is left once a sync has marked its workspaces as unavailable.
    """
    by_path: dict[str, list[Followed]] = {}
    for workspace in wanted:
        by_path.setdefault(workspace.path, []).append(workspace)
    left = {path for path in by_path if is_left_to_others(path)}
    for path, one in list(watched.items()):
        is_gone = path in left and all(workspace.unavailable_since for workspace in by_path[path])
        if path not in by_path or is_gone or not one.lock.is_held():
            _release(watched.pop(path))
    watched_elsewhere = []
    for path, workspaces in by_path.items():
        if path not in watched:
            if path in left or (lock := _lock(path)) is None:
                watched_elsewhere += workspaces
                continue
            watched[path] = WatchedFolder(path, lock)
        one = watched[path]
        _update_workspaces(one, workspaces)
        if one.watcher is None:
            one.watcher = Thread(target=_watch, args=(one, wakeup), name="watch", daemon=True)
            one.watcher.start()
    return watched_elsewhere


def _update_workspaces(one: WatchedFolder, sources: list[Followed]) -> None:
    for source in one.workspaces.keys() - set(sources):
        if (running := one.workspaces.pop(source).running) is not None:
            running.exception()  # waits until it ends
    for source in sources:
        if source in one.workspaces:
            one.workspaces[source].source = source
        else:
            one.workspaces[source] = FollowedWorkspace(source)


def _lock(path: str) -> ProcessLock | None:
    """Acquire the lock for watching a folder; None if another process holds it."""
    return acquire_lock(f"follow-{path_hash(path)[:16]}")


def _release(one: WatchedFolder) -> None:
    one.stopped.set()
    for running in (one.checking, *(each.running for each in one.workspaces.values())):
        if running is not None:
            running.exception()  # waits until it ends
    one.lock.release()


def _watch(one: WatchedFolder, wakeup: Event) -> None:
    """Schedule a sync whenever a folder changes; start again when its sub-folders change."""
    was_there = True
    while not one.stopped.is_set():
        root = Path(one.path)
        try:
            with Folder(root) as folder:
                places = places_to_watch(folder, one.layout)
            if not was_there:
                _schedule_all(one, wakeup)
            was_there = True
            _watch_places(one, wakeup, root, places)
        except (MemoryHubError, OSError, RuntimeError) as error:
            logger.debug("%s can't be watched: %s", root, error)
            was_there = False
            one.stopped.wait(RETRY_SECONDS)


def _watch_places(one: WatchedFolder, wakeup: Event, root: Path, places: Places) -> None:
    paths = [root / place for place in places.paths]
    options = {"debounce": 100, "step": 20, "rust_timeout": 1000, "yield_on_timeout": True}
    for changes in watch(
        *paths,
        watch_filter=None,
        stop_event=one.stopped,
        raise_interrupt=False,
        recursive=places.are_trees,
        **options,  # type: ignore[arg-type]
    ):
        changed = {path for _, path in changes if ".memoryhub-" not in Path(path).name}
        with Folder(root) as folder:
            if changed:
                _schedule_changed(one, wakeup, folder, {os.path.relpath(path, root) for path in changed})
            if places_to_watch(folder, one.layout) != places:
                return


def _schedule_changed(one: WatchedFolder, wakeup: Event, folder: Folder, paths: Collection[str]) -> None:
    """Schedule syncs of the workspaces whose project has one of the changed files."""
    names = {project_of_file(folder, one.layout, path) for path in paths}
    for each in list(one.workspaces.values()):
        if None in names or not each.source.project or each.source.project in names:
            _schedule_sync(each, wakeup)


def _schedule_all(one: WatchedFolder, wakeup: Event) -> None:
    for each in list(one.workspaces.values()):
        _schedule_sync(each, wakeup)


def _schedule_sync(one: FollowedWorkspace, wakeup: Event) -> None:
    now, quiet = time.monotonic(), settings.MEMORYHUB_QUIET_SECONDS
    with one.timing:
        if one.busy_since is None:
            one.busy_since = now
        due_at = min(now + quiet, one.busy_since + quiet * MAX_QUIET_PERIODS)
        one.due_at = max(due_at, one.paused_until)
    wakeup.set()


def _schedule_unwritten(watched: dict[Followed, FollowedWorkspace]) -> None:
    """Schedule an immediate sync of folders that lack saved changes."""
    own = {one.source: one for one in watched.values() if isinstance(one.source, Workspace)}
    writing = {workspace.pk: one for workspace, one in own.items() if workspace.write_back}
    workspaces = {workspace.pk: workspace for workspace in own}
    marks: dict[int, set[tuple[object, ...]]] = {pk: set() for pk in writing}
    rows = unwritten_documents().filter(workspace__in=writing) if writing else ()
    for row in rows:
        marks[row.workspace_id].add((row.pk, row.head_id))
    known = dict(SyncState.objects.filter(workspace__in=writing).values_list("workspace", "knowledge_mark"))
    for pk, one in writing.items():
        workspace = workspaces[pk]
        if workspace.layout == "grip" and (mark := knowledge_mark(workspace)) != known.get(pk):
            marks[pk].add(("knowledge", mark))
        current = frozenset(marks[pk])
        if current and current != one.marks:
            one.due_at = 0.0
        one.marks = current


def _start_due_checks(watched: dict[str, WatchedFolder], pool: ThreadPoolExecutor, wakeup: Event) -> None:
    for one in watched.values():
        if one.checking is not None and one.checking.done():
            one.checking = None
        if one.is_home and one.checking is None and one.check_at <= time.monotonic():
            one.check_at = time.monotonic() + POLL_SECONDS
            one.checking = pool.submit(_check_home, one, wakeup)


def _check_home(one: WatchedFolder, wakeup: Event) -> None:
    close_old_connections()
    try:
        _schedule_what_changed(one, wakeup)
    except (MemoryHubError, OSError):
        _schedule_all(one, wakeup)  # their syncs report it
    except DatabaseError as error:
        logger.warning("check of a home failed: %s", error)
    except Exception:
        logger.exception("check of a home failed")
    finally:
        connection.close()


def _schedule_what_changed(one: WatchedFolder, wakeup: Event) -> None:
    """Compare the files of a home with their stamps at the last check, and schedule syncs of what changed.

    The workspaces of projects in which nothing changed count as synced.
    """
    with Folder(Path(one.path)) as folder:
        stamps = home_stamps(folder, one.layout)
        changed = {path for path, _ in stamps.items() ^ (stamps if one.stamps is None else one.stamps).items()}
        _schedule_changed(one, wakeup, folder, changed)
        one.stamps = stamps
    for each in list(one.workspaces.values()):
        if has_changed_instructions(each.source):
            _schedule_sync(each, wakeup)
    idle = [source for source, each in one.workspaces.items() if each.due_at == NEVER]
    folders = [source.pk for source in idle if isinstance(source, SourceFolder)]
    record_idle([source.pk for source in idle if isinstance(source, Workspace)], folders, timezone.now())


def _start_due_syncs(
    watched: dict[str, WatchedFolder], pool: ThreadPoolExecutor, actor: Actor, on_result: OnResult, wakeup: Event
) -> None:
    for one in _followed(watched).values():
        if one.running is not None and one.running.done():
            one.running = None
        if one.running is None and one.due_at <= time.monotonic():
            pause = NEVER if one.source.project else POLL_SECONDS  # homes are checked as a whole
            with one.timing:
                one.due_at, one.busy_since = time.monotonic() + pause, None
            one.running = pool.submit(_sync_one, one, actor, on_result, wakeup)


def _sync_one(one: FollowedWorkspace, actor: Actor, on_result: OnResult, wakeup: Event) -> None:
    """Sync one workspace. No error stops the watching; a failed sync is tried again."""
    close_old_connections()
    retry_after: float | None = None
    try:
        result = _sync_source(one.source, By(actor, timezone.now()))
        if result.copies_left or any(file.verdict == "waiting" for file in result.written):
            retry_after = settings.MEMORYHUB_QUIET_SECONDS
        one.error_code = ""
        if result.has_changed or result.tally.problems:
            on_result(_workspace_of(one.source), result)
    except ImportRefused:
        retry_after = RETRY_SECONDS
    except MemoryHubError as error:
        _note_failure(one, error)
        on_result(_workspace_of(one.source), error)
        retry_after = POLL_SECONDS
    except DatabaseError as error:
        logger.warning("sync of %s failed: %s", one.source.path, error)
        retry_after = RETRY_SECONDS
    except Exception:
        logger.exception("sync of %s failed", one.source.path)
        retry_after = POLL_SECONDS
    finally:
        connection.close()
    if retry_after is not None:
        with one.timing:
            one.due_at = min(one.due_at, time.monotonic() + retry_after)
    wakeup.set()


def _note_failure(one: FollowedWorkspace, error: MemoryHubError) -> None:
    """Log why a sync failed, once. An unexpected error is in the log already, with its traceback."""
    if error.code == "unexpected":
        one.paused_until = time.monotonic() + POLL_SECONDS
    elif error.code != one.error_code:
        logger.warning("sync of %s failed: %s", one.source.path, error.message)
    one.error_code = error.code


def _sync_source(source: Followed, by: By) -> SyncResult:
    if isinstance(source, SourceFolder):
        return sync_folder(source, by=by, wait=False)
    return sync_workspace(source, by=by, wait=False)

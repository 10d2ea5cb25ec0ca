"""Fault drills: each breaks one thing under a real hub, and prints one line about what was lost and how it recovered.

    python bench/drills/drills.py [DRILL ...]

Each drill has a home of its own in the temporary folder, and ends with check_memory. As root on Linux it mounts small
file systems; `database-down` and `two-first-starts` start a PostgreSQL of their own, `clock` and `calendar` need
libfaketime, and `system-calls` needs strace. A drill whose means are missing says so in its line. Exit status 1 if a
drill fails.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.drills.drill_hub import (  # noqa: E402
    Hub,
    Missing,
    Writer,
    ask,
    check_memory,
    failing_calls,
    manage,
    request_import,
    run_manage,
    running_postgres,
    small_disk,
    stored,
    wait_until,
)

IMAGES, CUTS = 20, 10  # copies of the database, and cuts of each copy's write-ahead log
CALLS = 24  # of an append and the next ones, each of which fails once
STORM_SECONDS = 15.0
MOMENTS = {  # by time zone: half a second later its clock changes, or 32 bits no longer hold the seconds since 1970
    "America/New_York": ["2027-03-14 06:59:59", "2027-11-07 05:59:59"],
    "Europe/Lisbon": ["2028-03-26 00:59:59", "2028-10-29 00:59:59", "2038-01-19 03:14:07"],
}
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def main() -> None:
    names = sys.argv[1:] or list(DRILLS)
    faults = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix=f"memoryhub-{name}-") as folder:
            try:
                print(f"{name.replace('-', ' ')}: {DRILLS[name](Path(folder))}", flush=True)
            except Missing as missing:
                print(f"{name.replace('-', ' ')}: left out, {missing}", flush=True)
            except AssertionError as fault:
                print(f"{name.replace('-', ' ')}: BROKEN, {fault}", flush=True)
                faults += 1
    sys.exit(bool(faults))


def expect(is_true: object, fault: str) -> None:
    if not is_true:
        raise AssertionError(fault)


def lost_of(home: Path, writers: list[Writer], database: str = "") -> str:
    """Compare what was acknowledged with what is stored; return the start of a drill's line."""
    rows = Counter(stored(home, database))
    acknowledged = {text for writer in writers for text in writer.acknowledged}
    lost = [text for text in acknowledged if text not in rows]
    doubled = [text for text, count in rows.items() if count > 1]
    line = f"{len(lost)} of {len(acknowledged)} acknowledged appends lost, {len(doubled)} duplicated"
    expect(acknowledged and not lost and not doubled, line)
    expect(not check_memory(home, database), f"check_memory: {check_memory(home, database)}")
    return line


def disk_full(folder: Path) -> str:
    with small_disk(folder, megabytes=24) as home, Hub(home) as hub, Writer(hub) as writer:
        writer.write_for(1.0)
        filler = home / "filler"
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            while True:
                out.write(bytes(4096))
        statuses = writer.try_until(lambda status: status == 507)
        expect(statuses.keys() <= {200, 507}, f"answered {dict(statuses)}")
        refused = writer.write_for(2.0)
        reads = hub.get("/health/"), writer.read()
        filler.unlink()
        seconds = writer.resume()
        line = lost_of(home, [writer])
        expect(reads == (507, 200), f"health and a context answered {reads}")
        return f"{line}, answered {shown(refused)}, health {reads[0]}, reading worked, resumed after {seconds:.1f} s"


def read_only(folder: Path) -> str:
    with small_disk(folder, megabytes=60) as home:
        with Hub(home) as hub, Writer(hub) as writer:
            writer.write_for(1.0)
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        answers = {
            name: run_manage(home, *name.split()) for name in ("serve --port 0", "check_memory", "stats", "work")
        }
        subprocess.run(["mount", "-o", "remount,rw", str(home)], check=True)
        for name, done in answers.items():
            expect("Traceback" not in done.stderr, f"{name} ends in a traceback")
            expect(done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, f"{name} says {done.stderr}")
        refusal = answers["serve --port 0"].stderr.strip()
        expect(answers["serve --port 0"].returncode == 1, "serve started")
        return f"{lost_of(home, [writer])}; serve refused with {refusal!r}; no command ended in a traceback"


def damage(folder: Path) -> str:
    with Hub(folder) as hub, Writer(hub) as writer:
        writer.write_for(2.0)
    backup = str(manage(folder, "backup")["file"])
    file = folder / "memoryhub.sqlite3"
    with file.open("r+b") as out:
        for page in range(8, file.stat().st_size // 4096, 3):
            out.seek(page * 4096)
            out.write(os.urandom(2048))
    refused = run_manage(folder, "serve", "--port", "0")
    checked = run_manage(folder, "check_memory")
    for done in (refused, checked):
        expect(done.returncode and "restore" in done.stderr, f"no word of restore in {done.stderr!r}")
        expect("Traceback" not in done.stderr, "a traceback")
    done = run_manage(folder, "restore", backup, "--yes", "--accept-unapplied")
    expect(done.returncode == 0, f"restore: {done.stderr}")
    line = lost_of(folder, [writer])
    with Hub(folder) as hub:
        return (
            f"{line} after restoring; serve had refused with {refused.stderr.strip()!r}; health {hub.get('/health/')}"
        )


def database_down(folder: Path) -> str:
    with (
        running_postgres(folder) as server,
        Hub(folder / "home", database=server.address) as hub,
        Writer(hub) as writer,
    ):
        writer.write_for(1.0)
        server.kill()
        down = writer.write_for(2.0)
        health, headers = hub.get("/health/"), writer.last_headers
        server.start()
        seconds = writer.resume()
        line = lost_of(folder / "home", [writer], server.address)
        expect(down.keys() == {503} and health == 503, f"answered {dict(down)}, health {health}")
        expect("retry-after" in headers, "no Retry-After")
        return (
            f"{line}, answered {shown(down)} with Retry-After {headers['retry-after']}, resumed after {seconds:.1f} s"
        )


def system_calls(folder: Path) -> str:
    """Let one write or flush of the database fail, then all from one on, and compare after each."""
    with Hub(folder) as hub, Writer(hub) as writer:
        writer.write_for(1.0)
        statuses, failed = Counter[int](), 0
        for error, when in [
            *(("EIO", str(n)) for n in range(1, CALLS + 1)),
            *(("ENOSPC", f"{n}+") for n in range(1, 9)),
        ]:
            with failing_calls(hub, error, when) as count:
                statuses += Counter(writer.append() for _ in range(3))
                failed += count()
            writer.resume()
        line = lost_of(folder, [writer])
        expect(failed > CALLS, f"only {failed} calls failed")
        expect(statuses.keys() <= {200, 503, 507}, f"answered {dict(statuses)}")
        return f"{line}; {failed} writes and flushes failed, answered {shown(statuses)}, no restart was needed"


def killed_machine(folder: Path) -> str:
    """Kill the hub and its worker in the middle of an import, and start them again."""
    files = 600
    agent = folder / "agent" / "sessions"
    agent.mkdir(parents=True)
    for number in range(files):
        head = f'{{"_type": "metadata", "key": "cli:{number}"}}\n'
        (agent / f"cli_{number}.jsonl").write_text(f'{head}{{"role": "user", "content": "imported {number}"}}\n')
    home = folder / "home"
    with Hub(home, worker=True) as hub, Writer(hub) as writer:
        request_import(home, agent.parent)
        imported: Callable[[], int] = lambda: sum(text.startswith("imported") for text in stored(home))  # noqa: E731
        wait_until("an import under way", lambda: imported() > 0)
        writer.append()
        hub.kill()
        at = imported()
        expect(at < files, "the import ended before the kill")
        hub.start()
        done = "SELECT count(*) FROM memoryhub_job WHERE kind = 'import' AND status = 'done'"
        wait_until("the end of the import", lambda: ask(home, done), 200)
        line = lost_of(home, [writer])
        expect(imported() == files, f"{imported()} of {files} sessions imported")
        return f"{line}; killed after {at} of {files} imported sessions, all {files} after the next start"


def fake_clock(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return the file that says how far the clock is ahead, and the environment that applies it."""
    if not Path(FAKETIME).exists():
        raise Missing("libfaketime isn't installed")
    now = folder / "now"
    now.write_text("+0")
    return now, {
        "LD_PRELOAD": FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(now),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def clock(folder: Path) -> str:
    now, fake = fake_clock(folder)
    is_soon = "SELECT count(*) FROM memoryhub_job WHERE kind = 'sweep' AND not_before < datetime('now', '+1 day')"
    home = folder / "home"
    with Hub(home, worker=True, environment=fake) as hub, Writer(hub) as writer:
        statuses: Counter[int] = Counter()
        for jump in ("+7200s", "-7200s", "+0", "+400d", "+0"):
            now.write_text(jump)
            statuses += writer.write_for(1.0)
            if jump == "+400d":
                wait_until("recurring work", lambda: not ask(home, is_soon))
        seconds = wait_until("recurring work after the correction", lambda: ask(home, is_soon), 120)
        order = [text for text in stored(home) if text.startswith(writer.name)]
        expect(order == [text for text in writer.tried if text in set(order)], "the order of entries changed")
        expect(statuses.keys() == {200}, f"answered {dict(statuses)}")
        line = f"{lost_of(home, [writer])}, in the same order, after jumps of +2 h, -2 h and +400 days and back"
        return f"{line}; all answered 200, and recurring work went on after {seconds:.0f} s"


def calendar(folder: Path) -> str:
    """Let the clock pass the beginning and the end of daylight saving time, and the year 2038."""
    now, fake = fake_clock(folder)
    home, writers, late = folder / "home", [], 0.0
    for zone, moments in MOMENTS.items():
        own = fake | {"MEMORYHUB_TIME_ZONE": zone}
        with Hub(home, worker=True, environment=own) as hub, Writer(hub, zone) as writer:
            for moment in moments:
                at = datetime.fromisoformat(f"{moment}.500000+00:00")
                now.write_text(f"{(at - datetime.now(UTC)).total_seconds():+.1f}s")
                writer.write_for(2.0)
                swept = f"SELECT count(*) FROM memoryhub_job WHERE kind = 'sweep' AND finished_at > '{moment}.999999'"
                late = max(late, wait_until(f"recurring work after {moment}", lambda: ask(home, swept), 120))  # noqa: B023
            order = [text for text in stored(home) if text.startswith(zone)]
            expect(order == writer.acknowledged, "the order of entries changed")
            expect(writer.statuses.keys() == {200}, f"answered {dict(writer.statuses)}")
            writers.append(writer)
    line = f"{lost_of(home, writers)}, in the same order, in {sum(map(len, MOMENTS.values()))} such moments"
    return f"{line}; all answered 200, and recurring work went on within {late:.0f} s"


def lock_storm(folder: Path) -> str:
    """Eight writers, a program that holds SQLite's lock, backups and checkpoints at once."""
    ended = threading.Event()
    with Hub(folder, worker=True) as hub:
        writers = [Writer(hub, f"writer {number}") for number in range(8)]

        def hold_lock() -> None:
            while not ended.wait(0.5):
                with sqlite3.connect(folder / "memoryhub.sqlite3", timeout=20, isolation_level=None) as own:
                    own.execute("BEGIN IMMEDIATE")
                    time.sleep(0.3)
                    own.execute("COMMIT")
                    own.execute("PRAGMA wal_checkpoint(PASSIVE)")
                own.close()

        def back_up() -> None:
            while not ended.wait(1):
                manage(folder, "backup")

        others = [threading.Thread(target=work) for work in (hold_lock, back_up)]
        threads = [threading.Thread(target=writer.write_for, args=(STORM_SECONDS,)) for writer in writers]
        for thread in [*others, *threads]:
            thread.start()
        largest = 0
        while any(thread.is_alive() for thread in threads):
            with suppress(FileNotFoundError):
                largest = max(largest, (folder / "memoryhub.sqlite3-wal").stat().st_size)
            time.sleep(0.1)
        ended.set()
        for thread in others:
            thread.join()
        statuses = sum((writer.statuses for writer in writers), Counter[int]())
        taken = sorted(seconds for writer in writers for seconds in writer.seconds)
        line = lost_of(folder, writers)
        expect(statuses.keys() == {200}, f"answered {dict(statuses)}")
        late = f"p99 {taken[len(taken) * 99 // 100]:.1f} s, WAL at most {largest / 2**20:.0f} MB"
        return f"{line}, answered {shown(statuses)}, {late}"


def power_loss(folder: Path) -> str:
    """Copy the files while the hub writes, and cut the copies' write-ahead log at random places.

    Not before what a checkpoint has written to the database: SQLite flushes the log first.
    """
    home, images, tested = folder / "home", folder / "images", 0
    images.mkdir()
    with Hub(home) as hub, Writer(hub) as writer:
        for number in range(IMAGES):
            thread = threading.Thread(target=writer.write_for, args=(0.5,))
            thread.start()
            time.sleep(random.uniform(0.1, 0.4))
            hub.send(signal.SIGSTOP)
            acknowledged = list(writer.acknowledged)
            for name in ("memoryhub.sqlite3", "memoryhub.sqlite3-wal", "memoryhub.sqlite3-shm"):
                shutil.copy(home / name, images / f"{number}-{name}")
            hub.send(signal.SIGCONT)
            thread.join()
            tested += _open_images(images, number, acknowledged, list(writer.tried))
        line = lost_of(home, [writer])
    return f"{line}; {tested} of {IMAGES * (CUTS + 1)} images opened, each a prefix of what was written"


def _open_images(images: Path, number: int, acknowledged: list[str], tried: list[str]) -> int:
    """Open a copy as it is, then with its log cut and its last frames damaged; return how many were right."""
    database, log, index = (images / f"{number}-memoryhub.sqlite3{end}" for end in ("", "-wal", "-shm"))
    whole, written = database.read_bytes(), log.read_bytes()
    (checkpointed,) = struct.unpack_from("=I", index.read_bytes(), 96)  # frames
    flushed = min(len(written), 32 + checkpointed * (24 + 4096))
    index.unlink()
    for cut in range(CUTS + 1):
        database.write_bytes(whole)
        kept = written if cut == 0 else written[: random.randint(flushed, len(written))]
        if cut % 3 == 2 and len(kept) > flushed + 4096:  # the last page reached the disk in part
            kept = kept[:-4096] + os.urandom(4096)
        log.write_bytes(kept)
        with sqlite3.connect(database) as own:
            expect(own.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"image {number}.{cut} is damaged")
            rows = own.execute("SELECT content FROM sessions_app_entry ORDER BY position").fetchall()
        own.close()
        found = [row[0] for row in rows]
        expect(found == [text for text in tried if text in set(found)], f"image {number}.{cut} isn't in order")
        expect(cut or set(acknowledged) <= set(found), f"image {number} lacks acknowledged appends")
        prefix = [text for text in acknowledged if text in set(found)]
        expect(prefix == acknowledged[: len(prefix)], f"image {number}.{cut} has gaps")
    return CUTS + 1


def two_first_starts(folder: Path) -> str:
    def start_both(homes: list[Path], database: str) -> float:
        began = time.monotonic()
        hubs = [Hub(home, database=database, waits=False) for home in homes]
        try:
            for hub in hubs:
                hub.wait_until_started()
            expect([hub.get("/health/") for hub in hubs] == [200, 200], "a hub isn't healthy")
        finally:
            for hub in hubs:
                hub.stop()
        expect(not check_memory(homes[0], database), "check_memory")
        return time.monotonic() - began

    seconds = start_both([folder / "one"] * 2, "")
    try:
        with running_postgres(folder) as server:
            on_postgres = f"and {start_both([folder / 'a', folder / 'b'], server.address):.0f} s on PostgreSQL"
    except Missing as missing:
        on_postgres = f"(PostgreSQL: {missing})"
    return f"both hubs started, {seconds:.0f} s on SQLite {on_postgres}; check_memory found nothing"


def shown(statuses: Counter[int]) -> str:
    return ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))


DRILLS = {
    "disk-full": disk_full,
    "read-only": read_only,
    "damage": damage,
    "database-down": database_down,
    "system-calls": system_calls,
    "killed-machine": killed_machine,
    "clock": clock,
    "calendar": calendar,
    "lock-storm": lock_storm,
    "power-loss": power_loss,
    "two-first-starts": two_first_starts,
}

if __name__ == "__main__":
    main()

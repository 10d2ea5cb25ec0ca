"""Keep pages open on a hub: the CPU and memory of their streams while nothing happens, and one change to all.

    python bench/speed/live.py [PAGES] [SECONDS]      # 1,000 pages for 30 seconds by default
    DATABASE_URL=postgres://... python bench/speed/live.py

Every person has ten browsers. The first line is what the same pages cost without streams, if each polls every two
seconds, extrapolated from the CPU of the polls of one. CPU is that of the web process.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from load import ROOT, cpu_of, load, request, serving_hub

BROWSERS = 10  # of a person
GOAL = 0.05  # of a core
POLL_SECONDS = 2.0


def main() -> None:
    pages, seconds = int((sys.argv[1:] or ["1000"])[0]), float((sys.argv[2:] or ["30"])[0])
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        os.environ.setdefault("DATABASE_URL", "")
        sys.path.insert(0, str(ROOT))
        with serving_hub([]) as (address, pid):
            cookies, polled = prepare(pages)
            poll = request("GET", polled, f"Cookie: sessionid={cookies[0]}\r\nHX-Request: true")
            cost = load(address, pid, {"poll": lambda _, __: poll}, 1, 3).cpu
            print(f"without streams: {cost:.2f} ms CPU a poll, {cost / 1000 * pages / POLL_SECONDS:.0%} of a core")
            asyncio.run(measure(address, pid, cookies, seconds))


async def measure(address: str, pid: int, cookies: list[str], seconds: float) -> None:
    before, used = memory_of(pid), cpu_of(pid)
    opened = [await open_stream(address, cookie) for cookie in cookies]
    await asyncio.gather(*(message(reader) for reader, _ in opened))
    count = len(opened)
    print(f"opened {count} streams: {(cpu_of(pid) - used) / count * 1000:.2f} ms CPU", end=", ")
    print(f"{(memory_of(pid) - before) / count:.0f} KB each", flush=True)

    used, begun = cpu_of(pid), time.perf_counter()
    beats = [asyncio.create_task(count_messages(reader, seconds)) for reader, _ in opened]
    heard = sum(await asyncio.gather(*beats))
    share = (cpu_of(pid) - used) / (time.perf_counter() - begun)
    print(f"idle: {share:.2%} of a core (goal: {GOAL:.0%}), {heard} heartbeats", flush=True)

    used, begun = cpu_of(pid), time.perf_counter()
    await asyncio.to_thread(change)
    await asyncio.gather(*(wait_for_change(reader) for reader, _ in opened))
    print(f"one change told to all: {time.perf_counter() - begun:.2f} s, {cpu_of(pid) - used:.2f} s CPU", flush=True)
    for _, writer in opened:
        writer.close()


async def open_stream(address: str, cookie: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(address)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(request("GET", "/changes/stream/", f"Cookie: sessionid={cookie}"))
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode())
    return reader, writer


async def message(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\n\n\r\n")).decode()


async def count_messages(reader: asyncio.StreamReader, seconds: float) -> int:
    count, end = 0, time.perf_counter() + seconds
    while (rest := end - time.perf_counter()) > 0:
        try:
            await asyncio.wait_for(message(reader), rest)
        except TimeoutError:
            break
        count += 1
    return count


async def wait_for_change(reader: asyncio.StreamReader) -> None:
    while not re.search(r"\[\d", await message(reader)):
        pass


def memory_of(pid: int) -> int:
    """Return the resident kilobytes of the web process."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])


def prepare(pages: int) -> tuple[list[str], str]:
    """Create a workspace with a member for each ten pages; return the pages' cookies, and the address they poll."""
    import django

    django.setup()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connection

    from sessions_app.models import AuditRecord, Membership, Workspace

    workspace = Workspace.objects.create(slug="load", name="Load", auto_compress=False)
    people = User.objects.bulk_create(User(username=f"p{n}") for n in range(-(-pages // BROWSERS)))
    Membership.objects.bulk_create(Membership(workspace=workspace, user=one, role="viewer") for one in people)
    cookies = []
    for place in range(pages):
        one, session = people[place // BROWSERS], SessionStore()
        session[SESSION_KEY], session[HASH_SESSION_KEY] = str(one.pk), one.get_session_auth_hash()
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session.save()
        cookies.append(str(session.session_key))
    change()
    told = AuditRecord.objects.filter(workspace=workspace)
    polled = f"/w/load/changes/?after={told.latest('id').pk}&seen={told.count()}"
    connection.close()
    return cookies, polled


def change() -> None:
    """Append an entry."""
    from django.db import connection
    from django.utils import timezone

    from memoryhub.conversations.appending import record_entries
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By
    from sessions_app.services.parsing import read_batch

    by = By(Actor("person", "bench"), timezone.now())
    rows = read_batch([{"role": "user", "content": "The crane moved the crates"}], now=by.at)
    record_entries(Workspace.objects.get(slug="load"), "cli:talk", rows, by=by)
    connection.close()


if __name__ == "__main__":
    main()

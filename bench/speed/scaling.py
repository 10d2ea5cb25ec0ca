"""Compare imports and pages of a small workspace with those of a big one in the same run."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HOME = tempfile.mkdtemp(prefix="memoryhub-bench-")
os.environ["MEMORYHUB_HOME"] = HOME
os.environ.pop("DATABASE_URL", None)
os.environ["MEMORYHUB_QUIET_SECONDS"] = "0"
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from memoryhub.integrity import check_memory  # noqa: E402
from memoryhub.sync.importing import import_workspace  # noqa: E402
from sessions_app.models import Session  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
TEXT = "the label service scaled to four replicas before the carrier cut over and nobody noticed the queue"
WORDS = TEXT.split()
ROUNDS = 15
DAYS = 240
GOAL = 1.5  # the longest that a page may take with a big workspace, relative to a small one


def write_session(folder: Path, key: str, count: int) -> None:
    """Write a session whose entries are spread over the same months, whatever their number."""
    step = timedelta(days=DAYS) / count
    lines = [{"_type": "metadata", "key": key, "metadata": {}, "last_consolidated": count // 2}]
    for place in range(count):
        words = " ".join(WORDS[(place + step) % len(WORDS)] for step in range(6 + place % 20))
        moment = (START + step * place).isoformat()
        role = "user" if place % 2 == 0 else "assistant"
        lines.append({"role": role, "content": f"{place}: {words}", "timestamp": moment})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "sessions" / f"{key.replace(':', '_')}.jsonl").write_text(text)


def write_agent(name: str, session_count: int, long_session: int) -> Path:
    folder = Path(HOME).parent / f"{Path(HOME).name}-{name}"
    (folder / "sessions").mkdir(parents=True)
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text("# Facts\n" + "\n".join(f"- fact {i}" for i in range(40)) + "\n")
    for number in range(session_count):
        write_session(folder, f"cli:{number}", 4)
    write_session(folder, "chat:long", long_session)
    return folder


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_ms(client: Client, address: str) -> float:
    def visit() -> None:
        assert client.get(address).status_code == 200, address

    visit()
    return statistics.median(timed(visit) for _ in range(ROUNDS)) * 1000


def main() -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STATIC_ROOT.mkdir()
    call_command("migrate", verbosity=0)
    by = By(Actor("command", "bench"), datetime.now(UTC))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, SQLite\n")

    small, big = write_agent("small", 60, 200), write_agent("big", 5_000, 50_000)
    import_workspace(small, by=by, name="small")
    first = timed(lambda: import_workspace(big, by=by, name="big"))
    again = timed(lambda: import_workspace(big, by=by, name="big"))
    entries = 5_000 * 4 + 50_000
    one = write_agent("one", 0, 50_000)
    alone = timed(lambda: import_workspace(one, by=by, name="one"))
    print(f"import of one session of 50,000 entries: {50_000 / alone:,.0f} entries/s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"import of {entries:,} entries in 5,001 sessions: {entries / first:,.0f} entries/s; "
        f"imported again: {entries / again:,.0f} entries/s; peak memory {peak:.0f} MB"
    )
    print(f"check_memory: {timed(check_memory):.1f} s\n")

    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    keys = {slug: Session.objects.get(workspace__slug=slug, key="chat:long").pk for slug in ("small", "big")}
    pages = {
        "overview": "/w/{slug}/",
        "sessions": "/w/{slug}/sessions/",
        "sessions, last page": "/w/{slug}/sessions/?page=last",
        "statistics": "/w/{slug}/statistics/",
        "transcript, end": "/w/{slug}/sessions/{pk}/",
        "transcript, start": "/w/{slug}/sessions/{pk}/?from=0",
        "context": "/w/{slug}/sessions/{pk}/context/?max_messages=20",
    }
    print(f"{'page':<22}{'small ms':>10}{'big ms':>10}{'ratio':>8}   goal <= {GOAL}")
    for name, address in pages.items():
        times = [median_ms(client, address.format(slug=slug, pk=keys[slug])) for slug in ("small", "big")]
        ratio = times[1] / times[0]
        print(f"{name:<22}{times[0]:>10.1f}{times[1]:>10.1f}{ratio:>8.2f}   {'pass' if ratio <= GOAL else 'miss'}")


if __name__ == "__main__":
    main()

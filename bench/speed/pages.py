"""Compare the response time of every page with the time of its database queries alone.

    python bench/speed/pages.py [ENTRIES]

It fills a hub of its own with 100,000 (or ENTRIES) entries and other rows, and requests the pages in one process
without a network. Then it measures the command palette, letter by letter.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIMES, MOST = 7, 2.0
FACTS = 300
TYPED = ["harbour", "crane rope", "chat:12", "agent", "tide lamp bell", "fact of the pool", "sess", "nothing-like-it"]
Query = tuple[str, Any]


def main(entries: int) -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        import django

        django.setup()
        prepare(entries)
        client = signed_in()
        print(f"{entries:,} entries, SQLite; milliseconds, medians of {TIMES}: page, its queries alone, ratio")
        missed = [name for name, url in addresses() if not report(name, url, client)]
        print(f"{len(missed)} pages take more than {MOST} times as long as their queries: {', '.join(missed)}")
        report_palette(client)


def prepare(entries: int) -> None:
    from django.core.management import call_command

    from bench.bulk_rows import add_conversations, add_others, add_workspaces, update_statistics
    from bench.corpus import Writer

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    add_workspaces(3)
    writer = Writer()
    add_conversations(writer, entries)
    add_others(writer, entries)
    add_document(writer)
    update_statistics()


def add_document(writer: Any, revisions: int = 1) -> None:
    """Add a document of ``FACTS`` facts, the last of which changes with each revision."""
    from django.utils import timezone

    from knowledge_app.services.documents.revisions import open_document, revise_document
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By

    document, base = open_document(Workspace.objects.get(pk=1), "MEMORY.md"), None
    text = "# Pool\n\n" + "".join(f"- fact {n} of the pool: {text}\n" for n, text in enumerate(writer.texts(FACTS)))
    for number in range(revisions):
        by = By(Actor("person", "bench"), timezone.now())
        base = revise_document(document, f"{text}- changed {number} times\n", base=base, reason="", by=by)


def signed_in() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.create_superuser("bench"))
    return client


def addresses() -> Iterator[tuple[str, str]]:
    """Yield the name and URL of every page for which this hub has data."""
    from sessions_app.models import Workspace
    from tests.whole_site.test_authorisation import filled
    from tests.whole_site.test_login_required import routes

    workspace = Workspace.objects.get(pk=1)
    for name, pattern in routes():
        with suppress(AttributeError):  # no row of the kind in the URL
            yield name, filled(name, pattern, workspace)
    yield "search for a common word", f"/w/{workspace.slug}/search/?q=harbour"
    yield "search for two words", f"/w/{workspace.slug}/search/?q=crane+rope"


def report(name: str, url: str, client: Any) -> bool:
    """Print the figures of a page; return whether it took at most ``MOST`` times as long as its queries."""
    from django.db import connection

    asked: list[Query] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not many:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        response = client.get(url)
    if response.status_code != 200 or response.streaming or response.content.lstrip()[:9].lower() != b"<!doctype":
        return True
    taken = median(timed(lambda: client.get(url)))
    alone = median(timed(lambda: run(asked)))
    is_met = taken <= MOST * alone
    print(
        f"  {'    ' if is_met else 'MISS'} {name:<32} {len(asked):>3} queries {taken:8.1f} {alone:8.1f} "
        f"{taken / alone:6.1f}x {len(response.content) / 1000:7.1f} kB"
    )
    return is_met


def run(asked: list[Query]) -> None:
    """Repeat the reading queries; leave out what a page writes (the access log)."""
    from django.db import connection

    with connection.cursor() as cursor:
        for sql, params in asked:
            if sql.lstrip(" (").startswith(("SELECT", "WITH")):
                cursor.execute(sql, params)
                cursor.fetchall()


def timed(work: Any) -> list[float]:
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def report_palette(client: Any) -> None:
    prefixes = [text[:size] for text in TYPED for size in range(1, len(text) + 1)]
    for place, words in (("one workspace", {"workspace": "agent-1"}), ("the whole hub", {})):
        taken = []
        for text in prefixes:
            began = time.perf_counter()
            client.get("/palette/", {"q": text} | words, headers={"HX-Request": "true"})
            taken.append((time.perf_counter() - began) * 1000)
        p50, p99 = median(taken), quantiles(taken, n=100)[-1]
        print(f"  palette, {place}, {len(taken)} texts: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {max(taken):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100_000)

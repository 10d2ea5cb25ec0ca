"""Origins of a document's lines, as a gutter with one mark for a run of lines."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, FactSource, MemoryDocument
from knowledge_app.services.documents.editing import save_text
from memoryhub.documents.blame_runs import PAGE_LINES, BlameRun, blame_runs
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at, turn
from tests.memory.test_memory_list import import_text

pytestmark = pytest.mark.django_db
TEXT = "# Team\n\n- Ana leads\n- Bo writes the tests\n\n## Tools\n\n- vim\n"


def runs_of(document: MemoryDocument) -> list[BlameRun]:
    document.refresh_from_db()
    return blame_runs(document, document.head.content.split("\n"))


def shape(runs: list[BlameRun]) -> list[tuple[int, str, list[int]]]:
    """Return the revision, kind of origin and line numbers of each run."""
    return [
        (run.revision.number, run.kind if run.source else "", [line.number for line in run.lines]) for run in runs
    ]


@pytest.fixture
def document(workspace) -> MemoryDocument:
    import_text(workspace, TEXT)
    return MemoryDocument.objects.get()


def page(client, document: MemoryDocument, *, htmx: bool = False, **query) -> str:
    url = reverse("documents:blame", args=["atlas", document.pk])
    response = client.get(url, query, headers={"HX-Request": "true"} if htmx else {})
    assert response.status_code == 200
    return response.content.decode()


def marks(html: str) -> int:
    return html.count('class="blame-mark"')


def test_an_imported_document_is_one_run(document, viewer_client):
    html = page(viewer_client, document)

    assert shape(runs_of(document)) == [(1, "", list(range(1, 10)))]
    assert marks(html) == 1
    assert html.count("MEMORY.md on disk") == 1
    address = reverse("documents:fact", args=["atlas", Fact.objects.get(text="vim").pk])
    assert f'<a href="{address}">- vim</a>' in html


def test_changed_lines_have_a_mark_of_their_own(document, viewer_client):
    save_text(document, TEXT.replace("writes", "reviews"), base_number=1, by=By(PERSON, NOW), reason="")

    runs = runs_of(document)

    assert shape(runs) == [(1, "", [1, 2, 3]), (2, "", [4, 5]), (1, "", [6, 7, 8, 9])]
    assert "olga" in page(viewer_client, document)


def test_a_heading_belongs_to_what_follows_and_a_blank_line_to_what_precedes(document):
    save_text(document, TEXT + "\n\n## New\n\n- new\n", base_number=1, by=By(PERSON, NOW), reason="")
    facts = list(Fact.objects.filter(died=None).order_by("line"))
    source(facts[2], document)

    assert shape(runs_of(document)) == [
        (1, "", [1, 2, 3, 4, 5]),
        (1, "probably_from", [6, 7, 8, 9, 10]),
        (2, "", [11, 12, 13, 14]),
    ]


def source(fact: Fact, document: MemoryDocument) -> FactSource:
    add(open_at(document.workspace, "cli:main"), turn(0))
    entry = document.workspace.entries.first()
    return FactSource.objects.create(fact=fact, entry=entry, kind=FactSource.Kind.PROBABLY_FROM, score=0.72)


def test_a_mark_names_the_message_and_its_certainty(document, viewer_client):
    found = source(Fact.objects.get(text="Ana leads"), document)

    html = page(viewer_client, document)

    assert "Probably from a message · 72%" in html
    assert 'data-certainty="probable"' in html
    assert reverse("sessions:entry", args=["atlas", found.entry.pk]) in html


def test_facts_from_the_same_message_share_a_mark(document):
    first = source(Fact.objects.get(text="Ana leads"), document)
    other = Fact.objects.get(text="Bo writes the tests")
    FactSource.objects.create(fact=other, entry=first.entry, kind=FactSource.Kind.PROBABLY_FROM, score=0.5)

    assert [run.kind for run in runs_of(document) if run.source] == ["probably_from"]


def test_a_large_document_is_loaded_in_parts(workspace, viewer_client):
    import_text(workspace, "\n".join(f"- fact {number}" for number in range(1, 601)))
    document = MemoryDocument.objects.get()
    following = PAGE_LINES + 1

    html, rest = page(viewer_client, document), page(viewer_client, document, htmx=True, **{"from": following})

    assert "fact 1<" in html
    assert f"fact {following}<" not in html
    assert f'href="?from={following}"' in html
    assert f'start="{following}"' in rest
    assert "<html" not in rest
    last = page(viewer_client, document, **{"from": "551"})
    assert "fact 600<" in last
    assert 'rel="next"' not in last
    assert 'rel="prev"' in last


@pytest.mark.slow
@pytest.mark.postgres
def test_a_page_of_600_facts_with_messages_is_light(workspace, viewer_client):
    import_text(workspace, "\n".join(f"- fact {number} of a long document, said once" for number in range(600)))
    document = MemoryDocument.objects.get()
    for number in range(4):
        add(open_at(workspace, f"cli:session-{number}"), turn(number, tools=80))
    entries = list(workspace.entries.all())
    FactSource.objects.bulk_create(
        FactSource(fact=fact, entry=entries[place % len(entries)], kind=FactSource.Kind.PROBABLY_FROM, score=0.5)
        for place, fact in enumerate(Fact.objects.all())
    )

    html = page(viewer_client, document)

    assert marks(html) == PAGE_LINES
    assert len(html.encode()) < 150_000


@pytest.mark.parametrize("start", ["0", "-1", "x", "99999"])
def test_a_wrong_line_number_leads_to_a_page(start, document, viewer_client):
    assert re.search(r'start="\d+"', page(viewer_client, document, **{"from": start}))

"""The timeline: what it lists, how it pages, and its sliders."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import Concern, HeldRow
from knowledge_app.services.rows.held_row_decisions import approve_row
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.audit.timeline import Cursor, author_label
from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.models import AccessRecord
from sessions_app.services.access_log import log_access, seen_rows
from sessions_app.services.audit import Actor, By, record
from tests.hub import AGENT, NOW, PERSON, compress, open_at, talk
from tests.hygiene.test_scanning import TOKEN, scan
from tests.inbox.test_inbox import ORDER, TEXT, decide, propose

pytestmark = pytest.mark.django_db
FILE = Actor("sync", "the agent's file")


def minutes(count: int):
    return NOW + timedelta(minutes=count)


def note(workspace, action: str, text: str, *, actor=PERSON, at=0, kind="document", key=1):
    record(By(actor, minutes(at)), action, kind, key, text, workspace=workspace)


def read(workspace, *pks: int, actor=AGENT, at=0, via="rest", action="knowledge.read"):
    log_access(workspace, action, seen_rows("knowledge", pks), by=By(actor, minutes(at)), via=via)


def shown(client, **params):
    return client.get(reverse("timeline", args=["atlas"]), params).context["page"]


def texts(client, **params) -> list[str]:
    return [item.text for item in shown(client, **params).items]


@pytest.fixture
def busy(workspace):
    note(workspace, "document.revised", "MEMORY.md revised", at=1)
    note(workspace, "workspace.imported", "Imported: added 3 entries", actor=FILE, kind="workspace", at=2)
    note(workspace, "entry.added", "cli:main: 2 entries added", actor=AGENT, kind="session", at=3)
    read(workspace, 1, at=4)
    read(workspace, 1, 2, actor=PERSON, via="page", at=5)
    read(workspace, 3, actor=PERSON, via="page", at=6)
    return workspace


def test_everything_is_in_one_list_latest_first(busy, viewer_client):
    assert texts(viewer_client) == [
        "viewed 2 pages",
        "read 1 knowledge entry",
        "cli:main: 2 entries added",
        "Imported: added 3 entries",
        "MEMORY.md revised",
    ]


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"kind": "changes"}, ["MEMORY.md revised"]),
        ({"kind": "messages"}, ["cli:main: 2 entries added"]),
        ({"kind": "imports"}, ["Imported: added 3 entries"]),
        ({"kind": "runs"}, []),
        ({"kind": "reads"}, ["read 1 knowledge entry"]),
        ({"kind": "views"}, ["viewed 2 pages"]),
        ({"who": "atlas"}, ["read 1 knowledge entry", "cli:main: 2 entries added"]),
        ({"kind": "changes", "who": "atlas"}, []),
        ({"from": "2026-04-02"}, []),
        ({"to": "2026-04-01", "kind": "changes"}, ["MEMORY.md revised"]),
        ({"from": "x", "kind": "nothing", "who": "nobody"}, []),
    ],
)
def test_filters(busy, viewer_client, params, found):
    assert texts(viewer_client, **params) == found


def test_authors_have_readable_names(busy, viewer_client):
    authors = [item.author for item in shown(viewer_client, kind="imports").items]

    assert authors == ["imported file"]
    assert shown(viewer_client).authors == [
        ("olga", "olga"),
        ("atlas", "atlas"),
        ("the agent's file", "imported file"),
    ]
    assert author_label("import_workspace") == "Import"


def test_a_read_shows_the_text_of_the_rows(workspace, viewer_client):
    entry = add_knowledge(workspace, "Deploys go out on Tuesdays.", category="domain_fact", by=By(PERSON, NOW)).entry
    missing = entry.pk + 1
    read(workspace, entry.pk, missing, at=1)

    [item] = shown(viewer_client, kind="reads").items

    assert item.places == [
        ("Deploys go out on Tuesdays.", reverse("knowledge:knowledge-entry", args=["atlas", entry.pk])),
        (f"knowledge entry {missing}", ""),
    ]


def test_a_run_is_one_item_with_its_last_state_and_who_requested_it(workspace, viewer_client):
    session = open_at(workspace)
    talk(session, 10)
    run = compress(session)

    items = shown(viewer_client, kind="runs").items

    assert [(item.run, item.requested_by) for item in items] == [(run.pk, "olga")]
    assert items[0].text == "Compression finished"
    assert [item.run for item in shown(viewer_client, kind="runs", who="olga").items] == [run.pk]


def test_changes_of_rows_show_their_text_instead_of_numbers(workspace, editor):
    entry = add_knowledge(workspace, ORDER, category="learned_fact", by=By(AGENT, NOW)).entry
    approve_row(HeldRow.objects.get(), by=By(PERSON, minutes(1)))
    edit_rows(workspace, "knowledge", "withdraw", [entry.pk], by=By(PERSON, minutes(2)))
    place = (ORDER, reverse("knowledge:knowledge-entry", args=["atlas", entry.pk]))

    items = shown(editor, kind="changes").items

    assert [(item.text, item.places) for item in items] == [
        ("1 knowledge entry withdrawn", [place]),
        ("Knowledge entry approved", [place]),
        ("Knowledge entry held for review: instruction", [place]),
        ("Knowledge entry added", [place]),
    ]


def test_decided_findings_show_the_text_that_they_are_about(workspace, editor):
    entry = add_knowledge(workspace, f"{ORDER} {TOKEN}", category="learned_fact", by=By(PERSON, NOW)).entry
    scan(workspace)
    decide(editor, f"finding-{Concern.objects.get(kind='secret').pk}", "dismiss")

    [item] = [item for item in shown(editor, kind="changes").items if "finding" in item.text]

    [(label, url)] = item.places
    assert label.startswith(ORDER)
    assert TOKEN not in label
    assert url == reverse("knowledge:knowledge-entry", args=["atlas", entry.pk])


def test_an_approved_change_is_one_item_that_leads_to_the_change(workspace, editor):
    change = propose(workspace, TEXT + "- one more\n")
    decide(editor, f"change-{change.pk}", "parts", all="accept")

    texts = {item.text: item.places for item in shown(editor, kind="changes").items}

    assert [text for text in texts if "pproved" in text] == ["Held change of MEMORY.md approved"]
    assert texts["Held change of MEMORY.md approved"] == [
        ("Show the change", reverse("held-change", args=["atlas", change.pk]))
    ]


def test_days_have_headings(workspace, viewer_client):
    for day in (0, 0, 1):
        note(workspace, "document.revised", "MEMORY.md revised", at=day * 24 * 60)

    page = viewer_client.get(reverse("timeline", args=["atlas"])).content.decode()

    assert page.count('<h2 class="day">') == 2


def test_page_views_of_several_people_or_with_something_between_are_separate(workspace, viewer_client):
    other = Actor("person", "ana")
    read(workspace, 1, actor=PERSON, via="page", at=1)
    read(workspace, 2, actor=other, via="page", at=2)
    note(workspace, "document.revised", "MEMORY.md revised", at=3)
    read(workspace, 3, actor=other, via="page", at=4)

    assert [item.who for item in shown(viewer_client).items] == ["ana", "olga", "ana", "olga"]


def test_pages_follow_each_other_without_gaps_or_repeats(workspace, viewer_client):
    for number in range(130):
        note(workspace, "document.revised", f"revision {number}", at=2 * number)
        if number % 3 == 0:
            read(workspace, number + 1, at=2 * number + 1)
    found, cursor = [], ""
    while True:
        page = shown(viewer_client, **({"before": cursor} if cursor else {}))
        found += [item.key for item in page.items]
        cursor = page.older
        if not cursor:
            break

    assert len(found) == len(set(found)) == 130 + 44


def test_many_page_views_do_not_hide_what_is_before_them(workspace, viewer_client):
    note(workspace, "document.revised", "MEMORY.md revised", at=-1)
    AccessRecord.objects.bulk_create(
        AccessRecord(
            workspace=workspace, actor_kind="person", actor_name="olga", via="page", action="entries.read",
            row_count=1, at=minutes(number),
        )
        for number in range(2_450)
    )  # fmt: skip

    first = shown(viewer_client)
    second = shown(viewer_client, before=first.older)
    third = shown(viewer_client, before=second.older)

    assert [[item.count for item in page.items] for page in (first, second, third)] == [[1_000], [1_000], [450, 0]]
    assert third.older == ""


@pytest.mark.parametrize("text", ["", "x", "1", "1-2-3", "-", "9" * 40 + "-", "²-1", "-\x00"])
def test_any_cursor_is_valid(text, busy, viewer_client):
    assert viewer_client.get(reverse("timeline", args=["atlas"]), {"before": text}).status_code == 200


def test_cursors_are_read_as_they_are_written():
    for cursor in (Cursor(), Cursor(1, 2), Cursor(None, 2), Cursor(1, None)):
        assert Cursor.parse(str(cursor)) == cursor


def test_the_slider_covers_the_time_that_the_hub_knows(busy, viewer_client):
    html = viewer_client.get(reverse("timeline", args=["atlas"])).content.decode()
    moment = int(timezone.now().timestamp())

    assert 'type="datetime-local" id="moment" name="at"' in html
    for name in ("moment", "moment-from", "moment-to"):
        assert f'type="range" hidden data-slider="{name}"' in html
    opened = viewer_client.get(reverse("past", args=["atlas"]), {"at": moment})
    assert opened.status_code == 302
    assert "at=20" in opened["Location"]
    compared = viewer_client.get(reverse("compare-past", args=["atlas"]), {"from": moment - 100, "to": moment + 5})
    assert compared.status_code == 302


def test_the_timeline_runs_the_same_queries_for_few_rows_and_many(workspace, viewer_client):
    counts = []
    for first in (0, 10):
        for number in range(first, first + 10):
            note(workspace, "document.revised", "MEMORY.md revised", at=number)
            read(workspace, number, at=number, action=f"test.{number}")
            read(workspace, number, actor=PERSON, via="page", at=number, action=f"test.{number}")
        with CaptureQueriesContext(connection) as captured:
            viewer_client.get(reverse("timeline", args=["atlas"]))
        counts.append(len(captured))

    assert counts[0] == counts[1]


def test_a_slow_log_is_reported(busy, viewer_client, monkeypatch):
    def slow(*_args: object) -> None:
        raise SearchTooSlow("too slow")

    monkeypatch.setattr("memoryhub.audit.views.timeline.read_timeline", slow)

    assert b"Choose a shorter period" in viewer_client.get(reverse("timeline", args=["atlas"])).content

"""The access log and its page."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import Fact, HistoryEntry
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.observations import NewObservation, store
from memoryhub.audit.access_log import ACTIONS
from memoryhub.models import AccessRecord
from sessions_app.models import Entry, Run
from sessions_app.services.access_log import Seen, log_access, seen_entries, seen_rows
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, add, open_at, turn, url
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
HOUR = timedelta(hours=1)


def note(workspace, seen, *, action="knowledge.read", actor=AGENT, via="rest", now=NOW):
    log_access(workspace, action, seen, by=By(actor, now), via=via)


def rows_seen() -> list[tuple[str, str, int, int, int]]:
    """Return the action and rows of the latest access."""
    access = AccessRecord.objects.order_by("-id").first()
    if access is None:
        return []
    rows = access.rows.order_by("id").values_list("table", "parent", "first", "last")
    return [(access.action, *row) for row in rows]


@pytest.fixture
def learnt(workspace):
    return add_knowledge(workspace, "Deploys go out on Tuesdays.", category="domain_fact", by=BY).entry


@pytest.fixture
def document(workspace):
    found = open_document(workspace, "MEMORY.md")
    revise_document(found, "- tea\n- salt\n", base=None, reason="r", by=BY)
    return found


def test_a_transcript_logs_its_entries(workspace, viewer_client):
    session = open_at(workspace)
    add(session, turn(1))

    viewer_client.get(url("sessions:detail", session.pk))

    assert rows_seen() == [("entries.read", "entries", session.pk, 0, 3)]
    assert AccessRecord.objects.get().actor_name == "vera"


def test_polling_a_page_is_not_logged(workspace, viewer_client, learnt):
    page = url("knowledge:knowledge")
    again = {"HX-Request": "true", "HX-Trigger": "knowledge-list", "HX-Target": "knowledge-list"}

    viewer_client.get(page, headers=again)
    assert not AccessRecord.objects.exists()

    viewer_client.get(page, headers={"HX-Request": "true", "HX-Target": "knowledge-list"})  # a filter
    assert rows_seen() == [("knowledge.read", "knowledge", 0, learnt.pk, learnt.pk)]


def test_new_entries_of_an_open_transcript_are_not_logged(workspace, viewer_client):
    session = open_at(workspace)
    add(session, turn(1))

    assert viewer_client.get(url("sessions:arrivals", session.pk), {"epoch": 0, "from": 0}).status_code == 200
    assert not AccessRecord.objects.exists()


def test_documents_are_logged_by_revision(workspace, viewer_client, document):
    second = revise_document(document, "- tea\n", base=document.revisions.get(), reason="r", by=BY)
    page = url("documents:document", document.pk)

    viewer_client.get(page, {"revision": 1})
    assert rows_seen() == [("document.read", "documents", document.pk, 1, 1)]
    viewer_client.get(page, {"diff": ""})
    assert [row[3] for row in rows_seen()] == [second.number, 1]


def test_lists_and_pages_are_logged(workspace, viewer_client, learnt, document):
    add_note(workspace, "Shipped.", by=BY)
    observation = store(workspace, [NewObservation("lesson", "Tests first.")], by=BY).added[0]
    pages = {
        url("knowledge:knowledge-entry", learnt.pk): "knowledge.read",
        url("knowledge:observations"): "observations.read",
        url("knowledge:observation", observation.pk): None,  # the list showed it within this minute
        url("documents:history"): "history.read",
        url("documents:facts", document.pk): "facts.read",
        url("documents:blame", document.pk): "document.read",
        url("recall") + "?q=tests": "observations.recalled",
        url("knowledge:download-knowledge"): "knowledge.exported",
    }

    for page, action in pages.items():
        before = AccessRecord.objects.count()
        assert viewer_client.get(page).status_code == 200
        new = list(AccessRecord.objects.order_by("id")[before:].values_list("action", flat=True))
        assert new == ([action] if action else []), page


def test_revealing_a_masked_value_is_logged(workspace, editor):
    row = write_value(workspace, "api_token", "s3cret-s3cret-s3cret", by=BY)
    assert row.is_secret

    editor.get(url("knowledge:key-values"))
    editor.get(url("knowledge:key-value", row.pk))
    assert not AccessRecord.objects.exists()

    editor.post(url("knowledge:reveal-key-value", row.pk))
    assert rows_seen() == [("key_value.read", "key_values", 0, row.pk, row.pk)]


def test_a_search_is_logged_when_submitted_not_while_typing(workspace, viewer_client, learnt):
    viewer_client.get(url("search"), {"q": "deplo", "part": "1"}, headers={"HX-Request": "true"})
    assert not AccessRecord.objects.exists()

    viewer_client.get(url("search"), {"q": "deploys"}, headers={"HX-Request": "true"})
    assert rows_seen() == [("search.read", "knowledge", 0, learnt.pk, learnt.pk)]


def test_a_search_in_all_workspaces_is_logged_in_each(workspace, admin_client, learnt):
    other = type(workspace).objects.create(slug="other", name="Other")
    add_knowledge(other, "Deploys need two people.", category="domain_fact", by=BY)

    admin_client.get(reverse("hub-search"), {"q": "deploys"})

    assert set(AccessRecord.objects.values_list("workspace__slug", "row_count")) == {("atlas", 1), ("other", 1)}


def test_exporting_search_results_is_logged(workspace, viewer_client, learnt):
    chosen = {"row": f"knowledge:{learnt.pk}", "format": "csv"}

    assert viewer_client.post(url("export-matches"), chosen).status_code == 200
    assert rows_seen() == [("matches.exported", "knowledge", 0, learnt.pk, learnt.pk)]


def test_the_page_lists_and_links_what_was_read(workspace, viewer_client, learnt):
    session = open_at(workspace)
    add(session, turn(1))
    note(workspace, [*seen_entries(Entry.objects.all()), *seen_rows("knowledge", [learnt.pk, 999])])

    html = viewer_client.get(url("access")).content.decode()

    assert "read 6 knowledge entries" in html
    assert "cli:main #0 to #3" in html
    assert url("knowledge:knowledge-entry", learnt.pk) in html
    assert 'knowledge entry 999<span class="muted"> (gone)' in html
    assert "Deploys go out on Tuesdays." in html  # the present text; the log has none
    assert live_markup(html) == []


def test_the_page_shows_the_text_of_what_was_read_with_secrets_masked(workspace, viewer_client, document):
    fact = Fact.objects.get(text="tea")
    token = f"ghp_{'a1B2' * 9}"
    secret = add_knowledge(workspace, f"The token is {token}.", category="domain_fact", by=BY).entry
    value = write_value(workspace, "colour", "blue", by=BY)
    add_note(workspace, "Shipped the courier.", by=BY)
    entry = HistoryEntry.objects.get()
    note(workspace, [*seen_rows("facts", [fact.pk]), *seen_rows("key_values", [value.pk])])
    note(workspace, [*seen_rows("knowledge", [secret.pk]), *seen_rows("history", [entry.pk])], now=NOW + HOUR)

    lines = viewer_client.get(url("access")).context["lines"]

    [(masked, _), (shipped, _)], [(tea, _), (colour, _)] = (line.places for line in lines)
    assert (tea, colour, shipped) == ("tea", "colour", "Shipped the courier.")
    assert token not in masked
    assert masked.startswith("The token is")


def test_filters(workspace, viewer_client):
    note(workspace, seen_rows("knowledge", [1]))
    note(workspace, seen_rows("history", [1]), action="history.read", via="mcp")
    later = NOW + timedelta(days=2)
    note(workspace, seen_rows("facts", [1]), action="facts.read", actor=PERSON, via="page", now=later)

    def found(**wishes):
        return [line.text.split()[-2] for line in viewer_client.get(url("access"), wishes).context["lines"]]

    assert found(who="ATL") == ["history", "knowledge"]
    assert found(via="mcp") == ["history"]
    assert found(action="knowledge.read") == ["knowledge"]
    assert found(since="2026-04-03") == ["memory"]
    assert found(until="2026-04-02") == ["history", "knowledge"]
    assert found(via="page", who="atlas") == []


def test_page_views_in_a_row_are_one_line_and_agents_can_be_listed_alone(workspace, viewer_client, learnt):
    for number in range(6):
        seen = seen_rows("knowledge", [learnt.pk + number])
        note(workspace, seen, actor=PERSON, via="page", now=NOW + number * HOUR)
    note(workspace, seen_rows("knowledge", [learnt.pk]), now=NOW + 7 * HOUR)
    exported = seen_rows("knowledge", [learnt.pk])
    note(workspace, exported, action="knowledge.exported", actor=PERSON, via="page", now=NOW + 8 * HOUR)

    def lines(**query):
        found = viewer_client.get(url("access"), query).context["lines"]
        return [(line.who, line.text, len(line.places)) for line in found]

    export, read, views = (
        (PERSON.name, "exported 1 knowledge entry", 1),
        (AGENT.name, "read 1 knowledge entry", 1),
        (PERSON.name, "viewed 6 pages", 6),
    )
    assert lines() == [export, read, views]
    assert lines(by="agents") == [read]
    assert lines(by="people") == [export, views]
    assert 'aria-current="page">Agents' in viewer_client.get(url("access"), {"by": "agents"}).content.decode()


def test_the_log_of_a_row_is_named_by_its_text(workspace, viewer_client, learnt, document):
    fact = Fact.objects.get(text="tea")

    assert (
        "Deploys go out on Tuesdays."
        in viewer_client.get(url("access"), {"row": f"knowledge:{learnt.pk}"}).content.decode()
    )
    page = viewer_client.get(url("access"), {"fact": fact.pk}).content.decode()
    assert ">tea</a>" in page
    assert "memory line" not in page.split("<main", 1)[1].split("toolbar")[0]


def test_extreme_dates_are_valid_filters(workspace, viewer_client):
    note(workspace, seen_rows("knowledge", [1]))

    response = viewer_client.get(url("access"), {"since": "0001-01-01", "until": "9999-12-31"})

    assert len(response.context["lines"]) == 1


def test_the_log_of_a_row_lists_accesses_and_changes(workspace, viewer_client, learnt):
    note(workspace, seen_rows("knowledge", [learnt.pk]))
    note(workspace, seen_rows("knowledge", [learnt.pk + 1]), actor=PERSON)
    run = save_entry(learnt, {"source": "handbook"}, by=By(PERSON, NOW))

    lines = viewer_client.get(url("access"), {"row": f"knowledge:{learnt.pk}"}).context["lines"]

    assert {(line.who, line.text, line.is_change) for line in lines} == {
        ("atlas", "read 1 knowledge entry", False),
        ("olga", "added it", True),
        ("olga", "changed it", True),
    }
    assert [line.places[0][1] for line in lines if line.text == "changed it"] == [url("run", run.pk)]


def test_the_log_of_an_entry_lists_runs(workspace, viewer_client):
    session = open_at(workspace)
    add(session, turn(1))
    values = {"workspace": workspace, "session": session, "kind": "compression", "started_at": NOW, "status": "done"}
    covers = Run.objects.create(from_position=0, to_position=2, requested_by="olga", **values)
    Run.objects.create(from_position=2, to_position=4, **values)
    Run.objects.create(from_position=0, to_position=2, epoch=1, **values)
    entry = Entry.objects.get(position=1)

    response = viewer_client.get(url("entry-access", entry.pk), follow=True)

    runs = [line.places for line in response.context["lines"] if line.text != "added it"]
    assert runs == [[(f"run {covers.pk}", url("run", covers.pk))]]
    assert "entry #1 of cli:main" in response.content.decode()


def test_the_log_of_a_row_lists_who_added_it(workspace, command, learnt):
    session = open_at(workspace)
    add(session, turn(1))
    entry = Entry.objects.get(position=2)

    of_entry = command("access", "atlas", "--entry", str(entry.pk))["touches"]
    of_row = command("access", "atlas", "--row", f"knowledge:{learnt.pk}")["touches"]

    assert [(one["who"], one["text"]) for one in of_entry] == [(AGENT.name, "added it")]
    assert [(one["who"], one["text"]) for one in of_row] == [(PERSON.name, "added it")]


def test_the_log_of_a_fact_lists_accesses_and_revisions(workspace, viewer_client, document):
    salt = Fact.objects.get(text="salt")
    viewer_client.get(url("documents:document", document.pk))
    revise_document(document, "- tea\n", base=document.revisions.get(), reason="r", by=BY)
    viewer_client.get(url("documents:document", document.pk), {"diff": "", "revision": 2})  # it is in the older half
    cache.clear()
    viewer_client.get(url("documents:document", document.pk), {"revision": 2})

    lines = viewer_client.get(url("access"), {"fact": salt.pk}).context["lines"]

    assert sorted(line.text for line in lines) == [
        "read 1 document revision",
        "read 2 document revisions",
        "removed it with revision 2",
        "wrote it with revision 1",
    ]


def test_changes_are_paginated_with_the_accesses(workspace, viewer_client, learnt):
    for minute in range(60):
        cache.clear()
        note(workspace, seen_rows("knowledge", [learnt.pk]), now=NOW + timedelta(minutes=minute))
    for minute in (5, 30, 59):
        save_entry(learnt, {"source": str(minute)}, by=By(PERSON, NOW + timedelta(minutes=minute, seconds=30)))

    page, found = {"row": f"knowledge:{learnt.pk}"}, []
    while True:
        response = viewer_client.get(url("access"), page)
        found.append([line.at for line in response.context["lines"]])
        if not response.context["page"].next_url:
            break
        page |= {"after": response.context["page"].next_url.partition("after=")[2]}

    assert [len(several) for several in found] == [52, 12]  # with the row's own beginning
    times = [at for several in found for at in several]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("asked", [{"entry": 9}, {"fact": 9}, {"row": "users:1"}, {"row": "knowledge:x"}])
def test_a_missing_row_is_404(workspace, viewer_client, asked):
    assert viewer_client.get(url("access"), asked).status_code == 404


def test_rows_of_another_workspace_are_hidden(workspace, viewer_client):
    other = type(workspace).objects.create(slug="other", name="Other")
    entry = add_knowledge(other, "Elsewhere.", category="domain_fact", by=BY).entry
    note(other, seen_rows("knowledge", [entry.pk]))

    response = viewer_client.get(url("access"), {"row": f"knowledge:{entry.pk}"})

    assert response.context["lines"] == []


def test_the_log_runs_the_same_queries_for_10_lines_and_20(workspace, viewer_client):
    session = open_at(workspace)
    counts = []
    for first in (0, 10):
        for number in range(first, first + 10):
            seen = [Seen("entries", number, number, session.pk), *seen_rows("knowledge", [number])]
            note(workspace, seen, action=f"test.{number}")
        with CaptureQueriesContext(connection) as captured:
            viewer_client.get(url("access"))
        counts.append(len(captured))

    assert counts[0] == counts[1]


def test_the_command_lists_accesses(command, workspace, learnt):
    note(workspace, seen_rows("knowledge", [learnt.pk]))
    save_entry(learnt, {"source": "handbook"}, by=By(PERSON, NOW))

    one = command("access", "atlas", "--row", f"knowledge:{learnt.pk}")

    assert one["accesses"][0]["who"] == {"kind": "agent", "name": "atlas"}
    assert one["accesses"][0]["rows"] == [{"table": "knowledge", "id": learnt.pk}]
    assert {touch["text"] for touch in one["touches"]} == {"added it", "changed it"}
    assert command("access", "atlas", "--limit", "0") == {"accesses": []}
    assert command("access", "atlas", "--row", "users:1", status=1)["error"]["code"] == "unknown_row"


def test_every_logged_action_has_a_label():
    code = [
        path
        for app in ("memoryhub", "sessions_app", "knowledge_app")
        for path in (settings.BASE_DIR / app).rglob("*.py")
    ]
    written = re.compile(r'\blog_(?:page_)?access\([^"\n]*"(\w+\.\w+)"')
    kinds = re.compile(r'\baccess="(\w+)",$', re.MULTILINE)  # the shared views add what is done

    used = {action for path in code for action in written.findall(Path(path).read_text())}
    used |= {
        f"{kind}.{done}" for path in code for kind in kinds.findall(path.read_text()) for done in ("read", "exported")
    }

    assert {"context.read", "matches.exported", "search.read", "observations.exported"} <= used
    assert used - ACTIONS.keys() == set()


def test_reading_the_log_is_not_logged(workspace, viewer_client):
    note(workspace, seen_rows("knowledge", [1]), now=timezone.now())

    viewer_client.get(url("access"))

    assert AccessRecord.objects.count() == 1

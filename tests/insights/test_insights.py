"""The pages of figures and charts, their series and CSV files."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import HygieneScore
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.insights.charts import CHARTS, Insights
from memoryhub.lib.time_units import parse_range
from sessions_app.models import ImportReport, Run
from sessions_app.services.access_log import log_access, seen_rows
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, compress, open_at, talk, url

pytestmark = pytest.mark.django_db
DAY = NOW.date()
LATER = NOW + timedelta(days=30)


def rows(workspace, key: str, **options: object) -> dict[date, tuple[str, ...]]:
    chart = Insights(workspace, **options).card(key).chart
    return {column.first: column.cells for column in chart.columns}


@pytest.fixture
def session(workspace):
    found = open_at(workspace)
    talk(found, 3)
    return found


def revise(workspace, *texts: str) -> None:
    document, base = open_document(workspace, "MEMORY.md"), None
    for number, text in enumerate(texts):
        at = NOW + timedelta(days=7 * number)
        base = revise_document(document, text, base=base, reason="r", by=By(PERSON, at))


def test_every_chart_of_an_empty_workspace_says_why_it_is_empty(workspace):
    cards = Insights(workspace).cards(list(CHARTS))

    assert [card.key for card in cards if card.chart.columns] == []
    assert [card.key for card in cards if not card.empty] == ["tokens", "messages"]  # the page has a text for both


def test_the_page_hides_charts_of_models_without_cost(workspace, session, viewer_client):
    html = viewer_client.get(url("sessions:statistics")).content.decode()

    assert "The hub has not called a model for this workspace yet." in html
    assert "Model cost" not in html
    assert "No agent has read this memory" in html


def test_compressions_are_shown_as_saved_and_remaining_tokens(workspace, session):
    run = compress(session, keep=2, minimum=1)
    summary = run.summaries.get()

    cells = rows(workspace, "compression")[run.finished_at.astimezone(UTC).date()]

    assert cells == (f"{summary.token_count:,}", f"{summary.original_token_count - summary.token_count:,}")


def test_the_context_falls_with_a_compression_and_ends_with_the_present_one(workspace, session, time_machine):
    time_machine.move_to(LATER)
    before = session.__class__.objects.get().active_tokens
    compress(session, keep=2, minimum=1)
    session.refresh_from_db()

    shown = rows(workspace, "context", session=session)

    assert shown[DAY] == (f"{before:,}", f"{workspace.max_tokens:,}")
    now = session.active_tokens + session.summary_tokens
    assert shown[LATER.date()][0] == f"{now:,}"
    assert now < before


def test_the_largest_context_is_of_the_session_that_had_it(workspace, session):
    small = open_at(workspace, "cli:small")
    talk(small, 1)

    session.refresh_from_db()
    assert next(iter(rows(workspace, "context").values()))[0] == f"{session.active_tokens:,}"


def test_facts_are_counted_as_added_changed_and_removed_by_week(workspace):
    revise(workspace, "- tea\n- milk\n", "- green tea with milk\n- milk\n", "- milk\n- rum\n- salt\n", "- milk\n")

    chart = Insights(workspace).card("facts").chart

    assert chart.title == "Facts by week"
    assert [column.cells for column in chart.columns] == [
        ("2", "0", "0"),
        ("0", "1", "0"),
        ("1", "1", "0"),
        ("0", "0", "2"),
    ]
    assert [cells[0] for cells in rows(workspace, "memory").values()] == ["2", "2", "3", "1"]


def test_memory_grows_by_what_the_hub_learned(workspace):
    entry = add_knowledge(workspace, "Deploys on Tuesday.", category="domain_fact", by=By(PERSON, NOW)).entry
    add_knowledge(workspace, "Prefers tea.", category="domain_fact", by=By(PERSON, NOW))
    type(entry).objects.filter(pk=entry.pk).update(withdrawn_at=LATER)

    cells = [cells[0] for cells in rows(workspace, "memory").values()]

    assert cells[-1] == "1"
    assert "2" in cells


def test_only_agents_count_as_readers(workspace):
    for actor, at in ((AGENT, NOW), (AGENT, LATER), (PERSON, NOW)):
        log_access(workspace, "knowledge.read", seen_rows("knowledge", [1]), by=By(actor, at), via="rest")
        cache.clear()  # a repeated read within a minute isn't logged

    assert rows(workspace, "reads") == {DAY: ("1",), LATER.date(): ("1",)}


def test_model_runs_have_tokens_cost_and_time(workspace):
    values = {"workspace": workspace, "kind": "consolidation", "status": "done", "model": "m", "started_at": NOW}
    for seconds, cost in ((10, Decimal("0.5")), (20, None)):
        at = NOW + timedelta(seconds=seconds)
        Run.objects.create(finished_at=at, prompt_tokens=100, completion_tokens=20, cost=cost, **values)

    assert rows(workspace, "model") == {DAY: ("200", "40")}
    assert rows(workspace, "cost") == {DAY: ("$0.5000",)}
    assert rows(workspace, "seconds") == {DAY: ("15.0 s",)}


def test_runs_that_took_no_time_have_no_chart_of_it(workspace, viewer_client):
    values = {"workspace": workspace, "kind": "consolidation", "status": "done", "model": "m", "started_at": NOW}
    Run.objects.create(finished_at=NOW, prompt_tokens=100, completion_tokens=20, **values)

    assert rows(workspace, "seconds") == {}
    assert "Average time of a model run" not in viewer_client.get("/w/atlas/statistics/").content.decode()


def test_runs_and_imports_are_marked(workspace, session):
    Run.objects.create(workspace=workspace, kind="compression", status="done", finished_at=NOW)
    ImportReport.objects.create(workspace=workspace, path="/x", status="done", finished_at=NOW)

    chart = Insights(workspace).card("tokens").chart

    assert [tick.label for tick in chart.events] == ["1 import", "1 run"]
    assert chart.columns[0].note == "1 import, 1 run"


def test_hygiene_scores_are_the_last_of_each_day(workspace):
    for score, at in ((50, NOW), (80, NOW + timedelta(hours=1)), (90, LATER)):
        HygieneScore.objects.create(workspace=workspace, score=score, row_count=1, at=at)

    assert rows(workspace, "hygiene") == {DAY: ("80",), LATER.date(): ("90",)}


def test_a_range_limits_every_chart_and_stays_in_the_links(workspace, session, viewer_client):
    page = viewer_client.get(url("sessions:statistics"), {"from": "2026-04-01", "to": "2026-04-02"})
    html = page.content.decode()

    assert page.context["between"] == (date(2026, 4, 1), date(2026, 4, 2))
    assert f"{url('sessions:statistics-csv', 'tokens')}?from=2026-04-01&amp;to=2026-04-02" in html
    assert 'name="from" value="2026-04-01"' in html

    other = viewer_client.get(url("sessions:statistics"), {"from": "2026-05-01"}).content.decode()
    assert "Nothing on these days." in other
    assert 'id="tokens-chart' not in other


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-04-02", "2026-04-01", (date(2026, 4, 1), date(2026, 4, 2))),
        ("2026-04-31", "x", (None, None)),
        (None, "2026-04-01", (None, date(2026, 4, 1))),
        ("20260401\x00", "", (None, None)),
    ],
)
def test_any_text_is_a_valid_range(start, end, expected):
    assert parse_range(start, end) == expected


def test_charts_lead_to_the_rows_of_their_days(workspace, session):
    insights = Insights(workspace, session)
    tokens, facts = insights.links("tokens"), Insights(workspace).links("facts")

    assert (
        tokens.open == f"{url('search')}?q=session%3A%22cli%3Amain%22%20kind%3Aentry%20after%3AFROM%20before%3AAFTER"
    )
    assert tokens.range == url("sessions:session-statistics", session.pk)
    assert facts.range == url("sessions:statistics")


def test_a_chart_is_a_csv_file(workspace, session, viewer_client):
    response = viewer_client.get(url("sessions:statistics-csv", "tokens"))

    lines = response.content.decode().splitlines()
    session.refresh_from_db()
    assert response["Content-Disposition"] == 'attachment; filename="atlas-tokens.csv"'
    assert lines == [
        '"from","to","In the context","Compressed","events"',
        f'"2026-04-01","2026-04-01","{session.total_tokens}","0",""',
    ]
    assert viewer_client.get(url("sessions:statistics-csv", "nothing")).status_code == 404
    assert viewer_client.get(url("sessions:session-statistics-csv", session.pk, "hygiene")).status_code == 404


@pytest.mark.slow
@pytest.mark.postgres
def test_the_page_makes_the_same_queries_for_few_rows_and_many(workspace, viewer_client):
    counts = []
    for number in range(2):
        for place in range(8):
            found = open_at(workspace, f"cli:{number}-{place}")
            talk(found, 2)
            compress(found, keep=2, minimum=1)
        revise_text = f"- fact {number}\n" * 3
        document = open_document(workspace, "MEMORY.md")
        document.refresh_from_db()
        revise_document(document, revise_text, base=document.head, reason="r", by=By(PERSON, NOW))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            viewer_client.get(url("sessions:statistics"))
        counts.append(len(queries))

    assert counts[0] == counts[1] <= 30


def test_far_dates_have_charts(workspace, viewer_client):
    Run.objects.create(
        workspace=workspace, kind="compression", model="m", status="done",
        started_at=datetime(1970, 1, 1, tzinfo=UTC), finished_at=datetime(9999, 12, 31, tzinfo=UTC),
    )  # fmt: skip

    assert viewer_client.get(url("sessions:statistics")).status_code == 200
    assert Insights(workspace).card("model").chart.columns[0].last.year == 9999


def test_a_month_is_one_click(workspace, viewer_client, time_machine):
    time_machine.move_to(datetime(2026, 3, 31, 12, tzinfo=UTC))
    talk(open_at(workspace), 2)

    html = viewer_client.get("/w/atlas/statistics/").content.decode()

    assert '?from=2026-03-01&amp;to=2026-03-31"' in html
    assert '?from=2026-02-01&amp;to=2026-02-28"' in html

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.utils import timezone

from memoryhub.dashboard.health import Consolidations, Gauge, growth_points, health_of
from memoryhub.insights.series import agent_reads
from memoryhub.models import AccessRecord, ApiToken
from sessions_app.models import Run, Session, Workspace
from tests.hub import add, open_at, turn

TODAY = date(2026, 4, 1)


def days_ago(count: int) -> date:
    return TODAY - timedelta(days=count)


def test_growth_of_an_old_workspace_covers_twelve_weeks():
    points = growth_points(days_ago(400), 90, {days_ago(80): 5, days_ago(1): 7}, TODAY)

    assert len(points) == 13
    assert (points[0], points[1], points[-2], points[-1]) == (
        (days_ago(84), 90),
        (days_ago(77), 95),
        (days_ago(7), 95),
        (TODAY, 102),
    )


def test_growth_of_a_new_workspace_covers_all_of_it():
    assert growth_points(days_ago(2), 0, {days_ago(2): 3, TODAY: 1}, TODAY) == [
        (days_ago(2), 3),
        (days_ago(1), 3),
        (TODAY, 4),
    ]
    assert growth_points(None, 0, {}, TODAY) == []


def test_future_days_count_as_today():
    assert growth_points(days_ago(-3), 0, {days_ago(-3): 2}, TODAY) == [(TODAY, 2)]


def test_a_gauge_has_room_for_the_value_and_its_limit():
    over, under = Gauge(750, 500), Gauge(125, 500)

    assert (over.is_over, over.fill, over.mark) == (True, 100, 66.67)
    assert (under.is_over, under.fill, under.mark) == (False, 25, 100)


@pytest.mark.django_db
def test_health_counts_what_is_recent_and_of_its_own_workspace(workspace):
    now = timezone.now()
    other = Workspace.objects.create(slug="other", name="Other", max_tokens=9)
    add(open_at(workspace), turn(1), now=now)
    Session.objects.filter(workspace=workspace).update(active_tokens=30, summary_tokens=10, total_tokens=100)
    archived = open_at(workspace, "cli:old")
    Session.objects.filter(pk=archived.pk).update(active_tokens=900, total_tokens=900, archived_at=now)
    for status, age in (("done", 1), ("done", 40), ("parked", 2), ("failed", 2), ("held", 3)):
        Run.objects.create(
            workspace=workspace, kind="consolidation", status=status, created_at=now - timedelta(days=age)
        )
    token = ApiToken.objects.create(workspace=workspace, name="a", prefix="p", token_hash="h", created_by="o")
    for reader, kind, age in (
        (token, "agent", 8),
        (token, "agent", 1),
        (None, "agent", 1),
        (None, "person", 1),
        (token, "agent", 6),
    ):
        AccessRecord.objects.create(
            workspace=workspace, token=reader, actor_kind=kind, actor_name="a", via="rest", action="search.read",
            row_count=1, at=now - timedelta(days=age),
        )  # fmt: skip
    AccessRecord.objects.create(
        workspace=other, token=token, actor_kind="agent", actor_name="a", via="mcp", action="search.read", row_count=1
    )

    health = health_of([workspace, other], now=now)

    mine = health[workspace.pk]
    assert mine.context.value == 40
    assert (mine.saved, mine.added, mine.reads) == (0.06, 4, 3)  # also by a token that is deleted since
    assert mine.consolidations == Consolidations(done=1, held=1, failed=2)
    assert health[other.pk].context == Gauge(0, 9)
    assert (health[other.pk].saved, health[other.pk].reads, health[other.pk].growth.columns) == (None, 1, ())
    recent = [count for day, count in agent_reads(workspace).items() if day > (now - timedelta(days=7)).date()]
    assert sum(recent) == mine.reads
    assert sum(agent_reads(other).values()) == health[other.pk].reads

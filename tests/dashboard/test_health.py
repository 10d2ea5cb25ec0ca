from datetime import timedelta

import pytest
from django.utils import timezone

from memoryhub.dashboard.health import Consolidations, Gauge, health_of
from memoryhub.insights.series import agent_reads
from memoryhub.models import AccessRecord, ApiToken
from sessions_app.models import DailyTotal, Run, Session, Workspace
from tests.hub import add, open_at, turn


def test_a_gauge_has_room_for_the_value_and_its_limit():
    over, under = Gauge(750, 500), Gauge(125, 500)

    assert (over.is_over, over.fill, over.mark) == (True, 100, 66.67)
    assert (under.is_over, under.fill, under.mark) == (False, 25, 100)


@pytest.mark.django_db
def test_growth_is_the_messages_of_each_of_the_last_twelve_weeks(workspace):
    now = timezone.now()
    for age, count in ((400, 90), (80, 5), (8, 7), (0, 2), (-3, 1)):
        day = timezone.localdate(now) - timedelta(days=age)
        DailyTotal.objects.create(
            workspace=workspace, day=day, kind="message", entry_count=count, token_count=0, active_token_count=0
        )

    health = health_of([workspace], now=now)[workspace.pk]

    assert health.growth.how == "sum"
    assert health.growth.unit == "week"
    assert [value for (value,) in health.growth.values] == [5, 7, 3]
    assert health.added == 15


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

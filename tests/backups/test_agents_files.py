"""A restored hub leaves the agents' files alone until a person turns two-way sync on again."""

import shutil

import pytest
from django.utils import timezone

from memoryhub.models import Job
from memoryhub.sync.sync_requests import request_sync
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from sessions_app.services.syncing import switch_sync
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import PERSON
from tests.other_hub import manage
from tests.sync.followed_folders import followed

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]
KEPT = [f"- fact number {n} about the team is known to everybody\n" for n in range(6)]
REMOVED = "- The alarm code of the office is 9911 at night\n"


@pytest.fixture
def file(tmp_path):
    """Return the MEMORY.md of an agent whose folder is synced in both directions."""
    agent = tmp_path / "bot"
    (agent / "memory").mkdir(parents=True)
    (agent / "sessions").mkdir()
    (agent / "sessions" / "cli_direct.jsonl").write_text('{"_type": "metadata", "key": "cli:direct"}\n')
    file = agent / "memory" / "MEMORY.md"
    file.write_text("".join(["# Memory\n\n", *KEPT, REMOVED]))
    workspace = followed(agent)
    switch_sync(workspace, follow=True, write_back=True, by=By(PERSON, timezone.now()))
    return file


@pytest.mark.slow
@pytest.mark.postgres
def test_what_was_removed_since_the_backup_is_not_written_back(file, hub, tmp_path):
    made = back_up(tmp_path / "out", timezone.now())
    hub.restore(made)
    file.write_text(file.read_text().replace(REMOVED, ""))

    output = hub.restore(made)
    manage(hub.home, hub.name, "sync")

    assert REMOVED not in file.read_text()
    assert "Agents' files aren't written any more: atlas" in output
    with hub.use():
        assert not Workspace.objects.filter(write_back=True).exists()
        assert Workspace.objects.get().is_followed


@pytest.mark.slow
@pytest.mark.postgres
def test_what_was_to_be_sent_when_the_backup_was_made_is_not_sent(file, hub, tmp_path):
    workspace = Workspace.objects.get()
    request_sync(workspace, by=By(PERSON, timezone.now()), send=True)
    made = back_up(tmp_path / "out", timezone.now())

    hub.restore(made)

    with hub.use():
        assert Job.objects.get().status == Job.Status.CANCELLED


@pytest.mark.slow
@pytest.mark.postgres
def test_a_requested_sync_that_sends_nothing_stays_queued(file, hub, tmp_path):
    request_sync(Workspace.objects.get(), by=By(PERSON, timezone.now()))
    made = back_up(tmp_path / "out", timezone.now())

    hub.restore(made)

    with hub.use():
        assert Job.objects.get().status == Job.Status.QUEUED

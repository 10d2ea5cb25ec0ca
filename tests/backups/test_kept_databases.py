"""After a restore, whoever forgets something is told that the previous database still has it."""

from __future__ import annotations

import json
import shutil

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.services.rows.key_values import write_value
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.forgetting import person_views, views
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.requests import request_forgetting
from memoryhub.sync import erased_files
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import by, run_jobs
from tests.other_hub import manage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]
NAME = "memoryhub.sqlite3.before-restore-20260301T100000Z"


@pytest.mark.slow
@pytest.mark.postgres
def test_the_commands_name_what_restores_kept(workspace, hub, tmp_path):
    write_value(workspace, "guest", "zebra quicksilver", by=by())
    made = back_up(tmp_path / "out", timezone.now())
    hub.restore(made)
    find = ("forget", "phrase", workspace.slug, "zebra quicksilver")
    assert json.loads(manage(hub.home, hub.name, *find, "--json"))["kept"] == []
    hub.restore(made)

    with hub.use():
        [previous, revoked] = kept_databases()

    assert "before" in previous
    assert revoked == hub.kept.name
    assert f"A restore kept {previous}, which may still contain it." in manage(hub.home, hub.name, *find, "--apply")
    assert previous in manage(hub.home, hub.name, "person_data", "find", "zebra quicksilver")


@pytest.fixture
def _kept(monkeypatch):
    for module in (views, person_views, erased_files):
        monkeypatch.setattr(module, "kept_databases", lambda: [NAME])


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("_kept")
def test_the_pages_name_what_restores_kept(workspace, admin_client):
    write_value(workspace, "guest", "zebra quicksilver", by=by())
    erasure = ErasureRequest("phrase", ("zebra quicksilver",))
    expected = plan_forget(workspace, erasure).total
    forget, person = reverse("forget", args=[workspace.slug]), reverse("person-data")
    assert NAME not in admin_client.get(forget).text
    assert NAME in admin_client.post(forget, {"kind": "phrase", "words": "zebra quicksilver"}).text
    assert NAME in admin_client.post(person, {"words": "zebra quicksilver"}).text

    job = request_forgetting(workspace, erasure, expected=expected, reason="", by=by())
    run_jobs()

    assert NAME in admin_client.get(forget).text
    assert NAME in admin_client.get(reverse("job", args=[job.pk])).text

"""Bulk edits from the admin's lists, as runs that can be undone."""

import io
import re
import zipfile

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import CachedResponse, EditedRow, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.rows.undoable_edits import AT_ONCE
from memoryhub.lib.layouts.grip import content_id
from memoryhub.runs.executing import execute, undo_run
from sessions_app.models import AuditRecord, Run, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, client_of, figures, open_at, talk
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
HOSTILE = "</title><script>window.__xss=1</script><img src=x onerror=alert(1)>"


def knowledge(workspace, content="likes tea", category="learned_fact", **values):
    values = {"content_id": content_id(category, content), "identity": content_id(category, content)} | values
    return KnowledgeEntry.objects.create(workspace=workspace, category=category, content=content, **values)


def observation(workspace, **values):
    return Observation.objects.create(
        workspace=workspace, uid=f"o{Observation.objects.count()}", category="finding", content="seen", **values
    )


def choose(client, model, rows, action, *, across=False, query="", **values):
    """Post a list's form with selected rows and an action."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    body = {"action": action, "_selected_action": [row.pk for row in rows], "select_across": int(across)}
    return client.post(f"{url}{query}", body | values, follow=bool(values.get("index") == 0))


def act(client, model, rows, action, **values):
    """Post a list's form, confirm the action, and return the runs."""
    asked = choose(client, model, rows, action, index=0)
    if "chosen" in (asked.context or {}):
        choose(client, model, rows, action, digest=asked.context["chosen"].digest, **values)
    return list(Run.objects.order_by("id"))


def undo(run):
    undo_run(Run.objects.get(pk=run.pk), by=By(PERSON, NOW))


CASES = [
    (knowledge, "recategorise", {"category": "error_pattern", "add": "x, y", "remove": "a"}, ["category", "tags"]),
    (knowledge, "tag", {"add": "x", "remove": "a"}, ["tags"]),
    (knowledge, "withdraw", {"reason": "wrong"}, ["withdrawn_at", "withdrawn_reason"]),
    (knowledge, "verify", {}, ["last_verified_at"]),
    (observation, "move", {"category": "lesson"}, ["category"]),
    (observation, "withdraw", {"reason": "wrong"}, ["withdrawn_at"]),
    (observation, "verify", {}, ["last_verified_at"]),
]


@pytest.mark.parametrize(("make", "action", "values", "fields"), CASES)
def test_an_action_changes_the_selected_rows_and_is_undone(admin_client, workspace, make, action, values, fields):
    row, other = make(workspace), make(workspace, **({"content_id": "other"} if make is knowledge else {}))
    if make is knowledge:
        type(row).objects.update(tags=["a", "b"])
    before = type(row).objects.filter(pk=row.pk).values().get()
    untouched = type(row).objects.filter(pk=other.pk).values().get()

    (run,) = act(admin_client, type(row), [row], action, **values)

    after = type(row).objects.filter(pk=row.pk).values().get()
    assert {name for name in fields if after[name] != before[name]} == set(fields)
    assert type(row).objects.filter(pk=other.pk).values().get() == untouched
    assert (run.status, run.requested_by) == ("done", "admin")
    assert AuditRecord.objects.filter(action="rows.edited", actor_name="admin", object_id=run.pk).exists()

    undo(run)
    restored = type(row).objects.filter(pk=row.pk).values().get()
    assert restored | {"updated_at": None} == before | {"updated_at": None}


@pytest.mark.parametrize("action", ["tag", "recategorise"])
@pytest.mark.parametrize("add", ["x" * 101, ",".join(map(str, range(51)))])
def test_tags_have_the_limits_of_pages(admin_client, workspace, action, add):
    row = knowledge(workspace)

    assert act(admin_client, KnowledgeEntry, [row], action, add=add, category="error_pattern") == []


@pytest.mark.parametrize("make", [knowledge, observation])
def test_withdrawn_rows_are_restored(admin_client, workspace, make):
    row = make(workspace, withdrawn_at=NOW, withdrawn_reason="wrong")

    (run,) = act(admin_client, type(row), [row], "take_back")

    row.refresh_from_db()
    assert (row.withdrawn_at, row.withdrawn_reason) == (None, "")
    undo(run)
    row.refresh_from_db()
    assert row.withdrawn_at == NOW


def test_key_values_are_withdrawn_and_restored(admin_client, workspace):
    row = KeyValue.objects.create(workspace=workspace, key="port", value="7")

    act(admin_client, KeyValue, [row], "withdraw", reason="old")
    row.refresh_from_db()
    assert (row.withdrawn_reason, row.value) == ("old", "7")

    act(admin_client, KeyValue, [row], "take_back")
    row.refresh_from_db()
    assert row.withdrawn_at is None


def test_cached_responses_are_invalidated_and_restored(admin_client, workspace):
    row = CachedResponse.objects.create(workspace=workspace, key="k", response="yes")

    (run,) = act(admin_client, CachedResponse, [row], "invalidate")
    assert not CachedResponse.objects.exists()

    undo(run)
    assert CachedResponse.objects.get().response == "yes"


def test_duplicates_are_merged_after_a_preview_of_the_groups(admin_client, workspace):
    keep = knowledge(workspace, tags=["a"])
    other = knowledge(workspace, content_id="second", tags=["b"])
    alone = knowledge(workspace, "likes cats")
    asked = choose(admin_client, KnowledgeEntry, [keep, other, alone], "merge_knowledge", index=0)
    assert [[row.pk for row in group] for group in asked.context["groups"]] == [[keep.pk, other.pk]]
    assert not Run.objects.exists()

    (run,) = act(admin_client, KnowledgeEntry, [keep, other, alone], "merge_knowledge")

    keep.refresh_from_db()
    other.refresh_from_db()
    alone.refresh_from_db()
    assert (keep.tags, keep.withdrawn_at) == (["a", "b"], None)
    assert other.withdrawn_reason == f"merged into {keep.pk}"
    assert alone.withdrawn_at is None
    undo(run)
    other.refresh_from_db()
    assert other.withdrawn_at is None


def test_without_duplicates_nothing_is_merged(admin_client, workspace):
    rows = [knowledge(workspace), knowledge(workspace, "likes cats")]

    response = choose(admin_client, KnowledgeEntry, rows, "merge_knowledge", index=0)

    assert "No duplicates among" in response.content.decode()
    assert not Run.objects.exists()


def test_the_message_links_to_the_run(admin_client, workspace):
    response = choose(admin_client, KnowledgeEntry, [knowledge(workspace)], "verify", index=0)

    run = Run.objects.get()
    page = reverse("run", args=["atlas", run.pk])
    assert f'href="{page}"' in response.content.decode()
    assert "Undo" in admin_client.get(page).content.decode()


def test_rows_of_two_workspaces_are_two_runs(admin_client, workspace):
    other = Workspace.objects.create(slug="borea", name="Borea")

    runs = act(admin_client, KnowledgeEntry, [knowledge(workspace), knowledge(other)], "verify")

    assert [(run.workspace.slug, run.proposal["changed"]) for run in runs] == [("atlas", 1), ("borea", 1)]


@pytest.mark.slow
@pytest.mark.postgres
def test_more_selected_rows_than_are_changed_at_once_are_changed_by_a_worker_and_undone(admin_client, workspace):
    rows_of_worker = AT_ONCE + 50
    KnowledgeEntry.objects.bulk_create(
        [
            KnowledgeEntry(workspace=workspace, content_id=f"c{n}", category="learned_fact", content=f"fact {n}")
            for n in range(rows_of_worker)
        ]
    )
    spared = knowledge(workspace, "spared", "error_pattern")
    rows = list(KnowledgeEntry.objects.order_by("-id")[:50])
    query = "?category=learned_fact"
    asked = choose(admin_client, KnowledgeEntry, rows, "withdraw", across=True, query=query, index=0)
    assert asked.status_code == 200
    assert len(asked.context["chosen"]) == rows_of_worker
    assert asked.content.count(b'name="_selected_action"') == 50

    digest = asked.context["chosen"].digest
    response = choose(
        admin_client, KnowledgeEntry, rows, "withdraw", across=True, query=query, digest=digest, reason="old"
    )

    assert response.status_code == 302
    run = Run.objects.get()
    assert (run.status, run.steps_total) == ("queued", rows_of_worker)
    done = execute(run.pk, now=timezone.now)
    assert (done.status, figures(done)) == ("done", {"changed": rows_of_worker, "passed_over": 0})
    assert KnowledgeEntry.objects.exclude(withdrawn_at=None).count() == rows_of_worker
    spared.refresh_from_db()
    assert spared.withdrawn_at is None

    undo(done)
    execute(Run.objects.order_by("-id")[0].pk, now=timezone.now)
    assert not KnowledgeEntry.objects.exclude(withdrawn_at=None).exists()


def test_a_selection_that_changed_meanwhile_is_shown_again(admin_client, workspace):
    row = knowledge(workspace)
    asked = choose(admin_client, KnowledgeEntry, [row], "withdraw", across=True, index=0)
    digest = asked.context["chosen"].digest
    knowledge(workspace, "arrived since")

    response = choose(admin_client, KnowledgeEntry, [row], "withdraw", across=True, digest=digest, reason="old")

    assert response.status_code == 422
    assert "Your selection has changed" in response.content.decode()
    assert not Run.objects.exists()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("action", "values"),
    [("withdraw", {"reason": ""}), ("recategorise", {"category": "mood"}), ("tag", {"add": " , "})],
)
def test_an_invalid_form_changes_nothing(admin_client, workspace, action, values):
    row = knowledge(workspace)
    digest = choose(admin_client, KnowledgeEntry, [row], action, index=0).context["chosen"].digest

    response = choose(admin_client, KnowledgeEntry, [row], action, digest=digest, **values)

    assert response.status_code == 422
    assert not Run.objects.exists()


def test_the_confirmation_page_escapes_stored_text(admin_client, workspace):
    rows = [knowledge(workspace, HOSTILE, content_id=name, tags=[HOSTILE]) for name in ("one", "two")]
    Workspace.objects.update(name=HOSTILE)

    for action in ("withdraw", "merge_knowledge"):
        html = choose(admin_client, KnowledgeEntry, rows, action, index=0).content.decode()
        assert "window.__xss" in html
        assert live_markup(html) == []
    html = choose(admin_client, KnowledgeEntry, rows, "verify", index=0).content.decode()
    assert live_markup(html) == []


@pytest.mark.parametrize("model", [KnowledgeEntry, Observation, KeyValue, CachedResponse, Session])
def test_only_hub_operators_may_act(viewer, workspace, model):
    row = knowledge(workspace)
    client = client_of(User.objects.create_user("staff", is_staff=True))

    for someone, status in ((client, 403), (Client(), 302)):
        for action in ("withdraw", "take_back", "verify", "compress", "export_as_zip", "invalidate"):
            assert choose(someone, model, [row], action, digest="x").status_code == status
    client.force_login(viewer)
    assert choose(client, model, [row], "verify").status_code == 403
    assert not Run.objects.exists()
    assert not EditedRow.objects.exists()


@pytest.mark.parametrize(
    ("action", "kind", "options"),
    [
        ("compress", "compression", {}),
        ("consolidate", "consolidation", {}),
        ("archive", "consolidation", {"archive_all": True, "clear_after": True, "once": False}),
    ],
)
def test_sessions_get_a_run_each(admin_client, workspace, action, kind, options):
    sessions = [open_at(workspace, "cli:one"), open_at(workspace, "cli:two")]

    runs = act(admin_client, Session, sessions, action)

    assert [(run.session, run.kind, run.options) for run in runs] == [(one, kind, options) for one in sessions]


def test_selected_sessions_are_exported_as_a_zip(admin_client, workspace):
    other = Workspace.objects.create(slug="borea", name="Borea", layout="nanobot")
    sessions = [open_at(workspace, "cli:one"), open_at(workspace, "cli/one"), open_at(other, "cli:one")]
    for session in sessions:
        talk(session, 1)

    response = choose(admin_client, Session, sessions, "export_as_zip", index=0)

    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
        names = archive.namelist()
        assert [archive.testzip(), len(names)] == [None, 3]
        assert all(b"request 0" in archive.read(name) for name in names)
    assert [name.partition("/")[0] for name in names] == ["atlas", "atlas", "borea"]
    assert len({name.lower() for name in names}) == 3
    assert AuditRecord.objects.filter(action="sessions.exported").count() == 2


def test_too_many_sessions_are_refused_with_a_message(admin_client, workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.admin.sessions.MAX_SESSIONS", 1)
    sessions = [open_at(workspace, "cli:one"), open_at(workspace, "cli:two")]

    response = choose(admin_client, Session, sessions, "compress", index=0)

    assert response.status_code == 422
    assert "at most 1 at a time" in response.content.decode()
    assert not Run.objects.exists()


def test_each_button_of_a_list_asks_for_its_own_action(admin_client, workspace):
    row = knowledge(workspace)
    url = reverse("admin:knowledge_app_knowledgeentry_changelist")
    actions = re.findall(r'name="action" value="(\w+)"', admin_client.get(url).content.decode())

    for index, action in enumerate(actions):
        data = {"action": actions, "index": index, "_selected_action": [row.pk]}
        page = admin_client.post(url, data)
        assert page.status_code == 302 or page.context["action"] == action
    assert len(actions) >= 6

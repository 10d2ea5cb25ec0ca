from datetime import timedelta

import pytest
from django.apps import apps
from django.urls import reverse

from knowledge_app.models import KeyValue, Observation, Term
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.scratchpads import IDLE, end_run, idle_scratchpads
from memoryhub.sweeps import request_due
from sessions_app.models import AuditRecord, Entry, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


@pytest.fixture
def scratch(workspace) -> Workspace:
    """A scratchpad in whose every part something stands that is to go."""
    Workspace.objects.update(persist_memory=False)
    workspace.refresh_from_db()
    for value in ("dark", "xyzzy"):
        write_value(workspace, "theme", value, by=BY)
    add_knowledge(workspace, "xyzzy is known", category="learned_fact", by=BY)
    store(
        workspace, [NewObservation("finding", "xyzzy was found"), NewObservation("lesson", "say xyzzy once")], by=BY
    )
    store(workspace, [NewObservation("finding", "xyzzy was found!")], by=BY)
    keep(workspace, "q", "m", "xyzzy", now=NOW)
    Term.objects.create(workspace=workspace, text="xyzzy")
    add(open_at(workspace), [{"role": "user", "content": "hello"}])
    return workspace


def mentions(word):
    """Return every table that holds a word in any column."""
    return {
        model._meta.label
        for model in apps.get_models()
        for row in model._base_manager.all()
        if any(word in str(getattr(row, field.attname)) for field in model._meta.concrete_fields)
    }


def test_the_end_of_a_run_leaves_nothing_of_what_was_learnt(scratch):
    assert len(mentions("xyzzy")) > 6

    gone = end_run(scratch, by=BY)

    assert mentions("xyzzy") == set()
    assert gone["observations"] == 2
    assert Entry.objects.count() == 1
    assert AuditRecord.objects.get(action="scratch.ended").detail["rows"] == gone
    assert end_run(scratch, by=BY) == {}


def test_memory_that_is_kept_is_not_emptied(scratch):
    Workspace.objects.update(persist_memory=True)

    with raises_code("not_scratch"):
        end_run(scratch, by=BY)

    assert KeyValue.objects.exists()


def test_within_its_run_a_scratchpad_remembers(scratch):
    assert KeyValue.objects.get().value == "xyzzy"
    assert list(idle_scratchpads(NOW + IDLE)) == []


def test_an_idle_scratchpad_is_emptied_by_itself(scratch):
    request_due(NOW + IDLE + timedelta(seconds=1))

    assert not Observation.objects.exists()
    assert AuditRecord.objects.get(action="scratch.ended").actor_name == "the worker"


def test_an_imported_scratchpad_is_left_to_people(scratch):
    Workspace.objects.update(path="/agents/x")

    assert list(idle_scratchpads(NOW + timedelta(days=9))) == []


@pytest.mark.slow
def test_an_operator_ends_the_run_on_the_page(scratch, editor, admin_client):
    page = reverse("workspace", args=["atlas"])
    end = reverse("knowledge:end-scratch", args=["atlas"])

    assert "A scratchpad" in editor.get(page).content.decode()
    assert "End the run" not in editor.get(page).content.decode()
    assert editor.post(end).status_code == 404
    assert "2 observations" in admin_client.post(end, follow=True).content.decode()
    assert not KeyValue.objects.exists()


def test_the_command_ends_a_run(scratch, command):
    assert command("scratch", "end", "atlas")["removed"]["observations"] == 2
    Workspace.objects.update(persist_memory=True)
    assert command("scratch", "end", "atlas", status=1)["error"]["code"] == "not_scratch"

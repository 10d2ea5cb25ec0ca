"""Nothing remains of rows from a forgotten source in proposals, edits, findings, extractions or answers."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone
from pytest_httpserver import HTTPServer

from knowledge_app.models import Concern, EditedRow, KnowledgeEntry, Observation
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.forgetting import forget as flow
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.integrity import check_memory
from memoryhub.runs.executing import execute
from memoryhub.runs.extract import request_extraction
from memoryhub.runs.review import approve_run
from sessions_app.models import Entry, Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import cancel_run
from tests.api.conftest import caller, token_for
from tests.forgetting.remaining import NAME, TEXT, remains
from tests.hub import NOW, PERSON, add, by, open_at
from tests.hygiene.test_scanning import scan
from tests.runs.consolidations import PATH

pytestmark = pytest.mark.django_db(transaction=True)
SOURCE = "GOAL:step9"


def forget(workspace: Workspace, kind: str, *words: str, **options: object) -> None:
    wish = ErasureRequest(kind, words, **options)
    flow.forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="", by=by())


def learned(workspace: Workspace, text: str = TEXT, source: str = SOURCE) -> KnowledgeEntry:
    return add_knowledge(workspace, text, category="learned_fact", source=source, by=By(PERSON, NOW)).entry


def propose(workspace: Workspace, entry: KnowledgeEntry, text: str) -> Run:
    answer = caller(token_for(workspace))("PATCH", f"/knowledge/{entry.pk}", {"content": text})
    assert answer.status_code == 202, answer.content
    return Run.objects.select_related("workspace").get(kind="edit", status="held")


def leave(_: Run) -> None:
    pass


def reject(run: Run) -> None:
    cancel_run(run, by=by())


def approve(run: Run) -> None:
    approve_run(run, by=by())


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("decide", [leave, reject, approve])
def test_proposals_to_change_rows_of_a_forgotten_source_are_emptied(home, workspace, decide):
    decide(propose(workspace, learned(workspace), f"{TEXT} and cake"))

    forget(workspace, "source", SOURCE)

    assert remains(home) == set()
    assert not Run.objects.filter(status="held").exists()
    assert check_memory().broken == []


def test_pages_of_an_emptied_proposal_open(home, workspace, admin_client):
    run = propose(workspace, learned(workspace), f"{TEXT} and cake")

    forget(workspace, "source", SOURCE)

    for address in ("inbox/", "review/", "runs/", f"runs/{run.pk}/", "runs/?kind=edit"):
        page = admin_client.get(f"/w/{workspace.slug}/{address}", follow=True)
        assert page.status_code == 200
        assert NAME not in page.content.decode()


def test_a_proposal_for_a_row_that_is_deleted_for_a_person_is_emptied(workspace):
    propose(workspace, learned(workspace), "She likes tea and cake")

    forget(workspace, "person", NAME)

    assert "cake" not in json.dumps(Run.objects.get().options)
    assert Run.objects.get().status == "cancelled"


def test_proposals_and_edits_of_other_rows_stay(workspace):
    learned(workspace)
    other = learned(workspace, "The office is in Porto", source="mail")
    run = propose(workspace, other, "The office is in Lisbon")
    edit = edit_rows(workspace, "knowledge", "verify", [entry.pk for entry in KnowledgeEntry.objects.all()], by=by())

    forget(workspace, "source", SOURCE)

    run.refresh_from_db()
    assert run.status == "held"
    assert run.options["values"] == {"content": "The office is in Lisbon"}
    assert EditedRow.objects.get(run=edit).object_id == other.pk


def test_a_row_that_was_merged_into_another_one_keeps_nothing_in_the_edit(home, workspace):
    kept, gone = learned(workspace, "The office is in Porto", source="mail"), learned(workspace)
    edit_rows(workspace, "knowledge", "merge", [[kept.pk, gone.pk]], by=by())

    forget(workspace, "source", SOURCE)

    assert remains(home) == set()
    assert KnowledgeEntry.objects.get().pk == kept.pk


@pytest.mark.slow
@pytest.mark.postgres
def test_findings_about_deleted_rows_and_messages_are_deleted(workspace):
    session = open_at(workspace, "cli:secret")
    add(session, [{"role": "user", "content": "my password=hunter2hunter2 is secret"}])
    learned(workspace, "the password=hunter2hunter2 works")
    scan(workspace)
    assert {"entries", "knowledge"} <= set(Concern.objects.values_list("table", flat=True))

    forget(workspace, "source", SOURCE)
    forget(workspace, "session", session=session)

    assert not Concern.objects.exists()
    assert not Entry.objects.exists()


@pytest.mark.parametrize("reply", ["Sorry, {}", None])
def test_the_text_of_an_extraction_from_a_forgotten_source_is_erased(
    home, workspace, settings, httpserver: HTTPServer, reply
):
    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = httpserver.url_for("/v1"), "test-model"
    run = request_extraction(workspace, f"{TEXT} at noon. " * 5, source=SOURCE, by=by())
    if reply:
        message = {"role": "assistant", "content": reply.format(TEXT)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 9, "completion_tokens": 9}
        httpserver.expect_request(PATH).respond_with_json({"choices": [choice], "usage": usage})
        execute(run.pk, now=timezone.now)

    forget(workspace, "source", SOURCE)

    assert remains(home) == set()
    execute(run.pk, now=timezone.now)
    assert not Observation.objects.exists()

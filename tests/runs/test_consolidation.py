"""Consolidation with the real SDK against a scripted server."""

import pytest
from django.utils import timezone

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry, MemoryDocument
from knowledge_app.services.documents.consolidation import apply_proposal, plan_consolidation, undo_consolidation
from knowledge_app.services.documents.consolidation_guard import Proposal
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.integrity import check_memory
from memoryhub.lib.errors import MemoryHubError
from memoryhub.processes import this_process
from memoryhub.runs import consolidate as consolidation
from memoryhub.runs.consolidate import request_if_due
from memoryhub.runs.executing import execute, undo_run
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import clear_session, delete_session
from sessions_app.services.runs import RunNotFitting, claim_run, free_stuck_runs, request_run, retry_run
from tests.hub import NOW, PERSON, add, head, open_at, raises_code, recorded_supersessions, talk, turn
from tests.runs.consolidations import (
    BASE,
    FACTS,
    answer,
    consolidate,
    digest,
    during_the_call,
    memory,
    saved,
    write,
    write_as_person,
)

pytestmark = pytest.mark.django_db


def test_consolidation_commits_revision_history_entry_and_pointer_together(session, httpserver):
    answer(httpserver, saved(memory(*FACTS, "request nine was about the pool limit 40")))

    run = consolidate(session)

    session.refresh_from_db()
    assert (run.status, run.from_position, run.to_position, run.total_tokens) == ("done", 0, 29, 1000)
    assert session.last_consolidated == 29
    assert "pool limit 40" in head()
    entry = HistoryEntry.objects.get()
    assert (entry.content, entry.run_id, entry.session_id) == ("They talked.", run.pk, session.pk)
    assert f"{entry.occurred_at:%H:%M}" == "12:30"
    assert not check_memory().broken


def test_new_fact_links_to_its_source_messages(session, httpserver):
    add(
        session,
        [{"role": "user", "content": "The database pool limit shall be forty."}, *turn(50), *turn(51), *turn(52)],
    )
    answer(httpserver, saved(memory(*FACTS, "database pool limit is forty")))

    consolidate(session)

    fact = Fact.objects.get(text="database pool limit is forty")
    source = FactSource.objects.select_related("entry", "run").get(fact=fact)
    assert source.entry.content == "The database pool limit shall be forty."


def test_consolidation_keeps_half_a_window_without_splitting_tool_calls(session, httpserver):
    answer(httpserver, saved(BASE))

    run = consolidate(session)

    assert session.next_position - run.to_position == 11
    assert run.proposal["revision"] is None


def test_archive_all_consolidates_every_message(session, httpserver):
    answer(httpserver, saved(BASE))

    assert consolidate(session, archive_all=True).to_position == 40


def test_concurrent_edits_of_file_and_page_are_both_kept(session, httpserver, workspace, monkeypatch):
    def edits():
        write(workspace, BASE.replace("# Team\n", "# Our team\n"))
        document = MemoryDocument.objects.select_related("head").get()
        text = document.head.content.replace(FACTS[6], f"{FACTS[6]} by hand")
        revise_document(document, text, base=document.head, by=By(PERSON, NOW), reason="by hand")

    during_the_call(monkeypatch, edits)
    answer(httpserver, saved(memory(*FACTS, "tea is at four")))

    run = consolidate(session)

    assert run.status == "done"
    for text in ("# Our team", f"{FACTS[6]} by hand", "tea is at four"):
        assert text in head()
    assert not check_memory().broken


def test_messages_that_arrive_during_the_call_are_not_consolidated(session, httpserver, monkeypatch):
    during_the_call(monkeypatch, lambda: talk(session, 3, first=30))
    answer(httpserver, saved(BASE + "- new\n"))

    assert consolidate(session).to_position == 29
    assert Session.objects.get().last_consolidated == 29


def test_worker_that_lost_its_lease_commits_nothing(session, httpserver):
    run, _ = request_run(session, "consolidation", options={}, by=By(PERSON, NOW))
    late = claim_run(run.pk, owner=f"{this_process().rsplit(':', 2)[0]}:999999:gone", now=NOW)
    free_stuck_runs(NOW)
    answer(httpserver, saved(BASE + "- by the other\n"))
    execute(run.pk, now=timezone.now)
    answer(httpserver, saved(BASE + "- by the late one\n"))
    before = digest()

    with pytest.raises(MemoryHubError) as caught:
        consolidation.carry_out(late, now=timezone.now)
    assert caught.value.code in ("lease_lost", "plan_stale")
    assert digest() == before


@pytest.mark.slow
@pytest.mark.postgres
def test_deleting_a_session_keeps_facts_and_removes_messages(session, httpserver):
    answer(httpserver, saved(BASE + "- tea is at four\n"))
    run = consolidate(session)
    answer(httpserver, saved(memory(*FACTS[:3])))
    talk(session, 6, first=20)
    consolidate(session)

    delete_session(session, confirmation=session.key, reason="", by=By(PERSON, NOW))

    run.refresh_from_db()
    assert "tea is at four" in head()
    assert (run.session_id, run.status, run.proposal) == (None, "done", {})
    assert set(Run.objects.values_list("status", flat=True)) <= {"done", "cancelled"}
    assert HeldChange.objects.exists()
    assert not check_memory().broken


def test_undo_restores_the_document_byte_for_byte(session, httpserver):
    answer(httpserver, saved(memory(*FACTS[1:], "tea is at four")))
    run = consolidate(session)

    undo_run(run, by=By(PERSON, NOW))

    session.refresh_from_db()
    assert head() == BASE
    assert session.last_consolidated == 0
    assert HistoryEntry.objects.get().withdrawn_at == NOW
    assert not check_memory().broken


def test_undo_restores_the_verification_of_words_that_the_run_replaced(session, httpserver):
    Fact.objects.filter(text=FACTS[0]).update(last_verified_at=NOW)
    answer(httpserver, saved(memory(f"{FACTS[0]} well", *FACTS[1:])))
    run = consolidate(session)
    assert Fact.objects.get(text=f"{FACTS[0]} well").last_verified_at is None

    undo_run(run, by=By(PERSON, NOW))

    fact = Fact.objects.get(text=FACTS[0], died=None)
    assert (fact.last_verified_at, fact.corrected) == (NOW, None)


def test_undo_names_the_runs_that_depend_on_it(session, httpserver):
    answer(httpserver, saved(BASE + "- new\n"))
    run = consolidate(session)
    write_as_person(head() + "- by hand\n")

    with pytest.raises(RunNotFitting, match="Revision 3 of MEMORY\\.md builds on this run"):
        undo_run(run, by=By(PERSON, NOW))


@pytest.mark.parametrize(
    ("style", "window", "due"),
    [("nanobot", 40, True), ("nanobot", 41, False), ("grip", 19, True), ("grip", 20, False)],
)
def test_consolidation_is_due_at_the_threshold_of_each_agent(session, style, window, due):
    Workspace.objects.update(consolidation_style=style, memory_window=window)
    session = Session.objects.select_related("workspace").get()

    assert (request_if_due(session, NOW) is not None) is due


def test_used_tools_are_in_the_prompt(session, httpserver):
    add(session, [{"role": "assistant", "content": "Done.", "tools_used": ["exec", "web_search"]}])
    answer(httpserver, saved(BASE))

    consolidate(session, archive_all=True)

    assert "[assistant] [tools: exec, web_search] Done." in httpserver.log[0][0].get_json()["messages"][1]["content"]


def test_parked_batch_can_be_archived_raw(session, httpserver):
    answer(httpserver, {"choices": []})
    run = consolidate(session)
    Run.objects.update(status="parked")

    retry_run(run, by=By(PERSON, timezone.now()), method="heuristic")
    execute(run.pk, now=timezone.now)

    assert head() == BASE
    assert Session.objects.get().last_consolidated == 29
    assert "[RAW] 29 messages of cli:main" in HistoryEntry.objects.get().content
    assert "request 3" in HistoryEntry.objects.get().content
    assert not check_memory().broken


def test_parked_batch_can_be_skipped_with_a_note_and_undone(session, httpserver):
    answer(httpserver, {"choices": []})
    run = consolidate(session)
    Run.objects.update(status="parked")

    retry_run(run, by=By(PERSON, timezone.now()), method="heuristic", note="only tests")
    execute(run.pk, now=timezone.now)

    assert HistoryEntry.objects.get().content == "Skipped entries #0 to #28 of cli:main: only tests"
    undo_run(Run.objects.get(), by=By(PERSON, NOW))
    assert Session.objects.get().last_consolidated == 0


def test_imported_workspace_is_not_consolidated_automatically(session):
    Workspace.objects.update(path="/srv/agent")

    assert request_if_due(Session.objects.select_related("workspace").get(), NOW) is None


def test_workspace_without_memory_is_not_consolidated(session, httpserver):
    Workspace.objects.update(persist_memory=False)

    assert "keeps no memory" in consolidate(session).proposal["nothing_due"]
    assert httpserver.log == []


def test_a_conversation_that_is_too_short_is_not_consolidated_and_the_plan_says_so(workspace):
    session = open_at(workspace)
    for words in ("1 entry is", "2 entries are"):
        add(session, [{"role": "user", "content": "tea"}])
        plan = plan_consolidation(Session.objects.get())

        assert plan.reason == f"{words} not consolidated, and the newest 50 stay so."


def test_only_the_current_epoch_and_the_workspace_s_own_document_are_planned(session, workspace):
    elsewhere = open_at(Workspace.objects.create(slug="other", name="Other"))
    for place in (session, elsewhere):
        clear_session(place, by=By(PERSON, NOW))
        talk(place, 2)

    plan = plan_consolidation(Session.objects.get(pk=session.pk), archive_all=True)
    assert {entry.epoch for entry in plan.entries} == {1}
    assert plan.document.workspace_id == workspace.pk
    assert plan_consolidation(Session.objects.get(pk=elsewhere.pk), archive_all=True).document is None


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("moved", [{"epoch": 1}, {"last_consolidated": 3}])
def test_a_proposal_for_a_session_that_has_moved_is_refused(session, moved, approved):
    plan = plan_consolidation(Session.objects.select_related("workspace").get())
    run = request_run(session, "consolidation", options={}, by=By(PERSON, NOW))[0]
    Session.objects.update(**moved)
    before = digest()

    with raises_code("plan_stale"):
        apply_proposal(run, plan, Proposal(BASE + "- new\n", "They talked."), now=NOW, approved=approved)

    assert digest() == before


@pytest.mark.parametrize(
    ("of_run", "of_session"),
    [
        ({"kind": "compression"}, {}),
        ({"status": "cancelled"}, {}),
        ({"origin": "agent"}, {}),
        ({"session": None}, {}),
        ({}, {"epoch": 1}),
        ({}, {"last_consolidated": 30}),
    ],
)
def test_only_the_session_s_last_consolidation_is_undone(session, httpserver, of_run, of_session):
    answer(httpserver, saved(BASE + "- new\n"))
    run = consolidate(session)
    Run.objects.filter(pk=run.pk).update(**of_run)
    Session.objects.filter(pk=session.pk).update(**({"epoch": 0} | of_session))
    before = digest()

    with pytest.raises(RunNotFitting):
        undo_consolidation(Run.objects.get(pk=run.pk), by=By(PERSON, NOW))

    assert digest() == before


@pytest.mark.parametrize(("status", "after"), [("pending", "superseded"), ("rejected", "rejected")])
def test_undo_withdraws_the_held_rest_unless_it_is_decided(session, httpserver, status, after):
    answer(httpserver, saved(memory(*FACTS[:5], "tea is at four")))
    run = consolidate(session)
    HeldChange.objects.update(status=status)

    undo_run(run, by=By(PERSON, NOW))

    assert HeldChange.objects.get().status == after
    assert len(recorded_supersessions()) == (after == "superseded")
    assert head() == BASE

"""Nothing remains of what was learned from a forgotten session, wherever it waits, was decided or was reworded."""

from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from knowledge_app.models import Fact, HeldChange, MemoryRevision
from memoryhub.forgetting import forget as flow
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.integrity import check_memory
from memoryhub.jobs.queue import request_job
from memoryhub.models import Job, RecentSearch
from memoryhub.runs import review
from sessions_app.models import Run, Session, Workspace
from tests.forgetting.remaining import KEY, NAME, TEXT, remains
from tests.hub import add, by, compress, head, open_at, talk
from tests.runs.consolidations import BASE, FACTS, PATH, consolidate, memory, saved, write, write_as_person

pytestmark = pytest.mark.django_db(transaction=True)
WANTED = memory(*FACTS, TEXT, "The office is in Porto")


@pytest.fixture
def session(settings, httpserver: HTTPServer, workspace: Workspace) -> Session:
    settings.MEMORYHUB_LLM_BASE_URL = httpserver.url_for("/v1")
    settings.MEMORYHUB_LLM_MODEL = "test-model"
    Workspace.objects.update(memory_window=4)
    write(workspace, BASE)
    session = open_at(Workspace.objects.get(), KEY)
    talk(session, 4)
    add(session, [{"role": "user", "content": TEXT}])
    return session


def learn(httpserver: HTTPServer, session: Session, text: str = WANTED, **options: object) -> Run:
    httpserver.expect_oneshot_request(PATH).respond_with_json(saved(text, f"[2026-04-01 12:30] {TEXT}"))
    return consolidate(session, **options)


def forget(session: Session) -> None:
    wish = ErasureRequest("session", session=session)
    expected = plan_forget(session.workspace, wish).total
    flow.forget(session.workspace, wish, expected=expected, reason="", by=by())


def held() -> HeldChange:
    return HeldChange.objects.select_related("run__session", "document", "ours", "workspace").get(status="pending")


def leave(_: HeldChange) -> None:
    pass


def approve(change: HeldChange) -> None:
    review.approve(change, by=by())


def reject(change: HeldChange) -> None:
    review.reject(change, by=by())


def reword(change: HeldChange) -> None:
    review.approve(change, by=by())
    write_as_person(head().replace(TEXT, f"{TEXT} in the morning"))
    write_as_person(head().replace(f"Bärbel {NAME} likes tea in the morning", "Bärbel likes tea in the morning"))


def remove(change: HeldChange) -> None:
    review.approve(change, by=by())
    write_as_person(BASE)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("decide", [leave, approve, reject, reword, remove])
def test_a_held_consolidation_is_forgotten_with_its_session(home, session, httpserver, decide):
    assert learn(httpserver, session, hold=True).status == "held"
    decide(held())
    assert remains(home)

    forget(session)

    assert remains(home) == set()
    assert not HeldChange.objects.exists()
    assert "Porto" not in head()
    assert check_memory().broken == []


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("decide", [leave, approve, reject, reword, remove])
def test_the_held_part_of_a_consolidation_is_forgotten_with_its_session(home, session, httpserver, decide):
    reworded = memory(*(f"{fact} to {NAME}" for fact in FACTS), "The office is in Porto")
    assert learn(httpserver, session, reworded).status == "done"
    assert "Porto" in head()
    decide(held())

    forget(session)

    assert remains(home) == set()
    assert not HeldChange.objects.exists()
    assert "Porto" not in head()
    assert check_memory().broken == []


@pytest.mark.slow
@pytest.mark.postgres
def test_parts_that_wait_are_forgotten_with_the_session(home, session, httpserver):
    changed = memory(
        f"{FACTS[0]} to {NAME}", *FACTS[1:-1], f"{FACTS[-1]} to {NAME} as well", "The office is in Porto"
    )
    learn(httpserver, session, changed, hold=True)
    decided = review.decide_parts(held(), accepted=[0], rejected=[], by=by())
    assert decided.rest

    forget(session)

    assert remains(home) == set()
    assert not HeldChange.objects.exists()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_fact_traced_to_a_message_is_forgotten_with_the_session(session, httpserver):
    learn(httpserver, session, memory(*FACTS, "Please look at request 1"))
    assert Fact.objects.get(text="Please look at request 1").sources.filter(entry__isnull=False).exists()

    forget(session)

    assert "request 1" not in head()


@pytest.mark.slow
@pytest.mark.postgres
def test_what_another_session_taught_too_stays(session, httpserver):
    learn(httpserver, session, memory(*FACTS, "The office is in Porto"))
    other = open_at(session.workspace, "cli:other")
    fact = Fact.objects.get(text="The office is in Porto")
    fact.sources.create(run=Run.objects.create(workspace=session.workspace, session=other, kind="consolidation"))

    forget(session)

    assert "The office is in Porto" in head()


@pytest.mark.slow
@pytest.mark.postgres
def test_words_of_a_fact_that_the_session_only_shortened_stay(session, httpserver):
    write(session.workspace, memory(*FACTS[1:], f"{FACTS[0]} to everybody in the office"))
    assert learn(httpserver, session, memory(*FACTS)).status == "done"

    forget(session)

    assert FACTS[0] in head()


@pytest.mark.slow
@pytest.mark.postgres
def test_its_key_is_erased_from_reasons_jobs_searches_and_what_runs_were_asked_for(
    home, session, httpserver, admin_user
):
    assert learn(httpserver, session, hold=True).status == "held"
    approve(held())
    compress(session, method="heuristic", prompt=f"Keep what {NAME} said")
    request_job(Job.Kind.COMPRESSION, session.workspace, {"sessions": [KEY]}, by=by())
    RecentSearch.objects.create(user=admin_user, workspace=session.workspace, query=f"tea session:{KEY}")
    assert MemoryRevision.objects.filter(reason__contains=KEY).exists()

    forget(session)

    assert remains(home) == set()

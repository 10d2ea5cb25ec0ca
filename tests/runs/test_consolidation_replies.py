"""Which replies of the model a consolidation accepts, holds or refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest
import time_machine
from django.utils import timezone

from knowledge_app.models import HeldChange, HistoryEntry, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.integrity import check_memory
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, head, open_at, talk
from tests.runs.consolidations import BASE, FACTS, answer, consolidate, digest, memory, saved
from tests.shared import BADINPUT, badinput_cases, packlib

pytestmark = pytest.mark.django_db
LATER = datetime(2026, 5, 2, tzinfo=UTC)
TWICE = json.dumps({"memory_update": BASE + "- new\n"})[1:-1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"history_entry": "They talked.", "memory_update": BASE + "- new\n"},
        json.dumps(json.dumps({"history_entry": "They talked.", "memory_update": BASE + "- new\n"})),
        [{"history_entry": "They talked.", "memory_update": BASE + "- new\n"}],
        json.dumps([{"history_entry": "They talked.", "memory_update": BASE + "- new\n"}]),
        "```json\n" + json.dumps({"history_entry": "They talked.", "memory_update": BASE + "- new\n"}) + "\n```",
        json.dumps({"history_entry": {"what": "They talked."}, "memory_update": BASE + "- new\n"}),
        json.dumps({"history_entry": "They talked.", "memory_update": f"```markdown\n{BASE}- new\n```"}),
    ],
)
def test_known_argument_shapes_are_read(session, httpserver, arguments):
    answer(httpserver, saved(None, arguments=arguments))

    assert consolidate(session).status == "done"
    assert head() == BASE + "- new\n"


def test_a_history_entry_is_kept_as_it_was_written(session, httpserver):
    answer(httpserver, saved(f"{BASE}- new\n", 'They said "hello".'))

    consolidate(session)

    assert HistoryEntry.objects.get().content == 'They said "hello".'


@pytest.mark.parametrize(
    ("prefix", "at"), [("[2026-04-01 12:30] ", datetime(2026, 4, 1, 12, 30, tzinfo=UTC)), ("", LATER)]
)
def test_a_history_entry_is_dated_by_its_prefix_or_the_run(prefix, at, session, httpserver):
    answer(httpserver, saved(f"{BASE}- new\n", f"{prefix}They talked."))

    with time_machine.travel(LATER, tick=False):
        consolidate(session)

    assert HistoryEntry.objects.get().occurred_at == at


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (saved("unchanged"), "placeholder"),
        (saved("(memory unchanged)"), "placeholder"),
        (saved("..."), "placeholder"),
        (saved("Error: upstream timed out"), "placeholder or an error"),
        (saved("<html>Sign in</html>"), "error"),
        (saved(""), "empty"),
        (saved(BASE, ""), "empty"),
        (saved(None), "isn't text"),
        (saved({"facts": FACTS}), "isn't text"),
        (saved(17, 18), "isn't text"),
        (saved(None, arguments="not json"), "can't be read"),
        (
            saved(None, arguments=f'{{"history_entry": "x", "memory_update": "{FACTS[0]}", {TWICE}}}'),
            "same key twice",
        ),
        (saved(None, arguments="[]"), "aren't an object"),
        (saved(None, arguments=7), "aren't an object"),
        (saved("x" * 500_000), "the limit is"),
        (
            {"choices": [{"finish_reason": "stop", "message": {"content": "Here is what I remember."}}]},
            "with text instead",
        ),
        ({"choices": [{"finish_reason": "length", "message": {}}]}, "length limit"),
    ],
)
def test_invalid_reply_changes_nothing(session, httpserver, body, words):
    answer(httpserver, body)
    before = digest()

    run = consolidate(session)

    assert run.status == "queued"
    assert words in run.error
    assert digest() == before


@pytest.mark.parametrize(
    ("before", "update"),
    [
        ("# Memory\n", "# Memory"),
        ("# Memory", "# Memory\n"),
        ("", ""),
        ("", "(empty)"),
        ("\n", "\n\n"),
        ("# Memory\n\n- none\n", "```markdown\n# Memory  \n\n- none\n```"),
        ("Error: the backup failed on Monday.\n", "Error: the backup failed on Monday."),
    ],
)
def test_unchanged_memory_moves_the_pointer_and_adds_history(session, httpserver, workspace, before, update):
    document = MemoryDocument.objects.select_related("head").get()
    revise_document(document, before, base=document.head, by=By(PERSON, NOW), reason="test")
    answer(httpserver, saved(update))
    revisions = MemoryRevision.objects.count()

    run = consolidate(session)

    session.refresh_from_db()
    assert (run.status, run.proposal["revision"], session.last_consolidated) == ("done", None, 29), run.error
    assert (head(), MemoryRevision.objects.count(), HistoryEntry.objects.count()) == (before, revisions, 1)
    assert not HeldChange.objects.exists()


@pytest.mark.parametrize("key", ["ollama", "fact", "lm-studio", "sk-no-key-required", "xxxxxxxxxxxxxxxx"])
def test_dummy_api_key_may_occur_in_a_reply(session, httpserver, settings, key):
    settings.MEMORYHUB_LLM_API_KEY = key
    answer(httpserver, saved(memory(*FACTS, f"models are served by {key}")))

    assert consolidate(session).error == ""
    assert f"models are served by {key}" in head()


def test_real_api_key_in_a_reply_is_refused(session, httpserver, settings):
    settings.MEMORYHUB_LLM_API_KEY = key = "sk-7Qm2hVx9LrT4bYw8"
    answer(httpserver, saved(memory(*FACTS, f"models are served with {key}")))

    assert "contains the API key" in consolidate(session).error


def test_new_workspace_without_facts_consolidates_without_a_revision(workspace, settings, httpserver):
    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = httpserver.url_for("/v1"), "test-model"
    session = open_at(workspace)
    talk(session, 60)
    answer(httpserver, saved(""))

    run = consolidate(session)

    assert (run.status, run.proposal["revision"], HistoryEntry.objects.count()) == ("done", None, 1), run.error
    assert not MemoryRevision.objects.exists()
    assert not check_memory().broken


def test_call_of_another_tool_is_refused(session, httpserver):
    body = saved(BASE)
    body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = "delete_memory"
    answer(httpserver, body)

    assert "called a tool other than" in consolidate(session).error


def grip(session: Session) -> None:
    Workspace.objects.update(consolidation_style="grip", memory_window=10)
    session.refresh_from_db()


def text_reply(text: str) -> dict:
    return {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}


def test_grip_appends_facts_under_a_dated_heading_and_keeps_a_window(session, httpserver):
    grip(session)
    answer(httpserver, text_reply(f"- [user_preference] likes tea\n- {FACTS[0]}\n- no new facts about coffee"))

    run = consolidate(session)

    session.refresh_from_db()
    day = timezone.now().strftime("%Y-%m-%d")
    assert head() == f"{BASE}\n### Consolidated {day}\n- [user_preference] likes tea\n- no new facts about coffee\n"
    assert run.to_position == 29
    assert session.summary_text.startswith("[Previous conversation context]\n- [user_preference] likes tea")
    assert HistoryEntry.objects.get().content.startswith("Consolidated 29 messages. Topics: request 0")
    assert not check_memory().broken


def test_grip_without_new_facts_moves_the_pointer(session, httpserver):
    grip(session)
    answer(httpserver, text_reply("No new facts."))

    run = consolidate(session)

    assert (run.status, run.proposal["revision"], head()) == ("done", None, BASE)
    assert HistoryEntry.objects.count() == 1


@pytest.mark.parametrize("text", ["I'm sorry, I can't.", "<h1>Bad gateway</h1>", "The user likes tea."])
def test_grip_refuses_a_reply_that_is_not_a_list(session, httpserver, text):
    grip(session)
    answer(httpserver, text_reply(text))
    before = digest()

    assert "isn't a list of facts" in consolidate(session).error
    assert digest() == before


EXPECTED = {"accept": "done", "hold": "held", "no_change": "queued"}


@pytest.mark.slow
@pytest.mark.parametrize("case", badinput_cases("llm_reply"), ids=lambda case: case["id"])
def test_badinput_replies_end_as_their_case_allows(case, tmp_path, settings):
    folder = tmp_path / "agent"
    subprocess.run(
        [sys.executable, str(BADINPUT / "packlib.py"), "layout", case["id"], str(folder)],
        check=True,
        capture_output=True,
    )
    import_workspace(folder, by=By(AGENT, timezone.now()), name="pack")
    servers: list = []
    threading.Thread(target=packlib().play, args=(case,), kwargs={"ready": servers}, daemon=True).start()
    while not servers:
        time.sleep(0.01)
    session = Session.objects.select_related("workspace").get(key="cli:work")
    before = digest()
    with servers[0] as server:
        settings.MEMORYHUB_LLM_BASE_URL = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        settings.MEMORYHUB_LLM_MODEL = "test-model"
        settings.MEMORYHUB_LLM_TIMEOUT_SECONDS = 8.0
        run = consolidate(session)

    assert run.status in {EXPECTED[outcome] for outcome in case["outcome"]}, run.error
    if run.status == "done":
        assert digest() != before
        assert Session.objects.get(key="cli:work").last_consolidated == run.to_position
    else:
        assert digest() == before
    assert not check_memory().broken

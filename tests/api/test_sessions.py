import json

import pytest
from django.db.models.sql.compiler import SQLCompiler, SQLDeleteCompiler, SQLInsertCompiler, SQLUpdateCompiler
from django.utils import timezone

from memoryhub.integrity import check_memory
from memoryhub.models import AccessedRow, AccessRecord
from sessions_app.models import AuditRecord, Entry, Run, Session, Workspace
from tests.api.conftest import caller, token_for
from tests.hub import compress, open_at, talk
from tests.shared import BADINPUT, badinput_cases

pytestmark = pytest.mark.django_db
HELLO = {"role": "user", "content": "The pool is closed on Mondays."}


def test_appended_entries_are_in_the_context(agent, workspace):
    appended = agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO, {**HELLO, "role": "assistant"}]})
    context = agent("GET", "/context?session=cli:main")

    assert appended.status_code == 201
    assert appended.json()["first"] == 0
    assert appended.json()["last"] == 1
    assert [message["content"] for message in context.json()["messages"]] == [HELLO["content"]] * 2
    assert AuditRecord.objects.filter(action="entry.added", actor_kind="agent").count() == 1
    seen = AccessedRow.objects.get(access__action="context.read")
    assert (seen.table, seen.first, seen.last) == ("entries", 0, 1)


def test_frequent_calls_build_no_statements(agent, monkeypatch):
    def calls():
        assert agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]}).status_code == 201
        assert agent("GET", "/context?session=cli:main").json()["messages"]

    calls()
    built = []
    for compiler in (SQLCompiler, SQLInsertCompiler, SQLUpdateCompiler, SQLDeleteCompiler):

        def as_sql(self, *args, _build=compiler.as_sql, **options):
            built.append(f"{type(self).__name__} of {self.query.model.__name__}")
            return _build(self, *args, **options)

        monkeypatch.setattr(compiler, "as_sql", as_sql)

    calls()

    assert built == []
    session = Session.objects.select_related("workspace").get(key="cli:main")
    Workspace.objects.update(max_entries=2, recent_window=1, auto_compress=True)
    held = {"kind": Run.Kind.COMPRESSION, "status": Run.Status.HELD}
    Run.objects.create(workspace=session.workspace, session=session, epoch=session.epoch, **held)
    calls()
    built.clear()
    calls()

    assert built == []  # of a session over its limits
    AuditRecord.objects.first()
    assert built == ["SQLCompiler of AuditRecord"]  # it is counted


def test_opening_a_session_twice_returns_it(agent):
    first = agent("POST", "/sessions", {"key": "cli:main", "title": "Pool"})
    again = agent("POST", "/sessions", {"key": "cli:main"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


def test_entries_are_listed_page_by_page(agent):
    agent(
        "POST",
        "/entries",
        {"session": "cli:main", "entries": [{"role": "user", "content": str(n)} for n in range(5)]},
    )
    pk = Session.objects.get().pk

    first = agent("GET", f"/sessions/{pk}/entries?limit=3").json()
    rest = agent("GET", f"/sessions/{pk}/entries?limit=3&cursor={first['next']}").json()

    assert [item["content"] for item in first["items"] + rest["items"]] == list("01234")
    assert rest["next"] is None


def test_a_cursor_of_another_list_is_refused(agent):
    for number in range(3):
        agent("POST", "/sessions", {"key": f"cli:{number}"})
    cursor = agent("GET", "/sessions?limit=1").json()["next"]

    answer = agent("GET", f"/runs?cursor={cursor}")

    assert (answer.status_code, answer.json()["code"]) == (404, "bad_cursor")


def test_a_session_is_cleared_with_new_entries_at_once_or_not_at_all(agent):
    messages = [{"role": "user", "content": f"message {number}"} for number in range(250)]
    pk = agent("POST", "/entries", {"session": "cli:main", "entries": messages[:2]}).json()["session"]

    refused = agent("POST", f"/sessions/{pk}/clear", {"entries": [*messages[:150], {"role": "x"}]})
    assert refused.status_code == 422
    assert agent("GET", f"/sessions/{pk}").json()["epoch"] == 0

    cleared = agent("POST", f"/sessions/{pk}/clear", {"entries": messages})
    assert (cleared.status_code, cleared.json()["epoch"]) == (200, 1)
    entries = agent("GET", f"/sessions/{pk}/entries?limit=200").json()["items"]
    assert [entry["content"] for entry in entries] == [message["content"] for message in messages[:200]]


def test_stats_compression_clearing_and_runs(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO] * 12})
    pk = Session.objects.get().pk

    stats = agent("GET", f"/sessions/{pk}/stats").json()
    run = agent("POST", f"/sessions/{pk}/compress")
    found = agent("GET", f"/runs/{run.json()['id']}").json()
    cleared = agent("POST", f"/sessions/{pk}/clear").json()

    assert stats["entries"] == 12
    assert run.status_code == 202
    assert found["status"] == Run.Status.QUEUED
    assert (cleared["epoch"], cleared["entries"]) == (1, 12)


def test_compressed_entries_and_summaries_are_counted_and_active_entries_listed(agent, workspace):
    session = open_at(workspace)
    talk(session, 8)
    compress(session, keep=4)

    stats = agent("GET", f"/sessions/{session.pk}/stats").json()
    active = agent("GET", f"/sessions/{session.pk}/entries?active=true").json()["items"]
    every = agent("GET", f"/sessions/{session.pk}/entries").json()["items"]

    assert (stats["entries"], stats["summaries"]) == (32, 1)
    assert stats["compressed_entries"] == 32 - stats["active_entries"] == 32 - len(active)
    assert (len(every), active) == (32, every[-len(active) :])


def test_context_is_returned_as_text_on_request(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]})
    pk = Session.objects.get().pk

    for url in (f"/sessions/{pk}/context?", "/context?session=cli:main&"):
        assert agent("GET", f"{url}text=true").json()["text"].startswith("=== Recent Conversation ===\nUser: ")
        assert agent("GET", url).json()["text"] is None


def test_compression_can_have_its_own_prompt(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO] * 12})
    pk = Session.objects.get().pk

    assert agent("POST", f"/sessions/{pk}/compress", {"prompt": "Only the names."}).status_code == 202
    assert Run.objects.get().options == {"prompt": "Only the names."}
    assert agent("POST", f"/sessions/{pk}/compress", {"prompt": "x" * 4_001}).status_code == 422


def test_archiving_returns_a_run(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]})
    pk = Session.objects.get().pk

    run = agent("POST", f"/sessions/{pk}/archive-and-clear")

    assert (run.status_code, run.json()["kind"]) == (202, Run.Kind.CONSOLIDATION)
    assert Run.objects.get().options["clear_after"] is True


def test_an_exported_session_can_be_imported_in_another_workspace(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO, {**HELLO, "role": "assistant"}]})
    file = agent("GET", f"/sessions/{Session.objects.get().pk}/export?layout=nanobot")
    other = caller(token_for(Workspace.objects.create(slug="other", name="Other")))
    body = {"name": "main.jsonl", "content": file.content.decode()}

    taken, again = other("POST", "/sessions/import", body), other("POST", "/sessions/import", body)

    assert "attachment" in file["Content-Disposition"]
    assert taken.json()["added"] == {"entries": 2, "sessions": 1}
    assert again.json()["added"] == {}
    messages = other("GET", "/context?session=cli:main").json()["messages"]
    assert [message["content"] for message in messages] == [HELLO["content"]] * 2


@pytest.mark.parametrize("name", ["𝒜" * 150 + ".jsonl", "../../etc/a.jsonl", "/a\0b.jsonl"])
def test_file_names_may_be_paths_or_long(agent, name):
    content = json.dumps({"_type": "metadata", "key": "cli:main"}) + "\n" + json.dumps(HELLO)

    assert agent("POST", "/sessions/import", {"name": name, "content": content}).status_code == 200
    assert Session.objects.get().key == "cli:main"


@pytest.mark.parametrize("layout", ["nanobot", "grip", "agterm"])
def test_importing_an_exported_session_adds_nothing(agent, layout):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO, {"role": "assistant", "content": "Noted."}]})
    file = agent("GET", f"/sessions/{Session.objects.get().pk}/export?layout={layout}")
    name = "main.jsonl" if layout == "nanobot" else "main.json"

    again = agent("POST", "/sessions/import", {"name": name, "content": file.content.decode()}).json()

    assert (again["added"], again["unchanged"]["entries"]) == ({}, 2)
    assert Session.objects.get().epoch == 0
    assert check_memory().broken == []


def test_a_repeated_idempotency_key_adds_once(agent):
    body = {"session": "cli:main", "entries": [HELLO]}

    first = agent("POST", "/entries", body, Idempotency_Key="k-1")
    again = agent("POST", "/entries", body, Idempotency_Key="k-1")

    assert again.json() == first.json()
    assert again["Idempotent-Replay"] == "true"
    assert Entry.objects.count() == 1


def test_an_idempotency_key_with_another_body_is_refused(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]}, Idempotency_Key="k-1")

    other = agent("POST", "/entries", {"session": "cli:other", "entries": [HELLO]}, Idempotency_Key="k-1")

    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert Session.objects.count() == 1


def test_a_failed_call_does_not_use_up_its_idempotency_key(agent):
    bad = agent("POST", "/entries", {"session": "cli:main", "entries": [{"role": "x"}]}, Idempotency_Key="k-1")
    good = agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]}, Idempotency_Key="k-1")

    assert (bad.status_code, good.status_code) == (422, 201)


def test_a_refused_batch_creates_no_session(agent):
    answer = agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO, {"content": "2"}]})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "entries[1].role"
    assert not Session.objects.exists()


@pytest.mark.parametrize("case", badinput_cases("rest_body"), ids=lambda case: case["id"])
def test_bad_bodies_get_their_status(case, agent, workspace):
    asked = case["request"]
    agent("POST", "/entries", {"session": "cli:canary", "entries": [HELLO]})
    agent("PUT", "/documents/MEMORY.md", {"content": "- canary\n"}, If_Match='"0"')
    body = (BADINPUT / asked["file"]).read_bytes()
    headers = {name.replace("-", "_"): value for name, value in asked.get("headers", {}).items()}
    pk = Session.objects.get().pk
    address = "/documents/MEMORY.md" if asked["method"] == "PUT" else f"/sessions/{pk}/entries"

    answers = [agent(asked["method"], address, body, **headers) for _ in range(asked.get("repeat", 1))]

    wanted = {"rb-001": {422}, "rb-002": {400}, "rb-003": {201}, "rb-004": {409, 412}}[case["id"]]
    assert {answer.status_code for answer in answers} <= wanted
    assert all(answer["Content-Type"].startswith("application/") for answer in answers)
    assert Entry.objects.count() == (2 if case["id"] == "rb-003" else 1)
    if case["id"] == "rb-001":
        assert "entries[1].role" in json.dumps(answers[0].json())
    assert check_memory().broken == []


@pytest.mark.parametrize("case", badinput_cases("session_key"), ids=lambda case: case["id"])
def test_unusual_session_keys_work(case, agent, tmp_path):
    key = case["value"]

    opened = agent("POST", "/sessions", {"key": key})
    appended = agent("POST", "/entries", {"session": key, "entries": [HELLO]})
    exported = agent("GET", f"/sessions/{opened.json()['id']}/export?layout=nanobot")

    assert (opened.status_code, appended.status_code, exported.status_code) == (201, 201, 200)
    assert agent("GET", f"/sessions/{opened.json()['id']}").json()["key"] == key
    name = exported["Content-Disposition"].partition("filename=")[2].strip('"')
    assert not {"/", "\\"} & set(name)
    assert name != ".."


@pytest.mark.parametrize("key", ["cli:a\nb", "\u202ecli:evil", "\u200b \u00a0", "a\x1b[31m", "a\u2028b", "\t"])
def test_keys_that_cannot_be_shown_are_refused(key, agent, workspace):
    for path, body in (("/sessions", {"key": key}), ("/entries", {"session": key, "entries": [HELLO]})):
        assert agent("POST", path, body).status_code == 422
    content = json.dumps({"_type": "metadata", "key": key}) + "\n" + json.dumps(HELLO) + "\n"
    agent("POST", "/sessions/import", {"name": "x.jsonl", "content": content})

    assert not Session.objects.exists()


def test_repeated_reads_are_logged_once_a_minute(agent):
    agent("POST", "/entries", {"session": "cli:main", "entries": [HELLO]})

    for _ in range(3):
        agent("GET", "/context?session=cli:main")

    assert AccessRecord.objects.filter(action="context.read", via="rest").count() == 1
    assert AccessRecord.objects.get(action="context.read").at <= timezone.now()

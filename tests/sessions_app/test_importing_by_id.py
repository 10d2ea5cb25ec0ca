from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memoryhub.integrity import check_memory
from memoryhub.lib.files.safe_folder import FileInfo
from memoryhub.lib.layouts.records import EntryRecord, FileRead, SessionRecord, SummaryRecord
from memoryhub.sync.fork_order import MAX_WAITING, originals_first
from memoryhub.sync.importing import import_source_file
from sessions_app.models import DeletedSession, Entry, Session, SourceFile
from sessions_app.services.audit import By
from sessions_app.services.export import session_record
from sessions_app.services.lifecycle import allow_again, delete_session
from sessions_app.services.session_links import link_sessions
from sessions_app.services.sources import mark_missing
from tests.hub import PERSON
from tests.records import entry_record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, tzinfo=UTC)
LATER = datetime(2026, 12, 24, tzinfo=UTC)


def said(name: str, content: str = "", **values) -> EntryRecord:
    return replace(entry_record(content or name, **values), source_id=name)


def record(*entries: EntryRecord | str, key: str = "claude:a", **values) -> SessionRecord:
    rows = [said(entry) if isinstance(entry, str) else entry for entry in entries]
    return SessionRecord(key=key, entries=rows, is_by_id=True, **values)


def take(workspace, *records: SessionRecord, path: str = "a.jsonl", now: datetime = NOW):
    info = FileInfo(1, 1, "0" * 64, str(now))
    counts = import_source_file(workspace, FileRead(path, "session", info, list(records)), now, dry_run=False)
    link_sessions(workspace)
    return counts


def contents(key: str = "claude:a", **values) -> list[str]:
    rows = Entry.objects.filter(session__key=key, **values)
    return list(rows.order_by("epoch", "position").values_list("content", flat=True))


def test_a_second_import_adds_and_updates_nothing(workspace):
    whole = record("a", said("b", is_rewound=True), said("c", is_injected=True), title="Orchids")

    take(workspace, whole)
    counts = take(workspace, whole)

    assert not +counts.added
    assert not +counts.updated
    assert contents() == ["a", "b", "c"]
    assert contents(is_rewound=True) == ["b"]
    assert contents(is_injected=True) == ["c"]


def test_new_entries_are_appended_in_the_order_of_the_file(workspace):
    take(workspace, record("a", "d"))

    counts = take(workspace, record("a", "b", "c", "d"))

    assert +counts.added == {"entries": 2}
    assert contents() == ["a", "d", "b", "c"]


def test_a_changed_record_is_added_as_the_newer_version(workspace):
    take(workspace, record("a", said("b", "b at first")))

    counts = take(workspace, record("a", said("b", "b with its tool calls")))

    assert (+counts.added, +counts.updated) == ({"entries": 1}, {"entries": 1})
    assert contents(is_rewound=True) == ["b at first"]
    assert contents(is_rewound=False) == ["a", "b with its tool calls"]
    assert not +take(workspace, record("a", said("b", "b with its tool calls"))).added


def test_a_record_that_gets_its_earlier_content_again_is_not_added_again(workspace):
    for content in ("first", "second", "first"):
        take(workspace, record(said("a", content)))

    assert contents() == ["first", "second"]
    assert contents(is_rewound=True) == ["second"]


def test_entries_are_marked_as_rewound_and_unmarked(workspace):
    take(workspace, record("a", "b"))

    counts = take(workspace, record("a", said("b", is_rewound=True), "c"))

    assert counts.updated["entries"] == 1
    assert contents(is_rewound=True) == ["b"]
    take(workspace, record("a", "b", "c"))
    assert contents(is_rewound=True) == []


def test_a_fork_adds_only_its_own_entries(workspace):
    take(workspace, record("a", "b", "c"))
    fork = record("a", "b", "x", key="claude:f", forked_from="claude:a")

    take(workspace, fork, path="f.jsonl")

    session = Session.objects.get(key="claude:f")
    assert contents("claude:f") == ["x"]
    assert session.forked_from == Session.objects.get(key="claude:a")
    assert session.extra["forked_at"] == "b"
    assert session.missing_since is None
    counts = take(workspace, fork, path="f.jsonl")
    assert not +counts.added
    assert not +counts.updated


def test_a_fork_without_entries_of_its_own_is_a_session(workspace):
    take(workspace, record("a", "b"))
    take(workspace, record("a", "b", key="claude:f", forked_from="claude:a"), path="f.jsonl")

    assert Session.objects.get(key="claude:f").forked_from.key == "claude:a"


def test_originals_are_imported_before_their_forks(workspace):
    fork = FileRead("a.jsonl", "session", None, [record("a", key="claude:f", forked_from="claude:g")])
    again = FileRead("b.jsonl", "session", None, [record("a", key="claude:g", forked_from="claude:z")])
    original = FileRead("z.jsonl", "session", None, [record("a", key="claude:z")])
    orphan = FileRead("c.jsonl", "session", None, [record("o", key="claude:o", forked_from="claude:gone")])

    ordered = originals_first(workspace, [fork, again, orphan, original])

    assert [read.path for read in ordered] == ["z.jsonl", "b.jsonl", "a.jsonl", "c.jsonl"]


def test_few_forks_wait_for_originals_that_are_not_there(workspace, django_assert_num_queries):
    reads = [
        FileRead(f"{number}.jsonl", "session", None, [record("a", key=f"claude:{number}", forked_from="claude:gone")])
        for number in range(MAX_WAITING + 3)
    ]
    arrived = iter(reads)

    with django_assert_num_queries(MAX_WAITING + 1):
        first = next(originals_first(workspace, arrived))

    assert first is reads[0]
    assert list(arrived) == reads[-2:]
    assert list(originals_first(workspace, reads)) == reads


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_subagent_is_linked_in_either_order(workspace, parent_first):
    parent = record("a")
    child = record("s", key="claude:a/agent-1", parent_key="claude:a", parent_call_id="toolu_1")
    for number, item in enumerate((parent, child) if parent_first else (child, parent)):
        take(workspace, item, path=f"{number}.jsonl")

    session = Session.objects.get(key="claude:a/agent-1")
    assert session.parent == Session.objects.get(key="claude:a")
    assert session.parent_call_id == "toolu_1"


def test_fields_of_a_file_that_are_called_like_links_are_kept_as_they_are(workspace):
    take(workspace, record("a", extra={"parent_key": ["x"], "forked_from": {"id": 7}}))

    session = Session.objects.get()
    assert session.extra == {"parent_key": ["x"], "forked_from": {"id": 7}}
    assert (session_record(session).parent_key, session_record(session).forked_from) == ("", "")


def test_a_session_keeps_what_its_file_lacks(workspace):
    take(workspace, record("a", "b", "c"))

    take(workspace, record("c", "d"), now=LATER)

    assert contents() == ["a", "b", "c", "d"]
    assert Session.objects.get().missing_since == LATER
    take(workspace, record("a", "b", "c", "d"))
    assert Session.objects.get().missing_since is None


def test_an_older_copy_changes_neither_the_time_of_a_session_nor_its_title(workspace):
    take(workspace, record("a", "b", "c", updated_at=LATER, extra={"version": 2}, title="New"))

    take(workspace, record("a", "b", updated_at=NOW, extra={"version": 1}, title="Old"))

    session = Session.objects.get()
    assert (session.updated_at, session.extra, session.title) == (LATER, {"version": 2}, "New")


def test_a_deleted_file_removes_nothing(workspace):
    take(workspace, record("a"))

    problems = mark_missing(workspace, LATER)

    assert [problem.outcome for problem in problems] == ["noted"]
    assert Session.objects.get().missing_since == LATER
    assert contents() == ["a"]
    assert mark_missing(workspace, LATER) == []
    take(workspace, record("a"), now=LATER)
    assert Session.objects.get().missing_since is None


def test_one_file_may_hold_several_sessions(workspace):
    first, second = record("a", key="s:1"), record("b", key="s:2", forked_from="s:1")

    take(workspace, second, first, path="state.db")

    source = SourceFile.objects.get()
    assert source.session is None
    assert Session.objects.count() == 2
    counts = take(workspace, first, second, path="state.db")
    assert not +counts.added
    assert not +counts.updated
    take(workspace, second, path="state.db", now=LATER)
    assert Session.objects.get(key="s:1").missing_since == LATER
    assert Session.objects.get(key="s:2").missing_since is None


def test_a_record_is_taken_into_the_epoch_that_it_names_or_a_new_one_if_that_has_other_entries(workspace):
    take(workspace, record("a", epoch=0))
    take(workspace, record("other", epoch=0), path="b.jsonl")
    take(workspace, record("c", epoch=4), path="c.jsonl")

    assert list(Entry.objects.order_by("pk").values_list("content", "epoch")) == [("a", 0), ("other", 1), ("c", 4)]


def test_epochs_of_a_session_come_in_one_file(workspace):
    first, second = record("a", "b", epoch=0), record("c", epoch=1)

    take(workspace, first, second)
    counts = take(workspace, first, replace(second, entries=[said("c"), said("d")]))

    assert +counts.added == {"entries": 1}
    assert list(Entry.objects.order_by("pk").values_list("epoch", "position")) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    session = Session.objects.get()
    assert (session.epoch, session.next_position, session.missing_since) == (1, 2, None)


def test_a_compaction_folds_entries_that_were_imported_before(workspace):
    take(workspace, record("a", "b", "c"))
    summary = SummaryRecord("sum", "a and b", ["a", "b"])
    folded = [said(name, summary_source_id="sum") for name in ("a", "b")]

    take(workspace, record(*folded, "c", summaries=[summary]))

    assert Entry.objects.filter(summary__content="a and b").count() == 2
    assert Session.objects.get().active_entry_count == 1


def test_the_database_is_consistent_after_all_of_it(workspace):
    take(workspace, record("a", said("b", "old"), epoch=0), record(said("c", is_injected=True), epoch=1))
    take(workspace, record("a", said("b", "new"), epoch=0), record("d", epoch=1), now=LATER)
    take(workspace, record("a", "x", key="claude:f", forked_from="claude:a"), path="f.jsonl")

    assert check_memory().broken == []


def delete(key: str) -> None:
    session = Session.objects.get(key=key)
    delete_session(session, confirmation=key, reason="", by=By(PERSON, LATER))


def test_the_messages_of_a_deleted_session_do_not_return_in_its_fork(workspace):
    take(workspace, record("a", "b", "c"))
    take(workspace, record("a", "b", "x", key="claude:fork", forked_from="claude:a"), path="fork.jsonl")
    delete("claude:a")

    for more in (("y",), ("y", "z")):
        fork = record("a", "b", "x", *more, key="claude:fork", forked_from="claude:a")
        take(workspace, fork, path="fork.jsonl")

    assert contents("claude:fork") == ["x", "y", "z"]


def test_the_fork_of_a_fork_keeps_out_what_was_deleted_only(workspace):
    take(workspace, record("a", "b"))
    take(workspace, record("a", "b", "x", key="claude:fork", forked_from="claude:a"), path="fork.jsonl")
    fork = record("a", "b", "x", "y", key="claude:fork2", forked_from="claude:fork")
    take(workspace, fork, path="fork2.jsonl")
    delete("claude:fork")

    take(workspace, replace(fork, entries=[*fork.entries, said("z")]), path="fork2.jsonl")

    assert contents("claude:fork2") == ["y", "z"]


def test_a_copy_of_a_deleted_session_is_not_taken_but_a_new_fork_is(workspace):
    take(workspace, record("a", "b"))
    delete("claude:a")

    counts = take(workspace, record("a", "b", key="claude:copy"), path="copy.jsonl")
    take(workspace, record("a", "b", "x", key="claude:fork"), path="fork.jsonl")

    assert [problem.outcome for problem in counts.problems] == ["ignored"]
    assert list(Session.objects.values_list("key", flat=True)) == ["claude:fork"]


FORK = {"key": "claude:fork", "forked_from": "claude:a"}


@pytest.mark.parametrize("values", [FORK, {"key": "claude:fork"}])
@pytest.mark.parametrize("shared", [("a", "b"), ("a", "b", "c")])
def test_a_fork_first_seen_after_the_deletion_has_its_own_messages_only(workspace, shared, values):
    take(workspace, record("a", "b", "c"))
    delete("claude:a")

    first = take(workspace, record(*shared, "x", **values), path="fork.jsonl")
    take(workspace, record(*shared, "x", "y", **values), path="fork.jsonl")

    assert contents("claude:fork") == ["x", "y"]
    assert [problem.outcome for problem in first.problems] == ["ignored"]
    assert f"repeats {len(shared)} messages" in first.problems[0].what


@pytest.mark.parametrize(
    ("shared", "kept"), [(("a", "b", "c"), ["x", "y"]), (("a", "b"), ["a", "b", "x", "y"]), (("c", "a", "b"), None)]
)
def test_a_fork_has_its_own_messages_only_if_it_repeats_all_that_an_earlier_version_deleted(workspace, shared, kept):
    take(workspace, record("a", "b", "c"))
    delete("claude:a")
    DeletedSession.objects.update(digests=b"")  # as before the upgrade

    take(workspace, record(*shared, "x", **FORK), path="fork.jsonl")
    take(workspace, record(*shared, "x", "y", **FORK), path="fork.jsonl")

    assert contents("claude:fork") == (kept or [*shared, "x", "y"])


def test_a_fork_of_a_deleted_fork_has_its_own_messages_only(workspace):
    take(workspace, record("a", "b"))
    take(workspace, record("a", "b", "x", **FORK), path="fork.jsonl")
    delete("claude:fork")

    take(workspace, record("a", "b", "x", "y", key="claude:fork2", forked_from="claude:fork"), path="fork2.jsonl")

    assert contents("claude:a") == ["a", "b"]
    assert contents("claude:fork2") == ["y"]


def test_a_fork_with_nothing_of_its_own_is_taken_when_it_goes_on(workspace):
    take(workspace, record("a", "b", "c"))
    delete("claude:a")

    counts = take(workspace, record("a", "b", **FORK), path="fork.jsonl")
    assert not Session.objects.exists()
    take(workspace, record("a", "b", "x", **FORK), path="fork.jsonl")

    assert [problem.outcome for problem in counts.problems] == ["ignored"]
    assert contents("claude:fork") == ["x"]


def test_a_fork_has_all_messages_again_when_the_session_is_allowed(workspace):
    take(workspace, record("a", "b"))
    delete("claude:a")
    allow_again(DeletedSession.objects.get(), by=By(PERSON, LATER))

    take(workspace, record("a", "b", "x", **FORK), path="fork.jsonl")

    assert contents("claude:fork") == ["a", "b", "x"]

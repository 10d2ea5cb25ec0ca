from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction

from memoryhub.lib.layouts.records import SessionRecord, SummaryRecord
from sessions_app.models import DailyTotal, DeletedSession, Entry, Run, Session, SourceFile, Summary, Workspace
from sessions_app.services.audit import By, open_guard
from sessions_app.services.importing import import_conversation
from sessions_app.services.lifecycle import rename_session
from sessions_app.services.sources import path_hash
from tests.hub import PERSON
from tests.records import entry_record, session_record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def take(workspace, record, path="sessions/cli.jsonl", *, dry_run=False):
    tally, source = import_conversation(workspace=workspace, record=record, path=path, now=NOW, dry_run=dry_run)
    if source:
        source.path_hash = path_hash(path)
        source.kind, source.status = "session", "read"
        source.save()
    return tally


def contents(epoch: int = 0) -> list[str]:
    return list(Entry.objects.filter(epoch=epoch).order_by("position").values_list("content", flat=True))


def test_a_session_is_taken_once(workspace):
    record = session_record("a", "b", "c", pointer=1)

    first, second = take(workspace, record), take(workspace, record)

    assert +first.added == {"sessions": 1, "entries": 3}
    assert not +second.added
    assert not +second.updated
    assert contents() == ["a", "b", "c"]


def test_a_dry_run_counts_and_changes_nothing(workspace):
    tally = take(workspace, session_record("a"), dry_run=True)

    assert +tally.added == {"sessions": 1, "entries": 1}
    assert not Session.objects.exists()


def test_a_grown_file_adds_what_is_new_and_moves_the_pointer(workspace):
    take(workspace, session_record("a", "b", pointer=1))

    tally = take(workspace, session_record("a", "b", "c", "d", pointer=3))

    assert +tally.added == {"entries": 2}
    assert list(Run.objects.order_by("id").values_list("from_position", "to_position", "origin")) == [
        (0, 1, "agent"),
        (1, 3, "agent"),
    ]
    assert Session.objects.get().active_entry_count == 1


def test_a_pruned_file_keeps_what_was_pruned_and_moves_the_pointer_past_it(workspace):
    whole = [f"step {i}" for i in range(16)]
    take(workspace, session_record(*whole, timed=False))

    take(workspace, session_record(*whole[10:], "step 16", timed=False, summary_text="steps 0 to 9 were done"))

    session = Session.objects.get()
    assert contents() == [*whole, "step 16"]
    assert (session.last_consolidated, session.summary_text) == (10, "steps 0 to 9 were done")
    assert session.active_entry_count == 7


def test_a_restarted_file_opens_an_epoch_and_keeps_the_old_one(workspace):
    take(workspace, session_record("a", "b", pointer=2))

    tally = take(workspace, session_record("new talk", "hello again"))
    again = take(workspace, session_record("new talk", "hello again"))

    session = Session.objects.get()
    assert contents(0) == ["a", "b"]
    assert contents(1) == ["new talk", "hello again"]
    assert (session.epoch, session.last_consolidated, session.entry_count, session.active_entry_count) == (1, 0, 4, 2)
    assert [problem.outcome for problem in tally.problems] == ["noted"]
    assert not +again.added


def test_a_shorter_file_removes_nothing_and_is_flagged(workspace):
    take(workspace, session_record("a", "b", "c", pointer=2))

    tally = take(workspace, session_record("a"))

    assert contents() == ["a", "b", "c"]
    assert [problem.outcome for problem in tally.problems] == ["held"]
    assert Session.objects.get().last_consolidated == 2


def test_an_older_copy_of_a_file_changes_nothing_however_often_it_is_read(workspace):
    """Such as a copy beside it, or a restored backup."""
    values = {"title": "New", "summary_text": "Three steps.", "extra": {"total": 3}}
    new = session_record("a", "b", "c", updated_at=NOW.replace(day=3), **values)
    take(workspace, new)

    values = {"title": "Old", "summary_text": "Two steps.", "extra": {"total": 2}}
    older = session_record("a", "b", updated_at=NOW.replace(day=2), **values)
    counts = [take(workspace, older, "sessions/copy.jsonl"), take(workspace, new), take(workspace, older)]

    assert not any(+each.added or +each.updated for each in counts)
    session = Session.objects.get()
    assert (session.updated_at, session.extra) == (NOW.replace(day=3), {"total": 3})
    assert (session.title, session.summary_text) == ("New", "Three steps.")
    values = {"title": "Newer", "summary_text": "Four steps."}
    newer = session_record("a", "b", "c", "d", updated_at=NOW.replace(day=4), **values)
    assert not take(workspace, newer).problems


def test_equal_messages_are_two_entries(workspace):
    record = session_record("same", "same", timed=False)
    record.entries[1] = record.entries[0]

    take(workspace, record)
    take(workspace, record)

    assert contents() == ["same", "same"]


def test_two_files_of_one_key_feed_two_epochs_and_never_mix(workspace):
    old = session_record("old", "file", is_visible_to_agent=False, note="left behind")
    new = session_record("new", "file here")

    for _ in range(2):
        take(workspace, old, "old.jsonl")
        take(workspace, new, "new.jsonl")

    assert contents(0) == ["old", "file"]
    assert contents(1) == ["new", "file here"]
    assert Session.objects.get().is_visible_to_agent


def test_keys_that_differ_only_in_case_are_two_sessions(workspace):
    take(workspace, session_record("a", key="cli:A"), "1")
    take(workspace, session_record("b", key="cli:a"), "2")

    assert Session.objects.count() == 2


@pytest.mark.parametrize("key", ["", "k" * 513, " ", "a\nb", "a\u202eb"])
def test_an_impossible_key_is_reported(workspace, key):
    tally = take(workspace, session_record("a", key=key))

    assert [problem.outcome for problem in tally.problems] == ["rejected"]
    assert not Session.objects.exists()


def test_folded_entries_name_their_summary(workspace):
    record = session_record("a", "b", "c")
    folded = entry_record("x", minute=0, summary_source_id="s1", source_id="e1")
    record.entries[0] = folded
    record.summaries.append(SummaryRecord("s1", "x was said", ["e1"], token_count=2, original_token_count=9))

    take(workspace, record)
    take(workspace, record)

    summary = Summary.objects.get()
    assert (summary.entry_count, summary.first_position, summary.original_token_count) == (1, 0, 9)
    assert Entry.objects.get(summary=summary).content == "x"
    assert Session.objects.get().active_entry_count == 2


def test_entries_folded_since_the_last_import_are_folded_here_too(workspace):
    def record(*folded: str) -> SessionRecord:
        entries = [
            entry_record(word, minute=0, source_id=word, summary_source_id="s1" if word in folded else "")
            for word in ("a", "b", "c")
        ]
        summaries = [SummaryRecord("s1", "said", list(folded), token_count=1)] if folded else []
        return SessionRecord("s", entries, summaries)

    counts = []
    for folded in ((), ("a",), ("a", "b"), ("a", "b")):
        tally = take(workspace, record(*folded))
        session = Session.objects.get()
        counts.append((session.active_entry_count, session.summary_tokens, tally.updated["sessions"]))

    assert counts == [(3, 0, 0), (2, 1, 1), (1, 1, 1), (1, 1, 0)]
    assert Summary.objects.get().entry_count == 2


def test_a_file_rewritten_in_the_middle_opens_an_epoch_and_says_so(workspace):
    take(workspace, session_record("a", "b", "c"))

    tally = take(workspace, session_record("a", "B", "c"))

    assert contents(0) == ["a", "b", "c"]
    assert contents(1) == ["a", "B", "c"]
    assert "rewritten" in tally.problems[0].what


def test_daily_totals_add_up(workspace):
    take(workspace, session_record("four", "eight888", pointer=1))

    session = Session.objects.get()
    row = DailyTotal.objects.get(session=session)
    assert (row.entry_count, row.token_count, row.active_token_count) == (2, 3, 2)
    assert (session.total_tokens, session.active_tokens) == (3, 2)


def test_entries_can_be_neither_changed_nor_deleted(workspace):
    take(workspace, session_record("a"))

    for statement in (
        "UPDATE sessions_app_entry SET content = 'x'",
        "UPDATE sessions_app_entry SET position = 7",
        "DELETE FROM sessions_app_entry",
    ):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert contents() == ["a"]


def test_an_open_guard_lets_an_operator_delete(workspace):
    take(workspace, session_record("a"))

    with open_guard("asked to"):
        Entry.objects.all().delete()

    assert contents() == []


def test_a_title_set_in_the_hub_stays_until_the_file_s_title_changes(workspace):
    take(workspace, session_record("a", title="First"))
    rename_session(Session.objects.get(), "Mine", by=By(PERSON, NOW))

    kept = take(workspace, session_record("a", "b", title="First"))
    assert (Session.objects.get().title, kept.problems) == ("Mine", [])

    changed = take(workspace, session_record("a", "b", title="Second"))
    assert Session.objects.get().title == "Second"
    assert [problem.what for problem in changed.problems] == ["its title changed, and in the hub too: 'Mine'"]

    assert not take(workspace, session_record("a", "b", title="Second")).problems


def test_a_summary_of_the_hub_is_not_wiped_by_the_file(workspace):
    take(workspace, session_record("a", summary_text="Old."))
    Session.objects.update(summary_text="The hub's.")

    for text in ("Old.", ""):
        assert not take(workspace, session_record("a", "b", summary_text=text)).problems
        assert Session.objects.get().summary_text == "The hub's."


def test_a_summary_that_the_hub_did_not_change_follows_the_file(workspace):
    take(workspace, session_record("a", summary_text="Old."))

    take(workspace, session_record("a", summary_text="New."))
    assert Session.objects.get().summary_text == "New."

    take(workspace, session_record("a", summary_text=""))
    assert Session.objects.get().summary_text == ""


def test_a_title_set_in_the_hub_stays_when_the_session_s_file_is_uploaded(workspace):
    take(workspace, session_record("a", title="First"))
    SourceFile.objects.all().delete()
    rename_session(Session.objects.get(), "Mine", by=By(PERSON, NOW))

    take(workspace, session_record("a", "b", title="First"), path="")

    assert Session.objects.get().title == "Mine"


def test_the_longest_key_is_taken(workspace):
    assert +take(workspace, session_record("a", key="k" * 512)).added == {"sessions": 1, "entries": 1}


def test_sessions_of_another_workspace_with_the_same_key_do_not_matter(workspace):
    other = Workspace.objects.create(slug="other", name="Other")
    DeletedSession.objects.create(workspace=other, key="cli:gone", entry_count=0, summary_count=0, total_tokens=0)
    take(other, session_record("x", "y", key="cli:both"))

    for key in ("cli:gone", "cli:both"):
        assert +take(workspace, session_record("a", key=key), key).added == {"sessions": 1, "entries": 1}
    assert Session.objects.get(workspace=other).entry_count == 2


def test_a_file_of_an_earlier_epoch_grows_without_changing_the_session(workspace):
    take(workspace, session_record("a", "b", title="Old"), "old.jsonl")
    take(workspace, session_record("x", "y", title="New"), "new.jsonl")

    take(workspace, session_record("a", "b", "c", title="Older", pointer=3), "old.jsonl")

    session = Session.objects.get()
    assert (contents(0), contents(1)) == (["a", "b", "c"], ["x", "y"])
    assert (session.title, session.epoch, session.next_position, session.last_consolidated) == ("New", 1, 2, 0)
    assert not Run.objects.exists()


def test_a_hidden_file_does_not_take_over_a_visible_session(workspace):
    take(workspace, session_record("a", "b", title="New"), "new.jsonl")
    take(workspace, session_record("x", title="Old", is_visible_to_agent=False), "old.jsonl")

    session = Session.objects.get()
    assert (session.title, session.epoch, session.next_position, session.is_visible_to_agent) == ("New", 0, 2, True)
    assert contents(1) == ["x"]


def test_a_file_that_names_its_epoch_is_taken_into_it(workspace):
    take(workspace, session_record("a", "b", epoch=1, pointer=2))
    take(workspace, session_record("x", epoch=0), "earlier")
    session = Session.objects.get()
    assert (session.epoch, session.next_position, session.last_consolidated) == (1, 2, 2)

    take(workspace, session_record("c", epoch=2))
    take(workspace, session_record("other", "words", epoch=1), "conflicting")

    assert [contents(epoch) for epoch in range(4)] == [["x"], ["a", "b"], ["c"], ["other", "words"]]


def test_a_file_that_now_holds_another_session_continues_that_one(workspace):
    take(workspace, session_record("a", key="cli:a"), "1")
    take(workspace, session_record("b", key="cli:a"), "1")  # epoch 1
    take(workspace, session_record("x", "y", key="cli:b"), "2")

    take(workspace, session_record("x", "y", "z", key="cli:b"), "1")

    session = Session.objects.get(key="cli:b")
    assert list(Entry.objects.filter(session=session, epoch=0).values_list("content", flat=True)) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("before", "after", "pointer"),
    [
        ({"pointer": 3}, session_record("a", "b", "c", "d", pointer=1), 3),
        ({"pointer": 0}, session_record("a", "b", pointer=2), 0),
    ],
)
def test_the_pointer_moves_neither_back_nor_with_a_shorter_file(workspace, before, after, pointer):
    take(workspace, session_record("a", "b", "c", **before))

    take(workspace, after)

    assert Session.objects.get().last_consolidated == pointer


def test_summaries_with_the_same_id_belong_to_their_own_epochs(workspace):
    def record(words: str, folded: str = "") -> SessionRecord:
        entries = [
            entry_record(word, minute=0, source_id=word, summary_source_id="s1" if word == folded else "")
            for word in words
        ]
        return SessionRecord("s", entries, [SummaryRecord("s1", "said", [folded], token_count=1)] if folded else [])

    for words, folded in (("abc", ""), ("abc", "b"), ("xyz", ""), ("xyz", "x")):
        take(workspace, record(words, folded))

    summaries = {summary.epoch: summary for summary in Summary.objects.all()}
    told = {epoch: list(summary.entries.values_list("content", flat=True)) for epoch, summary in summaries.items()}
    assert told == {0: ["b"], 1: ["x"]}


def test_a_deleted_session_is_not_taken(workspace):
    DeletedSession.objects.create(workspace=workspace, key="cli:test", entry_count=0, summary_count=0, total_tokens=0)

    tally = take(workspace, session_record("a"))

    assert [problem.outcome for problem in tally.problems] == ["ignored"]
    assert not Session.objects.exists()


def test_a_hidden_file_takes_over_a_hidden_session(workspace):
    take(workspace, session_record("a", is_visible_to_agent=False))
    take(workspace, session_record("x", is_visible_to_agent=False))

    assert Session.objects.get().epoch == 1


def test_a_file_that_continues_the_epoch_it_names_leaves_the_pointer(workspace):
    take(workspace, session_record("a", "b", epoch=1, pointer=2))
    take(workspace, session_record("a", "b", "c", epoch=1))

    assert Session.objects.get().last_consolidated == 2
    assert Run.objects.count() == 1


def test_a_restarted_file_drops_the_summary_of_the_hub(workspace):
    take(workspace, session_record("a", summary_text="Old."))
    Session.objects.update(summary_text="The hub's.")

    take(workspace, session_record("x"))

    assert Session.objects.get().summary_text == ""

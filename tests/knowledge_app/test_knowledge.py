import json
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows import knowledge
from knowledge_app.services.rows.exporting import cache_file, key_values_file, knowledge_file, observations_file
from knowledge_app.services.rows.knowledge import (
    KnowledgeExists,
    add_knowledge,
    context_export,
    merge_groups,
    plan_merges,
    recategorise,
    save_entry,
    search_knowledge,
)
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.lib.database import db_retry
from memoryhub.lib.layouts.grip import content_id
from memoryhub.sync.importing import import_workspace
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, raises_code
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


def add(workspace, content, category="learned_fact", actor=PERSON, now=NOW, **values):
    return add_knowledge(workspace, content, category=category, by=By(actor, now), **values)


def test_an_added_entry_has_grips_id_and_an_author(workspace):
    added = add(workspace, "  likes tea ", tags=["a", "a", " b "], source="cli")

    entry = added.entry
    assert added.is_new
    assert entry.content_id == entry.identity == content_id("learned_fact", "likes tea")
    assert (entry.content, entry.tags, entry.source, entry.access_count) == ("likes tea", ["a", "b"], "cli", 0)
    assert entry.history.get().history_change_reason == "olga: added"
    assert AuditRecord.objects.filter(action="knowledge.added").exists()


def test_adding_again_counts_an_access(workspace):
    add(workspace, "likes tea")

    again = add(workspace, "Likes TEA", now=NOW + timedelta(days=1))

    assert not again.is_new
    assert (again.entry.access_count, again.entry.accessed_at) == (1, NOW + timedelta(days=1))


def test_an_unknown_category_becomes_learned_fact_and_says_so(workspace):
    added = add(workspace, "likes tea", category="hunch")

    assert added.was_unknown
    assert added.entry.category == "learned_fact"


@pytest.mark.parametrize("content", ["", "  ", "x" * 20_001])
def test_what_says_nothing_or_too_much_is_refused(workspace, content):
    with raises_code("bad_knowledge"):
        add(workspace, content)


def test_what_a_person_withdrew_an_agent_does_not_bring_back(workspace):
    entry = add(workspace, "likes tea").entry
    edit_rows(workspace, "knowledge", "withdraw", [entry.pk], values={"reason": "wrong"}, by=BY)

    assert add(workspace, "likes tea", actor=AGENT).entry.withdrawn_at == NOW
    assert add(workspace, "likes tea").entry.withdrawn_at is None


@pytest.mark.parametrize("moves", [["error_pattern"], ["error_pattern", "user_preference"]])
def test_an_agent_that_adds_what_a_person_moved_adds_nothing(workspace, moves):
    entry = add(workspace, "likes tea", actor=AGENT).entry
    for category in moves:
        recategorise(workspace, [entry.pk], category, by=BY)

    added = add(workspace, "likes tea", actor=AGENT)

    assert (added.entry, added.is_new, added.entry.category) == (entry, False, moves[-1])
    assert add(workspace, "likes tea").is_new


def test_an_agent_may_say_the_same_in_another_category(workspace):
    entry = add(workspace, "likes tea", category="error_pattern").entry
    recategorise(workspace, [entry.pk], "user_preference", by=BY)

    assert add(workspace, "likes tea", actor=AGENT).is_new


def test_an_edit_in_place_keeps_the_earlier_state(workspace):
    entry = add(workspace, "likes tea").entry

    save_entry(entry, {"content": "likes green tea", "tags": ["x"]}, by=BY)

    entry.refresh_from_db()
    assert (entry.content, entry.identity) == ("likes green tea", content_id("learned_fact", "likes green tea"))
    assert list(entry.history.order_by("history_id").values_list("content", flat=True)) == [
        "likes tea",
        "likes green tea",
    ]


def test_an_edit_that_would_say_what_another_entry_says_is_refused(workspace):
    add(workspace, "likes tea")
    other = add(workspace, "likes cats").entry

    with pytest.raises(KnowledgeExists):
        save_entry(other, {"content": "Likes tea"}, by=BY)


def test_entries_that_the_category_has_already_stay_behind(workspace):
    here = add(workspace, "likes tea").entry
    add(workspace, "likes tea", category="user_preference")
    also = add(workspace, "likes cats").entry

    run, behind = recategorise(workspace, [here.pk, also.pk], "user_preference", by=BY)

    assert (run.proposal["changed"], behind) == (1, 1)
    with raises_code("nothing_to_move"):
        recategorise(workspace, [here.pk], "user_preference", by=BY)
    with raises_code("nothing_chosen"):
        recategorise(workspace, [], "user_preference", by=BY)
    with raises_code("bad_knowledge"):
        recategorise(workspace, [here.pk], "hunch", by=BY)


def test_search_finds_in_content_tags_and_source_the_most_used_first(workspace):
    add(workspace, "likes tea")
    add(workspace, "drinks coffee", tags=["Tea-related"])
    add(workspace, "reads", source="teapot")
    add(workspace, "drinks coffee")

    assert [entry.content for entry in search_knowledge(workspace, "tea")] == ["drinks coffee", "reads", "likes tea"]
    assert [entry.content for entry in search_knowledge(workspace, max_results=1)] == ["drinks coffee"]
    assert search_knowledge(workspace, "tea", category="error_pattern") == []


def test_the_prompt_has_grips_order_and_stops_before_its_budget(workspace):
    add(workspace, "b" * 20)
    add(workspace, "often")
    add(workspace, "often")
    add(workspace, "dark", category="user_preference")
    first, second = "[user_preference] dark", "[learned_fact] often"

    assert context_export(workspace).split("\n")[:2] == [first, second]
    assert context_export(workspace, max_chars=len(first) + 1 + len(second)) == f"{first}\n{second}"
    assert context_export(workspace, max_chars=len(first) + len(second)) == first
    assert context_export(workspace, max_tokens=8) == first
    assert context_export(workspace, max_chars=0) == ""


def test_an_entry_that_does_not_fit_ends_the_prompt_even_where_a_shorter_one_would_fit(workspace):
    add(workspace, "b" * 40, category="user_preference")
    add(workspace, "a", category="user_preference")
    add(workspace, "c")

    for most in range(len("[user_preference] a"), len("[user_preference] a") + 40):
        assert context_export(workspace, max_chars=most) == "[user_preference] a"


def test_duplicates_are_shown_before_they_are_merged_and_come_apart_again(workspace):
    add(workspace, "The API limit is 100 requests per minute")
    add(workspace, "the api limit: 100 requests per minute")
    add(workspace, "the api limit: 100 requests per minute")
    add(workspace, "The API limit is 200 requests per minute")

    (group,) = plan_merges(workspace)
    assert group.keep.access_count == 1
    run = merge_groups(workspace, [[group.keep.pk, *(other.pk for other in group.others)]], by=BY)
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 2
    undo_edit(run, by=BY)
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 3


def test_a_merge_keeps_what_a_person_decided_about_however_often_another_is_used(workspace):
    verified, used = (
        add(workspace, text, actor=AGENT).entry
        for text in ("The API limit is 100 requests per minute", "the api limit: 100 requests per minute")
    )
    edit_rows(workspace, "knowledge", "verify", [verified.pk], by=BY)
    KnowledgeEntry.objects.filter(pk=used.pk).update(access_count=9)

    (group,) = plan_merges(workspace)

    assert (group.keep, group.others) == (verified, [used])


@pytest.mark.django_db(transaction=True)
def test_an_entry_is_added_when_the_database_is_no_longer_locked(workspace, monkeypatch):
    answers = iter([OperationalError("database is locked"), None])
    monkeypatch.setattr(knowledge, "lock_workspace", Mock(side_effect=answers))
    monkeypatch.setattr(db_retry, "FIRST_PAUSE", 0)

    assert add(workspace, "likes tea").is_new


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared samples are not here")
@pytest.mark.parametrize(
    ("folder", "file", "write"),
    [
        ("grip", "workspace/memory/knowledge.json", knowledge_file),
        ("grip", "workspace/state/semantic_cache.json", cache_file),
        ("grid", "kv.json", key_values_file),
        ("grid", "observations-export.json", observations_file),
    ],
)
def test_an_agents_file_comes_out_byte_for_byte_as_it_went_in(folder, file, write):
    path = FIXTURES / folder
    result = import_workspace(path, by=By(PERSON, NOW))

    wanted = (path / file).read_text()
    assert json.loads(write(result.workspace)) == json.loads(wanted)
    assert write(result.workspace).strip() == wanted.strip()


def test_a_corrected_entry_leaves_with_the_id_of_what_it_says_now(workspace):
    entry = add(workspace, "likes tea").entry
    recategorise(workspace, [entry.pk], "user_preference", by=BY)
    gone = add(workspace, "wrong").entry
    edit_rows(workspace, "knowledge", "withdraw", [gone.pk], by=BY)

    (written,) = json.loads(knowledge_file(workspace))["entries"]
    assert written["id"] == content_id("user_preference", "likes tea")
    assert written["category"] == "user_preference"

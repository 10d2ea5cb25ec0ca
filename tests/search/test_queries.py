"""Any text is a valid query, and no query finds rows of another workspace."""

from __future__ import annotations

import io
import json
import sys

import pytest
from django.db import connection
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from knowledge_app.models import CachedResponse, HeldRow, KeyValue, Term, TermRelation
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.lib.search.fields import ALIASES, FIELDS
from memoryhub.search import KINDS, Scope, filters
from memoryhub.search.filters import filtered_kinds
from memoryhub.search.listing import count_matches, facets, newest
from memoryhub.search.results import Question, answer, explanation, text_of
from sessions_app.models import Summary, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, compress, open_at
from tests.searches import asked, know, latest, log, observe, say, scope_of, search, texts
from tests.shared import badinput_cases

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
AWKWARD = [
    *[case["value"] for case in badinput_cases("search_query")],
    'NEAR("a" b)', "a NEAR/3 b", "content : a", "{content} : a", "^start", "a* b*", "zw1 OR zs1", "a:*A", "kind::",
    "!a & (b | c)", "<->", "'; DROP TABLE x; --", "\\", "%s %(x)s {0} {}", "$1", "a''b", 'say ""hello""', "-",
    "--", "- -", "\t",
]  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
def test_an_entry_that_contains_exactly_this_text_is_found(workspace, command, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{text}\n"))
    say(workspace, "nothing to see", f"I typed {text} today", "or not, a b c and so on")
    has_words = any(sign.isalnum() for sign in text)

    found = texts(text, workspace, kinds=["entry"])
    told = command("search", "--stdin", "--workspace", "atlas", "--in", "entry")["results"]

    assert (f"I typed {text} today" in found) == has_words
    if has_words:
        assert [one["text"] for one in told] == found
        assert f"I typed {text} today" in latest(text, workspace)


@pytest.mark.parametrize("case", badinput_cases("search_query"), ids=lambda case: case["id"])
def test_the_page_finds_an_entry_that_contains_exactly_this_text(workspace, admin_client, case):
    [entry] = say(workspace, f"I typed {case['value']} today")

    response = admin_client.get(reverse("search", args=[workspace.slug]), {"q": case["value"]})

    assert response.status_code == 200
    assert f"entry-{entry.pk}" in response.content.decode()


SIGNS = st.characters(codec=None) | st.sampled_from("\0\ud800\udfff\u200b\u202e\ufeff\U0001f600東京한กשع")
PARTS = st.sampled_from(
    [
        "OR", "AND", "NOT", "NEAR", "-", '"', "“", "”", "«", "(", ")", "*", ":", ",", "^", "'", "\\", "%", "tea",
        "東京", "src/app/main.py", "v1.2", "don't", "zw1", "#w1", "scope:", "\0", "\ud800", "a" * 300,
        *(f"{name}:" for name in ALIASES), *(value for field in FIELDS.values() for value in field.values),
        "2026-01", "7d", "yesterday", "9999-12-31", "-has:withdrawn", "kind:message", "-kind:message", "author:user",
        "before:0001-01-01", "on:today", "session:cli:main", "🙂", "é", "İ", "ß", "ﬁ", "्", "٣",
    ]
)  # fmt: skip
STRINGS = st.one_of(
    st.text(SIGNS, max_size=40),
    st.lists(PARTS, max_size=8).map(" ".join),
    st.lists(st.one_of(PARTS, st.text(SIGNS, max_size=6)), max_size=8).map("".join),
    st.text(st.sampled_from("ab\"' -:()*,.東京กน"), max_size=60),
)
EXAMPLES = 120 if connection.vendor == "sqlite" else 40  # each with sixteen strings
BOUNDED = settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True
)


class AnyText(TestCase):
    def setUp(self) -> None:
        self.workspace = Workspace.objects.create(slug="atlas", name="Atlas")
        say(self.workspace, "tea in 東京", "see src/app/main.py", key="cli:main")
        know(self.workspace, "don't drink tea")

    @pytest.mark.slow
    @pytest.mark.postgres
    @BOUNDED
    @given(strings=st.lists(STRINGS, min_size=16, max_size=16), prefix=st.booleans(), match_all=st.booleans())
    def test_is_a_query_that_is_answered(self, strings, prefix, match_all):
        scope = scope_of(self.workspace)
        search(strings[0], self.workspace, kinds=["entry", "document"], prefix=prefix, match_all=match_all)
        query = asked(strings[0], prefix=prefix, match_all=match_all)
        rows, _ = newest(scope, query, kinds=["entry", "memory"], limit=5)
        assert count_matches(scope, query, kinds=["entry", "memory"]).count >= len(rows)
        facets(scope, query, kinds=["entry"])
        for text in strings[1:]:
            query = asked(text, prefix=prefix, match_all=match_all)
            for fitting in filtered_kinds(scope, query, ["entry"]):
                assert len(fitting.matches(window=3)[:4]) <= 3


@pytest.fixture
def two() -> tuple[Workspace, Workspace]:
    """Two workspaces with the same words under the same names, and one unique word each."""
    atlas, borea = (Workspace.objects.create(slug=slug, name=slug) for slug in ("atlas", "borea"))
    for workspace, secret in ((atlas, "amber"), (borea, "basalt")):
        fill(workspace, f"orchid {secret}")
    return atlas, borea


def fill(workspace: Workspace, text: str) -> None:
    """Create a row of every kind with a text."""
    said = say(workspace, "which one", text, "the other one", key="cli:main", name="ann")
    Summary.objects.create(
        workspace=workspace, session=said[0].session, content=text, method="llm", token_count=1,
        original_token_count=2, entry_count=1, first_position=0, last_position=0, ends_at=NOW,
    )  # fmt: skip
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, f"Once {text}.\n\n- gone {text}\n", base=None, reason="r", by=BY)
    revise_document(document, f"Now {text}.\n\n- [x] here it is {text}\n", base=first, reason="r", by=BY)
    log(workspace, text)
    know(workspace, text)
    observe(workspace, text)
    KeyValue.objects.create(workspace=workspace, key="key", value=text)
    CachedResponse.objects.create(workspace=workspace, key="key", response=text, created_at=NOW)
    open_at(workspace, f"cli:{text}")


@pytest.mark.slow
@pytest.mark.postgres
def test_each_workspace_finds_its_own_rows_alone(two):
    for workspace, own, other in ((two[0], "amber", "basalt"), (two[1], "basalt", "amber")):
        found = search("orchid", workspace).hits
        assert {hit.kind for hit in found} == set(KINDS)
        assert all(own in text_of(hit.kind, hit.row) for hit in found if hit.scored.own.counts)
        for query in (
            other,
            f"orchid {other}",
            f"{other} has:withdrawn",
            "orchid has:withdrawn",
            f'"orchid {other}"',
        ):
            for text in [*texts(query, workspace), *latest(query, workspace)]:
                assert other not in text, query
        assert search(other, workspace).hits == []
        assert latest(other, workspace) == []


def test_counts_facets_and_explanations_cover_only_the_workspace(two):
    atlas, borea = two
    before = facts(atlas)

    for number in range(20):
        fill_more(borea, number)

    assert facts(atlas) == before


def fill_more(workspace: Workspace, number: int) -> None:
    say(workspace, f"orchid and amber {number}", name="bob")
    know(workspace, f"orchid and amber {number}", category="error_pattern")
    observe(workspace, f"orchid and amber {number}")


def facts(workspace: Workspace) -> str:
    """Return everything a search returns: results with scores, explanations, counts and facets."""
    found = search("orchid amber", workspace)
    told = [explanation(hit, found) | {"score": hit.score, "pk": hit.pk} for hit in found.hits]
    tally = count_matches(scope_of(workspace), asked("orchid"))
    counted = {
        name: [(one.value, one.count) for one in values]
        for name, values in facets(scope_of(workspace), asked("orchid")).items()
    }
    document = answer(scope_of(workspace), Question("orchid amber"), now=NOW, explain=True)
    return json.dumps([told, tally.by_kind, counted, document], sort_keys=True, default=str)


@pytest.mark.parametrize("query", ["request has:summary", "request -has:summary"])
def test_messages_are_filtered_by_whether_a_summary_stands_for_them(workspace, session, query):
    compress(session)

    found = search(f"{query} kind:message", workspace).hits

    assert {hit.row.summary_id is not None for hit in found} == {query == "request has:summary"}


def test_an_empty_workspace_counts_no_other_workspace_s_documents(two):
    empty = Workspace.objects.create(slug="empty", name="empty")
    know(empty, "orchid")

    assert [(hit.kind, hit.row.workspace_id) for hit in search("orchid", empty).hits] == [("knowledge", empty.pk)]
    assert search("orchid has:withdrawn", empty).hits == []
    assert count_matches(scope_of(empty), asked("orchid")).by_kind == {"knowledge": 1}


def test_query_expansion_uses_only_the_workspace_s_graph(two):
    atlas, borea = two
    term, near = (Term.objects.create(workspace=borea, text=text) for text in ("flower", "orchid"))
    TermRelation.objects.create(term=term, related=near, cosine=0.9)

    assert search("flower", atlas).hits == []
    assert search("flower", borea).added == {"flower": [("orchid", 0.45)]}
    assert search("flower", atlas, borea).added == {}


def test_searching_several_or_all_workspaces_finds_both(two):
    for workspaces in (two, ()):
        found = texts("orchid", *workspaces, kinds=["entry"])
        assert {"orchid amber", "orchid basalt"} <= set(found)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("word", ["zw{}", "#w{}", "zs{}", "zkmessage", "#kmessage", "d{}"])
def test_a_query_cannot_change_its_scope(two, word):
    atlas, borea = two
    typed = word.format(borea.pk)
    [holds_it] = say(atlas, f"we write {typed} here")

    for way in ('"{}"', "{}", "scope:{}", "scope : {}", "-x {}", "{} OR tea", "{}*", "{{scope}} : {}"):
        query = way.format(typed)
        assert {hit.row.pk for hit in search(query, atlas, kinds=["entry"]).hits} == {holds_it.pk}, query
        assert set(latest(query, atlas, kinds=["entry"])) <= {f"we write {typed} here"}, query
        assert [text for text in texts(query, borea, kinds=["entry"]) if "we write" in text] == [], query


@pytest.mark.parametrize("query", ["session:cli:main", "session:cli:main orchid", "author:ann orchid", "channel:cli"])
def test_fields_with_the_same_values_stay_in_the_workspace(two, query):
    for workspace in two:
        rows, _ = newest(scope_of(workspace), asked(query), limit=99)
        assert {one.row.workspace_id for one in rows} == {workspace.pk}
        assert {hit.row.workspace_id for hit in search(query, workspace).hits} <= {workspace.pk}


def test_the_command_searches_only_its_workspace(two, command):
    for workspace, other in ((two[0], "basalt"), (two[1], "amber")):
        told = command("search", "orchid", "--workspace", workspace.slug, "--limit", "200", "--explain")
        assert {one["workspace"] for one in told["results"]} == {workspace.slug}
        assert other not in json.dumps(told)


def test_every_kind_is_counted_in_its_workspace_alone(two):
    atlas, borea = two
    fill_more(borea, 1)

    for fitting in filtered_kinds(scope_of(atlas), asked("orchid")):
        workspaces = set(fitting.indexed.values_list(fitting.kind.workspace, flat=True))
        assert workspaces == set(fitting.rows.values_list(fitting.kind.workspace, flat=True)) == {atlas.pk}
        assert fitting.count_rows() == fitting.indexed.count()


def test_sessions_of_other_workspaces_do_not_crowd_out_those_of_the_own(two, monkeypatch):
    monkeypatch.setattr(filters, "MAX_SESSIONS", 1)

    for workspace in two:
        assert len(latest("session:cli:main", workspace, kinds=["entry"])) == 3


@pytest.mark.parametrize(
    ("pks", "own", "home"),
    [(None, None, None), ((), None, None), ((4,), None, 4), ((4, 5), None, None), ((4, 5), 4, 4)],
)
def test_the_home_of_a_scope_is_the_agents_own_workspace_or_the_only_one(pks, own, home):
    assert Scope(pks, own=own).home == home


def test_agents_find_no_held_rows(workspace):
    held, _ = know(workspace, "orchid held"), know(workspace, "orchid free")
    HeldRow.objects.create(workspace=workspace, knowledge=held, author_kind="agent", author_name="a")

    for for_agent, count in ((True, 1), (False, 2)):
        [fitting] = filtered_kinds(Scope((workspace.pk,), for_agent), asked("orchid"), ["knowledge"])
        assert fitting.matches().count() == count


def test_withdrawn_rows_are_found_only_if_asked_for(workspace):
    know(workspace, "orchid", tags=["x"], withdrawn_at=NOW)

    for query, found in (
        ("orchid", 0),
        ("orchid has:time", 0),
        ("orchid -has:summary", 0),
        ("orchid has:withdrawn", 1),
    ):
        assert len(latest(query, workspace, kinds=["knowledge"])) == found, query


@pytest.mark.parametrize(
    ("query", "tags"),
    [('tag:“5" pipe”', ['5" pipe']), (r"tag:a\b", [r"a\b"]), ('tag:“"”', ['5" pipe']), ("tag:pipe", ['5" pipe'])],
)
def test_a_tag_may_contain_signs_that_json_escapes(workspace, query, tags):
    know(workspace, "first", tags=['5" pipe'])
    know(workspace, "second", tags=[r"a\b", "other"])

    rows, _ = newest(scope_of(workspace), asked(query), kinds=["knowledge"], limit=9)
    assert [one.row.tags[0] for one in rows] == tags


def test_a_day_begins_and_ends_at_midnight(workspace):
    for day in (1, 2):
        observe(workspace, f"orchid {day}", occurred_at=NOW.replace(day=day, hour=0))

    assert latest("orchid on:2026-04-01", workspace) == ["orchid 1"]
    assert latest("orchid before:2026-04-02", workspace) == ["orchid 1"]

"""Search results and their order, equal on both databases: words, phrases, fields, all kinds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from knowledge_app.models import KeyValue, Term, TermRelation
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.search import KINDS, Scope, find
from memoryhub.search.listing import count_matches, facets, newest
from memoryhub.search.ranking import RankOptions
from sessions_app.models import Entry, Summary
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at
from tests.searches import asked, know, latest, log, observe, say, scope_of, search, texts

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
DRINKS = ["tea with milk", "coffee with milk", "coffee and cake", "nothing at all"]
CASES = [
    # stems
    (["indexing the tables", "a cold night"], "indexes", ["indexing the tables"]),
    (["she studies maps", "a cold night"], "study", ["she studies maps"]),
    (["universities here", "a university there", "universal truth"], '"universities here"', ["universities here"]),
    # accents and case
    (["un café noir", "tea"], "CAFE", ["un café noir"]),
    (["CAFE is shut", "tea"], "café", ["CAFE is shut"]),
    (["cafe\u0301 apart", "tea"], "café", ["cafe\u0301 apart"]),
    (["Straße 7", "tea"], "straße", ["Straße 7"]),
    (["Ångström", "tea"], "angstrom", ["Ångström"]),
    (["ΑΘΗΝΑ", "tea"], "Αθήνα", ["ΑΘΗΝΑ"]),
    (["Αθήνα", "tea"], "ΑΘΗΝΑ", ["Αθήνα"]),
    (["мой рабочий день", "tea"], '"мой рабочий"', ["мой рабочий день"]),
    (["РАБОЧИЙ ещё", "tea"], "рабочий", ["РАБОЧИЙ ещё"]),
    (["всё ещё", "tea"], "еще", ["всё ещё"]),
    (["छोटे उत्तर", "tea"], "छोटे", ["छोटे उत्तर"]),
    # phrases
    (["the blue whale sings", "whale blue", "blue sky"], '"blue whale"', ["the blue whale sings"]),
    (["the blue, whale", "whale blue"], "“Blue Whales”", ["the blue, whale"]),
    (
        ["whale so blue", "blue whale so", "sky of blue"],
        "blue whale",
        ["blue whale so", "whale so blue", "sky of blue"],
    ),
    # exclusion, OR, AND
    (DRINKS, "coffee -cake", ["coffee with milk"]),
    (DRINKS, 'coffee -"with milk"', ["coffee and cake"]),
    (DRINKS, "tea OR cake", {"tea with milk", "coffee and cake"}),
    (DRINKS, "coffee AND milk", ["coffee with milk"]),
    (DRINKS, "coffee AND milk OR cake", {"coffee with milk", "coffee and cake"}),
    (DRINKS, "coffee AND zebra", []),
    # common words
    (["to be or not to be", "tea"], "to be or not to be", ["to be or not to be"]),
    (["who is it", "tea"], "who", ["who is it"]),
    # numbers
    (["port 8080 is open", "port 80 is open"], "8080", ["port 8080 is open"]),
    (["it costs 3.14 or so", "it costs 3.15"], "3.14", ["it costs 3.14 or so"]),
    (["room ٣٤", "tea"], "٣٤", ["room ٣٤"]),
    # identifiers, complete and in parts
    (["call read_user_file()", "user files are read"], "read_user_file", ["call read_user_file()"]),
    (
        ["files of a user", "tea"],
        "read_user_file",
        ["files of a user"],
    ),  # in parts
    (["call read_user_file()", "tea"], "user", ["call read_user_file()"]),
    (["the parseQueryText thing", "tea"], "parseQueryText", ["the parseQueryText thing"]),
    (["the parseQueryText thing", "tea"], "query", ["the parseQueryText thing"]),
    (["see src/app/main.py", "a main road"], "src/app/main.py", ["see src/app/main.py"]),
    (["see src/app/main.py", "tea"], "main.py", ["see src/app/main.py"]),
    (["see src/app/main.py", "tea"], "app", ["see src/app/main.py"]),
    (["got ERR_CONN_RESET again", "tea"], "ERR_CONN_RESET", ["got ERR_CONN_RESET again"]),
    (["got ERR_CONN_RESET again", "tea"], "conn", ["got ERR_CONN_RESET again"]),
    (["tagged v1.2.3-rc.1", "tagged v1.2.4"], "v1.2.3-rc.1", ["tagged v1.2.3-rc.1"]),
    (["write to ann.lee@example.org", "tea"], "ann.lee@example.org", ["write to ann.lee@example.org"]),
    (["see https://example.org/a/b?c=d", "tea"], "https://example.org/a/b", ["see https://example.org/a/b?c=d"]),
    # punctuation without meaning
    (["a * b", "tea"], "* ^ :", []),
    (["C++ or Rust", "tea"], "C++", ["C++ or Rust"]),
]


@pytest.mark.parametrize(("said", "query", "expected"), CASES)
def test_query_results_and_their_order(workspace, said, query, expected):
    say(workspace, *said)

    found = texts(query, workspace, kinds=["entry"])

    assert (set(found) if isinstance(expected, set) else found) == expected


def test_half_typed_words_match_as_prefixes(workspace):
    say(workspace, "the deployment failed", "tea")

    assert texts("deplo", workspace) == []
    assert texts("deplo", workspace, prefix=True) == ["the deployment failed"]


def test_match_all_requires_every_word(workspace):
    say(workspace, *DRINKS)

    assert texts("coffee milk", workspace, match_all=True) == ["coffee with milk"]


def test_rarer_words_score_higher(workspace):
    say(workspace, *["tea again"] * 5, "a rare orchid")

    assert texts("tea orchid", workspace)[0] == "a rare orchid"


def test_the_newer_of_equal_scores_comes_first(workspace):
    first, second = say(workspace, "tea", "tea")

    assert [hit.pk for hit in search("tea", workspace).hits] == [second.pk, first.pk]


def test_a_date_is_found_by_its_words(workspace):
    say(workspace, "we met", timestamp="2025-11-09T10:00:00+00:00")
    say(workspace, "we met later", timestamp="2025-12-10T10:00:00+00:00")

    for query in ("9 November", "november", "2025-11-09", "Sunday", '"9 november 2025"'):
        assert texts(query, workspace, kinds=["entry"]) == ["we met"], query


def test_an_author_is_found_by_name(workspace):
    say(workspace, "we met", name="Caroline")
    say(workspace, "we met", name="Melanie")

    assert [hit.row.name for hit in search("caroline", workspace).hits] == ["Caroline"]
    assert search("what did Melanie say when we met", workspace).hits[0].row.name == "Melanie"


def test_neighbouring_entries_raise_an_entry_s_score(workspace):
    say(workspace, "which orchid do you like", "the white one", "tea", "cake", "bread", "milk", key="cli:talk")

    assert texts("orchid", workspace) == ["which orchid do you like", "the white one", "tea"]


@pytest.fixture
def everything(workspace) -> None:
    """One row of each kind with the word orchid."""
    [entry] = say(workspace, "orchid said", key="slack:garden")
    call = {"id": "c", "type": "function", "function": {"name": "water", "arguments": '{"what": "orchid"}'}}
    add(open_at(workspace, "slack:garden"), [{"role": "assistant", "content": "", "tool_calls": [call]}])
    Summary.objects.create(
        workspace=workspace, session=entry.session, content="orchid folded", method="llm", token_count=1,
        original_token_count=2, entry_count=1, first_position=0, last_position=0, ends_at=NOW,
    )  # fmt: skip
    document = open_document(workspace, "MEMORY.md")
    text = "# Garden\n\nThe orchid in prose.\n\n- [user_preference] orchid in a line\n"
    revise_document(document, text, base=None, reason="r", by=BY)
    log(workspace, "orchid logged")
    know(workspace, "orchid known", tags=["flower"], source="talk")
    observe(workspace, "orchid observed", category="lesson")
    KeyValue.objects.create(workspace=workspace, key="orchid", value="white", updated_at=NOW)
    open_at(workspace, "cli:orchid")
    workspace.cached_responses.create(key="c1", response="orchid answered", model="m", created_at=NOW)


@pytest.mark.slow
@pytest.mark.postgres
def test_all_kinds_are_found_together_and_separately(workspace, everything):
    found = search("orchid", workspace)

    assert {hit.kind for hit in found.hits} == set(KINDS)
    for kind in KINDS:
        assert {hit.kind for hit in search("orchid", workspace, kinds=[kind]).hits} == {kind}
        assert {hit.kind for hit in search(f"kind:{kind} orchid", workspace).hits} == {kind}
        assert kind not in {hit.kind for hit in search(f"-kind:{kind} orchid", workspace).hits}
        assert {one.kind for one in newest(scope_of(workspace), asked(f"in:{kind}"), limit=9)[0]} == {kind}


def test_both_orders_contain_the_same_results(workspace, everything):
    found = {(hit.kind, hit.pk) for hit in search("orchid", workspace).hits}
    rows, has_more = newest(scope_of(workspace), asked("orchid"), limit=50)

    listed = {(one.kind, one.pk) for one in rows}
    assert not has_more
    assert listed - found == set()
    assert count_matches(scope_of(workspace), asked("orchid")).count == len(listed)


def test_bullet_lines_are_facts_and_prose_belongs_to_the_document(workspace, everything):
    assert [hit.kind for hit in search('"orchid in prose"', workspace).hits] == ["document"]
    assert [hit.kind for hit in search('"orchid in a line"', workspace).hits] == ["memory"]


FIELDS = [
    ("kind:tool_call", {"entry"}, None),
    ("kind:message", {"entry"}, ["orchid said"]),
    ("kind:message,summary", {"entry", "summary"}, None),
    ("session:slack:garden", {"entry", "summary", "session"}, None),
    ("session:garden", {"entry", "summary", "session"}, None),
    ("session:nowhere", set(), None),
    ("channel:slack", {"entry", "summary", "session"}, None),
    ("channel:SLACK", {"entry", "summary", "session"}, None),
    ("role:assistant", {"entry"}, None),
    ("author:user", {"entry"}, ["orchid said"]),
    ("category:lesson", {"observation"}, None),
    ("category:user_preference", {"memory"}, None),
    ("tag:flower", {"knowledge"}, None),
    ("tool:water", {"entry"}, None),
    ("source:talk", {"knowledge"}, None),
    ("source:memory.md", {"memory", "document"}, None),
    ("has:tool", {"entry"}, None),
    ("has:tags", {"knowledge"}, None),
    ("before:2000", set(), None),
    ("on:2026-04-01 kind:observation", {"observation"}, None),
    ("after:2026-04-01 kind:history", {"history"}, None),
    ("after:2026-04-02 kind:history", set(), None),
]


@pytest.mark.parametrize(("query", "kinds", "expected"), FIELDS)
def test_fields_narrow_the_results(workspace, everything, query, kinds, expected):
    rows, _ = newest(scope_of(workspace), asked(query), limit=50)
    hits = search(f"{query} orchid", workspace).hits

    assert {one.kind for one in rows} == kinds
    assert {hit.kind for hit in hits} <= kinds
    assert expected is None or latest(query, workspace) == expected


def test_withdrawn_rows_are_found_only_on_request(workspace):
    for make in (know, observe, log):
        make(workspace, "orchid kept")
        make(workspace, "orchid withdrawn", withdrawn_at=NOW)
    KeyValue.objects.create(workspace=workspace, key="orchid withdrawn", value="7", withdrawn_at=NOW)

    assert set(texts("orchid", workspace)) == {"orchid kept"}
    gone = search("orchid has:withdrawn", workspace).hits
    assert {hit.kind for hit in gone} == {"knowledge", "observation", "history", "key_value"}
    assert all(hit.row.withdrawn_at for hit in gone)
    assert set(latest("orchid -has:withdrawn", workspace)) == {"orchid kept"}


def test_removed_lines_and_old_revisions_count_as_withdrawn(workspace):
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, "It was red.\n\n- a red rose by the door\n", base=None, reason="r", by=BY)
    revise_document(document, "It was blue.\n\n- blue is what we want\n", base=first, reason="r", by=BY)

    assert {(hit.kind, hit.row.pk) for hit in search("red", workspace).hits} == set()
    assert {hit.kind for hit in search("red has:withdrawn", workspace).hits} == {"memory", "document"}
    assert {hit.kind for hit in search("blue", workspace).hits} == {"memory", "document"}
    assert search("blue has:withdrawn", workspace).hits == []


def test_archived_history_is_found(workspace):
    log(workspace, "orchid of long ago", is_archived=True, source="memory/archive/HISTORY-2025.md")

    assert texts("orchid", workspace) == ["orchid of long ago"]
    assert texts("orchid source:archive", workspace) == ["orchid of long ago"]


def test_a_masked_value_is_never_found_and_never_shown(workspace):
    KeyValue.objects.create(workspace=workspace, key="token", value="swordfish opens it", is_secret=True)

    for query in ("swordfish", '"swordfish opens"', "swordf", "token swordfish"):
        for text in [*texts(query, workspace, prefix=True), *latest(query, workspace)]:
            assert "swordfish" not in text, query
    assert texts("swordfish", workspace) == []
    assert texts("token", workspace) == ["token = ••••"]


def test_results_are_paged_without_gaps_or_repeats(workspace, everything):
    for number in range(7):
        know(workspace, f"orchid {'again ' * number}")
    whole = [(hit.kind, hit.pk) for hit in search("orchid", workspace).hits]

    seen, after = [], None
    while page := find(scope_of(workspace), asked("orchid"), now=NOW, limit=3, after=after).hits:
        seen += [(hit.kind, hit.pk) for hit in page]
        after = page[-1].key

    assert seen == whole
    assert len(set(seen)) == len(seen) > 15


def test_a_page_knows_whether_more_results_follow(workspace):
    say(workspace, "tea", "tea", "tea")

    found = [find(scope_of(workspace), asked("tea"), now=NOW, limit=limit).has_more for limit in (2, 3, 4)]

    assert found == [True, False, False]


@pytest.mark.parametrize("query", ["", "orchid", "-cake", "has:time", "kind:entry,knowledge"])
def test_newest_first_is_paged_without_gaps_or_repeats(workspace, everything, query):
    for minute in range(5):
        know(workspace, f"orchid {minute}", created_at=NOW + timedelta(minutes=minute // 2))
    know(workspace, "orchid without a time", created_at=None)
    observe(workspace, "orchid without a time", occurred_at=None)
    whole, _ = newest(scope_of(workspace), asked(query), limit=100)

    seen, after, has_more = [], None, True
    while has_more:
        page, has_more = newest(scope_of(workspace), asked(query), limit=4, after=after)
        seen += page
        after = page[-1].key

    assert [one.key for one in seen] == [one.key for one in whole]
    assert [one.at for one in seen] == sorted((one.at for one in seen), reverse=True)
    assert len({(one.kind, one.pk) for one in seen}) == len(seen)


def test_matches_are_counted_by_kind(workspace, everything):
    tally = count_matches(scope_of(workspace), asked("orchid -kind:session"))

    assert (tally.count, tally.is_more) == (10, False)
    assert tally.by_kind == dict.fromkeys(set(KINDS) - {"session"}, 1) | {"entry": 2}


def test_newer_matches_are_counted_by_key(workspace):
    first, _ = say(workspace, "tea", "tea")

    assert count_matches(scope_of(workspace), asked("tea"), above={"entry": first.pk}).count == 1


def test_facets_count_the_matches_by_each_of_their_values(workspace, everything):
    found = {
        name: {(one.value, one.count) for one in values}
        for name, values in facets(scope_of(workspace), asked("orchid")).items()
    }

    assert found["channel"] == {("slack", 3), ("cli", 1)}
    assert found["session"] == {("slack:garden", 3)}
    assert found["category"] == {("lesson", 1), ("user_preference", 1), ("learned_fact", 1)}
    assert found["role"] == {("user", 1), ("assistant", 1)}
    assert found["month"] == {("2026-04", 11)}
    assert {("message", 1), ("tool_call", 1), ("knowledge", 1)} <= found["kind"]


def test_a_rare_word_is_expanded_with_its_neighbour(workspace):
    term, near = (Term.objects.create(workspace=workspace, text=text) for text in ("automobile", "car"))
    TermRelation.objects.create(term=term, related=near, cosine=0.9)
    say(workspace, "the car is red", "tea")

    found = search("automobile", workspace)

    assert [hit.row.content for hit in found.hits] == ["the car is red"]
    assert found.added == {"automobile": [("car", 0.45)]}
    assert search("automobile", workspace, options=RankOptions(graph=False)).hits == []
    assert search('"automobile"', workspace).hits == []


def test_exact_matches_rank_above_neighbours(workspace):
    term, near = (Term.objects.create(workspace=workspace, text=text) for text in ("automobile", "car"))
    TermRelation.objects.create(term=term, related=near, cosine=0.9)
    say(workspace, "the car is red", "the automobile is red")

    assert texts("automobile", workspace) == ["the automobile is red", "the car is red"]


def test_recency_counts_only_on_request(workspace):
    say(workspace, "tea, tea and tea", timestamp="2025-01-01T00:00:00+00:00")
    say(workspace, "tea of today", timestamp=NOW.isoformat())

    def first(recency: str) -> str:
        return search("tea", workspace, options=RankOptions(recency)).hits[0].row.content

    assert [first(recency) for recency in ("off", "floored", "grip")] == [
        "tea, tea and tea",
        "tea, tea and tea",
        "tea of today",
    ]


def test_a_query_without_words_matches_only_when_sorted_by_time(workspace):
    say(workspace, "tea")

    assert search("kind:entry", workspace).hits == []
    assert latest("kind:entry", workspace) == ["tea"]
    assert latest("", workspace, kinds=["entry"]) == ["tea"]


@pytest.mark.parametrize(
    "query", ["kind:message -kind:message", "tea kind:message -kind:message has:tool", "session:x"]
)
def test_contradictory_filters_find_nothing(workspace, query):
    say(workspace, "tea")

    assert search(query, workspace).hits == []
    assert latest(query, workspace) == []


def test_an_empty_scope_finds_nothing_and_no_scope_is_the_whole_hub(workspace):
    say(workspace, "tea")

    assert find(Scope(()), asked("tea"), now=NOW).hits == []
    assert newest(Scope(()), asked(""), limit=5) == ([], False)
    assert texts("tea", kinds=["entry"]) == ["tea"]
    assert Entry.objects.count() == 1

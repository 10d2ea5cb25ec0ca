from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.search.fields import FIELDS
from memoryhub.lib.search.query import MAX_TERMS, Filter, Term, describe, parse
from memoryhub.lib.search.query_editing import with_filter, without_filter
from memoryhub.lib.search.query_tokens import MAX_CHARS
from memoryhub.lib.search.tokenizing import split_words
from tests.shared import badinput_cases

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)  # a Saturday
AUCKLAND = ZoneInfo("Pacific/Auckland")
SIGNS = [
    "OR",
    "AND",
    "-",
    '"',
    "“",
    "”",
    "«",
    "»",
    ",",
    ":",
    "(",
    ")",
    " ",
    "\0",
    "\ud800",
    "\u202e",
    "\n",
    "\u0301",
    "'",
]
BITS = [
    "kind:",
    "tag:",
    "on:",
    "2026-01-31",
    "99999y",
    "history",
    "pool",
    "don't",
    "x_y",
    "東京",
    "ดี",
    "İ",
    "ſ",
    "é",
    "a",
]
PARTS = st.sampled_from(SIGNS + BITS)
TEXTS = st.one_of(st.lists(PARTS, max_size=40).map("".join), st.text(st.characters(exclude_categories=[])))


def asked(text, **options):
    return parse(text, now=NOW, **options)


def shown(terms):
    return [" ".join(term.words) for term in terms]


def words(text, **options):
    return shown(asked(text, **options).terms)


def groups(text, **options):
    return [shown(group) for group in asked(text, **options).required]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("When did Caroline go to the LGBTQ support group?", ["caroline", "go", "lgbtq", "support", "group"]),
        ("Caroline's dogs' bowl, Melanie’s cat", ["caroline", "dogs", "bowl", "melanie", "cat"]),
        ("what's she like? I'm sure they've left, don't you", ["sure", "left"]),
        ("pool limit Pool LIMIT", ["pool", "limit"]),
        ("Crème brûlée", ["creme", "brulee"]),
        ("multi-agent well-known and/or his/hers", ["multi", "agent", "well", "known"]),
        ("wait--what happened...then", ["wait", "happened"]),
        ("snake_case (src/app/main.py) v1.2.3-rc.1,", ["snake case", "src app main py", "v1 2 3 rc 1"]),
        ("ERR_CONN_RESET foo::bar a@b.c GPT-4", ["err conn reset", "foo bar", "a b c", "gpt 4"]),
        ("http://x.org 12:30 C:\\temp foo:bar", ["http x org", "12 30", "c temp", "foo bar"]),
        ("camelCase __init__ #42 C++", ["camelcase", "init", "42", "c"]),
        ("東京タワー API設計 설계", ["東京タワー", "api", "設計", "설계"]),
        ("أين يعيش؟", ["اين", "يعيش"]),
        ("नमस्ते", ["नमस त"]),
        ("rock 'n' roll NOT jazz", ["rock", "n", "roll", "jazz"]),
        ("tel 5\" screen 6' wide", ["tel", "5", "screen", "6", "wide"]),
    ],
)
def test_a_question_is_searched_without_stop_words(text, expected):
    assert words(text) == expected
    assert asked(text).required == ()


@pytest.mark.parametrize("text", ["the who", "to be or not to be", "don't", "is it", "OR", "AND AND"])
def test_stop_words_are_kept_if_there_are_no_other_words(text):
    assert {word for term in asked(text).terms for word in term.words} == set(split_words(text))


def test_stop_words_are_kept_if_there_are_only_filters():
    assert words("the kind:history") == ["the"]
    assert words('the "pool limit"') == []


@pytest.mark.parametrize("text", ['"the pool limit"', "“the pool limit”", "«The Pool  limit»", '("the pool limit")'])
def test_a_quoted_phrase_is_required(text):
    assert asked(text).required == ((Term(("the", "pool", "limit"), is_quoted=True),),)


@pytest.mark.parametrize("text", ['"pool limit', 'pool" limit', "“pool limit", "pool «limit", 'pool "" limit', "''"])
def test_empty_and_unclosed_quotes_are_ignored(text):
    assert groups(text) == []


def test_required_phrases_count_for_ranking_once():
    query = asked('pool "pool limit" "aurora" aurora')

    assert shown(query.terms) == ["pool"]
    assert shown(query.ranked_terms) == ["pool", "pool limit", "aurora"]


@pytest.mark.parametrize(
    ("text", "expected", "rest"),
    [
        ("cat OR dog", [["cat", "dog"]], []),
        ('cat OR "red dog" OR src/a.py bird', [["cat", "red dog", "src a py"]], ["bird"]),
        ("(multi-agent OR swarm)", [["multi agent", "swarm"]], []),
        ("cat AND dog AND bird", [["cat"], ["dog"], ["bird"]], []),
        ("cat OR dog AND bird", [["cat", "dog"], ["bird"]], []),
        ("cat AND dog OR bird", [["cat"], ["dog", "bird"]], []),
        ("cat or dog and bird", [], ["cat", "dog", "bird"]),
        ("OR cat OR", [], ["cat"]),
        ("cat OR -dog", [], ["cat"]),
        ("cat OR kind:history", [], ["cat"]),
        ("cat OR ... dog", [], ["cat", "dog"]),
        ("cat OR OR dog", [], ["cat", "dog"]),
        ("cat OR cat", [["cat"]], []),
    ],
)
def test_operators_join_their_operands(text, expected, rest):
    assert groups(text) == expected
    assert words(text) == rest


def test_a_lone_or_is_noted():
    assert asked("cat OR").notes == ("OR needs a word or phrase on both sides. It was searched as a word.",)


def test_operators_between_filters_are_not_searched():
    query = asked("kind:history OR kind:memory AND -draft")

    assert query.terms == ()
    assert query.filters == (Filter("kind", ("history", "memory")),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-draft", ["draft"]),
        ('-"old draft" pool', ["old draft"]),
        ("-multi-agent -src/a.py -foo:bar", ["multi agent", "src a py", "foo bar"]),
        ("- draft -- x --verbose well-known a-b", []),
        ("-, -% -", []),
        ("– draft —old", []),
    ],
)
def test_a_hyphen_before_a_word_excludes(text, expected):
    assert shown(asked(text).excluded) == expected


def test_exclusions_alone_have_no_terms():
    query = asked("-draft -kind:history")

    assert (query.terms, query.required) == ((), ())
    assert query.filters == (Filter("kind", ("history",), is_excluded=True),)


def test_match_all_requires_every_word_except_stop_words():
    assert groups('what is the pool limit "of aurora"', match_all=True) == [["of aurora"], ["pool"], ["limit"]]
    assert words("pool limit", match_all=True) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool auro", ["auro"]),
        ("pool 東", ["東"]),
        ("pool well-kno", ["kno"]),
        ("pool OR auro", ["auro"]),
        ("auro auro", ["auro"]),
        ("pool au", []),
        ("pool auro ", []),
        ("pool auro.", []),
        ("pool there", []),
        ("the", []),
        ("pool src/app/mai", []),
        ('pool "auro"', []),
        ("pool -auro", []),
        ("pool tag:auro", []),
        ("pool caroline's", []),
    ],
)
def test_the_last_word_can_be_a_prefix(text, expected):
    found = [term for term in asked(text, prefix=True).ranked_terms if term.is_prefix]

    assert shown(found) == expected
    assert not any(term.is_prefix for term in asked(text).ranked_terms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool depl*", ["depl"]),
        ("DEPL* pool", ["depl"]),
        ("src/app/mai*", ["src app mai"]),
        ("pool OR depl*", ["depl"]),
        ("well-kno*", ["kno"]),
        ("de*", []),
        ("*depl*", []),
        ("**depl**", []),
        ("depl**", []),
        ('"depl*"', []),
        ("*", []),
    ],
)
def test_an_asterisk_ends_the_beginning_of_a_word(text, expected):
    assert shown([term for term in asked(text).ranked_terms if term.is_prefix]) == expected


@pytest.mark.parametrize("path", ["/etc/hosts", "~/notes", "./run/logs", "../docs/pages", "/var"])
def test_a_path_with_a_root_is_one_term(path):
    assert len(asked(path).terms) == 1
    assert len(asked("pages/docs").terms) == 2


@pytest.mark.parametrize("text", ["foo:bar", "http://x", "12:30", "C:\\x", "std::kind", "tag::x", "source://x"])
def test_other_colons_are_not_fields(text):
    query = asked(text)

    assert query.filters == ()
    assert query.notes == ()


def test_limits_are_applied_with_a_note():
    many = asked(" ".join(f"word{number}" for number in range(20)) + ' "last phrase"')
    long = asked("pool " * 1_000)

    assert len(many.ranked_terms) == MAX_TERMS
    assert shown(many.ranked_terms)[-1] == "last phrase"
    assert many.notes == (
        "Only 12 words and phrases are used. Ignored: word11, word12, word13, word14, word15 and 4 more.",
    )
    assert len(long.text) == 512
    assert long.notes == ("Only the first 512 characters were used.",)
    assert len(asked("-a" + " -b".join(map(str, range(99)))).excluded) == MAX_TERMS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("aurora ", ["contains aurora"]),
        ("aurora pool", ["any of: aurora, pool…"]),
        ('aurora "pool limit"', ["optional: aurora", 'contains "pool limit"']),
        ("cat OR dog -draft", ["contains cat or dog", "not: draft"]),
        ("kind:history,knowledge", ["kind: history or knowledge"]),
        ('-kind:history author:"Ann Lee"', ["not kind: history", "author: Ann Lee"]),
        ("has:tool has:pin", ["with tool calls or pinned"]),
        ("after:2026-01-03 before:7d", ["since 2026-01-03", "before 2026-11-14"]),
        ("on:yesterday -on:2026-10", ["on 2026-11-20", "not from 2026-10-01 to 2026-10-31"]),
        ("after:2026-01-03T10:30", ["since 2026-01-03 10:30"]),
    ],
)
@pytest.mark.parametrize("zone", [UTC, AUCKLAND], ids=str)
def test_describe_returns_the_interpretation(text, expected, zone):
    now = datetime(2026, 11, 21, 2, tzinfo=UTC)

    assert describe(parse(text, now=now, prefix=True, zone=zone), zone=zone) == expected


@given(TEXTS, st.sampled_from(["tag", "author", "session"]), st.text(min_size=1, max_size=20))
def test_an_added_filter_is_parsed_and_can_be_removed(text, field, value):
    wanted = value.replace("»", "").replace("\0", "").strip() or "x"
    narrowed = with_filter(text, field, wanted)

    [found] = [one for one in asked(narrowed).filters if one.field == field and not one.is_excluded]
    assert wanted in found.values
    assert with_filter(narrowed, field, wanted) == narrowed
    left = asked(without_filter(narrowed, field, wanted)).filters
    assert all(wanted not in one.values for one in left if one.field == field and not one.is_excluded)


@given(TEXTS, st.booleans(), st.booleans())
def test_any_text_can_be_parsed(text, match_all, prefix):
    query = asked(text, match_all=match_all, prefix=prefix, zone=AUCKLAND)

    there = set(split_words(query.text))
    for term in (*query.ranked_terms, *query.excluded):
        assert term.words
        assert there >= {word for word in term.words if word.isascii()}
    assert len(query.ranked_terms) <= MAX_TERMS
    assert {one.field for one in query.filters} <= FIELDS.keys()
    assert all(group for group in query.required)
    "\n".join([query.text, *query.notes, *describe(query)]).encode()


@pytest.mark.parametrize(
    "part",
    [*SIGNS, *BITS, "“ ", 'tag:"', "a OR ", "kinx:a ", "sesssion:a ", "on:1 ", "x_", "x'", "字", "\ufdfa", "a,"],
)
def test_long_queries_are_cut(part):
    text = part * 10_000

    query = asked(text, prefix=True)
    narrowed = with_filter(text, "tag", "x")

    assert len(query.text) <= MAX_CHARS
    assert len(narrowed) <= MAX_CHARS + len("tag:x ")
    assert len(without_filter(narrowed, "tag", "x")) <= MAX_CHARS


@pytest.mark.parametrize("case", badinput_cases("search_query"), ids=lambda case: case["id"])
def test_text_that_looks_like_operators_can_be_found(case):
    query = asked(case["value"])

    there = set(split_words(case["value"]))
    assert query.ranked_terms
    assert all(set(term.words) <= there for term in query.ranked_terms)
    assert (query.excluded, query.filters) == ((), ())

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.passages import highlight, passage

TEXTS = st.text(
    st.one_of(st.sampled_from("ab cé\u0301ﬁİ茶绿\ud800ß가\u1100\u1161\u200d "), st.characters()), max_size=400
)


def term(*words, **values):
    return WeightedTerm(words, **values)


def hits(pieces):
    return [text for text, is_hit in pieces if is_hit]


@pytest.mark.parametrize(
    ("word", "text", "hit"),
    [
        ("deploy", "it was Deployed.", "Deployed"),
        ("cafe", "un Café ici", "Café"),
        ("cafe", "un Cafe\u0301 ici", "Cafe\u0301"),
        ("fine", "so ﬁne, yes", "ﬁne"),
        ("find", "ﬁ ﬁ ﬁ ﬁ find", "find"),
        ("izmir", "in İzmir", "İzmir"),
        ("绿茶", "é 我喜欢绿茶", "绿茶"),
        ("tea", "\ud800é\ud800 tea", "tea"),
    ],
)
def test_hits_are_highlighted_in_the_original_text(word, text, hit):
    assert hits(highlight(text, [term(word)])) == [hit]


def test_the_passage_with_most_of_the_query_is_shown():
    text = "crane " * 30 + "filler words " * 100 + "the crane in the harbour " + "more words " * 100

    shown = passage(text, [term("crane"), term("harbour")])

    assert hits(shown.pieces) == ["crane", "harbour"]
    assert shown.has_before
    assert shown.has_after
    assert len(shown.text) <= 240


def test_a_passage_starts_and_ends_at_word_boundaries():
    text = "alphabet " * 60 + "harbour " + "omega " * 60

    shown = passage(text, [term("harbour")])

    assert set(shown.text.split()) == {"alphabet", "harbour", "omega"}


def test_without_hits_the_start_is_shown():
    shown = passage("alpha beta " * 50, [term("crane")], length=30)

    assert (shown.text, shown.spans) == ("alpha beta alpha beta alpha", ())
    assert (shown.has_before, shown.has_after) == (False, True)


def test_a_short_text_is_shown_whole():
    shown = passage("a crane", [term("crane")])

    assert shown.pieces == [("a ", False), ("crane", True)]
    assert not shown.has_before
    assert not shown.has_after


@given(TEXTS, st.integers(1, 60))
def test_a_passage_is_part_of_the_text_with_ordered_spans(text, length):
    shown = passage(text, [term("ab"), term("c", is_prefix=True), term("茶")], length=length)

    assert text[shown.start : shown.start + len(shown.text)] == shown.text
    assert "".join(piece for piece, _ in shown.pieces) == shown.text
    places = [place for span in shown.spans for place in span]
    assert places == sorted(set(places))


@given(TEXTS)
def test_highlighting_never_separates_a_letter_from_its_accent(text):
    pieces = highlight(text, [term("abc"), term("e"), term("茶")])

    assert "".join(piece for piece, _ in pieces) == text
    assert not any(piece.startswith("\u0301") for piece, is_hit in pieces if is_hit)


def test_a_text_is_highlighted_up_to_a_limit():
    assert highlight("crane " * 100, [term("crane")], limit=8) == [("crane", True), (" cr", False)]


@pytest.mark.parametrize("text", ["a" * 10**6, "e\u0301" * 500_000, "\u0301" * 10**6, "aB" * 500_000, "茶" * 10**6])
def test_huge_texts_have_a_short_passage(text):
    assert len(passage(text, [term("a"), term("茶"), term("crane")]).text) <= 400

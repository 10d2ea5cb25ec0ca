from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.text.similarity import (
    MAX_PARTNERS,
    ComparisonBudget,
    compare_texts,
    near_pairs,
    similar_pairs,
    tokens_of,
)

WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]), min_size=1, max_size=7
)


def groups(*texts, **values):
    return [(keep, others) for keep, others, _ in compare_texts(texts, threshold=0.7, **values).groups]


def contradictions(*texts):
    return [(one, other) for one, other, _ in compare_texts(texts, threshold=0.7).contradictions]


@given(st.lists(WORDS, max_size=14), st.sampled_from([0.5, 0.6, 0.7, 0.9, 1.0]))
def test_the_prefix_filter_finds_all_similar_pairs(rows, threshold):
    sets = [tokens_of(" ".join(words)) for words in rows]
    all_pairs = {(i, j, len(sets[i] & sets[j]) / len(sets[i] | sets[j])) for j in range(len(sets)) for i in range(j)}

    assert set(similar_pairs(sets, threshold)) == {pair for pair in all_pairs if pair[2] >= threshold}


def test_duplicates_are_grouped_with_the_first():
    assert groups(
        "The label service runs in Porto",
        "Ines likes tea",
        "label service runs in Porto.",
        "the *label service* runs in Porto",
    ) == [(0, [2, 3])]


def test_different_numbers_and_negations_contradict():
    assert contradictions("database pool limit is 40", "database pool limit is 60") == [(0, 1)]
    assert contradictions("Deploys go out on Fridays", "Deploys never go out on Fridays") == [(0, 1)]
    assert groups("database pool limit is 40", "database pool limit is 60") == []
    assert near_pairs(["on port 1", "on port 2", "on port 1"]) == ([(0, 2, 1.0)], [(0, 1, 1.0), (1, 2, 1.0)])


def test_a_repeated_side_of_a_contradiction_is_listed_once():
    texts = ["pool limit is 40", "pool limit is 60", "the pool limit is 60", "pool limit is 40"]

    assert groups(*texts) == [(0, [3]), (1, [2])]
    assert contradictions(*texts) == [(0, 1)]


def test_contradictions_grow_linearly_with_the_number_of_lines():
    found = compare_texts([f"backup {number} went well" for number in range(3_000)], threshold=0.7)

    assert len(found.contradictions) == 2_999
    assert not found.is_cut


def test_the_contradictions_per_text_are_limited():
    texts = ["alpha beta gamma delta epsilon zeta 0"] + [
        f"alpha beta gamma delta epsilon zeta word{name} {name}" for name in range(1, 100)
    ]

    named = [pair for pair in contradictions(*texts) if 0 in pair]

    assert len(named) == MAX_PARTNERS


def test_texts_without_words_are_not_similar():
    assert compare_texts(["12", "12", "", "…"], threshold=0.7).groups == []


def test_the_limit_of_comparisons_is_reported():
    texts = [f"alpha beta gamma delta epsilon zeta {'x' * number}" for number in range(1, 50)]

    assert compare_texts(texts, threshold=0.5, limit=20).is_cut
    assert not compare_texts(texts, threshold=0.5).is_cut
    assert list(similar_pairs([tokens_of(text) for text in texts], 0.5, ComparisonBudget(0))) == []


def test_scripts_without_spaces_are_compared():
    assert groups("他喜欢在早上喝绿茶看书", "她住在波尔图的老城区里", "他喜欢在早上喝绿茶看书。") == [(0, [2])]

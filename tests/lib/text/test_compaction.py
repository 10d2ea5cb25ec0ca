from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.text.compaction import find_duplicates, without_lines
from memoryhub.lib.text.similarity import tokens_of


def document(*facts: str) -> str:
    return "# Team\n" + "\n".join(f"- {fact}" for fact in facts) + "\n"


def groups(*facts: str, **values) -> list[tuple[str, list[str]]]:
    found = find_duplicates(document(*facts), **values)
    return [(cluster.keep.text, [line.text for line in cluster.remove]) for cluster in found.clusters]


def test_duplicate_lines_are_grouped_with_the_first():
    facts = (
        "The label service runs on four nodes in Porto",
        "label service runs on four nodes in Porto.",
        "Ines likes tea",
    )

    assert groups(*facts) == [(facts[0], ["label service runs on four nodes in Porto."])]


def test_lines_whose_numbers_differ_contradict():
    found = find_duplicates(document("database pool limit is 40", "database pool limit is 60"))

    assert found.clusters == []
    assert [(pair.one.text, pair.other.text) for pair in found.contradictions] == [
        ("database pool limit is 40", "database pool limit is 60")
    ]


def test_a_negated_line_is_not_a_duplicate():
    facts = ("Deploys go out on a Friday afternoon", "Deploys never go out on a Friday afternoon")

    assert groups(*facts, threshold=0.6) == []
    assert len(find_duplicates(document(*facts), threshold=0.6).contradictions) == 1


def test_scripts_without_spaces_are_compared():
    assert groups("他喜欢在早上喝绿茶看书", "他喜欢在早上喝绿茶看书。") != []
    assert groups("他喜欢在早上喝绿茶看书", "她住在波尔图的老城区里") == []


def test_headings_and_other_text_are_kept():
    text = "### Consolidated 2026-01-01\n- a fact of us\n### Consolidated 2026-02-01\nprose\nprose\n- a fact of us\n"

    found = find_duplicates(text)

    assert found.removable == [6]
    assert "### Consolidated 2026-02-01\nprose\nprose" in without_lines(text, found.removable)


def test_a_pinned_line_is_kept_at_any_position():
    text = document("a fact of the team", "a fact of the team")

    assert find_duplicates(text, pinned=[3]).removable == [2]
    assert find_duplicates(text, pinned=[2, 3]).removable == []


NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
WORDS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6)


@given(st.lists(WORDS, max_size=12), st.sampled_from([0.5, 0.7, 1.0]))
def test_the_result_equals_a_comparison_of_all_pairs(rows, threshold):
    facts = [" ".join(words) for words in rows]
    found = find_duplicates(document(*facts), threshold=threshold)
    sets = [tokens_of(fact) for fact in facts]
    alike = {
        j for i in range(len(sets)) for j in range(len(sets))
        if i != j and len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= threshold
    }  # fmt: skip

    touched = {line.line - 2 for cluster in found.clusters for line in [cluster.keep, *cluster.remove]}
    assert touched <= alike
    assert bool(touched) == bool(alike)

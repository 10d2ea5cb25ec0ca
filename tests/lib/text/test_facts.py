import pytest

from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts, normal_form, split_sections

DOCUMENT = """intro

# Team
- Ana leads
* [user_preference] Short answers
```
- not a fact
# no heading
```
## Tools
1. numbered
- [ ] open task
"""


def test_bullets_have_section_category_and_line():
    assert fact_lines(DOCUMENT) == [
        FactLine("Team", "", "Ana leads", 4),
        FactLine("Team", "user_preference", "Short answers", 5),
        FactLine("Tools", "", "[ ] open task", 12),
    ]


def test_the_facts_with_a_text_are_read_as_all_are():
    text = DOCUMENT + "- [x] Ana leads  \n- Ana\n- Then Ana leads\n"

    assert fact_lines(text, only="Ana leads") == [fact for fact in fact_lines(text) if fact.text == "Ana leads"]
    assert [fact.line for fact in fact_lines(text, only="Ana leads")] == [4, 13]
    assert fact_lines(text, only="not a fact") == []
    assert fact_lines("one\n§\ntwo\nlines\n", only="two\nlines") == [FactLine("", "", "two\nlines", 3)]


def test_sections_cover_the_whole_document():
    sections = split_sections(DOCUMENT)

    assert [(section.title, section.start, section.end) for section in sections] == [
        ("", 1, 3),
        ("Team", 3, 10),
        ("Tools", 10, 14),
    ]


@pytest.mark.parametrize(
    ("text", "sections"),
    [("# Team\n- Ana", [("Team", 1, 3)]), ("\n# Team", [("", 1, 2), ("Team", 2, 3)]), ("- Ana", [("", 1, 2)])],
)
def test_text_before_the_first_heading_is_a_section_unless_empty(text, sections):
    assert [(section.title, section.start, section.end) for section in split_sections(text)] == sections


def facts(*texts: str, section: str = "S") -> list[FactLine]:
    return [FactLine(section, "", text, line) for line, text in enumerate(texts, 1)]


def test_a_reworded_line_is_the_same_fact_and_a_new_one_is_not():
    old = facts("Deploys run on Tuesday mornings", "The pool limit is 40")
    new = facts("The pool limit is 60", "Coffee without sugar", "Deploys run on Tuesday evenings")

    assert match_facts(old, new) == {2: 0, 0: 1}


def test_a_moved_line_keeps_its_identity_across_sections():
    assert match_facts(facts("Never on Fridays"), facts("never on  **Fridays**.", section="Rules")) == {0: 0}


def test_equal_lines_are_matched_one_to_one():
    assert match_facts(facts("same", "same"), facts("same")) == {0: 0}


def test_equal_lines_keep_their_sections_when_these_are_swapped():
    team, rules = facts("Ask Ana", section="Team"), facts("Ask Ana", section="Rules")

    assert match_facts([*team, *rules], [*rules, *team]) == {0: 1, 1: 0}


def test_a_line_copied_to_another_section_is_new():
    assert match_facts(facts("Ask Ana"), [*facts("Ask Ana"), *facts("Ask Ana", section="Rules")]) == {0: 0}


def test_only_the_first_of_two_similar_lines_matches():
    old, new = facts("Deploys run on Tuesdays"), facts("Deploys run on Tuesday", "Deploys run on Fridays")

    assert match_facts(old, new) == {0: 0}


@pytest.mark.parametrize(("new", "pairs"), [("abcfg", {0: 0}), ("abfgh", {})])
def test_lines_match_from_a_ratio_of_six_tenths(new, pairs):
    assert match_facts(facts("abcde"), facts(new)) == pairs


def test_numbers_and_signs_distinguish_normal_forms():
    assert normal_form("Limit is 40") != normal_form("Limit is 60")
    assert normal_form("offset -1") != normal_form("offset 1")


def test_the_comparison_of_long_lines_is_limited(monkeypatch):
    monkeypatch.setattr("memoryhub.lib.text.facts.MAX_CHAR_PAIRS", 300)
    old, new = (fact_lines(f"- tea at {hour}\n- {hour} {'word ' * 20}\n") for hour in ("four", "five"))

    assert match_facts(old, new) == {0: 0}

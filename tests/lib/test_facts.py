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


def test_bullets_carry_section_category_and_line():
    assert fact_lines(DOCUMENT) == [
        FactLine("Team", "", "Ana leads", 4),
        FactLine("Team", "user_preference", "Short answers", 5),
        FactLine("Tools", "", "[ ] open task", 12),
    ]


def test_sections_cover_the_whole_document():
    sections = split_sections(DOCUMENT)

    assert [(section.title, section.start, section.end) for section in sections] == [
        ("", 1, 3),
        ("Team", 3, 10),
        ("Tools", 10, 14),
    ]


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


def test_numbers_and_signs_tell_normal_forms_apart():
    assert normal_form("Limit is 40") != normal_form("Limit is 60")
    assert normal_form("offset -1") != normal_form("offset 1")


def test_long_lines_are_compared_only_so_far(monkeypatch):
    monkeypatch.setattr("memoryhub.lib.text.facts.MAX_CHAR_PAIRS", 300)
    old, new = (fact_lines(f"- tea at {hour}\n- {hour} {'word ' * 20}\n") for hour in ("four", "five"))

    assert match_facts(old, new) == {0: 0}

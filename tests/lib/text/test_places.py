"""A fact is changed by what is above it, too, and not by the other facts of its section."""

from __future__ import annotations

import pytest

from memoryhub.lib.text.places import changed_places

FACT = "Olga works at Initech, see ~/AbC_dEf"
LINE = f"- {FACT}\n"
BEFORE = f"# Memory\n\n## Facts\n\n- first\n{LINE}- last\n"
NUMBER = 6


def is_changed(after: str, before: str = BEFORE) -> bool:
    number = before.split("\n").index(LINE.strip("\n")) + 1
    return changed_places(before, after, [number]) == [number]


@pytest.mark.parametrize(
    "new",
    [
        f"- ~~{FACT}~~\n",
        f"- **{FACT}**\n",
        f"- [obsolete] {FACT}\n",
        f"- {FACT}.\n",
        LINE.replace("~/", "/"),
        LINE.replace("AbC_dEf", "abcdef"),
        LINE.replace("AbC_dEf", "AbCdEf"),
        LINE.replace("Olga", "\uff2flga"),
        f"- <del>{FACT}</del>\n",
        f"<del>\n{LINE}</del>\n",
        f"<!--\n{LINE}-->\n",
        f"<details><summary>Old</summary>\n\n{LINE}\n</details>\n",
        f"~~\n{LINE}~~\n",
        f"```\n{LINE}```\n",
        f"```\n~~~\n{LINE}~~~\n```\n",
        f"````\n```\n{LINE}```\n````\n",
        f"- Outdated:\n  {LINE}",
        f"  {LINE}",
        f"\nOutdated:\n{LINE}",
        f"\n**No longer true**\n\n{LINE}",
        f"\n## Outdated\n\n{LINE}",
        f"\nOutdated\n---\n{LINE}",
        f"- {FACT}\n  until 2024\n",
        f"- {FACT}\nwhich is wrong\n",
        f"> {LINE}",
        f"- ~~{FACT}~~\n{LINE}",
        f"1. {FACT}\n",
        "",
    ],
)
def test_a_fact_changes_with_its_words_and_what_is_above_it(new):
    assert is_changed(BEFORE.replace(LINE, new))


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("## Facts", "## Old and wrong facts"),
        BEFORE.replace("# Memory", "# Mistakes"),
        BEFORE.replace("## Facts\n", ""),
        BEFORE.replace("- first\n", "### Outdated\n- first\n"),
        BEFORE.replace(LINE, "") + f"\n## No longer true\n\n{LINE}",
        BEFORE.replace(LINE, "§\n" + LINE),
    ],
)
def test_a_fact_changes_with_its_section(after):
    assert is_changed(after)


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        BEFORE.replace(LINE, "").replace("- first\n", f"{LINE}- first\n"),
        BEFORE.replace(LINE, "") + LINE,
        BEFORE.replace(LINE, f"* {FACT}  \n"),
        BEFORE.replace("- first\n", "").replace("- last\n", "- the last one\n- more\n  - and more\n"),
        BEFORE.replace("- first\n", "- first\n  - below it\n"),
        BEFORE.replace("- first\n", "Some words on it.\n\n- first\n\n```\ncode\n```\n\n"),
        BEFORE.replace("# Memory\n", "# Memory\n\n## Others\n\nOther facts:\n\n- a <name>\n"),
        BEFORE + "\n## Outdated\n\n- nothing\n<!-- end -->\n",
        BEFORE + "\n" + LINE,
        "---\ntitle: Facts\n---\n" + BEFORE,
    ],
)
def test_other_lines_change_nothing(after):
    assert not is_changed(after)


def test_a_fact_below_another_changes_with_that():
    before = BEFORE.replace(LINE, f"- Team:\n  {LINE}").replace(f"  {LINE}", f"  {LINE}  - other\n")
    number = before.split("\n").index(f"  {LINE.strip()}") + 1

    assert changed_places(before, before.replace("- Team:", "- Former team:"), [number]) == [number]
    assert changed_places(before, before.replace("- other", "- another"), [number]) == []


@pytest.mark.parametrize(
    ("after", "lost"),
    [("one\n§\ntwo", []), ("two", []), ("two\n§\none", []), ("one\n§\n~~two~~", [3]), ("one", [3])],
)
def test_an_entry_between_separators_is_what_it_says(after, lost):
    assert changed_places("one\n§\ntwo\n", after, [3]) == lost


@pytest.mark.parametrize(("heading", "underlined"), [("# Memory", "Memory\n==="), ("## Facts", "Facts\n---")])
def test_underlined_headings_have_the_level_of_their_line(heading, underlined):
    before = BEFORE.replace(heading, underlined)

    assert is_changed(before.replace("Memory", "Outdated"), before)

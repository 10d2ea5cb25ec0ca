"""Numbers that name a thing, such as a room, aren't values: other things may have other numbers."""

import pytest

from memoryhub.lib.text.similarity import compare_texts, near_pairs

OF_OTHER_THINGS = [
    ("Room 12 has a projector", "Room 14 has a projector"),
    ("The room 12 has a projector", "room 14 has a projector."),
    ("In room 12 the heating is broken", "In room 14 the heating is broken"),
    ("Room 12 has 20 seats", "Room 14 has 30 seats"),
    ("Python 3.12 is supported by the build", "Python 3.13 is supported by the build"),
    ("On Django 5.1 works the old storage class", "On Django 5.2 works the old storage class"),
    ("Issue 45 is about the login page", "Issue 46 is about the login page"),
    ("Fixed issue 45 in the parser", "Fixed issue 46 in the parser"),
    ("Closed #45 after the release", "Closed #46 after the release"),
    ("The parser was fixed in pull request 45", "The parser was fixed in pull request 46"),
    ("ADR-004: the queue stays in PostgreSQL", "ADR-005: the queue stays in PostgreSQL"),
    ("CVE-2026-1234 doesn't affect the hub", "CVE-2026-1235 doesn't affect the hub"),
    ("- arc-store-2 reports from 90 % on", "- arc-store-3 reports from 85 % on"),
    ("node-3: disk replaced by Farid", "node-4: disk replaced by Farid"),
    ("Sprint 12 ends on Friday", "Sprint 13 ends on Friday"),
    ("Release 1.8 went out on a Tuesday at ten", "Release 1.9 went out on a Tuesday at ten"),
    ("Chapter 3 covers the parser", "Chapter 4 covers the parser"),
    ("Step 2: run the migration", "Step 3: run the migration"),
    ("**Room 12** has a projector", "**Room 14** has a projector"),
    ("Room 12 has a projector", "Room 14 has no projector"),
]
VALUES = [
    ("budget is 500", "budget is 700"),
    ("The budget is 500 EUR", "The budget is 700 EUR"),
    ("Budget 500 EUR", "Budget 700 EUR"),
    ("Budget 3.5 is too small", "Budget 4.5 is too small"),
    ("USD 500.50 is enough for the trip", "USD 700.50 is enough for the trip"),
    ("Room 12 has 20 seats", "Room 12 has 30 seats"),
    ("Room 12 has a projector", "Room 12 has no projector"),
    ("The team meets in room 12", "The team meets in room 14"),
    ("Room 12 is our meeting room", "Room 14 is our meeting room"),
    ("Room 12 is now the meeting room", "Room 14 is now the meeting room"),
    ("db-1 is the primary", "db-2 is the primary"),
    ("The project uses Python 3.12", "The project uses Python 3.13"),
    ("Python 3.12 is required", "Python 3.13 is required"),
    ("Python 3.12 is the default", "Python 3.13 is the default"),
    ("The hub listens on port 8000", "The hub listens on port 8001"),
    ("The release of 1.8 is on 4 March", "The release of 1.8 is on 5 March"),
    ("March 4 is a deadline", "March 5 is a deadline"),
    ("All 12 domes have sensors", "All 14 domes have sensors"),
    ("Only 5 seats are left", "Only 6 seats are left"),
    ("Issue 45 takes 3 days", "Issue 45 takes 5 days"),
    ("There are 12 open issues", "There are 14 open issues"),
    ("Bug fixes take 3 days", "Bug fixes take 5 days"),
    ("We are in sprint 12", "We are in sprint 13"),
    ("The current version is 1.8", "The current version is 1.9"),
    ("arc-store-2: report from 90 % on", "arc-store-2: report from 85 % on"),
    ("Page size 50", "Page size 100"),
    ("Level 3 is required", "Level 4 is required"),
]


def relations(one: str, other: str) -> tuple[int, int]:
    """Return the numbers of duplicates and contradictions, which both functions find alike."""
    found = compare_texts([one, other], threshold=0.5)
    same, contradictions = near_pairs([one, other], threshold=0.5)
    assert (len(found.groups), len(found.contradictions)) == (len(same), len(contradictions))
    return len(same), len(contradictions)


@pytest.mark.parametrize(("one", "other"), OF_OTHER_THINGS)
def test_texts_about_other_things_neither_repeat_nor_contradict_each_other(one, other):
    assert relations(one, other) == (0, 0)


@pytest.mark.parametrize(("one", "other"), VALUES)
def test_other_values_contradict(one, other):
    assert relations(one, other) == (0, 1)


def test_texts_about_the_same_thing_are_compared():
    texts = ["Room 12 has 20 seats", "Room 14 has 20 seats", "room 12 has 20 seats.", "Room 14 has 30 seats"]

    found = compare_texts(texts, threshold=0.7)

    assert [(keep, others) for keep, others, _ in found.groups] == [(0, [2])]
    assert [(one, other) for one, other, _ in found.contradictions] == [(1, 3)]


OTHER_WORDING = ["The release of 1.8 goes out on Tuesday, 10:00", "On Tuesday at 10:00, 1.8 goes out: a release"]


@pytest.mark.parametrize("other", OTHER_WORDING)
def test_a_name_in_other_words_or_without_its_noun_is_a_duplicate(other):
    texts = ["Release 1.8 goes out on Tuesday at 10:00", other]

    assert near_pairs(texts, threshold=0.6)[0]
    assert compare_texts(texts, threshold=0.6).groups


def test_a_number_without_its_noun_contradicts_a_name():
    texts = ["Release 1.9 goes out on Tuesday at 10:00", OTHER_WORDING[1]]

    assert near_pairs(texts, threshold=0.6)[1]
    assert compare_texts(texts, threshold=0.6).contradictions

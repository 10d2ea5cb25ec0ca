"""Texts that repeat what was removed are recognised, in time that grows with their length only."""

from __future__ import annotations

import random
from itertools import chain, product

import pytest

from memoryhub.lib.text import repeats
from memoryhub.lib.text.repeats import Repeats, contains, words_of


class Word(str):
    """A word that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Word.compared += 1
        return str.__eq__(self, other)


@pytest.fixture
def comparisons(monkeypatch):
    """Return a function that counts the comparisons of words and the counts of negations that a call needs."""
    counted = []
    count_negations = repeats.count_negations
    monkeypatch.setattr(repeats, "words_of", lambda text: tuple(map(Word, words_of(text))))
    monkeypatch.setattr(repeats, "count_negations", lambda text: counted.append(text) or count_negations(text))

    def count(call) -> int:
        Word.compared = 0
        counted.clear()
        assert call()
        return Word.compared + len(counted)

    return count


@pytest.mark.parametrize("phrase", ["la ", "la s ", "la li la "])
def test_a_text_that_repeats_itself_takes_linear_time(comparisons, phrase):
    def count(times: int) -> int:
        known = Repeats([phrase * times])
        return comparisons(lambda: known.found_in(phrase * 2 * times))

    assert count(800) < 5 * count(200)


def test_lines_that_repeat_themselves_take_linear_time(comparisons):
    def count(times: int) -> int:
        known, lines = Repeats(["la " * times]), ["la " * times, "la " * times]
        return comparisons(lambda: list(known.found_across(lines, [1])))

    assert count(800) < 5 * count(200)


@pytest.mark.parametrize(
    ("words", "inner", "is_there"),
    [
        ("a b a b c", "a b c", True),
        ("a b a b d", "a b c", False),
        ("a a a b", "a a b", True),
        ("a b", "a b c", False),
        ("ab c", "b c", False),
    ],
)
def test_words_contain_others_without_gaps(words, inner, is_there):
    assert contains(tuple(words.split()), tuple(inner.split())) is is_there


@pytest.mark.parametrize("mark", "\ufe0f\u180b\u20d0\u0e31")
def test_marks_in_a_word_do_not_split_it(mark):
    assert words_of(f"The vault ke{mark}y is blue") == ("the", "vault", "key", "is", "blue")


@pytest.mark.parametrize(
    ("removed", "line", "is_found"),
    [
        ("- Note: The boat is red", "1. The boat is red", True),
        ("- **Note:** The boat is red", "* The boat is red", True),
        ("- Ana's boat: The boat is red", "The boat is red.", True),
        ("- 2026-03-04: Ana owns a boat", "## Ana owns a boat", True),
        ("[2026-03-04 10:00] Ana owns a boat", "- Ana owns a boat", True),
        ("- 备注：船是红色的而且很大", "1. 船是红色的而且很大", True),
        ("- Note: Ana owns a boat", "1. ꓮꓠꓮ ꓳꓪꓠꓢ ꓮ ꓐꓳꓮꓔ", True),
        ("- Ana: likes green tea", "- Bo: likes green tea", False),
        ("- Ana: likes green tea", "- Bo likes green tea", False),
        ("- Not here: the boat is red", "- the boat is red", False),
        ("- Colour: red", "- red", False),
        ("- See https://example.org/a for the boat", "- example.org/a for the boat", False),
    ],
)
def test_a_text_is_recognised_without_its_label(removed, line, is_found):
    assert bool(Repeats([removed]).found_in(line)) is is_found


REMOVED = [
    "Set the flag [debug] to true in the config",
    "The release is on May 3. Use the tag of that day",
    "The limit of retries is > 5 per hour",
    "> 5 users of boats are here",
    "Rome has 1) many churches",
    "The door code is known to Bob",
    "Olga works <b>at</b> Initech in Lisbon",
    "Café of Ana: it is closed on Monday",
    "Note: the balance is -500 euros",
    "用户喜欢喝绿茶",
]
DISGUISES = [
    ("known", "k n o w n"),
    ("known", "k.n.o.w.n"),
    ("known", "*k* *n* *o* *w* *n*"),
    ("known", "k n\u200b o&nbsp; w n"),
    ("known", "k n o&#32;w &#110;"),
    ("is", "i\u200bs"),
    ("is", "is; [x]"),
    ("is", "is (3."),
    ("is", "is:"),
    ("of", "о\u0301f"),
    ("of", "- of"),
    ("é", "e\u0301"),
    ("<b>at</b>", "<span title='a b'>at</span>"),
    ("<b>at</b>", "&lt;b>at&lt;/b&gt;"),
    ("> 5", "&gt; 5"),
    ("> 5", "＞ 5"),
    ("-500", "−500"),
    (" ", "_"),
    (" ", " ~ "),
]


def broken_lines():
    """Yield the removed texts, plain and disguised, within other words and broken into one to four lines."""
    draw = random.Random(7)
    around = [("", ""), ("- Ana called. ", "; she says"), ("> ", " [sic]"), ("[x] ", ""), ("a ", " b")]
    for removed, (old, new), (before, after) in product(REMOVED, [("", ""), *DISGUISES], around):
        words = f"{before}{removed.replace(old, new) if old else removed}{after}".split(" ")
        for count in [0, 1, 1, 2, 2, 3, 3]:
            breaks = draw.sample(range(1, len(words)), min(count, len(words) - 1))
            gaps = (draw.choice(["\n", " \n", "\n "]) if at in breaks else " " for at in range(1, len(words)))
            yield "".join(chain.from_iterable(zip(words, [*gaps, ""], strict=True))).split("\n")


def test_a_quick_look_misses_nothing_that_is_found_in_joined_lines():
    known = Repeats(REMOVED)
    found = [lines for lines in broken_lines() if known.found_in(" ".join(lines))]

    assert len(found) > 500
    assert [lines for lines in found if not known.may_find_in(lines)(0, len(lines))] == []


@pytest.mark.parametrize("lines", [["Rome has", "many churches"], ["The limit is", "5 per day"], ["Bo", "knows Ana"]])
def test_a_quick_look_excludes_lines_without_the_words(lines):
    assert not Repeats(REMOVED).may_find_in(lines)(0, len(lines))


@pytest.mark.parametrize(
    ("removed", "line"),
    [
        ("5 users of boats are here", "Ana called. > 5 users of boats are here; she says"),
        ("-5 users of boats are here", "The list [-5 users of boats are here]"),
        ("b users of boats are here", "Ana: x.y.\u200bb users of boats are here"),
        ("−5 users of boats are here", "Ana。−5 users of boats are here"),
    ],
)
def test_a_clause_is_recognised_though_its_first_word_is_another_within_the_line(removed, line):
    assert Repeats([removed]).found_in(line)

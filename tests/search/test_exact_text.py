"""A text with what was typed, signs included, ranks before texts that only have its letters."""

import pytest
from django.urls import reverse

from memoryhub.search.results import Question, answer
from tests.hub import NOW
from tests.searches import asked, know, say, scope_of, search, texts

pytestmark = pytest.mark.django_db
TYPED = {
    "C++": "option c, plan c, vitamin c, c, c",
    "c#": "option c, plan c, vitamin c, c, c",
    ".NET": "net profit, net weight, net net net",
    "node.js": "node js, node, js, node js",
    "foo_bar": "foo bar, foo bar, foo bar",
    "__init__": "init, init, init of the init",
    "v1.2.3": "v1 2 3, v1 2 3",
    "ada.king@example.org": "ada king example org, ada king example org",
    "/etc/nginx/nginx.conf": "etc nginx nginx conf, etc nginx nginx conf",
    "src\\app\\main.py": "src app main py, src app main py",
    "0x80070005": "0x80070006 0x8007",
    "ERR-4021": "err 4021, err 4021",
    "#deploy": "deploy, deploy, deploy and deploy",
    "@grete": "grete, grete, grete and grete",
    "--force": "force, force, force and force",
    "I/O": "o, o, i, o and i",
    "R&D": "r, d, r, d, r",
    "AT&T": "at at at t t",
    "A+": "a a a a a",
    "$HOME": "home, home, home",
    "50%": "50, 50, 50 and 50",
    '"yes, no"': "yes no, yes no, yes no",
    '"C++"': "option c, plan c, vitamin c, c, c",
    "「東京タワー」": "東京 タワー",
    "東京タワー": "東京 タワー",
    "https://example.org/a?b=1": "https example org a b 1, https example org a b 1",
}


@pytest.mark.parametrize("typed", TYPED)
def test_a_text_with_what_was_typed_is_first(workspace, typed):
    shown = typed.strip('"「」')
    exact = f"Long ago somebody wrote {shown} into a note that is longer than all of the others."
    letters = TYPED[typed]
    say(workspace, exact, *[f"{letters} ({number})" for number in range(5)])

    assert texts(typed, workspace)[0] == exact


@pytest.mark.parametrize("typed", ["C++", "#deploy", "foo_bar"])
def test_it_is_found_among_more_texts_than_are_ranked(workspace, typed):
    exact = f"Long ago somebody wrote {typed} into a note that is longer than all of the others."
    know(workspace, exact)
    for number in range(200):
        know(workspace, f"{TYPED[typed]} ({number})")

    assert texts(typed, workspace)[0] == exact


@pytest.mark.parametrize("around", ["({})", "“{}”", "{}, please", "the {}?", "**{}**", "[{}]", "{}.", "{}:", "`{}`!"])
def test_signs_around_what_is_meant_make_no_difference(workspace, around):
    say(workspace, "The core is written in C++ as it was long ago.", *["option c, plan c, c, c"] * 5)

    assert texts(around.format("C++"), workspace)[0] == "The core is written in C++ as it was long ago."


def test_other_words_of_the_query_count_as_before(workspace):
    say(workspace, "C++ is old.", "The build of the parser fails in C++ since May.", "The build fails.", "c c c c")

    assert texts("Why does the C++ build fail?", workspace)[0] == "The build of the parser fails in C++ since May."


@pytest.mark.parametrize("length", [90, 150, 400])
def test_a_long_word_is_found_and_scored(workspace, length):
    word = "abcdefghij" * (length // 10)
    say(workspace, f"The key is {word}.", f"The key is {word}x.", "The key is lost.")

    [hit] = search(word, workspace).hits
    assert hit.scored.coverage == 1


def test_without_the_exact_text_the_letters_are_found(workspace):
    say(workspace, "Vitamin c is sour.", "node js is a program")

    assert texts("C++", workspace) == ["Vitamin c is sour."]
    assert texts("node.js", workspace) == ["node js is a program"]
    [row] = search("C++", workspace).hits
    assert row.scored.coverage == pytest.approx(1)


def test_the_explanation_names_the_exact_text(workspace):
    say(workspace, "The core is written in C++.", "option c")

    [first, second] = answer(scope_of(workspace), Question("C++"), now=NOW, explain=True)["results"]

    assert [one["term"] for one in first["explanation"]["terms"]] == ["c", "c++"]
    assert [one["count"] for one in first["explanation"]["terms"]] == [1, 1]
    assert [one["count"] for one in second["explanation"]["terms"]] == [1, 0]


def test_the_page_highlights_the_exact_text(workspace, admin_client):
    say(workspace, "The core is written in C++.")

    page = admin_client.get(reverse("search", args=[workspace.slug]), {"q": "C++"}).content.decode()

    assert "<mark>C++</mark>" in page


@pytest.mark.parametrize(
    "typed", ["don't", "Grete's", "well-known", "(deploy)", "deploy?", "deploy…", "«deploy»", "*deploy*"]
)
def test_ordinary_words_have_no_signs(typed):
    assert not any(term.literal for term in asked(typed).ranked_terms)


def test_a_quoted_title_in_a_question_that_nothing_contains_is_searched_as_words(workspace):
    say(workspace, "I read a book on what is impossible", "nothing of the kind")

    found = search('When did Mel read the book "nothing is impossible"?', workspace)
    assert found.hits[0].row.content == "I read a book on what is impossible"
    assert found.notes == ["No exact match for “nothing is impossible”: its parts were searched."]
    assert texts('"nothing is impossible"', workspace) == []
    assert texts('book "nothing is impossible" "of the kind"', workspace) == ["nothing of the kind"]
    assert texts('book "of the kind"', workspace) == ["nothing of the kind"]


def test_an_asterisk_finds_and_excludes_words_by_their_beginning(workspace):
    know(workspace, "The deployment waits for Ana")
    know(workspace, "We deploy on Tuesdays, says Ana")
    know(workspace, "Ana keeps the depot key")

    assert set(texts("deplo*", workspace)) == {"The deployment waits for Ana", "We deploy on Tuesdays, says Ana"}
    assert texts("ana -deplo*", workspace) == ["Ana keeps the depot key"]

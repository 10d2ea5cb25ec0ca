"""Texts that are written in different ways find each other, on both databases."""

import pytest

from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.passages import highlight
from memoryhub.lib.search.tokenizing import split_words
from tests.searches import know, say, texts

FORMS = {
    "sharp s": ["straße", "strasse", "STRASSE", "STRAẞE"],
    "sharp s in a compound": ["Großstraße", "grossstrasse"],
    "family": ["👨\u200d👩\u200d👧", "👨👩👧"],
    "variation selector": ["❤", "❤\ufe0f", "❤\ufe0e"],
    "zero-width space": ["zerowidth", "zero\u200bwidth", "\ufeffzerowidth"],
    "joiner in a word": ["auflage", "auf\u200clage", "auf\u200dlage", "auf\u2060lage"],
    "soft hyphen": ["software", "soft\u00adware"],
    "Persian": ["میخواهم", "می\u200cخواهم"],
    "Devanagari": ["क्ष", "क्\u200dष"],
    "final sigma": ["οδος", "ΟΔΟΣ", "οδοσ"],
    "ligature": ["ﬁnale", "finale"],
    "Turkish i": ["ışık", "işik", "IŞIK", "İŞİK", "isik", "i\u0307şi\u0307k"],
}


@pytest.mark.django_db
@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS)
def test_every_form_finds_every_form(workspace, forms):
    messages = {f"Note {form} end" for form in forms}
    say(workspace, *messages, "Nothing of the kind")
    know(workspace, f"About {forms[0]}")

    for form in forms:
        assert set(texts(form, workspace, kinds=["entry"])) == messages
        assert set(texts(f'"note {form} end"', workspace, kinds=["entry"], match_all=True)) == messages
        assert texts(form, workspace, kinds=["knowledge"]) == [f"About {forms[0]}"]
        assert texts(f"note -{form}", workspace, kinds=["entry"]) == []


@pytest.mark.django_db
def test_emoji_are_searched_alone_but_ignored_next_to_words(workspace):
    say(workspace, "Deployed 🎉", "Party 🎉🎊", "deploy later", "great👍")

    assert set(texts("🎉", workspace, kinds=["entry"])) == {"Deployed 🎉", "Party 🎉🎊"}
    assert texts("🎉🎊", workspace, kinds=["entry"]) == ["Party 🎉🎊"]
    assert texts("👍", workspace, kinds=["entry"]) == ["great👍"]
    assert set(texts("deployed 🎉", workspace, kinds=["entry"])) == {"Deployed 🎉", "deploy later"}
    assert texts('"🎉"', workspace, kinds=["entry"], match_all=True)


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["kısa", "kisa", "adı", "kısaAdı"])
def test_parts_of_words_with_dotless_i_are_found(workspace, form):
    say(workspace, "kısaAdı alan", "Nothing of the kind")

    assert texts(form, workspace, kinds=["entry"]) == ["kısaAdı alan"]


def test_hits_with_dotless_i_keep_their_place():
    shown = highlight("Bir IŞIK, ışıkları", [WeightedTerm(tuple(split_words("ışık")), is_prefix=True)])

    assert [piece for piece, is_hit in shown if is_hit] == ["IŞIK", "ışıkları"]


@pytest.mark.parametrize("text", ["Die Hauptstraße 5, deployToken", "DIE HAUPTSTRASSE 5, deployToken"])
@pytest.mark.parametrize("query", ["hauptstraße", "HAUPTSTRASSE", "token"])
def test_hits_keep_their_place_in_the_original_text(text, query):
    shown = highlight(text, [WeightedTerm(tuple(split_words(query)))])

    hit = "Token" if query == "token" else text.split()[1]
    assert [(piece, is_hit) for piece, is_hit in shown if is_hit] == [(hit, True)]
    assert "".join(piece for piece, _ in shown) == text


@pytest.mark.parametrize(
    ("text", "query", "hit"),
    [
        ("ß ß ß zum Schluß hier", "schluss", "Schluß"),
        ("our 👨\u200d👩\u200d👧 trip", "👨👩👧", "👨\u200d👩\u200d👧"),
        ("I ❤\ufe0f it", "❤", "❤\ufe0f"),
        ("a zero\u200bwidth space", "zerowidth", "zero\u200bwidth"),
        ("ß" * 1_500 + " ein Schluß", "schluss", "Schluß"),
    ],
)
def test_a_hit_is_highlighted_with_its_invisible_characters(text, query, hit):
    shown = highlight(text, [WeightedTerm(tuple(split_words(query)))])

    assert [piece for piece, is_hit in shown if is_hit] == [hit]

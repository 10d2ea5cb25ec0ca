import pytest

from memoryhub.forgetting.matching import (
    Digest,
    Redaction,
    digest_of,
    find_digests,
    find_exactly,
    find_phrases,
    phrase_of,
)
from memoryhub.lib.layouts.records import EntryRecord, FileRead

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("phrase", "text", "left"),
    [
        ("Anna Weber", "Ask anna-WEBER's team", "Ask [forgotten]'s team"),
        ("ann", "annual Ann ANN", "annual [forgotten] [forgotten]"),
        (
            "482913377",
            "telegram:482913377 and telegram_482913377.jsonl",
            "telegram:[forgotten] and telegram_[forgotten].jsonl",
        ),
        ("田中", "東京の田中さん", "東京の[forgotten]さん"),
        ("Müller", "MÜLLER, müller; Mueller", "[forgotten], [forgotten]; Mueller"),
        ("a b c", "a b a b c", "a b [forgotten]"),
        ("xx y", "xx y xx y", "[forgotten] [forgotten]"),
        ("ﬁnance", "FINANCE", "[forgotten]"),
        ("token", "nothing here", "nothing here"),
        ("José", "Jose\u0301 and Jos\u00e9", "[forgotten] and [forgotten]"),
        ("Jose\u0301", "Jos\u00e9", "[forgotten]"),
        ("田中", "user田中さん, 3月に田中が来た", "user[forgotten]さん, 3月に[forgotten]が来た"),
        ("Anna", "Annaさん", "[forgotten]さん"),
        ("김철수", "김철수는 갔다", "[forgotten]는 갔다"),
        ("Müller", '{"a": "M\\u00fcller"}', '{"a": "[forgotten]"}'),
        ("Anna Weber", '{"a": "hello\\nAnna\\tWeber"}', '{"a": "hello\\n[forgotten]"}'),
        ("new users", "C:\\new users", "C:\\[forgotten]"),
        ("Anna", "An\u00adna, An\u200bna", "[forgotten], [forgotten]"),
        ("Anna", "An\ufe0fna, An\u180bna, An\u034fna", "[forgotten], [forgotten], [forgotten]"),
        (
            "Anna",
            "A\u0336n\u0336n\u0336a\u0336, A\u20e3n\u20e3n\u20e3a\u20e3, An\u0301na",
            "[forgotten], [forgotten], Ańna",
        ),
    ],
)
def test_whole_words_are_matched_in_any_case(phrase, text, left):
    by_words = Redaction(words=find_phrases([phrase_of(phrase)]))
    by_hash = Redaction(words=find_digests([digest_of(phrase_of(phrase), KEY)], KEY))

    assert by_words.text(text) == left
    assert by_hash.text(text) == left


@pytest.mark.parametrize("text", ["", "ab", "-- !", "é"])
def test_a_phrase_that_is_too_short_is_ignored(text):
    assert phrase_of(text) == ()


def test_a_long_phrase_is_removed_as_a_whole():
    text = " ".join(f"word{number}" for number in range(200))

    assert Redaction(words=find_phrases([phrase_of(text)])).text(f"so {text} it was") == "so [forgotten] it was"


def test_an_exact_text_is_found():
    find = find_exactly("cli:a")

    assert Redaction(words=find).text("cli:a: opened; cli:ab, xcli:a, CLI:A") == (
        "[forgotten]: opened; cli:ab, xcli:a, CLI:A"
    )


def test_removed_lines_keep_their_bullets():
    redaction = Redaction(lines=find_phrases([("anna",)]))

    assert redaction.text("# Anna\n- Anna likes tea\n  * calls Anna\nnot her\n1. anna") == (
        "# [forgotten]\n- [forgotten]\n  * [forgotten]\nnot her\n1. [forgotten]"
    )


def test_json_is_redacted_in_keys_and_values():
    redaction = Redaction(words=find_phrases([("anna",)]))
    value = {"Anna": ["see anna", 1, None, {"x": True}]}

    assert redaction.mentions(value)
    assert redaction.value(value) == {"[forgotten]": ["see [forgotten]", 1, None, {"x": True}]}
    assert not redaction.mentions({"x": [1, "Annabel"]})


def test_adjacent_and_overlapping_phrases_are_removed():
    find = find_phrases([phrase_of(text) for text in ("Anna Weber", "Weber AG", "Bo Lind")])

    assert find("Anna Weber AG, Bo Lind") == [(0, 13), (15, 22)]
    assert Redaction(words=find).text("Anna Weber AG, Bo Lind and Bo") == "[forgotten], [forgotten] and Bo"


@pytest.mark.parametrize("find", [find_phrases([]), find_phrases([()]), find_digests([], KEY)])
def test_nothing_to_forget_leaves_everything(find):
    assert Redaction(words=find, lines=find).text("- Anna\n\n") == "- Anna\n\n"


def test_records_are_redacted_and_otherwise_unchanged():
    redaction = Redaction(words=find_phrases([("anna",)]))
    entry = EntryRecord(kind="message", role="user", content="ask Anna", source_hash="h", extra={"by": ["Anna", 1]})
    file = FileRead("Anna.jsonl", "session", None, [entry])

    (redacted,) = redaction.record(file).items

    assert (redacted.content, redacted.extra) == ("ask [forgotten]", {"by": ["[forgotten]", 1]})
    assert redaction.record(redacted) is redacted


def test_field_names_that_a_program_needs_are_kept():
    redaction = Redaction(words=find_phrases([("anna",)]))

    assert redaction.value({"anna": ("Anna", 1)}, keys=False) == {"anna": ("[forgotten]", 1)}


def test_digests_of_an_older_hub_are_recognised():
    assert digest_of(("anna", "weber"), KEY) == Digest(2, "fd6da099fdf1d8df87abc7290f30d749")


def test_a_digest_depends_on_its_key():
    assert digest_of(("anna",), KEY) != digest_of(("anna",), b"other")
    assert not find_digests([digest_of(("anna",), b"other")], KEY)("anna")


@pytest.mark.parametrize("text", ["\\" * 100_000, "\\u" * 50_000, "=" * 100_000, "&" * 100_000, "-\r" * 50_000])
def test_a_text_of_escape_marks_is_searched_in_linear_time(text):
    """A pattern that reads the rest of the text at each mark would not finish."""
    assert find_phrases([("anna",)])(text) == []

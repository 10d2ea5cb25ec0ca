import pytest

from memoryhub.lib.validation import BadJSON, brief, clean_text, decode_json, decode_utf8


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": NaN}', {"a": "NaN"}),
        ("[-Infinity, 1e999]", ["-Infinity", "1e999"]),
        ("123456789012345678901", "123456789012345678901"),
        ('"\\ud83d"', "\\ud83d"),
        ('"a\\u0000b"', "a\\u0000b"),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_what_databases_disagree_about_becomes_text_and_is_named(text, value):
    decoded = decode_json(text)

    assert decoded.value == value
    assert decoded.repairs


def test_ordinary_values_pass_untouched():
    decoded = decode_json('{"b": 1, "a": [1.5, null, true, "😀"], "n": 9007199254740993}')

    assert decoded.value == {"b": 1, "a": [1.5, None, True, "😀"], "n": 9007199254740993}
    assert list(decoded.value) == ["b", "a", "n"]
    assert decoded.repairs == []


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "[" * 70 + "]" * 70, "1" * 5000 + "x", '{"a": }'])
def test_anything_else_is_a_named_error(text):
    with pytest.raises(BadJSON):
        decode_json(text)


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
def test_values_are_nested_up_to_64_deep(before, after):
    assert decode_json(before * 64 + "1" + after * 64).repairs == []
    with pytest.raises(BadJSON):
        decode_json(before * 65 + "1" + after * 65)


@pytest.mark.parametrize(("digits", "is_text"), [("9" * 18, False), ("-" + "9" * 18, False), ("1" + "0" * 18, True)])
def test_a_number_that_fits_into_a_column_stays_a_number(digits, is_text):
    assert isinstance(decode_json(digits).value, str) == is_text


def test_the_place_of_an_error_is_told():
    with pytest.raises(BadJSON) as error:
        decode_json('{"a": 1,\n  b}')

    assert (error.value.line, error.value.column) == (2, 3)


def test_five_thousand_digits_are_kept_as_text():
    assert decode_json("9" * 5000).value == "9" * 5000


def test_text_files_are_decoded_with_a_word_about_it():
    assert decode_utf8("é".encode()) == ("é", None)
    assert decode_utf8(b"\xef\xbb\xbfx") == ("x", None)
    text, repair = decode_utf8("7 – café".encode("cp1252"))
    assert text == "7 – café"
    assert "Windows-1252" in repair


@pytest.mark.parametrize(("raw", "text"), [(b"a\x00", "a\\u0000"), (b"\xe9\x00", "é\\u0000")])
def test_a_text_file_that_could_not_be_stored_as_it_is_says_so(raw, text):
    cleaned, repair = decode_utf8(raw)

    assert cleaned == text
    assert repair
    assert ("Windows-1252" in repair) == (raw[0] == 0xE9)


def test_a_report_quotes_eighty_characters():
    assert brief("x" * 80) == "x" * 80
    assert brief("x" * 81) == "x" * 80 + "…"
    assert brief({"a": 1}) == '{"a": 1}'


def test_visible_escapes_stand_for_what_cannot_be_stored():
    assert clean_text("a\x00\ud800") == "a\\u0000\\ud800"

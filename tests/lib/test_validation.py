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
def test_values_that_databases_store_differently_become_text_and_are_reported(text, value):
    decoded = decode_json(text)

    assert decoded.value == value
    assert decoded.repairs


def test_ordinary_values_are_unchanged():
    decoded = decode_json('{"b": 1, "a": [1.5, null, true, "😀"], "n": 9007199254740993}')

    assert decoded.value == {"b": 1, "a": [1.5, None, True, "😀"], "n": 9007199254740993}
    assert list(decoded.value) == ["b", "a", "n"]
    assert decoded.repairs == []


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "[" * 70 + "]" * 70, "1" * 5000 + "x", '{"a": }'])
def test_invalid_json_raises_bad_json(text):
    with pytest.raises(BadJSON):
        decode_json(text)


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
def test_up_to_64_levels_of_nesting_are_allowed(before, after):
    assert decode_json(before * 64 + "1" + after * 64).repairs == []
    with pytest.raises(BadJSON):
        decode_json(before * 65 + "1" + after * 65)


@pytest.mark.parametrize(("digits", "is_text"), [("9" * 18, False), ("-" + "9" * 18, False), ("1" + "0" * 18, True)])
def test_an_integer_that_fits_a_column_stays_a_number(digits, is_text):
    assert isinstance(decode_json(digits).value, str) == is_text


def test_an_error_has_its_line_and_column():
    with pytest.raises(BadJSON) as error:
        decode_json('{"a": 1,\n  b}')

    assert (error.value.line, error.value.column) == (2, 3)


def test_huge_integers_become_text():
    assert decode_json("9" * 5000).value == "9" * 5000


def test_repairs_of_text_files_are_described():
    assert decode_utf8("é".encode()) == ("é", None)
    assert decode_utf8(b"\xef\xbb\xbfx") == ("x", None)
    text, repair = decode_utf8("7 – café".encode("cp1252"))
    assert text == "7 – café"
    assert "Windows-1252" in repair


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_if_it_has_a_byte_order_mark(encoding):
    raw = "\ufeff- tea – 🍵\n".encode(encoding)

    assert decode_utf8(raw) == ("- tea – 🍵\n", "is UTF-16, not UTF-8")
    assert decode_utf8(raw + b"\xff")[0].startswith("- tea – 🍵\n\\xff")


@pytest.mark.parametrize(("raw", "text"), [(b"a\x00", "a\\u0000"), (b"\xe9\x00", "é\\u0000")])
def test_characters_that_cannot_be_stored_are_reported(raw, text):
    cleaned, repair = decode_utf8(raw)

    assert cleaned == text
    assert repair
    assert ("Windows-1252" in repair) == (raw[0] == 0xE9)


def test_brief_cuts_at_eighty_characters():
    assert brief("x" * 80) == "x" * 80
    assert brief("x" * 81) == "x" * 80 + "…"
    assert brief({"a": 1}) == '{"a": 1}'


def test_characters_that_cannot_be_stored_become_visible_escapes():
    assert clean_text("a\x00\ud800") == "a\\u0000\\ud800"

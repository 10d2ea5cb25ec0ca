from memoryhub.lib.tokens import count_tokens


def test_a_token_is_four_latin_characters_or_one_wide_one():
    assert count_tokens("") == 0
    assert count_tokens("four") == 1
    assert count_tokens("five5") == 2
    assert count_tokens("标签编辑器") == 5

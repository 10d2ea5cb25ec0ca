import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.graph.keywords import MAX_CHARS, MAX_KEYWORDS, has_word, keywords_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The DHL API limits us: 100 requests per minute", ["dhl", "api", "limits", "requests", "minute"]),
        ("It doesn't use PostgreSQL's pool, don’t", ["postgresql", "pool"]),
        ("user_preference, e-mail and re-reading", ["user", "preference", "mail", "reading"]),
        ("p95 of 12ms on 2026-04-01, version 1.2.3", ["p95", "12ms", "version"]),
        ("commit 9f3c2b71a8d6 with AKIAIOSFODNN7EXAMPLE and sk-abc12de34", ["commit"]),
        ("Straße über Łódź", ["straße", "über", "łódź"]),
        ("标签编辑器默认字体是 字体", ["字体"]),
        ("アドレス欄は全角文字を含む", ["アドレス", "全角文字"]),
        ("x" * (MAX_CHARS + 1), []),
        ("a an of 12 42", []),
        ("", []),
    ],
)
def test_keywords_are_plain_words(text, words):
    assert keywords_of(text) == words


def test_keywords_are_unique_and_limited():
    text = " ".join(f"word{chr(97 + number)}" for number in range(26))

    assert keywords_of(f"{text} {text}") == text.split()[:MAX_KEYWORDS]


@pytest.mark.slow
@given(st.text())
def test_keywords_occur_in_their_text(text):
    for word in keywords_of(text):
        assert word == word.lower()
        assert 2 <= len(word) <= MAX_CHARS
        assert word in text.lower()


@pytest.mark.parametrize(
    ("text", "word", "has"),
    [
        ("Add it.", "add", True),
        ("An address", "add", False),
        ("dir=ltr here", "dir=", True),
        ("默认字体是", "字体", True),
        ("print 🖨️ now", "🖨️", True),
        ("", "a", False),
    ],
)
def test_a_keyword_matches_whole_words(text, word, has):
    assert has_word(text, word) is has

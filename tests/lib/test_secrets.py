import pytest

from memoryhub.lib.secrets import find_secrets, looks_secret


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("openai_api_key", "abc"),
        ("DB.PASSWORD", "abc"),
        ("note", "use sk-abcdefghijklmnop1234"),
        ("note", "ghp_" + "a" * 36),
        ("note", "AKIA" + "A" * 16),
        ("database", "postgres://user:pass@host/db"),
        ("openai_key", "abc"),
        ("authToken", "abc"),
        ("openaiApiKey", "abc"),
        ("passwords", "abc"),
        ("note", "0123456789abcdef" * 4),
        ("note", "aGVsbG8gd29ybGQgdGhpcyBpcyBhIGxvbmcgc2VjcmV0"),
        ("config", '{"password": "hunter2"}'),
        ("config", '{"auth_token": "hunter2"}'),
        ("env", "AUTH_TOKEN=hunter2"),
        ("env", "DB_PASSWORD=hunter2"),
        ("note", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_secrets_are_recognised(key, value):
    assert looks_secret(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("preference", "Prefers TypeScript over JavaScript"),
        ("api_endpoint", "https://api.acme.example/v2"),
        ("tokenizer", "cl100k"),
        ("monkey", "banana"),
        ("token_count", "512"),
        ("max_tokens", "4096"),
        ("primary_key", "id"),
        ("key", "value"),
        ("password_policy", "12 characters"),
        ("commit", "9fceb02d0ae598e95dc970b74767f19372d61af8"),
        ("path", "/srv/Projects/MemoryHub2/knowledgeAppServicesOutsideEditPlans"),
        ("api_key", " "),
        ("config", '{"field": "password"}'),
        ("config", '{"token": "12"}'),
        ("contact", "mailto:ana@example.org"),
    ],
)
def test_ordinary_values_are_not_secrets(key, value):
    assert not looks_secret(key, value)


@pytest.mark.parametrize(
    ("part", "is_secret"), [("z", False), ("x=", False), ("a://", False), ('"a":', False), ("aA1+", True)]
)
def test_a_long_value_is_scanned_in_linear_time(part, is_secret):
    """Patterns with quadratic backtracking would not finish."""
    assert looks_secret("note", part * 200_000) == is_secret


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-1234567890",
        "a://b:c@",
        "0123456789abcdef" * 4,
        "-----BEGIN PRIVATE KEY-----",
        "eyJabcdefghij.klmnopqrst.uvwxy",
    ],
)
@pytest.mark.parametrize("around", ["{}", "words before\n({}) and after", "\u00a0{}\u2028", "a-----BEGIN, {}"])
def test_secrets_of_known_formats_are_found_anywhere_in_a_text(secret, around):
    text = around.format(secret)

    assert (text.index(secret), text.index(secret) + len(secret), False) in list(find_secrets(text))

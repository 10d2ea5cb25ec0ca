import pytest

from memoryhub.lib.secrets import looks_secret


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("openai_api_key", "abc"),
        ("DB.PASSWORD", "abc"),
        ("note", "use sk-abcdefghijklmnop1234"),
        ("note", "ghp_" + "a" * 36),
        ("note", "AKIA" + "A" * 16),
        ("database", "postgres://user:pass@host/db"),
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
        ("api_key", " "),
        ("contact", "mailto:ana@example.org"),
    ],
)
def test_ordinary_values_are_not(key, value):
    assert not looks_secret(key, value)

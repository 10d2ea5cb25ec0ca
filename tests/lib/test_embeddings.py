"""The embedding client with the real SDK, against a scripted server on loopback."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from memoryhub.lib.embeddings import PROVIDERS, EmbeddingSettings, dimensions_of, embed, provider_error
from memoryhub.lib.http.safe_http import AddressRefused
from memoryhub.lib.llm import ModelRefused
from tests.hub import raises_code

PATH = "/v1/embeddings"


def settings_for(httpserver: HTTPServer, **values) -> EmbeddingSettings:
    values = {"provider": "openai", "model": "tiny", "api_key": "sk-very-secret", "timeout_seconds": 5.0} | values
    return EmbeddingSettings(
        base_url=httpserver.url_for("/v1"), allowed=frozenset({f"{httpserver.host}:{httpserver.port}"}), **values
    )


def reply(*embeddings: object, **values: object) -> dict[str, object]:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(embeddings)]
    return {
        "object": "list",
        "model": "tiny",
        "data": data,
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    } | values


def test_embeddings_are_unit_vectors_with_their_token_count(httpserver):
    httpserver.expect_request(PATH).respond_with_json(reply([3, 4], [0.0, -2.5]))

    answer = embed(settings_for(httpserver), ["fast", "slow"])

    assert answer.rows.dtype == np.float32
    assert answer.rows.tolist() == np.array([[0.6, 0.8], [0, -1]], dtype=np.float32).tolist()
    assert answer.prompt_tokens == 7
    sent, _ = httpserver.log[0]
    assert sent.headers["Authorization"] == "Bearer sk-very-secret"
    assert json.loads(sent.data) == {"model": "tiny", "input": ["fast", "slow"], "encoding_format": "float"}


def test_voyage_requests_use_its_own_parameters(httpserver):
    httpserver.expect_request(PATH).respond_with_json(reply([1.0, 0.0]))

    embed(settings_for(httpserver, provider="voyage"), ["fast"])

    assert json.loads(httpserver.log[0][0].data)["encoding_format"] is None


def test_embeddings_are_ordered_by_their_index(httpserver):
    rows = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    httpserver.expect_request(PATH).respond_with_json({"data": rows})

    answer = embed(settings_for(httpserver), ["a", "b"])

    assert answer.rows.tolist() == [[1, 0], [0, 1]]
    assert answer.prompt_tokens == 0


def test_the_index_is_optional(httpserver):
    httpserver.expect_request(PATH).respond_with_json({"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]})

    assert embed(settings_for(httpserver), ["a", "b"]).rows.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "later"}, "no embeddings"),
        ([1, 2], "no embeddings"),
        ({"data": "x"}, "no embeddings"),
        (reply(), "0 embeddings for 2"),
        (reply([1, 0]), "1 embeddings for 2"),
        (reply([1, 0], [0, 1], [1, 1]), "3 embeddings for 2"),
        (
            {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
            "no embedding or an invalid index",
        ),
        (
            {"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]},
            "no embedding or an invalid index",
        ),
        (
            {"data": [{"index": 0, "embedding": [1]}, {"index": True, "embedding": [1]}]},
            "no embedding or an invalid index",
        ),
        ({"data": [[1, 0], [0, 1]]}, "no embedding or an invalid index"),
        (reply("AACAPwAAAAA=", [0, 1]), "no embedding or an invalid index"),
        (reply([1, 0], [0, 1, 0]), "2, 3 dimensions instead"),
        (reply([], []), "have 0 dimensions"),
        (reply([1, "x"], [0, 1]), "not numbers"),
        (reply([1, None], [0, 1]), "not numbers"),
        (reply([1, True], [0, 1]), "not numbers"),
        (reply([1, float("nan")], [0, 1]), "not numbers"),
        (reply([1, float("inf")], [0, 1]), "not numbers"),
        (reply([1e308, 1e308], [0, 1]), "zero or not finite"),
        (reply([0, 0], [0, 1]), "zero or not finite"),
    ],
)
def test_a_malformed_reply_is_refused(httpserver, body, words):
    httpserver.expect_request(PATH).respond_with_json(body)

    with raises_code("bad_reply", match=words):
        embed(settings_for(httpserver), ["a", "b"])


def test_embeddings_of_the_wrong_length_are_refused(httpserver):
    httpserver.expect_request(PATH).respond_with_json(reply([1, 0]))

    with raises_code("bad_reply", match="2 dimensions instead of 1536"):
        embed(settings_for(httpserver, dimensions=1536), ["a"])


@pytest.mark.parametrize("body", [b"<html><h1>Welcome</h1></html>", b"", b"\xff\xfe{", b'{"data": ['])
def test_a_body_that_is_not_json_is_refused(httpserver, body):
    httpserver.expect_request(PATH).respond_with_data(body, content_type="application/json")

    with raises_code("bad_reply", match="not JSON"):
        embed(settings_for(httpserver), ["a"])


@pytest.mark.parametrize(
    ("status", "code"), [(503, "model_unavailable"), (429, "model_unavailable"), (404, "model_refused")]
)
def test_an_error_message_never_contains_the_key(httpserver, status, code):
    httpserver.expect_request(PATH).respond_with_data("no sk-very-secret", status=status)

    with raises_code(code, match=f"{status}: no •••"):
        embed(settings_for(httpserver, retries=0), ["a"])


def test_a_wrong_key_error_names_the_setting(httpserver):
    httpserver.expect_request(PATH).respond_with_data("no", status=401)

    with pytest.raises(ModelRefused, match="MEMORYHUB_EMBEDDING_API_KEY"):
        embed(settings_for(httpserver), ["a"])


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("anthropic", "Use voyage"),
        ("openrouter", "openrouter doesn't"),
        ("groq", "groq doesn't"),
        ("nobody", "no embedding provider"),
    ],
)
def test_a_provider_without_embeddings_is_refused(httpserver, provider, words):
    with pytest.raises(ModelRefused, match=words):
        embed(settings_for(httpserver, provider=provider), ["a"])
    assert words in provider_error(provider)
    assert httpserver.log == []


def test_addresses_are_checked_before_sending():
    with pytest.raises(AddressRefused):
        embed(EmbeddingSettings("http://127.0.0.1:49151/v1", "m", provider="ollama"), ["a"])
    with raises_code("model_not_set"):
        embed(EmbeddingSettings("", "m", provider="ollama"), ["a"])


def test_an_unreachable_server_is_reported():
    settings = EmbeddingSettings(
        "http://127.0.0.1:49151/v1", "m", provider="ollama", retries=0, allowed=frozenset({"127.0.0.1:49151"})
    )

    with raises_code("model_unavailable", match="can't be reached"):
        embed(settings, ["a"])


def test_the_dimensions_of_known_models_are_returned():
    assert dimensions_of("openai", "text-embedding-3-large") == 3072
    assert dimensions_of("voyage", "voyage-code-2") == 1536
    assert dimensions_of("openai", "of-my-own") == dimensions_of("nobody", "x") == 0
    assert [provider_error(name) for name in (*PROVIDERS, "none", "")] == [""] * 9


def test_long_embeddings_use_smaller_batches():
    assert EmbeddingSettings("u", "m", dimensions=1536).batch_size == 64
    assert EmbeddingSettings("u", "m", dimensions=3072).batch_size == 32

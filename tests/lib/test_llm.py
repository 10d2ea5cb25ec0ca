"""The model client with the real SDK, against a scripted server on loopback."""

from __future__ import annotations

import json
import time

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memoryhub.lib.http.safe_http import AddressRefused, check_url
from memoryhub.lib.llm import ModelRefused, ModelSettings, PromptTooLong, ask
from tests.hub import raises_code

PATH = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Sum it up."}]


@pytest.fixture
def settings(httpserver: HTTPServer) -> ModelSettings:
    return settings_for(httpserver)


def settings_for(httpserver: HTTPServer, **values) -> ModelSettings:
    values = {"timeout_seconds": 5.0, "retries": 1, "api_key": "sk-very-secret"} | values
    return ModelSettings(
        base_url=httpserver.url_for("/v1"),
        model="test-model",
        allowed=frozenset({f"{httpserver.host}:{httpserver.port}"}),
        **values,
    )


def completion(text: object = "A summary.", **choice: object) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message} | choice],
        "usage": {"prompt_tokens": 90, "completion_tokens": 12, "total_tokens": 102},
    }


def test_a_reply_has_its_token_counts(httpserver, settings):
    httpserver.expect_request(PATH).respond_with_json(completion())

    reply = ask(settings, MESSAGES, max_tokens=50)

    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("A summary.", 90, 12)
    sent, _ = httpserver.log[0]
    assert sent.headers["Authorization"] == "Bearer sk-very-secret"
    assert json.loads(sent.data) == {"model": "test-model", "messages": MESSAGES, "max_tokens": 50}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "later"}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": ["x"]}, "no choices"),
        (completion(""), "no text"),
        (completion("  \n"), "no text"),
        (completion(None), "no text"),
        (completion(17), "no text"),
        (completion({"summary": "x"}), "no text"),
        (completion(message="words"), "no text"),
        (completion(finish_reason="length"), "length limit"),
        (completion(finish_reason="content_filter"), "filter"),
        (completion(None, finish_reason="tool_calls"), "tool_calls"),
        (completion(finish_reason=None), "None"),
        ([1, 2], "no choices"),
        ("just text", "no choices"),
    ],
)
def test_a_malformed_reply_is_refused(httpserver, settings, body, words):
    httpserver.expect_request(PATH).respond_with_json(body)

    with raises_code("bad_reply", match=words):
        ask(settings, MESSAGES, max_tokens=50)


@pytest.mark.parametrize("body", [b"<html><h1>Welcome</h1></html>", b"", b"\xff\xfe{", b"{" * 5000, b'{"a": 1'])
def test_a_body_that_is_not_json_is_refused(httpserver, settings, body):
    httpserver.expect_request(PATH).respond_with_data(body, content_type="application/json")

    with raises_code("bad_reply", match="not JSON"):
        ask(settings, MESSAGES, max_tokens=50)


@pytest.mark.parametrize(
    ("status", "code", "requests"),
    [
        (502, "model_unavailable", 2),
        (503, "model_unavailable", 2),
        (429, "model_unavailable", 2),
        (401, "model_refused", 1),
        (403, "model_refused", 1),
        (404, "model_refused", 1),
        (400, "model_refused", 1),
    ],
)
def test_error_statuses_are_reported_and_retried_only_if_useful(httpserver, settings, status, code, requests):
    httpserver.expect_request(PATH).respond_with_data("<h1>no</h1> sk-very-secret", status=status)

    with raises_code(code, match=rf"{status}: no •••"):
        ask(settings, MESSAGES, max_tokens=50)
    assert len(httpserver.log) == requests


def test_a_request_that_is_too_long_raises_prompt_too_long(httpserver, settings):
    body = {
        "error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}
    }
    httpserver.expect_request(PATH).respond_with_json(body, status=400)

    with pytest.raises(PromptTooLong):
        ask(settings, MESSAGES, max_tokens=50)


def test_a_redirect_is_not_followed(httpserver, settings):
    httpserver.expect_request(PATH).respond_with_data("", status=302, headers={"Location": "/elsewhere"})

    with pytest.raises(ModelRefused, match="Redirects are not followed"):
        ask(settings, MESSAGES, max_tokens=50)
    assert [request.path for request, _ in httpserver.log] == [PATH]


def test_a_slow_reply_is_cut_at_the_deadline(httpserver):
    def drip(_request: Request) -> Response:
        def chunks():
            for _ in range(40):
                time.sleep(0.1)
                yield b" "

        return Response(chunks(), content_type="application/json")

    httpserver.expect_request(PATH).respond_with_handler(drip)

    with raises_code("model_unavailable", match="within"):
        ask(settings_for(httpserver, timeout_seconds=0.5, retries=0), MESSAGES, max_tokens=50)


def test_a_reply_of_many_megabytes_is_refused(httpserver, settings):
    httpserver.expect_request(PATH).respond_with_json(completion("x" * 6_000_000))

    with raises_code("bad_reply", match="larger than 5 MB"):
        ask(settings, MESSAGES, max_tokens=50)


def test_an_unreachable_server_is_reported(httpserver):
    settings = ModelSettings("http://127.0.0.1:49151/v1", "m", allowed=frozenset({"127.0.0.1:49151"}), retries=0)

    with raises_code("model_unavailable", match="can't be reached"):
        ask(settings, MESSAGES, max_tokens=50)


def test_without_a_model_the_error_names_the_setting():
    with raises_code("model_not_set", match="MEMORYHUB_LLM_MODEL"):
        ask(ModelSettings("https://models.example.org/v1", ""), MESSAGES, max_tokens=50)


def test_the_key_is_not_in_any_repr():
    assert "secret" not in repr(ModelSettings("https://models.example.org", "m", "secret"))


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/v1",
        "http://[fe80::1]/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://[64:ff9b::a9fe:a9fe]/v1",
        "http://2852039166/v1",
        "http://0xa9fea9fe/v1",
        "http://0.0.0.0/v1",
        "http://224.0.0.1/v1",
        "http://[fd00:ec2::254]/v1",
        "http://100.100.100.200/v1",
    ],
)
def test_link_local_and_metadata_addresses_are_always_refused(url):
    host = url.split("/")[2].strip("[]")

    with pytest.raises(AddressRefused, match="never"):
        check_url(url, {f"{host}:80"})
    with pytest.raises(AddressRefused):
        ask(ModelSettings(url, "m", allowed=frozenset({f"{host}:80"})), MESSAGES, max_tokens=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:49151/v1", "http://localhost:49151/v1", "http://10.0.0.1/v1", "http://[::1]/"]
)
def test_private_addresses_are_refused_unless_allowed(url):
    with pytest.raises(AddressRefused, match="MEMORYHUB_PRIVATE_HOSTS"):
        check_url(url)
    with pytest.raises(AddressRefused, match="MEMORYHUB_PRIVATE_HOSTS"):
        ask(ModelSettings(url, "m"), MESSAGES, max_tokens=5)


def test_an_allowed_host_is_allowed_on_its_port_only():
    check_url("http://127.0.0.1:49151/v1", {"127.0.0.1:49151"})

    with pytest.raises(AddressRefused):
        check_url("http://127.0.0.1:10/v1", {"127.0.0.1:49151"})


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org", "file:///etc/passwd", "example.org", "http://", "http://u:p@example.org", "http://[x"],
)
def test_anything_but_an_http_url_is_refused(url):
    with pytest.raises(AddressRefused):
        check_url(url)

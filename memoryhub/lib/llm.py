"""Query language models with the openai SDK, at any URL that speaks OpenAI's protocol.

Replies are untrusted: this module checks the envelope, the caller checks the content. Every request goes through
``open_model_client``, which checks the connection and translates errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from memoryhub.lib.errors import Busy, Invalid, LimitExceeded, MemoryHubError, Refused
from memoryhub.lib.http.safe_http import AddressRefused, BodyTooLarge, DeadlinePassed, open_client, split_url
from memoryhub.lib.secrets import is_real_key
from memoryhub.lib.traces import traced_model_call
from memoryhub.lib.validation import BadJSON, clean_text, decode_json, json_text

if TYPE_CHECKING:
    import openai

PRESETS = {  # short names for MEMORYHUB_LLM_BASE_URL
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "mistral": "https://api.mistral.ai/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}
Script = Callable[[list[dict[str, str]]], dict[str, Any]]
_script: ContextVar[Script | None] = ContextVar("script", default=None)
NO_KEY = "none"  # for servers without keys: the SDK requires one
MAX_ERROR_CHARS = 300
_TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|too many tokens|maximum.{0,20}tokens", re.IGNORECASE)


class ModelRefused(Refused):
    """No model is set, or its server rejects the request: the same request would fail again."""

    code = "model_refused"


class PromptTooLong(LimitExceeded):
    """The request exceeds the model's context length."""

    code = "prompt_too_long"


@dataclass(frozen=True)
class ModelSettings:
    """A model and how to reach it.

    ``timeout_seconds``: for one request, including retries. ``allowed``: private hosts ("name:port") that may be
    contacted. ``key_setting``: the name of the setting with the API key, for error messages.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 120.0
    retries: int = 1
    allowed: frozenset[str] = frozenset()
    key_setting: str = "MEMORYHUB_LLM_API_KEY"


@dataclass(frozen=True)
class Reply:
    """The model's text, with the server's token counts (0 if it reports none)."""

    text: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class ToolReply:
    """The arguments of the tool call as the server returned them, with its token counts."""

    arguments: Any
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


def address_of(name: str) -> str:
    """Return the address of a preset, or a given address, without its last slash."""
    bare = name.rstrip("/")
    return PRESETS.get(bare, bare)


def ask(settings: ModelSettings, messages: list[dict[str, str]], *, max_tokens: int) -> Reply:
    """Return the model's reply to chat messages, retrying ``settings.retries`` times.

    Raises ModelRefused, Busy, PromptTooLong, Invalid, AddressRefused.
    """
    message, usage = _complete(settings, messages, max_tokens, {}, ("stop",))
    text = message.get("content")
    if not isinstance(text, str) or not text.strip():
        raise Invalid("The reply contains no text.", code="bad_reply")
    if is_real_key(settings.api_key) and settings.api_key in text:
        raise Invalid("The reply contains the API key.", code="bad_reply")
    return Reply(
        text.strip(), settings.model, usage_count(usage, "prompt_tokens"), usage_count(usage, "completion_tokens")
    )


def ask_tool(
    settings: ModelSettings, messages: list[dict[str, str]], tool: dict[str, Any], *, max_tokens: int
) -> ToolReply:
    """Return the arguments with which the model calls ``tool``, an OpenAI function definition.

    Arguments are JSON text, or a dict from servers that decode it. Raises what ``ask`` raises, and Invalid if the
    model doesn't call the tool.
    """
    name = tool["function"]["name"]
    tool_options = {"tools": [tool], "tool_choice": {"type": "function", "function": {"name": name}}}
    reasons = ("stop", "tool_calls", "function_call")
    message, usage = _complete(settings, messages, max_tokens, tool_options, reasons)
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        raise Invalid(f"The model replied with text instead of calling {name}.", code="bad_reply")
    function = calls[0].get("function") if isinstance(calls[0], dict) else None
    if not isinstance(function, dict) or function.get("name") != name:
        raise Invalid(f"The model called a tool other than {name}.", code="bad_reply")
    if any(call != calls[0] and _function(call) != function for call in calls[1:]):
        raise Invalid(
            f"The model called {name} {len(calls)} times, differently.",
            code="bad_reply",
            reply=_kept(settings, calls),
        )
    arguments = function.get("arguments")
    if is_real_key(settings.api_key) and settings.api_key in str(arguments):
        raise Invalid("The reply contains the API key.", code="bad_reply")
    return ToolReply(
        arguments, settings.model, usage_count(usage, "prompt_tokens"), usage_count(usage, "completion_tokens")
    )


def _function(call: Any) -> Any:
    return call.get("function") if isinstance(call, dict) else None


def _kept(settings: ModelSettings, calls: list[Any]) -> str:
    """Return a refused reply for the run's page, unless it has the API key."""
    text = json_text(calls)
    return "" if is_real_key(settings.api_key) and settings.api_key in text else text


@contextmanager
def scripted_model(script: Script) -> Iterator[None]:
    """Take replies from ``script`` instead of a server in this block. It maps messages to a chat completion."""
    token = _script.set(script)
    try:
        yield
    finally:
        _script.reset(token)


def _complete(
    settings: ModelSettings,
    messages: list[dict[str, str]],
    max_tokens: int,
    tool_options: dict[str, Any],
    reasons: tuple[str, ...],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the message and the usage of the model's reply. Raises what ``_post`` and ``_read`` raise."""
    with traced_model_call("chat", settings.model) as span:
        message, usage = _read(_post(settings, messages, max_tokens, tool_options), reasons)
        span.attributes["gen_ai.usage.input_tokens"] = usage_count(usage, "prompt_tokens")
        span.attributes["gen_ai.usage.output_tokens"] = usage_count(usage, "completion_tokens")
    return message, usage


def _post(
    settings: ModelSettings, messages: list[dict[str, str]], max_tokens: int, tool_options: dict[str, Any]
) -> bytes:
    if not settings.model or not settings.base_url:
        raise ModelRefused(
            "No model is connected. Connect one in the hub's settings, or set MEMORYHUB_LLM_MODEL.",
            code="model_not_set",
        )
    if script := _script.get():
        return json_text(script(messages)).encode()
    host, _ = split_url(settings.base_url)
    limit = "max_completion_tokens" if host == "api.openai.com" else "max_tokens"
    with open_model_client(settings) as client:
        response = client.chat.completions.with_raw_response.create(
            model=settings.model,
            messages=messages,  # type: ignore[arg-type]
            extra_body={limit: max_tokens} | tool_options,
        )
        return response.content


@contextmanager
def open_model_client(settings: ModelSettings) -> Iterator[openai.OpenAI]:
    """Open a client for one request, including retries.

    Errors inside the block are raised as Busy, ModelRefused, PromptTooLong, Invalid or AddressRefused,
    with the API key removed from their messages.
    """
    openai = load_sdk()
    with (
        open_client(allowed=settings.allowed, deadline_seconds=settings.timeout_seconds) as http,
        openai.OpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key or NO_KEY,
            max_retries=settings.retries,
            timeout=settings.timeout_seconds,
            http_client=http,
        ) as client,
    ):
        try:
            yield client
        except (openai.OpenAIError, MemoryHubError) as error:
            _translate_error(error, settings)


def load_sdk() -> ModuleType:
    """Return the openai package, imported only when needed: it would double a command's start-up time."""
    return import_module("openai")


def _translate_error(error: Exception, settings: ModelSettings) -> NoReturn:
    openai = load_sdk()
    cause = _own_cause(error)
    if isinstance(cause, AddressRefused):
        raise cause
    if isinstance(cause, BodyTooLarge):
        raise Invalid(cause.message, code="bad_reply") from error
    if isinstance(error, openai.APITimeoutError) or isinstance(cause, DeadlinePassed):
        raise Busy(
            f"The model did not reply within {settings.timeout_seconds:.0f} seconds.", code="model_unavailable"
        ) from error
    if isinstance(error, openai.APIStatusError):
        _translate_status(error, _masked(error.response.text, settings.api_key), settings.key_setting)
    if isinstance(error, openai.APIConnectionError):
        reason = _masked(str(error.__cause__ or error), settings.api_key)
        raise Busy(f"The model's server can't be reached: {reason}", code="model_unavailable") from error
    raise Busy(
        f"The request to the model failed: {_masked(str(error), settings.api_key)}", code="model_unavailable"
    ) from error


def _own_cause(error: BaseException) -> MemoryHubError | None:
    """Return the MemoryHubError of our transport that the SDK wrapped in one of its own errors, if any."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryHubError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _translate_status(error: openai.APIStatusError, text: str, key_setting: str) -> NoReturn:
    status = error.status_code
    if status in (400, 413, 422) and _TOO_LONG.search(text):
        raise PromptTooLong(f"The request exceeds the model's context length: {text}") from error
    if status == 429 and "quota" in text:
        raise ModelRefused(f"The provider's quota is used up: {text}") from error
    if status in (408, 409, 425, 429) or status >= 500:
        raise Busy(f"The model's server returned {status}: {text}", code="model_unavailable") from error
    if 300 <= status < 400:
        raise ModelRefused(f"The model's server returned {status}. Redirects are not followed.") from error
    hints = {
        401: f"Check {key_setting}.",
        403: "Check whether this key may use the model.",
        404: "Check the model's name.",
    }
    raise ModelRefused(f"The model's server returned {status}: {text} {hints.get(status, '')}".strip()) from error


def _masked(text: str, key: str) -> str:
    plain = " ".join(clean_text(re.sub(r"<[^>]*>", " ", text)).split())
    if key and key != NO_KEY:
        plain = plain.replace(key, "•••")
    return plain if len(plain) <= MAX_ERROR_CHARS else f"{plain[:MAX_ERROR_CHARS]}…"


def _read(body: bytes, reasons: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the message and the usage of a chat completion.

    Raises Invalid unless its first choice has one of the given finish reasons.
    """
    value = read_json(body)
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Invalid("The reply contains no choices.", code="bad_reply")
    reason = choices[0].get("finish_reason")
    if reason not in reasons:
        causes = {"length": "it reached its length limit", "content_filter": "a content filter stopped it"}
        raise Invalid(
            f"The reply is incomplete: {causes.get(str(reason), f'it ended with {reason!r}')}.", code="bad_reply"
        )
    message, usage = choices[0].get("message"), value.get("usage")
    return message if isinstance(message, dict) else {}, usage if isinstance(usage, dict) else {}


def read_json(body: bytes) -> Any:
    """Return the JSON value of a reply. Raises Invalid if it isn't valid JSON."""
    try:
        return decode_json(body.decode()).value
    except (BadJSON, UnicodeDecodeError) as error:
        raise Invalid(
            "The reply is not JSON. It may come from a proxy instead of the model.", code="bad_reply"
        ) from error


def usage_count(usage: dict[str, Any], name: str) -> int:
    """Return a token count from the server's usage; 0 if it is missing or invalid."""
    value = usage.get(name)
    return value if type(value) is int and 0 <= value < 2**31 else 0

"""Asking a model for embeddings of words, at any address that speaks OpenAI's protocol (the providers of grid).

What is stored is embedded by runs. A search asks nobody, except where its workspace has switched on that meanings are
compared: then it asks for the embedding of its own words, once, and waits 400 ms at most (``quick_embedding``). A
reply is checked before a number of it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.llm import (
    BadReply,
    ModelNotSet,
    ModelRefused,
    ModelSettings,
    open_model_client,
    read_json,
    usage_count,
)

Rows = npt.NDArray[np.float32]
NONE = "none"  # the provider that switches the graph off
AT_ONCE = 64  # words of one request
MANY_NUMBERS = 2048  # a reply of 64 longer embeddings could pass the transport's limit of 5 MB
MAX_DIMENSIONS = 16_384


@dataclass(frozen=True)
class Provider:
    """Where a provider is asked, and its models with the length of their embeddings; the first is the default."""

    base_url: str
    models: dict[str, int]


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}),
    "google": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai", {"text-embedding-004": 768, "embedding-001": 768}
    ),
    "mistral": Provider("https://api.mistral.ai/v1", {"mistral-embed": 1024}),
    "cohere": Provider(
        "https://api.cohere.ai/compatibility/v1", {"embed-english-v3.0": 1024, "embed-multilingual-v3.0": 1024}
    ),
    "voyage": Provider(
        "https://api.voyageai.com/v1", {"voyage-2": 1024, "voyage-large-2": 1024, "voyage-code-2": 1536}
    ),
    "ollama-cloud": Provider("https://ollama.com/v1", {"nomic-embed-text": 768, "mxbai-embed-large": 1024}),
    "ollama": Provider("http://127.0.0.1:11434/v1", {"nomic-embed-text": 768, "mxbai-embed-large": 1024}),
}
WITHOUT = {  # providers that people try, and what to do instead
    "anthropic": _("anthropic offers no embeddings: use voyage, which Anthropic recommends."),
    "openrouter": _("openrouter offers chat completions only, no embeddings: choose another provider for them."),
    "groq": _("groq offers chat completions only, no embeddings: choose another provider for them."),
}


@dataclass(frozen=True)
class EmbeddingSettings(ModelSettings):
    """Where embeddings are asked for, and from whom. ``dimensions``: how long they must be; 0 where nobody knows."""

    key_setting: str = "MEMORYHUB_EMBEDDING_API_KEY"
    provider: str = ""
    dimensions: int = 0

    @property
    def at_once(self) -> int:
        """How many words one request may carry."""
        return AT_ONCE if self.dimensions <= MANY_NUMBERS else AT_ONCE // 2


@dataclass(frozen=True)
class Embedded:
    """Embeddings as (n, d) float32 rows of length one, in the order of the words, and what they cost."""

    rows: Rows
    prompt_tokens: int = 0


def provider_error(provider: str) -> str:
    """Return in one sentence why a provider can't make embeddings; "" for one that can, and for none."""
    if provider in WITHOUT:
        return str(WITHOUT[provider])
    if provider and provider != NONE and provider not in PROVIDERS:
        words = gettext("There is no embedding provider %(provider)s: use %(others)s or %(none)s.")
        return words % {"provider": repr(provider), "others": ", ".join(PROVIDERS), "none": NONE}
    return ""


def dimensions_of(provider: str, model: str) -> int:
    """Return how long a model's embeddings are; 0 for a model that the table doesn't name."""
    known = PROVIDERS.get(provider)
    return known.models.get(model, 0) if known else 0


def embed(settings: EmbeddingSettings, texts: Sequence[str]) -> Embedded:
    """Return the embeddings of some texts, as one request.

    Raises ModelNotSet, ModelUnavailable, ModelRefused; BadReply unless there is one embedding for each text, all of
    the settings' length, or of one length where that is not known, with finite numbers that are not all zero;
    AddressRefused for an address that is out of bounds.
    """
    if refusal := provider_error(settings.provider):
        raise ModelRefused(refusal)
    if not settings.model or not settings.base_url:
        raise ModelNotSet("No embeddings are set up: set MEMORYHUB_EMBEDDING_PROVIDER.")
    with open_model_client(settings) as client:
        response = client.embeddings.with_raw_response.create(
            model=settings.model, input=list(texts), encoding_format="float", extra_body=_spelling(settings)
        )
        body = response.content
    value = read_json(body)
    rows = _unit_rows(_in_order(value, len(texts)), settings.dimensions)
    usage = value.get("usage")
    tokens = (
        usage_count(usage, "prompt_tokens") or usage_count(usage, "total_tokens") if isinstance(usage, dict) else 0
    )
    return Embedded(rows, tokens)


def _spelling(settings: EmbeddingSettings) -> dict[str, Any]:
    """Voyage knows base64 and null, which means numbers; the word float it refuses."""
    return {"encoding_format": None} if settings.provider == "voyage" else {}


def _in_order(value: Any, count: int) -> list[list[Any]]:
    """Return one embedding for each text, by the reply's own index; one without an index stands at its place."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, list):
        raise BadReply("The reply holds no embeddings.")
    if len(data) != count:
        raise BadReply(f"The reply holds {len(data)} embeddings for {count} words.")
    found: dict[int, list[Any]] = {}
    for place, item in enumerate(data):
        embedding = item.get("embedding") if isinstance(item, dict) else None
        index = item.get("index", place) if isinstance(item, dict) else None
        if not isinstance(embedding, list) or type(index) is not int or not 0 <= index < count or index in found:
            raise BadReply(f"Number {place} of the reply's embeddings is none, or its index is not in order.")
        found[index] = embedding
    return [found[index] for index in range(count)]


def _unit_rows(embeddings: list[list[Any]], dimensions: int) -> Rows:
    lengths = {len(embedding) for embedding in embeddings}
    expected = dimensions or max(lengths, default=0)
    if lengths != {expected} or not 0 < expected <= MAX_DIMENSIONS:
        told = ", ".join(str(length) for length in sorted(lengths)[:3])
        raise BadReply(f"The reply's embeddings are {told} numbers long instead of {expected}.")
    if not all(type(number) in (int, float) for embedding in embeddings for number in embedding):
        raise BadReply("The reply's embeddings hold something that is no number.")
    numbers = np.array(embeddings, dtype=np.float64)
    with np.errstate(over="ignore"):
        sizes = np.linalg.norm(numbers, axis=1, keepdims=True)
    if not np.isfinite(sizes).all() or not (sizes > 0).all():  # an endless number makes its row's length endless
        raise BadReply("The reply's embeddings are not finite, or all zero.")
    rows: Rows = (numbers / sizes).astype(np.float32)
    return rows

"""Request embeddings from any server that speaks OpenAI's protocol (the providers of grid).

Stored rows are embedded by runs. A search requests an embedding of its query only if semantic search is on in its
workspace, and waits at most 400 ms (``memoryhub.search.query_embedding``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.errors import Invalid
from memoryhub.lib.llm import PRESETS, ModelRefused, ModelSettings, open_model_client, read_json, usage_count
from memoryhub.lib.traces import traced_model_call

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.float32]

NONE = "none"  # no provider: the graph is off
BATCH_SIZE = 64  # texts per request
LONG_EMBEDDING = 2048  # dimensions; a response with 64 longer embeddings could exceed the transport's 5 MB
MAX_DIMENSIONS = 16_384


@dataclass(frozen=True)
class Provider:
    """A provider's URL, and its models with their dimensions. The first model is the default."""

    base_url: str
    models: dict[str, int]


PROVIDERS = {
    "openai": Provider(PRESETS["openai"], {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}),
    "google": Provider(PRESETS["google"], {"text-embedding-004": 768, "embedding-001": 768}),
    "mistral": Provider(PRESETS["mistral"], {"mistral-embed": 1024}),
    "cohere": Provider(
        "https://api.cohere.ai/compatibility/v1", {"embed-english-v3.0": 1024, "embed-multilingual-v3.0": 1024}
    ),
    "voyage": Provider(
        "https://api.voyageai.com/v1", {"voyage-2": 1024, "voyage-large-2": 1024, "voyage-code-2": 1536}
    ),
    "ollama-cloud": Provider("https://ollama.com/v1", {"nomic-embed-text": 768, "mxbai-embed-large": 1024}),
    "ollama": Provider(PRESETS["ollama"], {"nomic-embed-text": 768, "mxbai-embed-large": 1024}),
}
UNSUPPORTED_PROVIDERS = {
    "anthropic": _("anthropic doesn't offer embeddings. Use voyage, which Anthropic recommends."),
    "openrouter": _("openrouter doesn't offer embeddings. Choose another provider."),
    "groq": _("groq doesn't offer embeddings. Choose another provider."),
}


@dataclass(frozen=True)
class EmbeddingSettings(ModelSettings):
    """An embedding model and how to reach it. ``dimensions``: the expected length of embeddings, 0 if unknown."""

    key_setting: str = "MEMORYHUB_EMBEDDING_API_KEY"
    provider: str = ""
    dimensions: int = 0

    @property
    def batch_size(self) -> int:
        """The maximum number of texts per request."""
        return BATCH_SIZE if self.dimensions <= LONG_EMBEDDING else BATCH_SIZE // 2


@dataclass(frozen=True)
class EmbeddingBatch:
    """Embeddings as an (n, d) float32 array of unit vectors in the order of the texts, and the tokens used."""

    rows: Rows
    prompt_tokens: int = 0


def provider_error(provider: str) -> str:
    """Return an error message if a provider can't be used for embeddings, otherwise ""."""
    if provider in UNSUPPORTED_PROVIDERS:
        return str(UNSUPPORTED_PROVIDERS[provider])
    if provider and provider != NONE and provider not in PROVIDERS:
        message = gettext("There is no embedding provider %(provider)s. Use %(others)s or %(none)s.")
        return message % {"provider": repr(provider), "others": ", ".join(PROVIDERS), "none": NONE}
    return ""


def dimensions_of(provider: str, model: str) -> int:
    """Return the length of a model's embeddings, or 0 if it isn't in PROVIDERS."""
    entry = PROVIDERS.get(provider)
    return entry.models.get(model, 0) if entry else 0


def embed(settings: EmbeddingSettings, texts: Sequence[str]) -> EmbeddingBatch:
    """Return the embeddings of texts, with one request.

    Raises ModelRefused, Busy, AddressRefused, and Invalid unless the reply has one finite,
    nonzero embedding for each text, all of the expected length (or of equal length, if that is unknown).
    """
    if message := provider_error(settings.provider):
        raise ModelRefused(message)
    if not settings.model or not settings.base_url:
        raise ModelRefused("No embedding provider is chosen. Choose one in the hub's settings.", code="model_not_set")
    with traced_model_call("embeddings", settings.model) as span:
        value = read_json(_post(settings, texts))
        rows = _unit_rows(_sorted_embeddings(value, len(texts)), settings.dimensions)
        usage = value.get("usage")
        tokens = (
            usage_count(usage, "prompt_tokens") or usage_count(usage, "total_tokens")
            if isinstance(usage, dict)
            else 0
        )
        span.attributes["gen_ai.usage.input_tokens"] = tokens
    return EmbeddingBatch(rows, tokens)


def _post(settings: EmbeddingSettings, texts: Sequence[str]) -> bytes:
    with open_model_client(settings) as client:
        response = client.embeddings.with_raw_response.create(
            model=settings.model, input=list(texts), encoding_format="float", extra_body=_encoding_option(settings)
        )
        return response.content


def _encoding_option(settings: EmbeddingSettings) -> dict[str, Any]:
    """Voyage rejects "float"; null means the same there."""
    return {"encoding_format": None} if settings.provider == "voyage" else {}


def _sorted_embeddings(value: Any, count: int) -> list[list[Any]]:
    """Return the reply's embeddings ordered by their index; an embedding without one has its position in the list."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, list):
        raise Invalid("The reply contains no embeddings.", code="bad_reply")
    if len(data) != count:
        raise Invalid(f"The reply contains {len(data)} embeddings for {count} texts.", code="bad_reply")
    by_index: dict[int, list[Any]] = {}
    for position, item in enumerate(data):
        embedding = item.get("embedding") if isinstance(item, dict) else None
        index = item.get("index", position) if isinstance(item, dict) else None
        if not isinstance(embedding, list) or type(index) is not int or not 0 <= index < count or index in by_index:
            raise Invalid(f"Item {position} of the reply has no embedding or an invalid index.", code="bad_reply")
        by_index[index] = embedding
    return [by_index[index] for index in range(count)]


def _unit_rows(embeddings: list[list[Any]], dimensions: int) -> Rows:
    import numpy as np

    lengths = {len(embedding) for embedding in embeddings}
    expected = dimensions or max(lengths, default=0)
    if lengths != {expected} or not 0 < expected <= MAX_DIMENSIONS:
        actual = ", ".join(str(length) for length in sorted(lengths)[:3])
        raise Invalid(f"The reply's embeddings have {actual} dimensions instead of {expected}.", code="bad_reply")
    if not all(type(number) in (int, float) for embedding in embeddings for number in embedding):
        raise Invalid("The reply's embeddings contain values that are not numbers.", code="bad_reply")
    numbers = np.array(embeddings, dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(numbers, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():  # an infinite or NaN number makes its row's norm so
        raise Invalid("The reply's embeddings are zero or not finite.", code="bad_reply")
    rows: Rows = (numbers / norms).astype(np.float32)
    return rows

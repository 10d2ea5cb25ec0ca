"""Which models a workspace uses, and their cost."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django.conf import settings
from django.db.models import QuerySet

from memoryhub.lib.embeddings import NONE, PROVIDERS, EmbeddingSettings, dimensions_of
from memoryhub.lib.llm import PRESETS, ModelSettings
from memoryhub.lib.safe_http import AddressRefused, split_url
from sessions_app.models import Workspace

MILLION = Decimal(1_000_000)


def model_for(workspace: Workspace, *, wanted: str = "") -> ModelSettings | None:
    """Return the model settings of a workspace's runs; None if no model is configured.

    ``wanted``: another model's name. A base URL from the environment may be private (the operator wrote it); one from
    a page may not, unless MEMORYHUB_PRIVATE_HOSTS allows it, and never receives the environment's API key.
    """
    own = _base_url()
    base_url = _preset(workspace.model_base_url) or own
    name = wanted or workspace.consolidation_model or settings.MEMORYHUB_LLM_MODEL or workspace.model
    if not base_url or not name:
        return None
    is_own = _place(base_url) == _place(own)
    allowed = settings.MEMORYHUB_PRIVATE_HOSTS | ({_place(own)} if own else set())
    return ModelSettings(
        base_url=base_url,
        model=name,
        api_key=settings.MEMORYHUB_LLM_API_KEY if is_own else "",
        timeout_seconds=settings.MEMORYHUB_LLM_TIMEOUT_SECONDS,
        allowed=frozenset(allowed),
    )


def embedding_settings_for(workspace: Workspace) -> EmbeddingSettings | None:
    """Return the embedding settings of a workspace; None if embeddings are off.

    Empty settings fall back to the hub's, if both name the same provider. URLs and keys follow the rules of
    ``model_for``.
    """
    hub_provider = settings.MEMORYHUB_EMBEDDING_PROVIDER
    provider = workspace.embedding_provider or hub_provider
    if provider in ("", NONE):
        return None
    is_hubs = provider == hub_provider
    own = settings.MEMORYHUB_EMBEDDING_BASE_URL or _usual_address(hub_provider)
    base_url = workspace.embedding_base_url or (own if is_hubs else _usual_address(provider))
    model = workspace.embedding_model or (settings.MEMORYHUB_EMBEDDING_MODEL if is_hubs else "")
    model = model or next(iter(PROVIDERS[provider].models), "") if provider in PROVIDERS else model
    place = _place(own) if own else ""
    is_own = bool(place) and _place(base_url) == place
    return EmbeddingSettings(
        base_url=base_url,
        model=model,
        api_key=settings.MEMORYHUB_EMBEDDING_API_KEY if is_own else "",
        timeout_seconds=settings.MEMORYHUB_LLM_TIMEOUT_SECONDS,
        allowed=frozenset(settings.MEMORYHUB_PRIVATE_HOSTS | ({place} if place else set())),
        provider=provider,
        dimensions=dimensions_of(provider, model),
    )


def workspaces_with_embeddings() -> QuerySet[Workspace]:
    """Return the workspaces with an embedding provider, their own or the hub's."""
    named = Workspace.objects.exclude(embedding_provider=NONE)
    is_off = settings.MEMORYHUB_EMBEDDING_PROVIDER in ("", NONE)
    return named.exclude(embedding_provider="") if is_off else named


def _usual_address(provider: str) -> str:
    known = PROVIDERS.get(provider)
    return known.base_url if known else ""


def _base_url() -> str:
    if settings.MEMORYHUB_LLM_BASE_URL:
        return _preset(settings.MEMORYHUB_LLM_BASE_URL)
    return PRESETS["openai"] if settings.MEMORYHUB_LLM_API_KEY else ""


def _preset(name: str) -> str:
    return PRESETS.get(name, name)


def _place(url: str) -> str:
    """Return "host:port" of a URL, or "" if it is invalid."""
    try:
        host, port = split_url(url)
    except AddressRefused:
        return ""
    return f"{host}:{port}"


def cost_of(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """Return the cost in US dollars by MEMORYHUB_LLM_PRICES; None if the model has no price."""
    for item in settings.MEMORYHUB_LLM_PRICES.split(","):
        name, _, prices = item.strip().partition("=")
        per_input, _, per_output = prices.partition("/")
        if name and name == model:
            try:
                return (Decimal(per_input) * prompt_tokens + Decimal(per_output) * completion_tokens) / MILLION
            except InvalidOperation:
                return None
    return None

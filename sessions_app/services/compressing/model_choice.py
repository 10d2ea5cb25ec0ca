"""Which models a workspace uses, and their cost."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django.conf import settings
from django.db.models import QuerySet

from memoryhub.lib.embeddings import NONE, PROVIDERS, EmbeddingSettings, dimensions_of
from memoryhub.lib.llm import ModelSettings, address_of
from sessions_app.models import Workspace
from sessions_app.services.stored_settings import EMBEDDING_KEY, MODEL_KEY, HubSettings, hub_settings, origin

MILLION = Decimal(1_000_000)


def model_for(workspace: Workspace, *, wanted: str = "") -> ModelSettings | None:
    """Return the model settings of a workspace's runs; None if no model is configured.

    ``wanted``: another model's name. A base URL from the environment may be private (the operator wrote it); one from
    a page may not, unless it is a preset of the hub or MEMORYHUB_PRIVATE_HOSTS allows it. A workspace's own never
    receives the hub's API key.
    """
    hub = hub_settings()
    base_url = address_of(workspace.model_base_url) or hub.model_url
    name = wanted or workspace.consolidation_model or hub.values["MEMORYHUB_LLM_MODEL"] or workspace.model
    return _model_settings(hub, base_url, name) if base_url and name else None


def hub_model(hub: HubSettings) -> ModelSettings | None:
    """Return the model of workspaces without their own; None if none is configured."""
    name = hub.values["MEMORYHUB_LLM_MODEL"]
    return _model_settings(hub, hub.model_url, name) if hub.model_url and name else None


def _model_settings(hub: HubSettings, base_url: str, name: str) -> ModelSettings:
    is_hubs = origin(base_url) == origin(hub.model_url)
    return ModelSettings(
        base_url=base_url,
        model=name,
        api_key=hub.values[MODEL_KEY] if is_hubs else "",
        timeout_seconds=settings.MEMORYHUB_LLM_TIMEOUT_SECONDS,
        allowed=_allowed(hub.trusted_model_host),
    )


def embedding_settings_for(workspace: Workspace) -> EmbeddingSettings | None:
    """Return the embedding settings of a workspace; None if embeddings are off.

    Empty settings fall back to the hub's, if both name the same provider. URLs and keys follow the rules of
    ``model_for``.
    """
    hub = hub_settings()
    provider = workspace.embedding_provider or hub.values["MEMORYHUB_EMBEDDING_PROVIDER"]
    if provider in ("", NONE):
        return None
    return _embedding_settings(hub, provider, workspace.embedding_base_url, workspace.embedding_model)


def hub_embeddings(hub: HubSettings) -> EmbeddingSettings | None:
    """Return the embedding settings of workspaces without their own; None if embeddings are off."""
    provider = hub.values["MEMORYHUB_EMBEDDING_PROVIDER"]
    return None if provider in ("", NONE) else _embedding_settings(hub, provider, "", "")


def _embedding_settings(hub: HubSettings, provider: str, base_url: str, model: str) -> EmbeddingSettings:
    is_hubs = provider == hub.values["MEMORYHUB_EMBEDDING_PROVIDER"]
    known = PROVIDERS.get(provider)
    base_url = base_url or (hub.embedding_url if is_hubs else known.base_url if known else "")
    model = model or (hub.values["MEMORYHUB_EMBEDDING_MODEL"] if is_hubs else "")
    model = model or (next(iter(known.models), "") if known else "")
    is_own = bool(origin(base_url)) and origin(base_url) == origin(hub.embedding_url)
    return EmbeddingSettings(
        base_url=base_url,
        model=model,
        api_key=hub.values[EMBEDDING_KEY] if is_own else "",
        timeout_seconds=settings.MEMORYHUB_LLM_TIMEOUT_SECONDS,
        allowed=_allowed(hub.trusted_embedding_host),
        provider=provider,
        dimensions=dimensions_of(provider, model),
    )


def _allowed(trusted_host: str) -> frozenset[str]:
    """Return the private hosts that may be contacted."""
    return frozenset(settings.MEMORYHUB_PRIVATE_HOSTS | ({trusted_host} if trusted_host else set()))


def workspaces_with_embeddings() -> QuerySet[Workspace]:
    """Return the workspaces with an embedding provider, their own or the hub's."""
    named = Workspace.objects.exclude(embedding_provider=NONE)
    is_off = hub_settings().values["MEMORYHUB_EMBEDDING_PROVIDER"] in ("", NONE)
    return named.exclude(embedding_provider="") if is_off else named


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

"""Which model a workspace's runs ask, and what that costs."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django.conf import settings

from memoryhub.lib.llm import PRESETS, ModelSettings
from memoryhub.lib.outbound import AddressRefused, split_url
from sessions_app.models import Workspace

MILLION = Decimal(1_000_000)


def model_for(workspace: Workspace, *, wanted: str = "") -> ModelSettings | None:
    """Return where a workspace's runs ask and whom; None where no model is set, and summaries are made by rule.

    ``wanted``: the name of another model than the one that folds and consolidates.

    The address of the environment may lie inside this machine, since whoever runs the hub wrote it; one that a page
    named may not, unless MEMORYHUB_PRIVATE_HOSTS says so, and never gets the environment's key.
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


def _base_url() -> str:
    if settings.MEMORYHUB_LLM_BASE_URL:
        return _preset(settings.MEMORYHUB_LLM_BASE_URL)
    return PRESETS["openai"] if settings.MEMORYHUB_LLM_API_KEY else ""


def _preset(name: str) -> str:
    return PRESETS.get(name, name)


def _place(url: str) -> str:
    """Return "host:port" of an address; "" for what is none."""
    try:
        host, port = split_url(url)
    except AddressRefused:
        return ""
    return f"{host}:{port}"


def cost_of(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """Return US dollars by MEMORYHUB_LLM_PRICES; None for a model that has no price there."""
    for item in settings.MEMORYHUB_LLM_PRICES.split(","):
        name, _, prices = item.strip().partition("=")
        per_input, _, per_output = prices.partition("/")
        if name and name == model:
            try:
                return (Decimal(per_input) * prompt_tokens + Decimal(per_output) * completion_tokens) / MILLION
            except InvalidOperation:
                return None
    return None

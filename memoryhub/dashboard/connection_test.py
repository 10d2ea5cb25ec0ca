"""Try settings before they are saved: the connection to a model, with one small call, and what retention deletes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext

from memoryhub.jobs.retention import old_records
from memoryhub.lib.embeddings import embed
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.llm import ask
from sessions_app.services.access_log import old_accesses
from sessions_app.services.compressing.model_choice import hub_embeddings, hub_model
from sessions_app.services.stored_settings import HubSettings

TIMEOUT_SECONDS = 20.0
MAX_TOKENS = 500  # models that think first need more than the answer
MESSAGES = [{"role": "user", "content": "Reply with the word OK."}]


@dataclass(frozen=True)
class ConnectionTest:
    """``text``: the result in a sentence, without the API key."""

    is_connected: bool
    text: str


def try_model(hub: HubSettings) -> ConnectionTest:
    model = hub_model(hub)
    if model is None:
        return ConnectionTest(is_connected=False, text=gettext("Enter a model, and its provider or address."))
    options = replace(model, timeout_seconds=TIMEOUT_SECONDS, retries=0, key_setting=gettext("the API key"))

    def call() -> str:
        reply = ask(options, MESSAGES, max_tokens=MAX_TOKENS)
        words = gettext("Connected: %(model)s replied (%(tokens)s tokens).")
        return words % {"model": options.model, "tokens": reply.prompt_tokens + reply.completion_tokens}

    return _timed(call)


def try_embeddings(hub: HubSettings) -> ConnectionTest:
    model = hub_embeddings(hub)
    if model is None:
        return ConnectionTest(is_connected=False, text=gettext("Choose a provider."))
    options = replace(model, timeout_seconds=TIMEOUT_SECONDS, retries=0, key_setting=gettext("the API key"))

    def call() -> str:
        rows = embed(options, ["memory"]).rows
        words = gettext("Connected: %(model)s returned an embedding of %(count)s numbers.")
        return words % {"model": options.model, "count": rows.shape[1]}

    return _timed(call)


def _timed(call: Callable[[], str]) -> ConnectionTest:
    started = time.monotonic()
    try:
        text = call()
    except MemoryHubError as error:
        return ConnectionTest(is_connected=False, text=gettext("Not connected. %(error)s") % {"error": error.message})
    words = gettext("%(result)s It took %(seconds)s seconds.")
    seconds = f"{time.monotonic() - started:.1f}"
    return ConnectionTest(is_connected=True, text=words % {"result": text, "seconds": seconds})


def preview_retention(hub: HubSettings) -> ConnectionTest:
    """Count what a worker would delete."""
    now, days = timezone.now(), hub.values["MEMORYHUB_ACCESS_DAYS"]
    counts = [(gettext("access records"), old_accesses(days, now).count())] if days else []
    if days := hub.values["MEMORYHUB_RECORD_DAYS"]:
        counts += [(str(name), rows.count()) for name, rows in old_records(days, now)]
    found = ", ".join(f"{name} ({number_format(count)})" for name, count in counts if count)
    words = (
        gettext("Would be deleted: %(found)s.") % {"found": found} if found else gettext("Nothing would be deleted.")
    )
    return ConnectionTest(is_connected=True, text=words)


TESTS: dict[str, Callable[[HubSettings], ConnectionTest]] = {
    "model": try_model,
    "embeddings": try_embeddings,
    "retention": preview_retention,
}

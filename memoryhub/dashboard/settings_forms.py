from __future__ import annotations

from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.dashboard.hub_forms import clean_address
from memoryhub.lib.embeddings import NONE, PROVIDERS, provider_error
from memoryhub.lib.llm import PRESETS
from memoryhub.lib.stale_forms import merged_values, remember_shown
from memoryhub.lib.validation import clean_text
from sessions_app.models import Workspace
from sessions_app.services.audit import EVENTS

LEAST = {"max_tokens": 500, "max_entries": 1, "min_entries_to_compress": 1, "memory_window": 2, "recency_decay": 0}


class WorkspaceSettingsForm(forms.ModelForm[Workspace]):
    """A workspace's settings, validated together. Help texts state meaning, unit and default."""

    SECTIONS = [
        (_("Workspace"), ["name", "persist_memory", "knowledge_in_context"]),
        (
            _("Compression"),
            [
                "auto_compress",
                "max_tokens",
                "max_entries",
                "recent_window",
                "min_entries_to_compress",
                "compression_ratio",
                "summary_prompt",
            ],
        ),
        (_("Consolidation"), ["auto_consolidate", "memory_window", "consolidation_style"]),
        (_("Sync"), ["agent_changes"]),
        (_("Models"), ["model", "consolidation_model", "model_base_url", "daily_token_budget"]),
        (_("Observations and hygiene"), ["auto_extract", "extraction_model", "stale_days"]),
        (_("Semantic graph"), ["embedding_provider", "embedding_model", "embedding_base_url", "dense_search"]),
        (_("Search and cache"), ["recency_decay", "cache_enabled", "cache_ttl_seconds", "cache_max_entries"]),
    ]

    class Meta:
        model = Workspace
        fields = [
            "name", "persist_memory", "knowledge_in_context", "auto_compress", "max_tokens", "max_entries",
            "recent_window", "min_entries_to_compress", "compression_ratio", "summary_prompt", "auto_consolidate",
            "memory_window", "consolidation_style", "agent_changes", "model", "consolidation_model",
            "model_base_url", "daily_token_budget", "auto_extract", "extraction_model", "stale_days",
            "embedding_provider", "embedding_model", "embedding_base_url", "dense_search",
            "recency_decay", "cache_enabled", "cache_ttl_seconds", "cache_max_entries",
        ]  # fmt: skip
        labels = {
            "name": _("Name"),
            "persist_memory": _("Keep memory"),
            "knowledge_in_context": _("Knowledge in contexts"),
            "auto_compress": _("Compress automatically"),
            "max_tokens": _("Token limit"),
            "max_entries": _("Message limit"),
            "recent_window": _("Recent window"),
            "min_entries_to_compress": _("Minimum messages to summarise"),
            "compression_ratio": _("Target summary size"),
            "summary_prompt": _("Summary prompt"),
            "auto_consolidate": _("Consolidate automatically"),
            "memory_window": _("Memory window"),
            "consolidation_style": _("Consolidation style"),
            "agent_changes": _("Changes by the agent"),
            "model": _("Agent's model"),
            "consolidation_model": _("Model for summaries"),
            "model_base_url": _("Model address"),
            "daily_token_budget": _("Daily token budget"),
            "auto_extract": _("Extract automatically"),
            "extraction_model": _("Extraction model"),
            "stale_days": _("Stale after"),
            "embedding_provider": _("Embedding provider"),
            "embedding_model": _("Embedding model"),
            "embedding_base_url": _("Provider address"),
            "dense_search": _("Semantic search"),
            "recency_decay": _("Recency decay"),
            "cache_enabled": _("Serve cached responses"),
            "cache_ttl_seconds": _("Cache lifetime"),
            "cache_max_entries": _("Cached responses kept"),
        }
        help_texts = {
            "persist_memory": _(
                "If off, key-values, observations, knowledge, terms and cached responses are deleted after each "
                "run, and nothing is consolidated. Default on."
            ),
            "knowledge_in_context": _(
                "Send knowledge entries with each context, up to 2,000 characters. Default off; on for Grip."
            ),
            "auto_extract": _(
                "Use a model to extract findings, insights and lessons from the agent's messages. Default off."
            ),
            "extraction_model": _("A small model is sufficient. Empty: the model for summaries."),
            "stale_days": _("Days without use or review after which an item is listed as stale. Default 180."),
            "auto_compress": _(
                "Summarise old messages when a session exceeds one of the limits below. Default on; off after an "
                "import, because the agent does this itself."
            ),
            "max_tokens": _(
                "Compress a session when its context exceeds this number of tokens. Also the context's budget. "
                "Default 50,000."
            ),
            "max_entries": _("Compress a session when its context exceeds this number of messages. Default 100."),
            "recent_window": _("The latest messages, which are never summarised. Default 10."),
            "min_entries_to_compress": _("Don't compress fewer older messages than this. Default 5."),
            "summary_prompt": _(
                "Instructions for summaries, up to 4,000 characters. The hub adds rules on length and quotation. "
                "Empty: the default prompt."
            ),
            "compression_ratio": _("Share of the summarised tokens, above 0 and below 1. Default 0.3."),
            "auto_consolidate": _(
                "Extract facts from messages into MEMORY.md and the history automatically. Default on."
            ),
            "memory_window": _(
                "Consolidate a session when it has more unconsolidated messages than this. nanobot 100, Grip 50."
            ),
            "consolidation_style": _("Rewrite MEMORY.md, or append facts to it."),
            "agent_changes": _(
                "What happens when the agent changes its memory files. Conflicts with recent edits in the hub are "
                "always held. With two-way sync, its file goes back to the approved text at once. "
                "Default: hold risky changes."
            ),
            "model": _("Used to count tokens. Empty: tokens are estimated."),
            "consolidation_model": _("Model for compression and consolidation. Empty: the hub's."),
            "model_base_url": _("Address or preset for this workspace. Called without a key. Empty: the hub's."),
            "daily_token_budget": _("Maximum model tokens per day (UTC). Empty: no limit."),
            "embedding_model": _("Empty: the hub's, or the provider's first model."),
            "embedding_base_url": _("Address for this workspace. Called without a key. Empty: the provider's."),
            "dense_search": _(
                "Sends texts to the provider: up to 2,000 characters of each message, knowledge entry, observation, "
                "memory line, history entry and summary, and search queries. Key-values and possible secrets are "
                "never sent. Default off."
            ),
            "recency_decay": _("Lowers the rank of old history in search, per hour. Grip 0.001; default 0."),
            "cache_enabled": _("Default on."),
            "cache_ttl_seconds": _("Seconds. Default 3,600."),
            "cache_max_entries": _("The least recently used are deleted first. Default 500."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        remember_shown(self)
        words = gettext(
            "Provider of embeddings for the graph: %(providers)s; or %(none)s to search by words only. "
            "Empty: the hub's."
        )
        self.fields["summary_prompt"].widget.attrs["rows"] = 4
        self.fields["embedding_provider"].help_text = words % {"providers": ", ".join(PROVIDERS), "none": NONE}

    def clean_model_base_url(self) -> str:
        return clean_address(self.cleaned_data["model_base_url"], PRESETS)

    def clean_embedding_provider(self) -> str:
        provider: str = self.cleaned_data["embedding_provider"].lower()
        if refusal := provider_error(provider):
            raise forms.ValidationError(refusal)
        return provider

    def clean_embedding_base_url(self) -> str:
        return clean_address(self.cleaned_data["embedding_base_url"])

    def clean_name(self) -> str:
        return clean_text(" ".join(self.cleaned_data["name"].split()))

    def clean(self) -> dict[str, Any]:
        """Check the settings against each other, so that none makes another one ineffective.

        What someone else saved since the page was opened is kept.
        """
        super().clean()
        self.cleaned_data = values = merged_values(self, self.initial)
        for name, least in LEAST.items():
            if values.get(name) is not None and values[name] < least:
                self.add_error(name, gettext("%(least)s or more.") % {"least": f"{least:,}"})
        if not 0 < values.get("compression_ratio", 0.5) < 1:
            self.add_error("compression_ratio", gettext("A share above 0 and below 1, for example 0.3."))
        if not self.errors:
            self._check_window(values["max_entries"], values["recent_window"], values["min_entries_to_compress"])
        return values

    def _check_window(self, limit: int, recent: int, fewest: int) -> None:
        if recent > limit:
            words = gettext("The recent window (%(recent)s) is larger than the message limit (%(limit)s).")
            self.add_error("recent_window", words % {"recent": recent, "limit": limit})
        elif recent + fewest > limit:
            words = gettext(
                "With %(recent)s recent messages and at least %(fewest)s to summarise, the message limit must be "
                "%(needed)s or more."
            )
            needed = {"recent": recent, "fewest": fewest, "needed": recent + fewest}
            self.add_error("min_entries_to_compress", words % needed)

    def sections(self) -> list[tuple[Promise, list[forms.BoundField]]]:
        return [(title, [self[name] for name in names]) for title, names in self.SECTIONS]


def _events() -> list[tuple[str, str]]:
    words = gettext("%(event)s: %(meaning)s")
    return [(event, words % {"event": event, "meaning": meaning}) for event, meaning in EVENTS.items()]


class WebhookForm(forms.Form):
    url = forms.URLField(assume_scheme="https", max_length=500, label=_("Address"))
    actions = forms.MultipleChoiceField(
        choices=_events,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Events"),
        help_text=_("None selected: all events."),
    )

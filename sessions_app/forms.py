from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from memoryhub.lib.embeddings import NONE, PROVIDERS, refusal_of
from memoryhub.lib.gate import clean_text
from memoryhub.lib.llm import PRESETS
from memoryhub.lib.outbound import AddressRefused, check_url
from sessions_app.models import Workspace
from sessions_app.services.audit import EVENTS

LEAST = {"max_tokens": 500, "max_entries": 1, "min_entries_to_compress": 1, "memory_window": 2, "recency_decay": 0}
ORDERS = {
    "recent": ("-updated_at", "-id"),
    "longest": ("-entry_count", "-id"),
    "heaviest": ("-total_tokens", "-id"),
    "key": ("key", "id"),
}


class SessionFilterForm(forms.Form):
    q = forms.CharField(
        required=False,
        max_length=200,
        label="Key or title",
        widget=forms.TextInput(attrs={"type": "search", "data-search": "", "placeholder": "Key or title"}),
    )
    channel = forms.ChoiceField(required=False)  # the workspace's own, given when the form is made
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All sessions"),
            ("folded", "Partly folded"),
            ("hidden", "Not visible to the agent"),
            ("restarted", "Restarted"),
            ("archived", "Archived"),
        ],
    )
    sort = forms.ChoiceField(
        required=False,
        choices=[
            ("recent", "Latest first"),
            ("longest", "Most entries"),
            ("heaviest", "Most tokens"),
            ("key", "By key"),
        ],
    )

    def __init__(self, *args: object, channels: list[str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [("", "All channels"), *((name, name) for name in channels)]
        self.fields["channel"] = forms.ChoiceField(required=False, choices=choices)


class WorkspaceSettingsForm(forms.ModelForm[Workspace]):
    """A workspace's settings, validated together. Each help text says what it means, its unit and its default."""

    SECTIONS = [
        ("Workspace", ["name", "persist_memory"]),
        (
            "Compression",
            [
                "auto_compress",
                "max_tokens",
                "max_entries",
                "recent_window",
                "min_entries_to_compress",
                "compression_ratio",
            ],
        ),
        ("Consolidation", ["auto_consolidate", "memory_window", "consolidation_style"]),
        ("Models", ["model", "consolidation_model", "model_base_url", "daily_token_budget"]),
        ("Observations and hygiene", ["auto_extract", "extraction_model", "stale_days"]),
        ("Semantic graph", ["embedding_provider", "embedding_model", "embedding_base_url", "dense_search"]),
        ("Search and cache", ["recency_decay", "cache_enabled", "cache_ttl_seconds", "cache_max_entries"]),
    ]

    class Meta:
        model = Workspace
        fields = [
            "name", "persist_memory", "auto_compress", "max_tokens", "max_entries", "recent_window",
            "min_entries_to_compress", "compression_ratio", "auto_consolidate", "memory_window",
            "consolidation_style", "model", "consolidation_model", "model_base_url", "daily_token_budget",
            "auto_extract", "extraction_model", "stale_days",
            "embedding_provider", "embedding_model", "embedding_base_url", "dense_search",
            "recency_decay", "cache_enabled", "cache_ttl_seconds", "cache_max_entries",
        ]  # fmt: skip
        labels = {
            "persist_memory": "Keep memory",
            "auto_compress": "Compress automatically",
            "max_tokens": "Token limit",
            "max_entries": "Entry limit",
            "recent_window": "Recent window",
            "min_entries_to_compress": "Fewest entries to fold",
            "compression_ratio": "Target size of a summary",
            "auto_consolidate": "Consolidate automatically",
            "model": "The agent's model",
            "consolidation_model": "Model for summaries",
            "model_base_url": "Address of that model",
            "auto_extract": "Extract automatically",
            "extraction_model": "Model that extracts",
            "stale_days": "Stale after",
            "embedding_provider": "Embedding provider",
            "embedding_model": "Embedding model",
            "embedding_base_url": "Address of that provider",
            "dense_search": "Search by meaning too",
            "recency_decay": "Recency decay",
            "cache_enabled": "Answer from the cache",
            "cache_ttl_seconds": "A cached response lives",
            "cache_max_entries": "Cached responses kept",
        }
        help_texts = {
            "persist_memory": "Off: a scratchpad. Exact values, observations, knowledge, terms and cached responses "
            "live for one run and leave nothing behind; nothing is consolidated. Default on.",
            "auto_extract": "Find findings, insights and lessons in what the agent says, with a model. Default off.",
            "extraction_model": "A small one does. Empty: the model for summaries.",
            "stale_days": "Days without use or a look at it, after which something is to be looked at. Default 180.",
            "auto_compress": "Fold old entries when a session passes a limit below. Default on; off after an import, "
            "since its agent folds for itself.",
            "max_tokens": "Tokens of a session in the context, beyond which it is folded; also the context's budget. "
            "Default 50,000.",
            "max_entries": "Entries of a session in the context, beyond which it is folded. Default 100.",
            "recent_window": "The latest entries, which are never folded. Default 10.",
            "min_entries_to_compress": "Fewer than so many older entries are left alone. Default 5.",
            "compression_ratio": "Share of the folded tokens, above 0 and below 1. Default 0.3.",
            "auto_consolidate": "Move what was said into MEMORY.md and the history on its own. Default on.",
            "memory_window": "Entries without consolidation, beyond which it is due. nanobot 100, Grip 50.",
            "consolidation_style": "How MEMORY.md changes: rewritten whole, or facts appended.",
            "model": "What the agent itself runs on: its tokens are counted. Empty: estimated.",
            "consolidation_model": "Name of the model that folds and consolidates. Empty: the hub's.",
            "model_base_url": "An address of its own for this workspace, or a preset's name; it gets no key. Empty: "
            "the hub's.",
            "daily_token_budget": "Tokens that models may take in a day (UTC). Empty: no limit.",
            "embedding_provider": f"Who embeds the words of the graph: {', '.join(PROVIDERS)}; or {NONE}, and "
            "searches look no further than their words. Empty: the hub's.",
            "embedding_model": "Its model. Empty: the hub's, or the provider's first.",
            "embedding_base_url": "An address of its own for this workspace; it gets no key. Empty: the provider's.",
            "dense_search": "Sends texts to that provider: entries, knowledge, observations, memory lines, history "
            "and summaries, 2,000 characters of each, and the words of searches. Never key-values, nor what looks "
            "like a secret. Default off.",
            "recency_decay": "How fast old history counts less in a search, per hour. Grip 0.001; default 0.",
            "cache_enabled": "Default on.",
            "cache_ttl_seconds": "Seconds. Default 3,600.",
            "cache_max_entries": "The least recently used go first. Default 500.",
        }

    def clean_model_base_url(self) -> str:
        address: str = self.cleaned_data["model_base_url"]
        return address if address in PRESETS else _checked(address)

    def clean_embedding_provider(self) -> str:
        provider: str = self.cleaned_data["embedding_provider"].lower()
        if refusal := refusal_of(provider):
            raise forms.ValidationError(refusal)
        return provider

    def clean_embedding_base_url(self) -> str:
        return _checked(self.cleaned_data["embedding_base_url"])

    def clean_name(self) -> str:
        return clean_text(" ".join(self.cleaned_data["name"].split()))

    def clean(self) -> dict[str, Any]:
        """Check the settings against each other, so that none can make another one pointless."""
        super().clean()
        values = self.cleaned_data
        for name, least in LEAST.items():
            if values.get(name) is not None and values[name] < least:
                self.add_error(name, f"{least:,} or more.")
        if not 0 < values.get("compression_ratio", 0.5) < 1:
            self.add_error("compression_ratio", "A share above 0 and below 1, for example 0.3.")
        if not self.errors:
            self._check_window(values["max_entries"], values["recent_window"], values["min_entries_to_compress"])
        return values

    def _check_window(self, limit: int, recent: int, fewest: int) -> None:
        if recent > limit:
            self.add_error("recent_window", f"The recent window ({recent}) is larger than the entry limit ({limit}).")
        elif recent + fewest > limit:
            needed = recent + fewest
            words = f"With {recent} recent entries and {fewest} to fold, the entry limit must be {needed} or more."
            self.add_error("min_entries_to_compress", words)

    def sections(self) -> list[tuple[str, list[forms.BoundField]]]:
        return [(title, [self[name] for name in names]) for title, names in self.SECTIONS]


def _checked(address: str) -> str:
    """Return an address that a model may be asked at, or "". Raises ValidationError."""
    if address:
        try:
            check_url(address, settings.MEMORYHUB_PRIVATE_HOSTS)
        except AddressRefused as error:
            raise forms.ValidationError(error.message) from error
    return address


class OpenForm(forms.Form):
    key = forms.CharField(
        max_length=512, label="Key", help_text="A channel and an identifier, such as cli:main or telegram:42."
    )
    title = forms.CharField(required=False, max_length=500)


class RenameForm(forms.Form):
    title = forms.CharField(required=False, max_length=500)


class DeleteForm(forms.Form):
    """The session's key, typed, and why."""

    confirmation = forms.CharField(max_length=512, label="Type the session's key", strip=False)
    reason = forms.CharField(required=False, max_length=500, label="Why")

    def __init__(self, *args: Any, key: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.key = key
        self.fields["confirmation"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"]
        if typed != self.key:
            raise forms.ValidationError("That is not the session's key. Nothing was deleted.")
        return typed


class AppendForm(forms.Form):
    """One entry that a person adds."""

    KINDS = [("user", "User message"), ("assistant", "Assistant message"), ("context", "Context, such as a file")]

    kind = forms.ChoiceField(choices=KINDS)
    name = forms.CharField(
        required=False,
        max_length=200,
        label="Name",
        help_text="Who speaks, or what the context is, such as src/main.ts.",
    )
    content = forms.CharField(max_length=200_000, widget=forms.Textarea(attrs={"rows": 5}), strip=False)

    def row(self) -> dict[str, str]:
        """Return the entry as ``read_batch`` takes it."""
        values = self.cleaned_data
        kind = {"kind": "context"} if values["kind"] == "context" else {"role": values["kind"]}
        return kind | ({"name": values["name"]} if values["name"] else {}) | {"content": values["content"]}


class CompressForm(forms.Form):
    """How a person wants a session folded."""

    METHODS = [("llm", "By the model"), ("heuristic", "By rule: counts, first and last request, tools, errors")]

    method = forms.ChoiceField(choices=METHODS, widget=forms.RadioSelect)
    keep = forms.IntegerField(min_value=1, max_value=10_000, label="Entries that stay")
    hold = forms.BooleanField(required=False, label="Show me the summary before it counts")


class WebhookForm(forms.Form):
    url = forms.URLField(assume_scheme="https", max_length=500, label="Address")
    actions = forms.MultipleChoiceField(
        choices=[(action, f"{action}: {words}") for action, words in EVENTS.items()],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Events",
        help_text="None chosen: all of them.",
    )

"""Forms of the settings that hub operators change on the page, one for each section."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.dashboard.hub_settings import without_secrets
from memoryhub.lib.embeddings import NONE, PROVIDERS, provider_error
from memoryhub.lib.http.safe_http import AddressRefused, check_url
from memoryhub.lib.llm import PRESETS
from memoryhub.lib.stale_forms import merged_values, remember_shown
from sessions_app.services.stored_settings import KEYS, HubSettings, is_editable

MAX_HOURS = 24 * 366


class SectionForm(forms.Form):
    """``settings_by_field``: environment variables. Fields that the environment sets are disabled and say so."""

    settings_by_field: dict[str, str] = {}
    is_testable = False
    test_label = _("Test connection")

    def __init__(self, data: Any = None, *, current: HubSettings) -> None:
        fields = self.settings_by_field.items()
        initial = {field: _shown(name, current) for field, name in fields if name not in KEYS}
        super().__init__(data, initial=initial)
        remember_shown(self)
        for field, name in fields:
            if name in KEYS:
                self._describe_key(field, name, current)
            if not is_editable(name):
                self._disable(field, name)

    def _disable(self, field: str, name: str) -> None:
        self.fields[field].disabled = True
        key = next((key for key, addresses in KEYS.items() if name in addresses), "")
        if name in settings.GIVEN_SETTINGS:
            words = gettext("Set in the environment by %(name)s.") % {"name": name}
        else:
            words = gettext(
                "The key in %(key)s is only sent to the address in %(name)s. Set that in the environment."
            )
            words = words % {"key": key, "name": name}
        self.fields[field].help_text = words

    def _describe_key(self, field: str, name: str, current: HubSettings) -> None:
        if name in current.unusable_keys:
            self.fields[field].help_text = _(
                "The stored key can't be used: it was saved for another address or with another secret key of the "
                "hub. Enter it again."
            )
        elif name in current.stored:
            self.fields[field].help_text = _("A key is stored, encrypted. Leave empty to keep it.")
        if name not in current.stored | current.unusable_keys:
            del self.fields[f"remove_{field}"]

    def clean(self) -> dict[str, Any]:
        """Keep what someone else saved since the page was opened."""
        super().clean()
        return merged_values(self, self.initial)

    @property
    def changes(self) -> dict[str, Any]:
        """The values by setting; None for a key that stays."""
        values = self.cleaned_data
        found = {name: values[field] for field, name in self.settings_by_field.items() if name not in KEYS}
        for field, name in self.settings_by_field.items():
            if name in KEYS:
                found[name] = "" if values.get(f"remove_{field}") else values[field] or None
        return {name: value for name, value in found.items() if is_editable(name)}


def _check_key(key: str) -> None:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise forms.ValidationError(gettext("A key has letters, digits and punctuation only, without blanks."))


def _check_provider(provider: str) -> None:
    if message := provider_error(provider):
        raise forms.ValidationError(message)


def key_field() -> forms.CharField:
    return forms.CharField(
        required=False,
        max_length=500,
        label=_("API key"),
        help_text=_("Stored encrypted and never shown again. Servers on this machine usually need none."),
        validators=[_check_key],
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


def _shown(name: str, current: HubSettings) -> Any:
    """Return a value for its field. Addresses of the environment may contain credentials."""
    value = current.values[name]
    return value if name in current.stored or not isinstance(value, str) else without_secrets(value)


def clean_address(url: str, presets: Collection[str] = ()) -> str:
    """Return the address of a model or provider without its last slash, a preset, or "". Raises ValidationError."""
    url = url.rstrip("/")
    if url in presets:
        return url
    if "?" in url or "#" in url:
        raise forms.ValidationError(gettext("The address must have no query and no fragment."))
    if url:
        try:
            check_url(url, settings.MEMORYHUB_PRIVATE_HOSTS)
        except AddressRefused as error:
            raise forms.ValidationError(error.message) from error
    return url


class ModelForm(SectionForm):
    settings_by_field = {
        "address": "MEMORYHUB_LLM_BASE_URL",
        "model": "MEMORYHUB_LLM_MODEL",
        "key": "MEMORYHUB_LLM_API_KEY",
    }
    is_testable = True

    address = forms.CharField(
        required=False,
        max_length=500,
        label=_("Provider or address"),
        help_text=_(
            "openai, google, mistral, anthropic, openrouter; ollama, lmstudio, llamacpp or vllm on this machine; or "
            "the https:// address of any OpenAI-compatible API."
        ),
        widget=forms.TextInput(attrs={"list": "model-providers", "spellcheck": "false"}),
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        label=_("Model"),
        help_text=_("As the provider calls it, for example gpt-4o-mini. Workspaces can use their own."),
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    key = key_field()
    remove_key = forms.BooleanField(required=False, label=_("Remove the stored key"))

    def clean_address(self) -> str:
        return clean_address(self.cleaned_data["address"], PRESETS)


class EmbeddingForm(SectionForm):
    settings_by_field = {
        "provider": "MEMORYHUB_EMBEDDING_PROVIDER",
        "embedding_model": "MEMORYHUB_EMBEDDING_MODEL",
        "embedding_address": "MEMORYHUB_EMBEDDING_BASE_URL",
        "embedding_key": "MEMORYHUB_EMBEDDING_API_KEY",
    }
    is_testable = True

    provider = forms.ChoiceField(
        choices=[(NONE, _("None")), *((name, name) for name in PROVIDERS)],
        widget=forms.Select(attrs={"translate": "no"}),
        label=_("Provider"),
        validators=[_check_provider],
        help_text=_("Receives single words for the graph; texts only for workspaces with semantic search."),
    )
    embedding_model = forms.CharField(
        required=False, max_length=200, label=_("Model"), help_text=_("Empty: the provider's usual one.")
    )
    embedding_address = forms.CharField(
        required=False, max_length=500, label=_("Address"), help_text=_("Empty: the provider's own.")
    )
    embedding_key = key_field()
    remove_embedding_key = forms.BooleanField(required=False, label=_("Remove the stored key"))

    def clean_embedding_address(self) -> str:
        return clean_address(self.cleaned_data["embedding_address"])


class BackupForm(SectionForm):
    settings_by_field = {"hours": "MEMORYHUB_BACKUP_HOURS", "keep": "MEMORYHUB_BACKUP_KEEP"}

    hours = forms.FloatField(
        min_value=0, max_value=MAX_HOURS, label=_("Every (hours)"), help_text=_("0 turns automatic backups off.")
    )
    keep = forms.IntegerField(
        min_value=0, max_value=10_000, label=_("Backups to keep"), help_text=_("Older ones are deleted. 0 keeps all.")
    )


class RetentionForm(SectionForm):
    settings_by_field = {"access_days": "MEMORYHUB_ACCESS_DAYS", "record_days": "MEMORYHUB_RECORD_DAYS"}
    is_testable = True
    test_label = _("Preview")

    access_days = forms.IntegerField(
        min_value=0,
        max_value=36_500,
        label=_("Keep the access log for (days)"),
        help_text=_("0 keeps it forever. Memory itself is never deleted by age."),
    )
    record_days = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=36_500,
        label=_("Keep records of finished work for (days)"),
        help_text=_("Webhook deliveries, import reports, idempotency keys and failed replies. 0 keeps them forever."),
    )

    def clean_record_days(self) -> int:
        return self.cleaned_data["record_days"] or 0


SECTIONS: dict[str, tuple[Any, type[SectionForm]]] = {
    "model": (_("Model"), ModelForm),
    "embeddings": (_("Embeddings"), EmbeddingForm),
    "backups": (_("Automatic backups"), BackupForm),
    "retention": (_("Retention"), RetentionForm),
}

from __future__ import annotations

from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.contrib.auth.models import User
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import Forgotten, KnowledgeEntry
from memoryhub.flows.news import KINDS_OF
from memoryhub.flows.sign_ins import count_as_right, count_try, is_slowed
from memoryhub.flows.sync import is_below_roots
from memoryhub.people_forms import ChoosesPassword
from sessions_app.models import AuditRecord, Session, Workspace

LAYOUTS = [("auto", _("Find out")), *((layout.value, layout.label) for layout in Workspace.Layout if layout != "hub")]
NOUNS = {  # of actions
    "account": _("Account"),
    "audit": _("Audit"),
    "backup": _("Backup"),
    "change": _("Change"),
    "document": _("Document"),
    "entry": _("Entry"),
    "facts": _("Facts"),
    "graph": _("Graph"),
    "history": _("History"),
    "import": _("Import"),
    "job": _("Job"),
    "key_value": _("Key value"),
    "knowledge": _("Knowledge"),
    "observations": _("Observations"),
    "rows": _("Rows"),
    "person": _("Person"),
    "run": _("Run"),
    "session": _("Session"),
    "sessions": _("Sessions"),
    "term": _("Term"),
    "token": _("Token"),
    "webhook": _("Webhook"),
}
UPLOAD_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".json")
MAX_UPLOAD_BYTES = 100 * 2**20


class AuditFilterForm(forms.Form):
    who = forms.CharField(
        required=False, max_length=200, label=_("Who"), widget=forms.TextInput(attrs={"type": "search"})
    )
    actor = forms.ChoiceField(
        required=False, label=_("By"), choices=[("", _("Anybody")), *AuditRecord.ActorKind.choices]
    )
    noun = forms.ChoiceField(
        required=False, label=_("Of"), choices=[("", _("Anything")), *((noun, NOUNS[noun]) for noun in KINDS_OF)]
    )
    text = forms.CharField(
        required=False,
        max_length=200,
        label=_("What it says"),
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    since = forms.DateField(required=False, label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label=_("To"), widget=forms.DateInput(attrs={"type": "date"}))


class LoginForm(AuthenticationForm):
    """Signing in, slowed after ten wrong tries a minute for a name or from an address; nobody is locked out."""

    def clean(self) -> dict[str, Any]:
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        tried = [f"name {self.cleaned_data.get('username', '')}", f"address {address}"]
        if is_slowed(tried):
            raise forms.ValidationError(_("Too many wrong tries. Wait a minute, then try again."), code="slowed")
        count_try(tried)
        values = super().clean()
        count_as_right(tried)
        return values


class OperatorForm(ChoosesPassword, BaseUserCreationForm[User]):
    """The first account: a name and a password, twice."""

    class Meta:
        model = User
        fields = ("username",)


class ForgetForm(forms.Form):
    """What is to be forgotten, and at the second step that it really is."""

    KINDS = [
        (Forgotten.Kind.PHRASE, _("A phrase: only the words go")),
        (Forgotten.Kind.PERSON, _("A person: every line that mentions them goes")),
        (Forgotten.Kind.SOURCE, _("A source: what was learnt there goes")),
        (Forgotten.Kind.SESSION, _("A session, with what was learnt from it alone")),
    ]

    kind = forms.ChoiceField(choices=KINDS, label=_("What"))
    words = forms.CharField(
        max_length=4_000,
        label=_("Which"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "The phrase; the person's names and other names, one a line; the source; or the session's key. "
            "Case and punctuation don't matter, words count as a whole."
        ),
    )
    expected = forms.IntegerField(required=False, min_value=0)
    reason = forms.CharField(required=False, max_length=500)
    is_sure = forms.BooleanField(required=False)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspace = workspace

    def clean(self) -> dict[str, Any]:
        super().clean()
        key = self.cleaned_data.get("words", "").strip()
        is_session = self.cleaned_data.get("kind") == Forgotten.Kind.SESSION
        if is_session and not Session.objects.filter(workspace=self.workspace, key=key).exists():
            self.add_error("words", gettext("No session has this key."))
        return self.cleaned_data


class ImportForm(forms.Form):
    """A folder on the hub's machine, or an uploaded archive or export."""

    path = forms.CharField(
        required=False,
        max_length=4000,
        label=_("Folder"),
        help_text=_("Where the agent keeps its memory, for example ~/.nanobot. It is only read."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "~/.nanobot"}),
    )
    upload = forms.FileField(
        required=False,
        label=_("or a file"),
        help_text=_("A .zip or .tar.gz of such a folder, or an AgTerm export (.json), up to 100 MB."),
    )
    name = forms.CharField(
        required=False,
        max_length=200,
        label=_("Name"),
        help_text=_("What to call this workspace. Empty: the folder's name."),
    )
    layout = forms.ChoiceField(
        choices=LAYOUTS, initial="auto", required=False, label=_("Layout"), help_text=_("Which program wrote it.")
    )

    def clean_path(self) -> str:
        text = str(self.cleaned_data["path"]).strip()
        if not text:
            return ""
        path = Path(text).expanduser()
        if "\x00" in text or not path.is_absolute():
            raise forms.ValidationError(gettext("Give the whole path, from / or ~ on."))
        if not is_below_roots(path):
            roots = ", ".join(str(root) for root in settings.MEMORYHUB_ROOTS) or gettext("no folder at all")
            refusal = gettext(
                "Pages may import below %(roots)s only. To allow another folder, name it in MEMORYHUB_ROOTS, "
                "or import it with the command import_workspace."
            )
            raise forms.ValidationError(refusal % {"roots": roots})
        if not path.exists():
            raise forms.ValidationError(gettext("There is nothing at this path, or the hub may not look into it."))
        return str(path.resolve())

    def clean_upload(self) -> Any:
        upload = self.cleaned_data["upload"]
        if upload and not upload.name.lower().endswith(UPLOAD_SUFFIXES):
            raise forms.ValidationError(gettext("This is neither a .zip, a .tar.gz nor a .json file."))
        if upload and upload.size > MAX_UPLOAD_BYTES:
            raise forms.ValidationError(
                gettext("This file is larger than 100 MB. Import the folder by its path instead.")
            )
        return upload

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and bool(values.get("path")) == bool(values.get("upload")):
            raise forms.ValidationError(gettext("Give a folder or a file, one of the two."))
        return values


class WorkspaceForm(forms.Form):
    name = forms.CharField(max_length=200, label=_("Name"), help_text=_("Of the agent that will write here."))


class SessionFileForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        max_length=200,
        help_text=_(
            "A nanobot session (.jsonl), a Grip session or an AgTerm export (.json). What is there already is "
            "not added again."
        ),
    )


class SearchForm(forms.Form):
    """What stands round the search box. ``memoryhub.views.searching`` reads what it sends."""

    MATCHES = [("any", _("Any word")), ("all", _("All words"))]
    SORTS = [
        ("best", _("Best match")),
        ("newest", _("Newest first")),
        ("floored", _("Best, newer a little up")),
        ("grip", _("Best, faded by age")),
    ]
    MODES = [
        ("", "MemoryHub"),
        ("grip-memory", _("Grip: MEMORY.md")),
        ("grip-history", _("Grip: HISTORY.md")),
        ("grip-knowledge", _("Grip: knowledge")),
    ]
    CATEGORIES = [("", _("All")), *KnowledgeEntry.Category.choices]

    kind = forms.ChoiceField(required=False, widget=forms.RadioSelect, label=_("Kind"))
    match = forms.ChoiceField(required=False, choices=MATCHES, label=_("Words"))
    sort = forms.ChoiceField(required=False, choices=SORTS, label=_("Order"))
    decay = forms.FloatField(
        required=False,
        min_value=0,
        label=_("Fading an hour"),
        widget=forms.NumberInput(attrs={"step": "any", "max": "1000"}),
    )
    mode = forms.ChoiceField(required=False, choices=MODES, label=_("Ranked by"))
    category = forms.ChoiceField(required=False, choices=CATEGORIES, label=_("Category"))

    def __init__(self, *args: Any, kinds: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = kinds  # type: ignore[attr-defined]

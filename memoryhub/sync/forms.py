from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.sync.importing import is_below_roots, is_hub_home
from sessions_app.models import Workspace

LAYOUTS = [
    ("auto", _("Detect automatically")),
    *((layout.value, layout.label) for layout in Workspace.Layout if layout != "hub"),
]


UPLOAD_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".json", ".jsonl")


MAX_UPLOAD_BYTES = 100 * 2**20


class PathForm(forms.Form):
    """A folder on the hub's machine."""

    path = forms.CharField(
        required=False,
        max_length=4000,
        label=_("Folder"),
        help_text=_("The agent's folder, for example ~/.claude or ~/.nanobot. It is only read."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "~/.nanobot"}),
    )

    def clean_path(self) -> str:
        return _readable_path(str(self.cleaned_data["path"]).strip())


class FolderForm(PathForm):
    """A folder to add to a workspace; ``project``: which, if it is a home with several."""

    project = forms.CharField(
        required=False,
        max_length=4000,
        label=_("Project"),
        help_text=_("Only for an agent's home with several projects."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class ImportForm(PathForm):
    """A folder on the hub's machine, or an uploaded archive or export."""

    upload = forms.FileField(
        required=False,
        label=_("Or upload a file"),
        help_text=_(
            "A .zip or .tar.gz of the folder, a transcript of Claude Code or Codex (.jsonl), or an AgTerm export "
            "(.json). Up to 100 MB."
        ),
    )
    name = forms.CharField(
        required=False,
        max_length=200,
        label=_("Workspace name"),
        help_text=_("Leave empty to use the folder's name."),
    )
    layout = forms.ChoiceField(
        choices=LAYOUTS,
        initial="auto",
        required=False,
        label=_("Format"),
        help_text=_("The program that wrote the memory."),
    )

    def clean_upload(self) -> Any:
        upload = self.cleaned_data["upload"]
        if upload and not upload.name.lower().endswith(UPLOAD_SUFFIXES):
            raise forms.ValidationError(gettext("This is neither a .zip, a .tar.gz, a .json nor a .jsonl file."))
        if upload and upload.size > MAX_UPLOAD_BYTES:
            raise forms.ValidationError(
                gettext("This file is larger than 100 MB. Import the folder by its path instead.")
            )
        return upload

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and not (values.get("path") or values.get("upload")):
            raise forms.ValidationError(gettext("Enter a folder or upload a file."))
        if values.get("path") and values.get("upload"):
            raise forms.ValidationError(gettext("Enter a folder or upload a file, not both."))
        return values


def _roots_refusal(path: Path) -> str:
    """Return why pages can't import a path, and the setting with which they can."""
    roots = [str(root) for root in settings.MEMORYHUB_ROOTS]
    refusal = gettext(
        "Pages can import only folders in %(roots)s. To import this one, start the hub with %(setting)s, or run: "
        "%(command)s"
    )
    return refusal % {
        "roots": ", ".join(roots) or gettext("no folders"),
        "setting": f"MEMORYHUB_ROOTS={shlex.quote(os.pathsep.join([*roots, str(path)]))}",
        "command": f"python3 manage.py import {shlex.quote(str(path))}",
    }


def _readable_path(text: str) -> str:
    """Return a path that pages may read, resolved; "" for none. Raises ValidationError."""
    if not text:
        return ""
    path = Path(text).expanduser()
    if "\x00" in text or not path.is_absolute():
        raise forms.ValidationError(gettext("Enter an absolute path, starting with / or ~."))
    if is_hub_home(path.resolve()):
        raise forms.ValidationError(gettext("This is MemoryHub's own data folder, not an agent's folder."))
    if not is_below_roots(path):
        raise forms.ValidationError(_roots_refusal(path.resolve()))
    if not path.exists():
        raise forms.ValidationError(gettext("This path doesn't exist, or the hub can't read it."))
    return str(path.resolve())

"""Import and export pages of the admin: tables as CSV, JSON and XLSX files, previewed before anything is written.

The commands ``export`` and ``import`` call the same services.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from memoryhub.admin.read_only import ReadOnlyAdmin
from memoryhub.jobs.uploads import TABLE_NAME, TABLES, keep_table
from memoryhub.lib.errors import Gone, MemoryHubError
from memoryhub.lib.tables import Format, Table, check_size
from memoryhub.lib.tables.files import FORMATS
from memoryhub.permissions import by_person, person
from memoryhub.spreadsheets.exporting import EXPORTS, export_table
from memoryhub.spreadsheets.importing import import_rows
from memoryhub.spreadsheets.rows import IMPORTS, OUTCOMES
from sessions_app.services.audit import By

SHOWN_ROWS = 200
NAME_CHARS = 200


class FormatField(forms.TypedChoiceField):
    """A choice of a file format by number; its value is the ``Format``."""

    def __init__(self, **options: Any) -> None:
        choices = [("", "---"), *((str(number), name.upper()) for number, name in enumerate(FORMATS))]
        super().__init__(label=_("Format"), choices=choices, coerce=_format, **options)


def _format(number: str) -> Format:
    return list(FORMATS.values())[int(number)]


class ExportForm(forms.Form):
    format = FormatField()


class UploadForm(forms.Form):
    """A file and its format; ``cleaned_data["table"]`` is its content."""

    import_file = forms.FileField(label=_("File to import"))
    format = FormatField()

    class Media:
        js = ["js/admin.js"]

    def clean_import_file(self) -> Any:
        upload = self.cleaned_data["import_file"]
        try:
            check_size(upload.size)
        except MemoryHubError as error:
            raise forms.ValidationError(error.message) from error
        return upload

    def clean(self) -> dict[str, Any]:
        upload, kind = self.cleaned_data.get("import_file"), self.cleaned_data.get("format")
        if upload is None or kind is None:
            return self.cleaned_data
        try:
            self.cleaned_data["table"] = kind.read(upload.read())
        except MemoryHubError as error:
            self.add_error("import_file", error.message)
        else:
            if not self.cleaned_data["table"]:
                words = gettext("No valid data to import. Check the file's headers and data.")
                self.add_error("import_file", words)
        return self.cleaned_data


class ConfirmForm(forms.Form):
    """The hidden fields of a preview; a client can forge them."""

    import_file_name = forms.RegexField(TABLE_NAME, widget=forms.HiddenInput)
    original_file_name = forms.CharField(max_length=NAME_CHARS, widget=forms.HiddenInput)
    format = FormatField(widget=forms.HiddenInput)
    digest = forms.CharField(widget=forms.HiddenInput)
    overwrite = forms.BooleanField(label=_("Overwrite the rows that changed since the export"), required=False)


class TableAdmin(ReadOnlyAdmin):
    """Read-only rows with export of the filtered list and, for the tables of ``IMPORTS``, import."""

    table = ""
    change_list_template = "admin/table_list.html"

    @property
    def can_import(self) -> bool:
        return self.table in IMPORTS

    def get_urls(self) -> list[URLResolver | URLPattern]:  # type: ignore[override]
        views = {"export": self.export_view}
        if self.can_import:
            views |= {"import": self.import_view, "process_import": require_POST(self.confirm_view)}
        pages = [
            path(f"{page}/", self.admin_site.admin_view(view), name=self._route(page).removeprefix("admin:"))
            for page, view in views.items()
        ]
        return [*pages, *super().get_urls()]

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a format, then send the rows that match the filters and the search of the list."""
        try:
            rows = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters:
            return redirect(reverse(self._route("changelist"), query={"e": 1}))
        form = ExportForm(request.POST or None)
        if not form.is_valid():
            return self._page(request, "export", {"title": gettext("Export"), "form": form})
        kind = form.cleaned_data["format"]
        now = timezone.now()
        content = kind.write(export_table(self.table, rows, by=By(person(request), now)))
        name = f"{self.model.__name__}-{now:%Y-%m-%d}.{kind.name}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(content, content_type=kind.content_type, headers=headers)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show what an uploaded table would change. Writes nothing but the file, if it can be confirmed."""
        form = UploadForm(request.POST or None, request.FILES or None)
        context: dict[str, Any] = {"title": gettext("Import"), "form": form}
        if form.is_valid():
            upload = form.cleaned_data["import_file"]
            context |= self._import(request, form.cleaned_data["table"], upload.name, dry_run=True)
            if not context["is_refused"]:
                upload.seek(0)
                initial = {
                    "import_file_name": keep_table(upload.read()),
                    "original_file_name": upload.name[:NAME_CHARS],
                    "format": form["format"].value(),
                    "digest": context["result"].digest,
                }
                context["confirm_form"] = ConfirmForm(initial=initial)
        return self._page(request, "import", context)

    def confirm_view(self, request: HttpRequest) -> HttpResponse:
        """Import the table of a preview, or show it again if it differs by now."""
        form = ConfirmForm(request.POST)
        if not form.is_valid():
            return self._page(request, "import", {"title": gettext("Import"), "is_expired": True})
        upload = f"{TABLES}/{form.cleaned_data['import_file_name']}"
        try:
            with default_storage.open(upload) as kept:
                table = form.cleaned_data["format"].read(kept.read())
        except FileNotFoundError as error:
            words = gettext("This file was imported already, or the preview expired. Upload it again.")
            raise Gone(words, code="upload_gone") from error
        source, overwrite, shown = (form.cleaned_data[name] for name in ("original_file_name", "overwrite", "digest"))
        context = self._import(request, table, source, dry_run=False, overwrite=overwrite, shown=shown)
        if not context["is_refused"] and context["result"].digest != shown:
            return self._preview_again(request, table, form)
        default_storage.delete(upload)
        if context["is_refused"]:
            return self._page(request, "import", {"title": gettext("Import"), **context}, status=422)
        counts = context["result"].counts
        words = gettext("Imported: %(new)s new, %(changed)s changed, %(unchanged)s unchanged.")
        messages.success(request, words % {name: f"{counts[name]:,}" for name in OUTCOMES})
        if skipped := counts["skipped"]:
            words = ngettext("%(count)s row was skipped.", "%(count)s rows were skipped.", skipped)
            messages.warning(request, words % {"count": f"{skipped:,}"})
        return redirect(self._route("changelist"))

    def _preview_again(self, request: HttpRequest, table: Table, form: ConfirmForm) -> HttpResponse:
        context = self._import(request, table, form.cleaned_data["original_file_name"], dry_run=True)
        if not context["is_refused"]:
            kept = {name: form[name].value() for name in form.fields}
            shown = {"digest": context["result"].digest, "overwrite": False}
            context["confirm_form"] = ConfirmForm(initial=kept | shown)
        context |= {"title": gettext("Import"), "has_changed": True}
        return self._page(request, "import", context, status=422)

    def _route(self, page: str) -> str:
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"

    def _import(
        self,
        request: HttpRequest,
        table: Table,
        source: str,
        *,
        dry_run: bool,
        overwrite: bool = False,
        shown: str = "",
    ) -> dict[str, Any]:
        """Import a table, or only check its rows; return the result as template context."""
        try:
            result = import_rows(
                self.table,
                table,
                source=source[:NAME_CHARS],
                zone=ZoneInfo(settings.TIME_ZONE),
                by=by_person(request),
                dry_run=dry_run,
                overwrite=overwrite,
                shown=shown,
            )
        except MemoryHubError as error:
            return {"is_refused": True, "error": error.message}
        differing = [row for row in result.rows if row.outcome in ("skipped", "new", "changed")]
        differing.sort(key=lambda row: row.outcome != "skipped")
        return {
            "is_refused": bool(result.counts["wrong"]),
            "result": result,
            "wrong": [row for row in result.rows if row.outcome == "wrong"][:SHOWN_ROWS],
            "differing": differing[:SHOWN_ROWS],
            "adjusted": [row for row in result.rows if row.notes and row.outcome != "skipped"][:SHOWN_ROWS],
        }

    def _page(self, request: HttpRequest, page: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        columns = IMPORTS[self.table].columns if self.can_import else list(EXPORTS[self.table].columns)
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "columns": columns}
        request.current_app = self.admin_site.name
        return TemplateResponse(request, f"admin/{page}.html", shared | context, status=status)

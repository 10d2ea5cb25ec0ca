"""Tables as files, there and back: django-import-export's pages over the hub's own services and formats.

The package brings the way through the pages (upload, preview, confirm). How a file is read, what a row may do and
who is told of it are the hub's, so that the commands ``export_table`` and ``import_table`` do the same.
"""

from __future__ import annotations

import re
import time
import uuid
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext
from import_export.admin import ExportMixin, ImportExportMixin
from import_export.fields import Field
from import_export.formats.base_formats import Format as PackageFormat
from import_export.forms import ConfirmImportForm, ExportForm, ImportForm
from import_export.resources import Resource
from import_export.results import Result
from import_export.tmp_storages import BaseStorage

from memoryhub.access import person
from memoryhub.admin.read_only import ReadOnlyAdmin
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.tables import Table, check_size
from memoryhub.lib.tables.files import FORMATS
from memoryhub.spreadsheets.exporting import EXPORTS, export_table
from memoryhub.spreadsheets.importing import import_rows
from memoryhub.spreadsheets.rows import TAKING, Judged

SHOWN_ROWS = 200
KEPT_SECONDS = 24 * 3600
_NAME = re.compile(r"[0-9a-f]{32}")


class UploadGone(MemoryHubError):
    """The uploaded file was imported already, or waited too long."""

    code = "upload_gone"


class TableFormat(PackageFormat):  # type: ignore[misc]
    """One of the hub's formats, as the package asks for it. Always bytes: what they mean is the format's business."""

    name = ""

    def __init__(self, encoding: str | None = None) -> None:
        self.encoding = encoding

    def get_title(self) -> str:
        return self.name.upper()

    def get_extension(self) -> str:
        return self.name

    def get_content_type(self) -> str:
        return FORMATS[self.name].content_type

    def can_import(self) -> bool:
        return True

    def can_export(self) -> bool:
        return True

    def create_dataset(self, in_stream: bytes) -> Table:
        return FORMATS[self.name].read(in_stream)

    def export_data(self, dataset: Table, **_kwargs: Any) -> bytes:
        return FORMATS[self.name].write(dataset)


class CSV(TableFormat):
    name = "csv"


class JSON(TableFormat):
    name = "json"


class XLSX(TableFormat):
    name = "xlsx"


class Upload(BaseStorage):  # type: ignore[misc]
    """An uploaded table between its preview and its confirmation, readable by the hub alone, for a day at most."""

    def _path(self) -> Path:
        folder = settings.MEMORYHUB_HOME / "tables"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / str(self.name)

    def save(self, data: bytes) -> None:
        self.name = uuid.uuid4().hex
        path = self._path()
        for left in path.parent.iterdir():
            if _NAME.fullmatch(left.name) and left.stat().st_mtime < time.time() - KEPT_SECONDS:
                left.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)

    def read(self) -> bytes:
        try:
            return self._path().read_bytes()
        except FileNotFoundError as error:
            words = gettext("This file was imported already, or it waited too long. Upload it again.")
            raise UploadGone(words) from error

    def remove(self) -> None:
        self._path().unlink(missing_ok=True)


class UploadForm(ImportForm):  # type: ignore[misc]
    def clean_import_file(self) -> Any:
        upload = self.cleaned_data["import_file"]
        try:
            check_size(upload.size)
        except MemoryHubError as error:
            raise forms.ValidationError(error.message) from error
        return upload


class ConfirmForm(ConfirmImportForm):  # type: ignore[misc]
    """What the preview's page sends on; another may have been sent instead."""

    import_file_name = forms.RegexField(_NAME, widget=forms.HiddenInput)
    original_file_name = forms.CharField(max_length=200, widget=forms.HiddenInput)
    format = forms.ChoiceField(
        choices=[(str(place), name) for place, name in enumerate(FORMATS)], widget=forms.HiddenInput
    )


class TableResult(Result):  # type: ignore[misc]
    """What the package asks about an import; the pages show ``judged``."""

    judged = Judged()

    def has_validation_errors(self) -> bool:
        return bool(self.judged.counts["wrong"])

    @property
    def wrong(self) -> list[Any]:
        return [row for row in self.judged.rows if row.outcome == "wrong"][:SHOWN_ROWS]

    @property
    def differing(self) -> list[Any]:
        return [row for row in self.judged.rows if row.outcome in ("new", "changed")][:SHOWN_ROWS]

    @property
    def noted(self) -> list[Any]:
        return [row for row in self.judged.rows if row.notes][:SHOWN_ROWS]


class TableResource(Resource):  # type: ignore[misc]
    """A table of ``memoryhub.spreadsheets.exporting``, as the package asks for it."""

    table = ""

    @classmethod
    def get_display_name(cls) -> str:
        return cls.table

    def get_user_visible_fields(self) -> list[Any]:
        names = TAKING[self.table].columns if self.table in TAKING else EXPORTS[self.table].columns
        return [Field(column_name=name) for name in names]

    def import_data(self, dataset: Table, **kwargs: Any) -> TableResult:
        result = TableResult()
        try:
            result.judged = import_rows(
                self.table,
                dataset,
                source=str(kwargs.get("file_name") or "")[:200],
                zone=ZoneInfo(settings.TIME_ZONE),
                actor=person(kwargs["request"]),
                now=timezone.now(),
                dry_run=kwargs["dry_run"],
            )
        except MemoryHubError as error:
            result.append_base_error(self.get_error_result_class()(error))
        return result


class ExportAdmin(ExportMixin, ReadOnlyAdmin):  # type: ignore[misc]
    """Read-only rows with an export of what the filters and the search leave."""

    table = ""
    export_form_class = ExportForm
    formats = [CSV, JSON, XLSX]

    def get_resource_classes(self, _request: HttpRequest) -> list[type[TableResource]]:
        name = f"{self.table.title().replace('_', '')}Table"
        return [type(name, (TableResource,), {"table": self.table})]

    def get_data_for_export(self, request: HttpRequest, queryset: Any, **_kwargs: Any) -> Table:
        return export_table(self.table, queryset, actor=person(request), now=timezone.now())

    def get_valid_export_item_pks(self, request: HttpRequest) -> list[int]:  # noqa: ARG002  the whole list is exported
        return []


class TableAdmin(ImportExportMixin, ExportAdmin):  # type: ignore[misc]
    """The same, and taken back from a table: preview first, then all rows or none."""

    import_form_class = UploadForm
    confirm_form_class = ConfirmForm
    tmp_storage_class = Upload
    skip_admin_log = True  # the audit trail says it once, the rows' histories one by one

    def add_data_read_fail_error_to_form(self, form: forms.Form, error: Exception) -> None:
        message = gettext("This file can't be read as that format.")
        form.add_error("import_file", error.message if isinstance(error, MemoryHubError) else message)

    def process_result(self, result: TableResult, request: HttpRequest) -> HttpResponse:
        """Say what was written; nothing was where a row has become wrong since the preview."""
        if not result.has_errors() and not result.has_validation_errors():
            return super().process_result(result, request)  # type: ignore[no-any-return]
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Import"),
            "opts": self.opts,
            "result": result,
            "import_error_display": ("message",),
        }
        return TemplateResponse(request, [self.import_template_name], context, status=422)

    def add_success_message(self, result: TableResult, request: HttpRequest) -> None:
        counts = result.judged.counts
        words = gettext("Imported: %(new)s new, %(changed)s changed, %(unchanged)s unchanged.")
        messages.success(request, words % {name: f"{counts[name]:,}" for name in ("new", "changed", "unchanged")})

    def generate_log_entries(self, result: TableResult, request: HttpRequest) -> None:
        """The audit record is written with the rows."""

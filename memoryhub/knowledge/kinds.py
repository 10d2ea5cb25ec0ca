"""Descriptions of kinds of rows for the shared views and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Model, QuerySet, TextChoices
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.functional import Promise

from knowledge_app.services.rows.edit_tables import TABLES
from memoryhub.lib.bulk_selection import Action
from memoryhub.lib.extra_fields import extra_fields
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By

Filters = Mapping[str, Any]
Outcome = tuple[Run, str]  # an edit, and a sentence about the rows that it skipped


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of rows with a list, bulk edits and a download.

    ``table``: a key of ``TABLES``. ``access``: the prefix of its actions in the access log. ``*_url``: URL names.
    ``actions``: the bulk actions for given filters; ``edit`` carries them out. ``categories``: the list shows the
    first ``shown_each`` rows of each, and pages once a filter of ``paged_by`` is set. ``details``: more for each
    row of the list. ``is_read``: whether it shows the row's content. ``list_context``: more template context, by
    workspace and row count. ``counted``: a count as text. ``live``: the changes that an open list follows.
    """

    table: str
    access: str
    title: Promise
    list_id: str
    list_template: str
    list_url: str
    row_url: str
    edit_url: str
    filter_form: Callable[[QueryDict, Workspace], forms.Form]
    matching: Callable[[Workspace, Filters], QuerySet[Any]]
    order: tuple[str, ...] = ("-id",)
    actions: Callable[[Filters], tuple[Action, ...]]
    edit: Callable[[HttpRequest, Workspace, list[int]], Outcome]
    file: Callable[[Workspace], str]
    file_name: str
    categories: type[TextChoices] | None = None
    paged_by: tuple[str, ...] = ("category",)
    shown_each: int = 25
    details: Callable[[Any, Workspace], Any] = lambda row, _workspace: extra_fields(row)
    is_read: Callable[[Any], bool] = lambda _row: True
    list_context: Callable[[Workspace, int], dict[str, Any]] = lambda _workspace, _count: {}
    counted: Callable[[int], str] = lambda _count: ""
    notice_template: str = ""
    live: str = ""
    search_kind: str = ""
    markdown_url: str = ""

    @property
    def model(self) -> type[Model]:
        return TABLES[self.table].model


@dataclass(frozen=True, kw_only=True)
class EditableKind(Kind):
    """A kind of rows that can also be added, shown and edited one by one.

    ``add``: stores the values of a valid form and returns a response. ``save``: stores a row's changed values; by
    default they are assigned. ``row_context``: more context for the row's template.
    """

    new_title: Promise
    new_text: Promise
    new_button: Promise
    form: type[forms.Form]
    add: Callable[[HttpRequest, Workspace, dict[str, Any]], HttpResponse]
    row_template: str
    edit_row_url: str
    withdrawn_text: Promise
    save: Callable[[Any, dict[str, Any], By], Run] | None = None
    row_context: Callable[[Any], dict[str, Any]] = lambda _row: {}

"""The description of a kind of rows that the shared views and templates work from."""

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
Outcome = tuple[Run, str]  # an edit, and in words what it left out


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Rows that are listed, edited many at once, and downloaded.

    ``table``: a key of ``TABLES``. ``access``: the prefix of its actions in the access log. The ``_url`` fields are
    names of routes. ``actions``: what can be done with rows chosen on a list with some filters; ``edit`` does it.
    ``categories``: the list shows the first ``shown_each`` rows of each, and pages once a filter of ``paged_by`` is
    set. ``details``: what the list shows of a row beyond its fields. ``is_read``: whether it shows the row's content.
    ``list_context``: more for the list's template, by workspace and number of rows. ``counted``: a number in words.
    ``live``: the changes that an open list follows.
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
    """Rows that are also added, shown and edited one by one.

    ``add``: stores the values of a valid form and answers. ``save``: stores the changed values of a row; without it
    they are assigned. ``edit_row``: an edit of one row, where that isn't ``edit``. ``row_context``: more for the
    template of one row.
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
    edit_row: Callable[[HttpRequest, Any], Outcome] | None = None
    row_context: Callable[[Any], dict[str, Any]] = lambda _row: {}

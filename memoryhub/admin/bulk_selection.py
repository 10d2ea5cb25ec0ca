"""The page that confirms an admin action on selected rows.

The selection travels as the list sends it: the boxes of one page, or "all" with the filters in the URL, so that
10,000 rows don't need 10,000 fields. A digest detects whether the selection changed meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded
from sessions_app.models import Workspace

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_CHOSEN = 100_000
SAMPLE = 20


@dataclass(frozen=True)
class Chosen:
    """Primary keys by workspace, oldest first."""

    by_workspace: dict[Workspace, list[int]]

    def __len__(self) -> int:
        return sum(map(len, self.by_workspace.values()))

    @property
    def digest(self) -> str:
        pks = ((workspace.pk, pks) for workspace, pks in self.by_workspace.items())
        return hashlib.sha256(repr(list(pks)).encode()).hexdigest()


def chosen_rows(queryset: QuerySet[Any], *, limit: int = MAX_CHOSEN) -> Chosen:
    """Return the selected rows. Raises LimitExceeded."""
    rows = list(queryset.order_by("workspace_id", "pk").values_list("workspace_id", "pk")[: limit + 1])
    if len(rows) > limit:
        raise LimitExceeded(
            gettext("Select at most %(count)s at a time.") % {"count": f"{limit:,}"}, code="too_many_chosen"
        )
    workspaces = Workspace.objects.in_bulk({workspace for workspace, _ in rows})
    by_workspace: dict[Workspace, list[int]] = {workspaces[pk]: [] for pk in sorted(workspaces)}
    for workspace, pk in rows:
        by_workspace[workspaces[workspace]].append(pk)
    return Chosen(by_workspace)


def confirm(
    options: ModelAdmin[Any],
    request: HttpRequest,
    queryset: QuerySet[Any],
    chosen: Chosen,
    form_class: type[forms.Form],
    *,
    title: StrOrPromise,
    help_text: StrOrPromise = "",
    groups: Sequence[Sequence[Model]] = (),
) -> forms.Form | HttpResponse:
    """Return the confirmed form, or the page that asks for confirmation.

    ``groups``: rows to be merged, for display. If the selection has changed since it was shown, it is shown again.
    """
    review_requested = "digest" in request.POST
    form = form_class(request.POST if review_requested else None)
    has_changed = review_requested and request.POST["digest"] != chosen.digest
    if review_requested and not has_changed and form.is_valid():
        return form
    context = {
        **options.admin_site.each_context(request),
        "title": title,
        "help_text": help_text,
        "opts": options.model._meta,
        "form": form,
        "chosen": chosen,
        "chosen_text": _selection_text(chosen),
        "sample": [] if groups else list(queryset.order_by("workspace_id", "pk")[:SAMPLE]),
        "left": 0 if groups else max(0, len(chosen) - SAMPLE),
        "groups": groups,
        "has_changed": has_changed,
        "action": _requested_action(request),
        "select_across": request.POST.get("select_across", "0"),
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/choose.html", context, status=422 if form.errors or has_changed else 200)


def _requested_action(request: HttpRequest) -> str:
    """Return the action whose button was clicked: the list sends all actions, and the place of the clicked one."""
    return request.POST.getlist("action")[int(request.POST.get("index", 0))]


def _selection_text(chosen: Chosen) -> str:
    """Return the number of selected rows in each workspace as text."""
    words = gettext("%(count)s in %(workspace)s")
    counts = ((workspace.name, len(pks)) for workspace, pks in chosen.by_workspace.items())
    parts = [words % {"count": count, "workspace": name} for name, count in counts]
    return gettext("Selected: %(rows)s.") % {"rows": ", ".join(parts) or gettext("nothing")}

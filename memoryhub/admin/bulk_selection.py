"""The page between choosing rows in a list and doing something with them: how many, in which workspaces, and how.

Chosen rows travel as the list itself sends them: the boxes of one page, or "all" together with the filters in the
address. So 10,000 rows are no 10,000 fields. A digest of what was chosen tells whether it is still the same.
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
    """Return what was chosen. Raises LimitExceeded."""
    rows = list(queryset.order_by("workspace_id", "pk").values_list("workspace_id", "pk")[: limit + 1])
    if len(rows) > limit:
        raise LimitExceeded(
            gettext("Choose at most %(count)s at a time.") % {"count": f"{limit:,}"}, code="too_many_chosen"
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
    """Return the filled-in form of what a person confirmed, or else the page that asks them to.

    ``groups``: rows that would become one, for a look at them. A choice that changed since it was shown is shown
    again instead of being acted on.
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
        "chosen_words": _words(chosen),
        "sample": [] if groups else list(queryset.order_by("workspace_id", "pk")[:SAMPLE]),
        "left": 0 if groups else max(0, len(chosen) - SAMPLE),
        "groups": groups,
        "has_changed": has_changed,
        "action": request.POST["action"],
        "select_across": request.POST.get("select_across", "0"),
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/choose.html", context, status=422 if form.errors or has_changed else 200)


def _words(chosen: Chosen) -> str:
    """Say how many rows of which workspaces were chosen."""
    words = gettext("%(count)s in %(workspace)s")
    counts = ((workspace.name, len(pks)) for workspace, pks in chosen.by_workspace.items())
    parts = [words % {"count": count, "workspace": name} for name, count in counts]
    return gettext("Chosen: %(rows)s.") % {"rows": ", ".join(parts) or gettext("nothing")}

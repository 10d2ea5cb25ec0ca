"""Rows that only services write."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest


class ReadOnlyAdmin(admin.ModelAdmin[Model]):
    """``hidden`` names fields that are neither shown nor usable as a filter in the URL."""

    list_per_page = 50
    show_full_result_count = False
    hidden: tuple[str, ...] = ()

    def get_exclude(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*(super().get_exclude(request, obj) or ()), *self.hidden]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup.split("__")[0] not in self.hidden and super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

"""The admin site: off unless MEMORYHUB_ADMIN is set, and for hub operators only."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class OperatorAdminSite(AdminSite):
    site_header = site_title = "MemoryHub"
    index_title = _("Database tables")

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

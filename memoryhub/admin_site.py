"""The administration: on unless MEMORYHUB_ADMIN is 0, and for hub operators only.

Signing in, signing out and passwords are the hub's own pages, with their rate limits and list of sign-ins.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import logout_then_login, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.permissions import require_hub_operator

FIRST = ("Workspace", "Session", "KnowledgeEntry", "Observation", "KeyValue")  # tables that people edit


class OperatorAdminSite(AdminSite):
    site_header = site_title = _("MemoryHub administration")
    index_title = _("Tables")
    index_template = "admin/tables.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002
        inner = super().admin_view(view, cacheable)

        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            """Tell people who aren't hub operators that the page is for these, as the hub's pages do."""
            if request.user.is_authenticated:
                require_hub_operator(request)
            response: HttpResponse = inner(request, *args, **kwargs)
            return response

        return checked

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # noqa: ARG002
        if request.user.is_authenticated:
            require_hub_operator(request)
            return redirect("admin:index")
        return redirect_to_login(request.GET.get("next") or request.path.removesuffix("login/"))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # noqa: ARG002
        return logout_then_login(request)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:  # noqa: ARG002
        return redirect("password")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the tables in two groups: those that people edit, and all others, which are folded."""
        apps = super().get_app_list(request, app_label)
        if app_label:
            return apps
        models = {model["object_name"]: model for app in apps for model in app["models"]}
        first = [models.pop(name) for name in FIRST if name in models]
        group = {"app_label": "first", "app_url": "", "has_module_perms": True}
        others = sorted(models.values(), key=lambda model: str(model["name"]).lower())
        return [
            group | {"name": gettext("Memory"), "models": first},
            group | {"name": gettext("Internal tables"), "models": others, "is_folded": True},
        ]

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from memoryhub.api.app import docs, no_such_address, unexpected
from memoryhub.api.app import patterns as api_patterns
from memoryhub.dashboard.views.errors import not_found

PAGES = [
    "dashboard",
    "inbox",
    "accounts",
    "conversations",
    "memory",
    "documents",
    "knowledge",
    "search",
    "runs",
    "graph",
    "hygiene",
    "time_travel",
    "forgetting",
    "sync",
    "agents",
    "audit",
    "jobs",
    "backups",
    "monitoring",
]

handler404 = not_found
handler500 = unexpected
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/docs/", docs, name="api-docs"),
    path("api/v1/", include((api_patterns(), "api"))),
    path("api/<path:rest>", no_such_address, name="no-such-api-address"),
    *(path("", include(f"memoryhub.{package}.urls")) for package in PAGES),
]
if settings.MEMORYHUB_ADMIN:
    admin.autodiscover()
    urlpatterns.append(path("admin/", admin.site.urls))

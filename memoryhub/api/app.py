"""The REST API for agents, version 1: its routes and its description."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import get_template
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET
from ninja import NinjaAPI
from ninja.operation import Operation

from memoryhub.agents.hub_url import hub_address
from memoryhub.api import conversations, knowledge, memory, queries
from memoryhub.api.auth import JsonParser, NeedsScope, agent_endpoint, caller_of, idempotent
from memoryhub.api.docs_page import grouped_operations
from memoryhub.api.openapi import ERRORS, complete_description
from memoryhub.api.problems import add_handlers, error_problem, fault_problem, problem
from memoryhub.lib.database.faults import fault_of
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.request_ids import current_request_id

VERSION = "1"
UNEXPECTED = "An unexpected error occurred; see the hub's log. Check what was changed before you try again."


class AgentApi(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        return _name(operation)


api = AgentApi(
    title="MemoryHub",
    version=VERSION,
    description="An agent's memory over REST. A token gives access to one workspace, with some scopes.",
    openapi_url=None,
    docs_url=None,
    parser=JsonParser(),
    urls_namespace="api-1",
)
add_handlers(api)
api.add_decorator(idempotent, mode="view")
for _router in (conversations.router, memory.router, knowledge.router, queries.router):
    api.add_router("", _router)


@cache
def schema() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description. It takes a tenth of a second, and is the same until the process ends."""
    return complete_description(api.get_openapi_schema(path_prefix="/api/v1/"), scopes())


def scopes() -> dict[str, str]:
    """Return the scope that each operation needs, by operation id; "" for any token."""
    views = [view for _, router in api._routers for view in router.path_operations.values()]
    found = [operation for view in views for operation in view.operations]
    return {_name(one): cast("NeedsScope", one.auth_callbacks[0]).scope for one in found}


def _name(operation: Operation) -> str:
    return f"{operation.view_func.__module__}.{operation.view_func.__name__}"


@login_not_required
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document, for signed-in people and any valid token."""
    if not request.user.is_authenticated:
        try:
            caller_of(request)
        except MemoryHubError as error:
            return error_problem(error)
    return JsonResponse(schema(), json_dumps_params={"ensure_ascii": False})


@require_GET
def docs(request: HttpRequest) -> HttpResponse:
    """The documentation page."""
    return render(
        request,
        "agents/api_docs.html",
        {
            "base": f"{hub_address(request, settings.MEMORYHUB_URL)}/api/v1",
            "errors": ERRORS,
            "groups": grouped_operations(schema()),
        },
    )


@login_not_required
@csrf_exempt
def no_such_address(request: HttpRequest, rest: str = "") -> HttpResponse:  # noqa: ARG001
    return problem(404, "no_such_address", "There is nothing at this address. See /api/v1/docs/.")


def unexpected(request: HttpRequest) -> HttpResponse:
    """Answer an error that no view handles: with a problem document for agents, with a page for people."""
    fault = fault_of(sys.exc_info()[1])
    if request.path.startswith("/api/"):
        return fault_problem(fault) if fault else problem(500, "unexpected", UNEXPECTED)
    page = get_template("500.html").render({"fault": fault, "request_id": current_request_id()})
    response = HttpResponse(page, status=fault.status if fault else 500)
    if fault:
        response["Retry-After"] = str(fault.retry_after)
    return response


def patterns() -> list[URLPattern]:
    """Return the API's URL patterns without ninja's own root."""
    routes: list[URLPattern] = []
    for route in api.urls[0]:
        if isinstance(route, URLPattern) and route.name != "api-root":
            view: Callable[..., Any] = agent_endpoint(route.callback)
            routes.append(URLPattern(route.pattern, view, route.default_args, route.name))
    return [*routes, path("openapi.json", agent_endpoint(require_GET(openapi)), name="openapi")]

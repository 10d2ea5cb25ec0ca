"""Whatever an agent sends, the answer is one that the API's description names."""

from __future__ import annotations

import pytest
import schemathesis
from django.core.cache import cache
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig

from memoryhub.api.app import schema
from memoryhub.flows.tokens import SCOPES
from memoryhub.wsgi import application
from tests.api.conftest import caller, one_connection, token_for

pytestmark = pytest.mark.django_db
EXAMPLES = {"all": 4, "read": 1, "append": 1, "edit": 1, "consolidate": 1}
# What a schema can't say: a text that is no session's file, a tool result without its call, a revision gone by.
MEANING = {
    "include-path-regex": "/(entries|sessions/import)$",
    "checks": {"positive_data_acceptance": {"expected-statuses": [200, 201, 403, 404, 409, 422]}},
}
STALE = {
    "include-path": "/api/v1/documents/{name}",
    "checks": {"positive_data_acceptance": {"expected-statuses": [200, 202, 403, 404, 409, 412]}},
}
CHECKS = {
    "missing_required_header": {"expected-statuses": [403, 404, 409, 422, 428]},
    "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 413, 415, 422, 428]},
}
UNQUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.mark.parametrize("role", EXAMPLES)
def test_every_answer_is_as_described(role, workspace):
    agent = caller(token_for(workspace))
    agent("POST", "/entries", {"session": "cli:main", "entries": [{"role": "user", "content": "hello"}]})
    agent("PUT", "/documents/MEMORY.md", {"content": "- a\n"}, If_Match='"0"')
    agent("PUT", "/value?key=0", {"value": "kept"})
    token = token_for(workspace, *(SCOPES if role == "all" else [role]), name="schemathesis")
    config = SchemathesisConfig.from_dict({"checks": CHECKS, "operations": [MEANING, STALE]})
    described = schemathesis.openapi.from_dict(schema(), config=config)
    described.app = application

    for found in described.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES[role],
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=UNQUIET,
        )
        def every_case(case):
            cache.clear()
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

        with one_connection():
            every_case()

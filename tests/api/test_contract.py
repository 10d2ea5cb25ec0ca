"""Every response matches the OpenAPI document, whatever an agent sends."""

from pathlib import Path

import pytest
from django.core.cache import cache
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, given, settings

from memoryhub.agents.api_tokens import SCOPES
from memoryhub.api.app import schema
from tests.api.conftest import caller, one_connection, token_for

pytestmark = pytest.mark.django_db
EXAMPLES = 4  # with all scopes; the first also with each scope alone
ONE_BY_ONE = SCOPES if connection.vendor == "sqlite" else ()
SETTINGS = Path(__file__).resolve().parents[2] / "bench" / "schemathesis.toml"
UNQUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.mark.slow
def test_every_response_matches_the_schema(workspace):
    import schemathesis  # takes a second, in each process that collects the tests
    from schemathesis.config import SchemathesisConfig

    agent = caller(token_for(workspace))
    agent("POST", "/entries", {"session": "cli:main", "entries": [{"role": "user", "content": "hello"}]})
    agent("PUT", "/documents/MEMORY.md", {"content": "- a\n"}, If_Match='"0"')
    agent("PUT", "/value?key=0", {"value": "kept"})
    token = token_for(workspace, *SCOPES, name="schemathesis")
    alone = [token_for(workspace, scope, name=f"schemathesis-{scope}") for scope in ONE_BY_ONE]
    config = SchemathesisConfig.from_path(SETTINGS)
    operations = schemathesis.openapi.from_dict(schema(), config=config)
    operations.app = get_wsgi_application()

    def try_it(case, token):
        cache.clear()
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

    for found in operations.get_all_operations():  # once for all scopes: a strategy takes longer to build than to use
        operation, untried = found.ok(), iter(alone)

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=UNQUIET,
        )
        def every_case(case):
            for one in untried:  # noqa: B023  none is left after the first case
                point = transaction.savepoint()
                try_it(case, one)
                transaction.savepoint_rollback(point)
            try_it(case, token)

        with one_connection():
            every_case()

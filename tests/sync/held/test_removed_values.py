"""What a person removed is held also if a value says it in several parts of a JSON object."""

import pytest

from knowledge_app.models import HeldRow
from knowledge_app.services.rows.key_values import write_value
from tests.hub import AGENT
from tests.sync.test_agent_rewrites import atlas, file
from tests.sync.test_removed_text import by, removed

__all__ = ["atlas", "file", "removed"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("value", "is_held"),
    [
        ('{"what": "The shop is", "b": {"when": "closed on Monday"}}', True),
        ('["The shop is", {"when": "closed on Monday"}]', True),
        ('{"The shop is": "closed", "on": "Sunday", "or": "Monday"}', False),
        ('{"what": "The shop is closed", "when": "on \\"Sunday\\": Monday"}', False),
    ],
)
def test_a_value_that_says_it_over_several_parts_of_an_object_is_held(removed, value, is_held):
    write_value(removed, "opening", value, is_json=True, by=by(AGENT))

    assert HeldRow.objects.exists() == is_held

"""What a person removed from a document is held if an agent adds it again."""

from __future__ import annotations

import pytest

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from tests.api.conftest import by_person

pytestmark = pytest.mark.django_db
FACT = "- The boat of Ana is painted red\n"
OTHERS = "".join(
    f"- Shelf {number} has a box of {name}\n" for number, name in enumerate("pens ink tape glue".split() * 5)
)


def test_a_fact_that_the_agent_had_twice_and_removed_once_is_held_after_a_person_removed_it(agent):
    def write(text, base):
        return agent("PUT", "/documents/MEMORY.md", {"content": text}, if_match=f'"{base}"').json()["status"]

    write(f"# Boats\n\n{FACT}\n# Shelves\n\n{OTHERS}{FACT}", 0)
    write(f"# Boats\n\n{FACT}\n# Shelves\n\n{OTHERS}", 1)
    without = f"# Boats\n\n# Shelves\n\n{OTHERS}"
    save_text(MemoryDocument.objects.get(), without, base_number=2, by=by_person(), reason="wrong")

    assert write(f"# Boats\n\n# Shelves\n\n{OTHERS}{FACT}", 3) == "held"

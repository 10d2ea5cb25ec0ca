"""What a person removed from a document is held if an agent says it again."""

import pytest

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from knowledge_app.services.removed_texts import RemovedTexts
from memoryhub.lib.text.repeats import Repeats
from tests.hub import by

pytestmark = pytest.mark.django_db
FACT = "- The boat of Ana is painted red\n"
OTHERS = "".join(
    f"- Shelf {number} has a box of {name}\n" for number, name in enumerate(["pens", "ink", "tape", "glue"] * 5)
)


def test_a_fact_that_the_agent_had_twice_and_removed_once_is_held_after_a_person_removed_it(agent):
    def write(text, base):
        return agent("PUT", "/documents/MEMORY.md", {"content": text}, if_match=f'"{base}"').json()["status"]

    write(f"# Boats\n\n{FACT}\n# Shelves\n\n{OTHERS}{FACT}", 0)
    write(f"# Boats\n\n{FACT}\n# Shelves\n\n{OTHERS}", 1)
    without = f"# Boats\n\n# Shelves\n\n{OTHERS}"
    save_text(MemoryDocument.objects.get(), without, base_number=2, by=by(), reason="wrong")

    assert write(f"# Boats\n\n# Shelves\n\n{OTHERS}{FACT}", 3) == "held"


@pytest.mark.parametrize(
    ("kept", "text", "is_held"),
    [
        ("- a\n", "The boat of Ana is painted red", True),
        ("- a\n", "The boat of Bo is painted red", False),
        ("", "The boat of Ana is painted red", False),
    ],
)
def test_a_longer_heading_that_a_person_removed_alone_is_held(agent, kept, text, is_held):
    address, heading = "/documents/MEMORY.md", "# The boat of Ana is painted red\n\n"
    agent("PUT", address, {"content": f"# Boats\n\n- b\n\n{heading}- a\n"}, if_match='"0"')
    save_text(MemoryDocument.objects.get(), f"# Boats\n\n- b\n\n{kept}", base_number=1, by=by(), reason="no")

    added = agent("PUT", address, {"content": f"# Boats\n\n- b\n\n{kept}\n## {text}\n\n- c\n"}, if_match='"2"').json()

    assert (added["status"] == "held") == is_held
    assert agent("POST", "/knowledge", {"content": text}).json()["held"] == is_held


@pytest.mark.parametrize(("elsewhere", "status"), [("", "held"), ("- Note: The boat of Ana is red\n", "written")])
def test_a_removed_fact_is_held_without_its_label_unless_the_memory_says_it(agent, elsewhere, status):
    address = "/documents/MEMORY.md"
    agent("PUT", "/documents/USER.md", {"content": f"# Ana\n\n- tea\n{elsewhere}"}, if_match='"0"')
    agent("PUT", address, {"content": f"# Boats\n\n- Note: The boat of Ana is red\n{OTHERS}"}, if_match='"0"')
    rest = f"# Boats\n\n{OTHERS}"
    save_text(MemoryDocument.objects.get(name="MEMORY.md"), rest, base_number=1, by=by(), reason="no")

    added = agent("PUT", address, {"content": f"{rest}1. The boat of Ana is red\n"}, if_match='"2"').json()

    assert added["status"] == status


def test_lines_that_cannot_say_what_was_removed_are_not_joined(agent, monkeypatch):
    agent("PUT", "/documents/MEMORY.md", {"content": f"# Boats\n\n{FACT}{OTHERS}"}, if_match='"0"')
    document = MemoryDocument.objects.get()
    save_text(document, f"# Boats\n\n{OTHERS}", base_number=1, by=by(), reason="no")
    before, boxes = f"# Boats\n\n{OTHERS}", "".join(f"- Ana has box {number}\n" for number in range(100))
    compared = []
    found_in = Repeats.found_in
    monkeypatch.setattr(Repeats, "found_in", lambda self, line: compared.append(line) or found_in(self, line))

    removed = RemovedTexts(document.workspace, document=document)
    again = removed.added_again(before, f"{before}{boxes}The boat of\nAna is\npainted red\n")

    assert sorted(again) == [123, 124, 125]
    assert len(compared) < 200

"""A short heading that a person refused or removed is held in its document, unless it comes over other lines."""

import pytest

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import start_document
from knowledge_app.services.documents.proposals import Written, propose_text, write_text
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.runs.review import approve, reject
from tests.hub import AGENT, PERSON
from tests.sync.test_agent_rewrites import DAY, TEXT, atlas, file, sync
from tests.sync.test_agent_rewrites import write as write_file
from tests.sync.test_removed_text import by, document

__all__ = ["atlas", "file"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("atlas")]


def refuse(text: str) -> None:
    propose_text(document(), TEXT + text, base_number=None, reason="", by=by(AGENT, 0))
    reject(HeldChange.objects.get(status="pending"), by=by(PERSON, 1), reason="wrong")


def write(text: str, where: MemoryDocument | None = None) -> Written:
    place = where or document()
    head = place.head
    return write_text(
        place, (head.content if head else "") + text, base_number=head.number if head else 0, by=by(AGENT), reason=""
    )


@pytest.mark.parametrize(
    ("refused", "again"),
    [
        ("\n# Secret\n", "\n# Secret\n"),
        ("\n## Spare PIN\n", "\n## spare **pin**\n"),
        ("\n## Spare PIN\n", "\n## Spare PIN\n\n- is unknown\n"),
        ("\n## Spare PIN\n\n- 4711\n", "\n### Spare PIN\n"),
        ("\n## Spare PIN\n\n- 4711\n", "\n## Spare PIN\n\n- 4711\n"),
        ("\n## Spare PIN\n\nSoon:\n\n### Old\n\n- 4711\n", "\n## Spare PIN\n\nSoon:\n\n### Old\n"),
        ("\n## 秘密\n", "\n## 秘密\n"),
    ],
)
def test_a_refused_heading_is_held(refused, again):
    refuse(refused)

    held = write(again).held

    assert held
    assert "removed or corrected earlier" in held.reason


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        ("\n## Notes\n\n- Bob smokes a lot\n", "\n## Notes\n\n- likes tea\n"),
        ("\n# Team\n\n## Notes\n\n- Bob smokes a lot\n", "\n# Team\n\n## Notes\n\n- likes tea\n"),
        ("\n## Spare PIN\n", "\n## Spare car\n"),
        ("\n## Spare PIN\n", "\n- He has a PIN\n"),
    ],
)
def test_other_lines_below_a_common_heading_and_other_headings_are_accepted(refused, text):
    refuse(refused)

    assert write(text).revision


def test_only_what_was_refused_before_is_held_below_a_common_heading():
    refuse("\n## Notes\n\n- Bob smokes a lot\n")

    assert write("\n## Notes\n\n- likes tea\n- Bob smokes a lot\n").held


def test_another_document_may_have_the_heading(atlas):
    refuse("\n## Contacts\n")

    assert write("# User\n\n## Contacts\n", start_document(atlas, "USER.md")).revision


def test_a_heading_that_a_person_removed_is_held_until_a_person_adds_it():
    head = document().head
    with_heading = revise_document(document(), f"{TEXT}\n## Secret\n", base=head, by=by(PERSON, 0), reason="")
    removed = revise_document(document(), TEXT, base=with_heading, by=by(PERSON, 1), reason="")

    assert write("\n## Secret\n").held

    added = revise_document(document(), f"{TEXT}\n## Secret\n", base=removed, by=by(PERSON, 2), reason="")
    revise_document(document(), TEXT, base=added, by=by(AGENT, 3), reason="")
    assert write("\n## Secret\n").revision


def test_an_approved_heading_is_not_held():
    propose_text(document(), f"{TEXT}\n## Secret\n", base_number=None, reason="", by=by(AGENT, 0))
    approve(HeldChange.objects.get(), by=by(PERSON, 1))
    revise_document(document(), TEXT, base=document().head, by=by(AGENT, 2), reason="")

    assert write("\n## Secret\n").revision


def test_the_file_loses_only_the_heading(atlas, file):
    refuse("\n## Spare PIN\n")

    write_file(file, f"{TEXT}\n## Spare PIN\n\n- The pool opens at nine\n", DAY)
    sync(atlas, DAY + 1)

    assert "PIN" not in document().head.content
    assert "- The pool opens at nine" in document().head.content

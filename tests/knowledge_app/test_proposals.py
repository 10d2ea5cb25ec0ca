"""What agents write and propose: what becomes of it at once, and what waits for a person."""

from __future__ import annotations

import pytest

from knowledge_app.models import Fact, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents import proposals
from knowledge_app.services.documents.proposals import propose_text, write_text
from knowledge_app.services.documents.revisions import StaleBase
from memoryhub.lib import document_size
from memoryhub.runs.change_parts import change_parts
from sessions_app.services.audit import Actor, By
from tests.hub import AGENT, raises_code
from tests.knowledge_app.test_outside_edits import FACTS, NOW, edit, head, take

pytestmark = pytest.mark.django_db
BY = By(AGENT, NOW)
HALVED = "\n".join(FACTS.split("\n")[:11])


@pytest.fixture
def document(workspace) -> MemoryDocument:
    take(workspace, FACTS)
    return MemoryDocument.objects.get()


def write(document: MemoryDocument, text: str, *, base: int = 1) -> proposals.Written:
    return write_text(document, text, base_number=base, by=BY, reason="learnt")


def propose(document: MemoryDocument, text: str, *, base: int | None = None, by: By = BY) -> HeldChange:
    return propose_text(document, text, base_number=base, by=by, reason="learnt")


def test_a_text_that_adds_a_fact_is_the_document_s_at_once(document):
    written = write(document, FACTS + "\r\n- one more\x00")

    assert (written.revision.number, written.held) == (2, None)
    assert head() == FACTS + "\n- one more\\u0000"


def test_a_text_that_loses_facts_waits_for_a_person_once(document):
    first, second = write(document, HALVED), write(document, HALVED)

    assert (first.revision, first.held) == (None, second.held)
    assert HeldChange.objects.get().proposed == HALVED
    assert head() == FACTS


def test_the_same_text_is_neither_written_nor_held(document):
    assert write(document, FACTS) == proposals.Written()


@pytest.mark.parametrize("base", [0, 1, 3])
def test_nothing_is_written_over_a_revision_that_the_agent_has_not_read(document, base):
    edit(FACTS + "\n- by a person")

    with pytest.raises(StaleBase):
        write(document, FACTS + "\n- by an agent", base=base)
    assert head() == FACTS + "\n- by a person"
    assert not HeldChange.objects.exists()


def test_a_proposal_changes_nothing_and_names_the_revision_that_it_was_made_from(document):
    edit(FACTS + "\n- by a person")

    change = propose(document, FACTS + "\n- by an agent", base=1)

    assert change.base == MemoryRevision.objects.get(number=1)
    assert head() == FACTS + "\n- by a person"
    assert propose(document, FACTS + "\n- by an agent") == change


def test_a_proposal_that_says_nothing_new_or_names_no_revision_is_refused(document):
    with raises_code("nothing_proposed"):
        propose(document, FACTS.replace("\n", "\r\n"))
    with raises_code("no_such_revision"):
        propose(document, HALVED, base=7)
    assert not HeldChange.objects.exists()


def test_an_author_may_leave_only_so_many_proposals_to_people(document, monkeypatch):
    monkeypatch.setattr(proposals, "MAX_PENDING", 2)
    for number in range(2):
        propose(document, f"{FACTS}\n- proposal {number}")

    with raises_code("too_many_proposals"):
        propose(document, f"{FACTS}\n- proposal 2")
    assert propose(document, f"{FACTS}\n- proposal 2", by=By(Actor("agent", "another"), NOW))


def test_a_text_has_a_largest_length(document, monkeypatch):
    monkeypatch.setattr(document_size, "MAX_DOCUMENT_CHARS", len(FACTS) + 2)

    assert propose(document, FACTS + "\n-")
    for act in (write, propose):
        with raises_code("text_too_long"):
            act(document, FACTS + "\n- ")


def test_a_heading_over_a_pinned_fact_waits_for_a_person(document):
    fact = Fact.objects.filter(document=document).order_by("-line").first()
    Fact.objects.filter(pk=fact.pk).update(pinned=True)
    lines = FACTS.split("\n")
    lines.insert(fact.line - 1, "## Outdated")

    held = write(document, "\n".join(lines)).held

    assert held.flags == ["touches 1 pinned fact"]
    assert [part.is_risky for part in change_parts(held, {})] == [True]
    assert head() == FACTS

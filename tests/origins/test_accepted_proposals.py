"""Words that an agent proposed and a person accepted stay the agent's, on every page and interface."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from knowledge_app.models import Fact, FactSource, HeldChange, MemoryRevision
from knowledge_app.services.documents.editing import edit_fact, save_text, start_document
from knowledge_app.services.documents.proposals import propose_text
from memoryhub.memory.filters import Matches, MemoryFilters
from memoryhub.origins.explanation import explain, explanation_json, find_fact
from memoryhub.origins.inference import infer_origins
from memoryhub.runs.review import approve
from sessions_app.models import Entry, Workspace
from sessions_app.services.audit import Actor, By
from tests.api.conftest import caller, token_for
from tests.hub import NOW, PERSON, add, open_at, url

pytestmark = pytest.mark.django_db
TESTER = Actor("agent", "tester")
LABEL = "Proposed by tester, accepted by olga"
LATER = NOW + timedelta(days=1)
MIGRATION = "knowledge_app.migrations.0017_accepted_proposals"


def accepted(
    workspace: Workspace, text: str = "- Ana leads\n- Be polite\n", *, edited: str | None = None
) -> HeldChange:
    document = start_document(workspace, "MEMORY.md")
    save_text(document, "- Ana leads\n", base_number=0, by=By(PERSON, NOW), reason="")
    change = propose_text(document, text, base_number=None, by=By(TESTER, NOW), reason="learned")
    approve(change, by=By(PERSON, LATER), text=edited)
    return change


def plain(html: str) -> str:
    return html.replace("<bdi>", "").replace("</bdi>", "")


def test_accepted_words_are_the_proposer_s_and_as_certain_as_their_source(workspace):
    accepted(workspace)
    fact = Fact.objects.get(text="Be polite")

    explanation = explain(find_fact(workspace, fact.pk))

    assert (explanation.kind, explanation.certainty, explanation.kind_label) == ("proposal", "unknown", LABEL)
    entry = Entry.objects.filter(session=_spoken(workspace)).first()
    FactSource.objects.create(fact=fact, entry=entry, kind="probably_from", score=0.8)
    assert explain(find_fact(workspace, fact.pk)).certainty == "probable"


def _spoken(workspace: Workspace):
    session = open_at(workspace, "cli:main")
    add(session, [{"role": "user", "content": "You should be polite to customers", "timestamp": NOW.isoformat()}])
    return session


def test_sources_of_accepted_words_are_inferred_from_before_the_proposal(workspace):
    _spoken(workspace)
    accepted(workspace, "- Ana leads\n- Be polite to customers\n")
    infer_origins(workspace, now=LATER)

    explanation = explain(find_fact(workspace, Fact.objects.get(text="Be polite to customers").pk))

    assert [origin.source.kind for origin in explanation.origins] == ["probably_from"]
    assert (explanation.kind, explanation.certainty) == ("proposal", "probable")


def test_what_the_person_wrote_while_accepting_is_the_person_s(workspace):
    accepted(workspace, edited="- Ana leads\n- Be kind\n")

    explanation = explain(find_fact(workspace, Fact.objects.get(text="Be kind").pk))

    assert (explanation.kind, explanation.certainty) == ("person", "certain")
    assert explanation.steps[0].proposal is None


def test_accepted_new_words_for_a_fact_are_no_correction(workspace):
    accepted(workspace, "- Ana leads the team\n")

    fact = find_fact(workspace, Fact.objects.get(died=None).pk)

    assert (fact.corrected, fact.accepted.number) == (None, 2)
    assert explain(fact).kind_label == LABEL
    fact = edit_fact(fact, text="Ben leads the team", category="", section=fact.section, by=By(PERSON, LATER))
    fact = find_fact(workspace, fact.pk)
    assert (fact.corrected.number, fact.accepted) == (3, None)
    assert explain(fact).kind_label == "Corrected by olga"


@pytest.mark.parametrize("place", ["fact", "origins", "memory", "overview", "revisions", "read"])
def test_pages_name_who_proposed_and_who_accepted(workspace, viewer_client, place):
    change = accepted(workspace)
    pk = Fact.objects.get(text="Be polite").pk
    address = {
        "fact": url("documents:fact", pk),
        "origins": url("documents:blame", change.document_id),
        "memory": url("memory"),
        "overview": url("workspace"),
        "revisions": url("documents:revisions", change.document_id),
        "read": url("documents:document", change.document_id),
    }

    html = viewer_client.get(address[place]).content.decode()

    assert LABEL in plain(html)
    if place != "read":
        assert url("held-change", change.pk) in html


def test_words_of_an_erased_proposal_do_not_become_the_person_s(workspace, viewer_client):
    change = accepted(workspace)
    change.delete()
    fact = find_fact(workspace, Fact.objects.get(text="Be polite").pk)

    assert (explain(fact).kind, explain(fact).kind_label) == ("proposal", "Accepted by olga")
    for address in (url("documents:fact", fact.pk), url("documents:blame", fact.document_id), url("memory")):
        assert "Accepted by olga" in plain(viewer_client.get(address).content.decode())
    assert explanation_json(explain(fact))["proposal"]["proposed_by"] is None


def test_filters_of_the_memory_list_follow(workspace):
    accepted(workspace)

    def found(**values: str) -> list[str]:
        rows = Matches(workspace, MemoryFilters(**values), LATER).chosen["memory"]
        return sorted(rows.values_list("text", flat=True))

    assert (found(author="person"), found(author="agent")) == (["Ana leads"], ["Be polite"])
    assert (found(certainty="certain"), found(certainty="unknown")) == (["Ana leads"], ["Be polite"])


def test_the_interfaces_say_the_same(workspace):
    change, call = accepted(workspace), caller(token_for(workspace))
    pk = Fact.objects.get(text="Be polite").pk

    why = explanation_json(explain(find_fact(workspace, pk)))

    assert why["proposal"] | {"accepted_at": None} == {
        "id": change.pk,
        "proposed_by": "tester",
        "accepted_by": "olga",
        "accepted_at": None,
    }
    [step] = why["revisions"]
    assert (step["author"], step["proposed_by"], step["proposal"]) == ("olga", "tester", change.pk)
    [latest, first] = call("GET", "/documents/MEMORY.md/revisions").json()["items"]
    assert (latest["proposal"], first["proposal"]) == (
        {"id": change.pk, "author": {"kind": "agent", "name": "tester"}},
        None,
    )
    assert call("GET", f"/facts/{pk}/why").json()["proposal"]["proposed_by"] == "tester"


def test_the_upgrade_finds_acceptances(workspace):
    change = accepted(workspace, "- Ana leads the team\n- Be polite\n")
    MemoryRevision.objects.update(proposal=None)
    Fact.objects.filter(died=None).update(accepted=None)
    Fact.objects.filter(text="Ana leads the team").update(corrected=MemoryRevision.objects.get(number=2))

    import_module(MIGRATION).find_acceptances(apps, connection.schema_editor())

    assert MemoryRevision.objects.get(number=2).proposal == change
    assert {(fact.accepted.number, fact.corrected) for fact in Fact.objects.filter(died=None)} == {(2, None)}

"""Only the rows that may be affected are loaded, and none of these is left out."""

from __future__ import annotations

import pytest
from django.db.models import Model

from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.forgetting.aliases import AliasFinder
from memoryhub.forgetting.hub_erasure import Person, person_rules
from memoryhub.forgetting.matching import Redaction, find_phrases
from memoryhub.forgetting.rows import candidates_of, rows_of, walk
from memoryhub.forgetting.rules import Rules, find_changes
from sessions_app.models import Session, Workspace
from tests.forgetting.test_forgetting import BY, CANARY, plant
from tests.hub import add, open_at

pytestmark = pytest.mark.django_db
WRITTEN = [
    "Jürgen Müller",
    "ju\u0308rgen mu\u0308ller",
    "J\\u00fcrgen M\\u00fcller",
    "J%C3%BCrgen=20M=C3=BCller",
    "J&uuml;rgen M&uuml;ller",
    "Jür-\ngen Müller",
    "J<i>ür</i>gen **Mül**ler",
    "[Jürgen](a) <b>Müller</b>",
]


def affected(found: object) -> set[tuple[type[Model], object]]:
    return {(type(row), row.pk) for row in found}  # type: ignore[attr-defined]


def changed(workspace: Workspace | None, rules: Rules) -> set[tuple[type[Model], object]]:
    return affected(row for row in rows_of(workspace, rules) if find_changes(row, rules))


def walked(workspace: Workspace | None, rules: Rules) -> set[tuple[type[Model], object]]:
    return affected(one.row for one in walk(workspace, rules))


@pytest.mark.slow
@pytest.mark.postgres
def test_every_affected_row_of_every_table_is_a_candidate(workspace: Workspace):
    plant(workspace, CANARY)
    session = Session.objects.first()
    for person in (Person((CANARY,)), Person((CANARY,), (session.key,))):
        for place in (workspace, None):
            rules = person_rules(place, person)
            assert walked(place, rules) == changed(place, rules)
    source = Rules(sources=frozenset({session.key, CANARY}))
    assert walked(workspace, source) == changed(workspace, source)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_name_is_found_however_it_is_written(workspace: Workspace, text: str):
    add(open_at(workspace), [{"role": "user", "content": f"{text} called", "note": {"from": text}}])
    rules = Rules(Redaction(lines=find_phrases([("jürgen", "müller")])), is_person=True)

    assert walked(workspace, rules) == changed(workspace, rules) != set()


def test_other_rows_are_not_loaded(workspace: Workspace):
    for number in range(20):
        add_knowledge(workspace, f"Berth {number} = 7 % full", category="learned_fact", by=BY)
    add_knowledge(workspace, "Ana Lind leads the harbour", category="learned_fact", by=BY)
    add_knowledge(workspace, "Ask Lind, Ana's brother", category="learned_fact", by=BY)
    person = Person(("Ana Lind",))
    rules = person_rules(workspace, person)

    texts = {getattr(row, "content", "") for row in candidates_of(workspace, rules)}
    proposed = candidates_of(workspace, rules, may_match=AliasFinder(person).may_match)

    assert not any(text.startswith("Berth") for text in texts)
    assert "Ana Lind leads the harbour" in texts
    assert "Ask Lind, Ana's brother" in {getattr(row, "content", "") for row in proposed} - texts

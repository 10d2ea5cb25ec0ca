"""The page of a fact, and the same over REST, MCP's operation and the command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, FactSource, HeldChange, HistoryEntry
from knowledge_app.services.documents.editing import edit_fact, save_text, start_document
from knowledge_app.services.documents.fact_steps import steps_of
from knowledge_app.services.documents.held_changes import accept_text
from knowledge_app.services.documents.outside_edits import import_document
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.lib.text.facts import FactLine, fact_lines
from memoryhub.origins.certainty import best_sources
from memoryhub.origins.explanation import explain, explanation_json, find_fact
from memoryhub.origins.inference import infer_origins
from sessions_app.models import Entry, Membership
from sessions_app.services.audit import By
from tests.hub import PERSON, add, open_at, turn

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>"


def import_text(workspace, text: str, *, minute: int = 0) -> None:
    record, at = DocumentRecord("MEMORY.md", text), NOW + timedelta(minutes=minute)
    import_document(workspace=workspace, record=record, path="memory/MEMORY.md", now=at, dry_run=False)


@pytest.fixture
def fact(workspace) -> Fact:
    import_text(workspace, "- Ana leads\n- Ana leads the team\n")
    return Fact.objects.get(text="Ana leads")


@pytest.fixture
def messages(workspace) -> list[Entry]:
    session = open_at(workspace, "cli:main")
    for number in range(3):
        add(session, turn(number))
    return list(Entry.objects.filter(session=session, kind="message").order_by("position"))


def probable(fact: Fact, entry: Entry, score: float = 0.8) -> FactSource:
    return FactSource.objects.create(fact=fact, entry=entry, kind=FactSource.Kind.PROBABLY_FROM, score=score)


def page(client, fact: Fact) -> str:
    response = client.get(reverse("documents:fact", args=[fact.workspace.slug, fact.pk]))
    assert response.status_code == 200
    return response.content.decode()


def test_certainty_is_that_of_the_best_origin(fact, messages):
    assert (explain(fact).kind, explain(fact).certainty) == ("unknown", "unknown")

    probable(fact, messages[0])
    assert explain(fact).certainty == "probable"

    history = HistoryEntry.objects.create(workspace=fact.workspace, position=0, content="A change", source_hash="")
    FactSource.objects.create(fact=fact, history_entry=history, kind=FactSource.Kind.RECORDED_WITH)
    assert explain(fact).certainty == "likely"


def test_a_fact_by_a_person_is_certain(workspace):
    document = start_document(workspace, "MEMORY.md")
    save_text(document, "- Ana leads\n", base_number=0, by=By(PERSON, NOW), reason="")

    explanation = explain(Fact.objects.get())

    assert (explanation.kind, explanation.certainty) == ("person", "certain")


def test_a_correction_by_a_person_is_certain_and_replaces_guesses(workspace, fact, messages, viewer_client):
    probable(fact, messages[0])
    edit_fact(fact, text="Ben leads", category="", section=fact.section, by=By(PERSON, NOW))
    infer_origins(workspace, now=NOW + timedelta(hours=1))
    fact.refresh_from_db()

    explanation = explain(fact)

    assert (explanation.kind, explanation.certainty) == ("person", "certain")
    assert (explanation.kind_label, explanation.corrected_text) == (f"Corrected by {PERSON.name}", "Ana leads")
    assert explanation.origins == []
    assert "<del>Ana leads</del>" in page(viewer_client, fact)


def test_a_fact_whose_text_is_restored_is_explained_by_its_origin(workspace, fact):
    for text in ("Ben leads", "Ana leads"):
        fact = edit_fact(fact, text=text, category="", section=fact.section, by=By(PERSON, NOW))

    assert explain(fact).correction is None


def test_a_message_comes_with_two_before_and_after_it(fact, messages):
    middle = messages[2]
    probable(fact, middle)

    [origin] = explain(fact).origins

    positions = [entry.position for entry in origin.around]
    assert positions == list(range(max(0, middle.position - 2), middle.position + 3))


def test_a_message_is_shown_once(fact, messages, viewer_client):
    probable(fact, messages[1], 0.9)
    probable(fact, messages[2], 0.8)

    html = page(viewer_client, fact)

    assert html.count(f'id="entry-{messages[1].pk}"') == html.count(f'id="entry-{messages[2].pk}"') == 1
    assert html.count('aria-current="true" data-row') == 2
    assert "Shown above" in html


def test_the_timeline_has_each_wording(workspace, fact):
    others = "".join(f"- The pool {word} has {number} places\n" for number, word in enumerate("abcdefghijkl"))
    for minute, text in enumerate(("- Ana leads\n", "- Ana leads us\n", "")):
        import_text(workspace, f"- Ana leads the team\n{others}{text}", minute=minute + 1)

    steps = explain(find_fact(workspace, fact.pk)).steps

    assert [(step.action, step.revision.number, step.text) for step in steps] == [
        ("added", 1, "Ana leads"),
        ("reworded", 3, "Ana leads us"),
        ("removed", 4, "Ana leads us"),
    ]


def test_only_the_revisions_that_changed_a_fact_are_read_whole(workspace, fact, monkeypatch):
    edit_fact(fact, text="Ana leads it", category="", section="", by=By(PERSON, NOW))
    for number in range(3):
        import_text(workspace, f"- Ana leads it\n- Ana leads the team\n- another fact {number}\n")
    read: list[str] = []

    def noted(content: str, separator: str, *, only: str = "") -> list[FactLine]:
        read.extend([] if only else [content])
        return fact_lines(content, separator, only=only)

    monkeypatch.setattr("knowledge_app.services.documents.fact_steps.fact_lines", noted)

    assert [step.action for step in steps_of(Fact.objects.get(text="Ana leads it"))] == ["added", "reworded"]
    assert read == ["- Ana leads it\n- Ana leads the team\n", "- Ana leads\n- Ana leads the team\n"]


def test_similar_facts_are_listed(workspace):
    import_text(workspace, "- Ana leads the label team\n- Ana leads the label team now\n- The pool has 60 places\n")
    fact = Fact.objects.get(text="Ana leads the label team")

    [(other, ratio)] = explain(fact).duplicates

    assert (other.text, ratio >= 0.7) == ("Ana leads the label team now", True)


def test_the_page_shows_origins_and_is_logged(fact, messages, viewer_client):
    probable(fact, messages[0], 0.83)

    html = page(viewer_client, fact)

    assert "Probably from a message" in html
    assert "83%" in html
    assert "request 0 please look" in html
    assert explain(fact).reader_count == 1


def test_the_page_offers_actions_by_role(fact, viewer_client, client, django_user_model):
    assert "Correct" not in page(viewer_client, fact)
    operator = django_user_model.objects.create_user("olga", password="x")
    Membership.objects.create(workspace=fact.workspace, user=operator, role=Membership.Role.OPERATOR)
    client.force_login(operator)

    html = page(client, fact)

    assert all(word in html for word in ("Correct", "Pin", "Withdraw", "Verify", "Forget permanently…"))


def test_a_fact_is_pinned_and_verified_on_its_page(fact, editor):
    url = reverse("documents:curate-fact", args=[fact.workspace.slug, fact.pk])
    for action in ("pin", "verify"):
        response = editor.post(url, {"action": action})
        assert response.url == reverse("documents:fact", args=[fact.workspace.slug, fact.pk])

    fact.refresh_from_db()
    assert fact.pinned
    assert fact.last_verified_at
    assert "Choose an action." in editor.post(url, {"action": "remove"}, follow=True).content.decode()


def test_a_fact_of_another_workspace_is_not_found(fact, stranger_client):
    assert stranger_client.get(reverse("documents:fact", args=[fact.workspace.slug, fact.pk])).status_code == 404


def test_stored_text_is_escaped(workspace, viewer_client):
    import_text(workspace, f"- Ana {HOSTILE}\n")
    change = HeldChange.objects.get()
    accept_text(change, change.proposed, by=By(PERSON, NOW))

    assert HOSTILE not in page(viewer_client, Fact.objects.get())


def test_the_json_has_all_of_it(fact, messages):
    probable(fact, messages[0])

    document = explanation_json(explain(fact))

    assert document["fact"]["text"] == "Ana leads"
    assert document["origins"][0]["message"]["position"] == messages[0].position
    assert [step["action"] for step in document["revisions"]] == ["added"]


def test_the_command_explains_facts(fact, messages, command):
    probable(fact, messages[0])

    [why] = command("facts", "why", "atlas", str(fact.pk))["facts"]

    assert (why["kind"], why["certainty"]) == ("probably_from", "probable")


def test_the_strongest_evidence_comes_first(fact, messages):
    for score, entry in zip((0.5, 0.9, 0.7), messages[:3], strict=True):
        FactSource.objects.create(fact=fact, kind="probably_from", entry=entry, score=score)

    assert [origin.source.score for origin in explain(fact).origins] == [0.9, 0.7, 0.5]
    assert best_sources([fact.pk])[fact.pk].score == 0.9

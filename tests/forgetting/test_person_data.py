"""A person is found, exported and erased in all workspaces, with one receipt."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from knowledge_app.models import Forgotten, KeyValue, KnowledgeEntry
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.backups.revocations import read_revocations
from memoryhub.forgetting.hub_erasure import Person, erase_person, write_receipt
from memoryhub.forgetting.person_search import plan_person
from memoryhub.forgetting.reapply import reapply_receipts
from memoryhub.integrity import check_memory
from memoryhub.models import Job
from memoryhub.sync.importing import import_workspace
from sessions_app.models import AuditRecord, Entry, Membership, Session, Workspace
from sessions_app.services.audit import record
from tests.forgetting.test_forgetting import BY, CANARY, holding, plant
from tests.forgetting.test_permanence import agent
from tests.forgetting.test_person_page import confirmed
from tests.hub import add, open_at, raises_code, run_jobs

pytestmark = pytest.mark.django_db
PERSON = Person((CANARY,))


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Other")


def erase(person: Person) -> Forgotten:
    receipt = write_receipt(person, expected=plan_person(person).total, reason=f"asked by {CANARY}", by=BY)
    erase_person(receipt, by=BY)
    return receipt


@pytest.mark.slow
@pytest.mark.postgres
def test_a_person_is_erased_from_every_table_of_every_workspace(workspace, other):
    plant(workspace, CANARY)
    write_value(other, "k", f"has {CANARY}", by=BY)
    add(open_at(other, "cli:b"), [{"role": "user", "content": f"tea\n{CANARY} was here"}])
    record(BY, "hub.tested", "hub", "1", f"About {CANARY}")

    receipt = erase(PERSON)

    assert holding("quicksilver") == set()
    assert receipt.places == ["atlas", "other"]
    assert [place["workspace"] for place in receipt.workspaces] == ["atlas", "other", None]
    assert sum(receipt.counts.values()) == sum(sum(place["rows"].values()) for place in receipt.workspaces)
    assert Forgotten.objects.filter(workspace=None, forgotten_by=BY.actor.name).count() == 1
    assert Entry.objects.get(workspace=other).content == "tea\n[forgotten]"
    assert AuditRecord.objects.filter(action="memory.forgotten").count() == 3


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("is_new", [False, True])
def test_no_workspace_imports_the_person_again_until_an_operator_allows_it(
    tmp_path, settings, admin_client, other, is_new
):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path = agent(tmp_path / "agent")
    import_workspace(path, by=BY)
    write_value(other, "k", CANARY, by=BY)
    receipt = erase(Person((CANARY,), ("cli:main",)))
    path = agent(tmp_path / "second") if is_new else path

    again = import_workspace(path, by=BY)

    assert holding("quicksilver") == set()
    assert not Session.objects.exists()
    assert {problem.outcome for problem in again.tally.problems} == {"ignored"}
    admin_client.post(reverse("allow-person", args=[receipt.pk]))
    import_workspace(path, by=BY)
    assert "knowledge_app.HistoryEntry.content" in holding("quicksilver")


@pytest.mark.slow
@pytest.mark.postgres
def test_chosen_sessions_are_deleted_with_their_messages_in_every_workspace(workspace, other):
    for place in (workspace, other):
        add(open_at(place, "telegram:482913377"), [{"role": "user", "content": "hello"}])
        add_knowledge(place, "likes tea", category="learned_fact", source="telegram:482913377", by=BY)
    add(open_at(other, "cli:b"), [{"role": "user", "content": "stays"}])

    receipt = erase(Person(("telegram:482913377",), ("telegram:482913377",)))

    assert [entry.content for entry in Entry.objects.all()] == ["stays"]
    assert not KnowledgeEntry.objects.exists()
    assert holding("482913377") == set()
    assert receipt.counts["sessions"] == 2
    assert [row for row in check_memory().broken if row.invariant.startswith(("append_only", "audit"))] == []


def test_aliases_are_proposed_and_not_erased(workspace, other):
    mine = open_at(workspace, "telegram:482913377")
    add(mine, [{"role": "user", "content": "Hi, my name is Jörg Weber"}])
    add(open_at(other, "signal:team:482913377"), [{"role": "user", "content": "Joerg Weber, jw@weber.example"}])
    add(
        open_at(other, "cli:b"),
        [{"role": "user", "content": "JÖRG WEBER: weber@example.org, +49 170 5550123, 2026-11-12 15\nand Weber"}],
    )
    open_at(other, "slack:D02JOERGWEBER")
    add_knowledge(other, "Call 0049 1705550123", category="learned_fact", by=BY)

    plan = plan_person(Person(("Jörg Weber", "+49 170 5550123")))

    assert {(alias.kind, alias.text.casefold()) for alias in plan.aliases} == {
        ("spelling", "joerg weber"),
        ("address", "weber@example.org"),
        ("number", "0049 1705550123"),
        ("part", "weber"),
    }
    assert {(one.key, one.reason) for one in plan.sessions} == {
        ("telegram:482913377", "name"),
        ("signal:team:482913377", "id"),
        ("slack:D02JOERGWEBER", "key"),
    }
    assert [(place.workspace.slug, place.preview.total) for place in plan.places] == [("atlas", 1), ("other", 1)]


def test_senders_of_named_messages_are_proposed(workspace):
    session = open_at(workspace, "slack:C01")
    add(session, [{"role": "user", "name": "Anna Weber", "content": "tea", "sender_id": "U77120045"}])

    plan = plan_person(Person(("anna weber",)))

    assert [(alias.kind, alias.text) for alias in plan.aliases] == [("id", "U77120045")]
    assert [one.key for one in plan.sessions] == ["slack:C01"]


def test_the_export_contains_what_is_known_and_nothing_of_others(workspace, other, admin_client):
    User.objects.create_user("anna weber", "anna@weber.example")
    User.objects.create_user("boris", "boris@example.org")
    add(open_at(workspace, "cli:a"), [{"role": "user", "content": "Boris likes rum\nAnna Weber likes tea"}])
    add_knowledge(other, "Anna Weber lives in Rome", category="learned_fact", by=BY)
    add_knowledge(other, "Boris lives in Riga", category="learned_fact", by=BY)
    add(open_at(other, "telegram:482913377"), [{"role": "user", "content": "my own words"}])

    response = admin_client.post(
        reverse("export-person-data"), {"words": "Anna Weber", "session": ["telegram:482913377"]}
    )

    text = b"".join(response.streaming_content).decode()
    document = json.loads(text)
    texts = [list(row["texts"].values()) for place in document["workspaces"] for row in place["rows"]]
    assert ["Anna Weber likes tea"] in texts
    assert ["my own words"] in texts
    assert any("Anna Weber lives in Rome" in row for row in texts)
    assert document["accounts"][0]["email"] == "anna@weber.example"
    assert "Boris" not in text
    assert "boris" not in text
    exported = AuditRecord.objects.get(action="memory.person_exported")
    assert "Weber" not in exported.text


@pytest.mark.slow
@pytest.mark.postgres
def test_the_forget_page_of_each_workspace_lists_the_receipts_of_the_hub(workspace, other, admin_client):
    write_value(other, "k", f"has {CANARY}", by=BY)
    receipt = erase(PERSON)

    page = admin_client.get(reverse("forget", args=["other"])).content.decode()

    assert f'id="receipt-{receipt.pk}"' in page
    assert "whole hub" in page
    assert reverse("allow-forgotten", args=["other", receipt.pk]) not in page
    assert "receipt-" not in admin_client.get(reverse("forget", args=["atlas"])).content.decode()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_hub_operator_finds_and_erases_a_person(workspace, other, admin_client):
    write_value(workspace, "k", "Anna Weber", by=BY)
    write_value(other, "k", "Ann Weber", by=BY)
    request = {"words": "Anna Weber", "alias": ["Ann Weber"]}

    page = admin_client.post(reverse("person-data"), request)
    plan = page.context["plan"]
    assert [place.workspace.slug for place in plan.places] == ["atlas", "other"]
    assert page.context["words"] == "Anna Weber\nAnn Weber"
    names = {"words": page.context["words"]}
    assert admin_client.post(reverse("erase-person"), names).status_code == 200
    assert KeyValue.objects.count() == 2

    done = admin_client.post(reverse("erase-person"), confirmed(page))
    write_value(other, "l", "Anna Weber", by=BY)
    assert done["Location"] == reverse("job", args=[Job.objects.get().pk])
    assert "Weber" not in json.dumps(Job.objects.get().options)
    run_jobs()

    assert not KeyValue.objects.exists()
    assert Job.objects.get().status == "done"
    assert holding("weber") == set()
    shown = admin_client.get(done["Location"]).content.decode()
    counted = f"Erased in {plan.total + 2} rows of 2 workspaces. The preview counted {plan.total}."
    assert counted in shown  # the new value and its first state
    assert "Weber" not in admin_client.get(reverse("person-data")).content.decode()


def test_others_may_not_see_or_erase_data_about_a_person(editor, workspace):
    Membership.objects.update(role="operator")
    for client in (editor, Client()):
        for name in ("person-data", "export-person-data", "erase-person"):
            assert client.post(reverse(name), {"words": "Anna Weber"}).status_code in (302, 403)
    assert editor.get(reverse("person-data")).status_code == 403
    assert editor.post(reverse("export-person-data"), {"words": "Anna Weber"}).status_code == 403
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("words", "message"), [("ab", "at least three"), ("", "required"), ("xylophone", "No matches")]
)
def test_a_request_that_can_not_be_carried_out_is_explained(workspace, admin_client, words, message):
    assert message in admin_client.post(reverse("person-data"), {"words": words}).content.decode()


def test_a_change_since_the_preview_requires_a_new_one(workspace):
    write_value(workspace, "k", CANARY, by=BY)

    with raises_code("forget_changed"):
        write_receipt(PERSON, expected=1, reason="", by=BY)
    with raises_code("nothing_to_forget"):
        write_receipt(Person(("nobody has this",)), expected=0, reason="", by=BY)
    assert KeyValue.objects.exists()


@pytest.mark.slow
@pytest.mark.postgres
def test_the_command_finds_exports_and_erases(workspace, other, command, tmp_path):
    write_value(workspace, "k", "Anna Weber", by=BY)
    write_value(other, "k", "Anna Weber", by=BY)

    found = command("person_data", "find", "Anna Weber")
    assert [place["workspace"] for place in found["workspaces"]] == ["atlas", "other"]
    file = tmp_path / "anna.json"
    command("person_data", "export", "Anna Weber", "--output", str(file))
    assert json.loads(file.read_text())["names"] == ["Anna Weber"]
    assert command("person_data", "erase", "Anna Weber")["receipt"] is None
    assert KeyValue.objects.count() == 2

    done = command("person_data", "erase", "Anna Weber", "--apply")
    assert not KeyValue.objects.exists()
    assert command("person_data", "list")["receipts"] == [done["receipt"]]
    assert command("person_data", "lift", str(done["receipt"]["id"]))["receipts"][0]["lifted_at"]
    assert command("person_data", "lift", "x", status=1)["error"]["code"] == "not_found"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_person_erased_since_a_backup_is_erased_again_in_every_workspace(workspace, other):
    person = Person(("quicksilver",), ("cli:main",))
    for place in (workspace, other):
        add(open_at(place), [{"role": "user", "content": "about quicksilver"}])
    erase(person)
    revocations = read_revocations(connection)
    assert revocations is not None
    Forgotten.objects.all().delete()
    write_value(other, "k", "quicksilver", by=BY)
    add(open_at(workspace), [{"role": "user", "content": "tea"}])

    assert reapply_receipts(revocations.receipts, by=BY) == []

    assert not KeyValue.objects.exists()
    assert not Session.objects.exists()
    assert Forgotten.objects.get().places == ["atlas", "other"]

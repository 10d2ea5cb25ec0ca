import pytest
from django.urls import reverse

from knowledge_app.models import Confirmation, Observation
from knowledge_app.services.rows.observations import NewObservation, decide, store
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
KNOWN = NewObservation("finding", "The DHL API allows 100 requests a minute")
AGAIN = NewObservation("finding", "DHL's API allows 100 requests a minute!")


def url(name, *args):
    return reverse(f"knowledge:{name}", args=["atlas", *args])


def keep(workspace, *said) -> list[Observation]:
    return store(workspace, said or [KNOWN], by=BY).added


def test_observations_are_stored_with_author_and_audit(workspace):
    (row,) = keep(workspace)

    assert len(row.uid) == 36
    assert row.occurred_at == NOW
    assert row.history.get().history_change_reason == "olga: added"
    assert AuditRecord.objects.get(action="observations.added").text == "1 observation added"


@pytest.mark.parametrize(
    "said", [NewObservation("hunch", "x"), NewObservation("finding", "  "), NewObservation("finding", "x" * 4001)]
)
def test_one_that_can_not_be_kept_keeps_none_of_its_batch(workspace, said):
    with raises_code("bad_observation"):
        store(workspace, [KNOWN, said], by=BY)

    assert not Observation.objects.exists()


def test_what_is_nearly_known_is_offered_once(workspace):
    (known,) = keep(workspace)

    stored = store(workspace, [AGAIN, NewObservation("finding", "The DHL API allows 200 requests a minute")], by=BY)
    again = store(workspace, [AGAIN], by=BY)

    assert [row.observation for row in stored.offered] == [known]
    assert [row.content for row in stored.added] == ["The DHL API allows 200 requests a minute"]
    assert (again.added, again.offered) == ([], [])


def test_what_is_only_offered_is_recorded_and_nothing_is_not(workspace):
    keep(workspace)

    store(workspace, [AGAIN], by=BY)
    store(workspace, [AGAIN], by=BY)

    texts = AuditRecord.objects.filter(action="observations.added").order_by("id").values_list("text", flat=True)
    assert list(texts) == ["1 observation added", "0 observations added, 1 much like known ones"]


def test_two_of_a_batch_that_say_the_same_are_one(workspace):
    assert len(keep(workspace, KNOWN, AGAIN)) == 1


def test_what_was_withdrawn_is_not_stored_again_by_itself(workspace):
    (known,) = keep(workspace)
    edit_rows(workspace, "observations", "withdraw", [known.pk], values={"reason": "no"}, by=BY)

    stored = store(workspace, [AGAIN], by=By(AGENT, NOW))

    assert (stored.added, len(stored.offered)) == ([], 1)


def test_a_confirmation_counts_and_can_be_undone(workspace):
    (known,) = keep(workspace)
    (offered,) = store(workspace, [AGAIN], by=BY).offered

    run = decide(offered, is_same=True, by=BY)

    known.refresh_from_db()
    assert (known.confirmation_count, known.last_verified_at) == (1, NOW)
    assert isinstance(run, Run)
    undo_edit(run, by=BY)
    known.refresh_from_db()
    assert (known.confirmation_count, known.last_verified_at) == (0, None)
    offered.refresh_from_db()
    assert offered.status == "offered"
    decide(offered, is_same=False, by=BY)
    with raises_code("already_decided"):
        decide(offered, is_same=True, by=BY)


def test_another_thing_becomes_an_observation_of_its_own(workspace):
    keep(workspace)
    (offered,) = store(workspace, [AGAIN], by=BY).offered

    made = decide(offered, is_same=False, by=BY)

    assert made.content == AGAIN.content
    assert Confirmation.objects.get().status == "kept_apart"


def test_pages_add_edit_move_withdraw_and_restore(workspace, editor):
    values = {"content": "Port 80 is open", "category": "finding", "source": "GOAL:scan"}
    editor.post(url("new-observation"), values)
    row = Observation.objects.get()

    editor.post(url("observation", row.pk), values | {"content": "Port 8080 is open"})
    editor.post(url("edit-observations"), {"row": [row.pk], "action": "move:lesson"})
    editor.post(url("edit-observation", row.pk), {"action": "withdraw", "text": "closed since"})
    html = editor.get(url("observations") + "?withdrawn=on").content.decode()
    assert "closed since" in html
    assert "No observations" in editor.get(url("observations")).content.decode()
    row.refresh_from_db()
    assert (row.category, row.content) == ("lesson", "Port 8080 is open")

    editor.post(url("edit-observation", row.pk), {"action": "return"})
    first = row.history.order_by("history_id")[0]
    editor.post(url("edit-observation", row.pk), {"state": first.history_id})
    row.refresh_from_db()
    assert (row.category, row.content, row.withdrawn_at) == ("finding", "Port 80 is open", None)
    assert "Port 8080 is open" in editor.get(url("observation", row.pk)).content.decode()


def test_all_of_a_kind_are_withdrawn_at_once(workspace, editor):
    keep(workspace, KNOWN, NewObservation("lesson", "Ask first"), NewObservation("lesson", "Measure twice"))

    editor.post(
        url("edit-observations") + "?category=lesson",
        {"all": 1, "expected": 2, "action": "withdraw", "text": "old"},
    )

    assert set(Observation.objects.filter(withdrawn_at=None).values_list("category", flat=True)) == {"finding"}


def test_pages_offer_what_was_said_again(workspace, editor):
    keep(workspace)
    values = {"content": AGAIN.content, "category": "finding", "source": ""}
    assert editor.post(url("new-observation"), values)["Location"] == url("offered")
    assert "1 possible duplicate<" in editor.get(url("observations")).content.decode()
    offered = Confirmation.objects.get()
    assert AGAIN.content.replace("'", "&#x27;") in editor.get(url("offered")).content.decode()

    response = editor.post(url("decide-offered", offered.pk), {"is_same": "1"}, follow=True)

    assert "Counted as a confirmation" in response.content.decode()
    assert "No possible duplicates" in response.content.decode()


@pytest.mark.parametrize("values", [{}, {"action": "explode", "row": [1]}, {"action": "move:hunch", "row": [1]}])
def test_a_choice_that_makes_no_sense_changes_nothing(workspace, editor, values):
    keep(workspace)

    response = editor.post(url("edit-observations"), values, follow=True)

    assert 'data-level="problem"' in response.content.decode()


def test_a_viewer_reads_only(workspace, viewer_client):
    (row,) = keep(workspace)
    store(workspace, [AGAIN], by=BY)

    assert "DHL" in viewer_client.get(url("observation", row.pk)).content.decode()
    assert viewer_client.get(url("offered")).status_code == 200
    assert viewer_client.get(url("download-observations")).status_code == 200
    for name, *args in (
        ("edit-observations",),
        ("observation", row.pk),
        ("edit-observation", row.pk),
        ("decide-offered", Confirmation.objects.get().pk),
    ):
        assert viewer_client.post(url(name, *args), {"row": [row.pk], "action": "verify"}).status_code == 404


def test_rows_of_another_workspace_are_not_there(workspace, editor):
    other = Workspace.objects.create(slug="other", name="Other")
    (row,) = keep(other)
    (offered,) = store(other, [AGAIN], by=BY).offered

    assert editor.get(url("observation", row.pk)).status_code == 404
    assert editor.post(url("decide-offered", offered.pk), {"is_same": "1"}).status_code == 404


def test_the_command_does_what_the_pages_do(workspace, command):
    (row,) = command("observations", "add", "atlas", "--kind", "lesson", "--content", "Ask first")["observations"]
    pk = str(row["id"])
    command("observations", "edit", "atlas", pk, "--content", "Always ask first")
    moved = command("observations", "move", "atlas", pk, "--kind", "insight")
    assert moved["run"]["changed"] == 1
    (listed,) = command("observations", "list", "atlas", "--kind", "insight")["observations"]
    assert listed["content"] == "Always ask first"

    (offered,) = command("observations", "add", "atlas", "--content", "always ask first!")["offered"]
    assert command("observations", "offered", "atlas")["offered"] == [offered]
    assert command("observations", "confirm", "atlas", str(offered["id"]))["offered"] == []
    assert command("observations", "apart", "atlas", "999", status=1)["error"]["code"] == "not_found"
    assert "Always ask first" in command("observations", "export", "atlas")["text"]
    command("observations", "withdraw", "atlas", pk, "--reason", "no")
    assert command("observations", "list", "atlas")["observations"] == []

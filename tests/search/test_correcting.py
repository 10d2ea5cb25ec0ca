"""Words that no readable row contains are corrected by the nearest word of the readable rows."""

import pytest
from django.urls import reverse

from knowledge_app.models import HeldRow
from memoryhub.lib.search.query_editing import with_words
from memoryhub.search import Scope, correcting
from memoryhub.search.ranking import RankOptions
from memoryhub.search.recall import recall
from memoryhub.search.results import Question, answer
from sessions_app.models import Workspace
from tests.api.conftest import caller, token_for
from tests.hub import NOW
from tests.searches import as_agent, know, observe, say, scope_of, search, texts

pytestmark = pytest.mark.django_db
USED = {  # typed → what is searched for instead
    "harbor": "harbour",
    "hharbour": "harbour",
    "harbuor": "harbour",
    "harbpur": "harbour",
    "garbour": "harbour",
    "arbour": "harbour",
    "HARBUOR": "harbour",
    "reccomend": "recommend",
    "definiltyly": "definitely",
    "harboxyr": "harbour",
    "пороход": "пароход",
    "καραβη": "καραβι",
    "crnae": "crane",
}
UNCORRECTED = ["crn", "harbourmaster", "zzzzqqqq", '"harbuor"', "harbuor1", "-harbuor", "crzz", "hadn", "decomment"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Let no slow machine stop a correction."""
    monkeypatch.setattr(correcting, "MILLISECONDS", 60_000)


@pytest.fixture(params=[True, False], ids=["newest", "older"])
def harbour(request, workspace):
    """A workspace with the words, which are in its newest rows or in older ones."""
    say(
        workspace,
        "The harbour is closed",
        "Пароход стоит у причала",
        "Το καράβι έφυγε",
        "We recommend the definitely new crane",
    )
    if not request.param:
        say(workspace, *[f"filler {number}" for number in range(correcting.ROWS)], key="cli:filler")
    return workspace


@pytest.mark.slow
@pytest.mark.postgres
def test_a_mistyped_word_is_corrected(harbour):
    found = {typed: search(typed, harbour) for typed in USED}

    assert {typed: one.corrected for typed, one in found.items()} == {
        typed: {typed.lower(): used} for typed, used in USED.items()
    }
    assert {len(one.hits) for one in found.values()} == {1}


@pytest.mark.slow
@pytest.mark.postgres
def test_these_are_not(harbour):
    assert {typed: search(typed, harbour).corrected for typed in UNCORRECTED} == {typed: {} for typed in UNCORRECTED}


def test_words_that_exist_are_left_alone(workspace):
    say(workspace, "The harbour is closed", "A harbor", "The harbors")
    know(workspace, "an arbour")

    for typed in ("harbour", "harbours", "harbor", "arbour"):
        found = search(typed, workspace)
        assert found.corrected == {}
        assert found.hits
    assert search("arbour", workspace, kinds=["entry"]).corrected == {}, "another kind has it"
    assert search("arbour kind:entry", workspace).corrected == {}


def test_a_short_word_with_a_wrong_letter_is_corrected_from_older_rows(workspace, monkeypatch):
    monkeypatch.setattr(correcting, "ROWS", 1)
    say(workspace, "the crane", "filler")

    assert search("crabe", workspace).corrected == {"crabe": "crane"}


def test_a_common_word_is_no_reason_to_correct(workspace):
    say(workspace, "the tier of the crane")

    assert search("thier crane", workspace).corrected == {}


def test_a_corrected_word_counts_half(workspace):
    say(workspace, "harbour", "crane")

    hits = search("harbuor crane", workspace).hits
    [first, second] = answer(scope_of(workspace), Question("harbuor crane"), now=NOW, explain=True)["results"]

    assert [hit.row.content for hit in hits] == ["crane", "harbour"]
    assert first["score"] > second["score"]
    [term] = [one for one in second["explanation"]["terms"] if one["count"]]
    assert (term["term"], term["corrected_from"], term["weight"]) == ("harbour", "harbuor", 0.5)


@pytest.mark.parametrize("is_older", [False, True])
def test_swapped_letters_are_likelier_than_other_slips(workspace, is_older):
    say(workspace, "The gate is open")
    if is_older:
        say(workspace, *[f"filler {number}" for number in range(correcting.ROWS)], key="cli:filler")
    say(workspace, "one after another", "one more", key="cli:more")

    assert search("opne", workspace).corrected == {"opne": "open"}


def test_required_words_are_corrected(workspace):
    say(workspace, "the harbour crane", "the crane")

    assert texts("harbuor crane", workspace, match_all=True) == ["the harbour crane"]
    assert texts("harbuor OR brigde", workspace) == ["the harbour crane"]


def test_nothing_is_corrected_on_request_or_while_it_is_typed(workspace):
    say(workspace, "the harbour")

    assert texts("harbuor", workspace, options=RankOptions(correct=False)) == []
    assert texts("harbuor", workspace, prefix=True) == []


def test_no_word_of_another_workspace_is_suggested(workspace):
    other = Workspace.objects.create(slug="other", name="Other")
    say(other, "The harbour is closed")
    say(workspace, "nothing of the kind")

    assert search("harbuor", workspace).corrected == {}
    assert search("harbuor", other).corrected == {"harbuor": "harbour"}


def test_no_word_of_a_held_row_is_suggested_to_an_agent(workspace):
    row = know(workspace, "The harbour is closed")
    HeldRow.objects.create(workspace=workspace, knowledge=row, created_at=NOW)

    found = answer(as_agent(workspace), Question("harbuor"), now=NOW)

    assert (found["corrected"], found["notes"]) == ({}, [])
    assert answer(scope_of(workspace), Question("harbuor"), now=NOW)["corrected"] == {"harbuor": "harbour"}


def test_no_word_of_a_withdrawn_row_or_of_an_own_session_is_suggested(workspace):
    know(workspace, "The harbour is closed", withdrawn_at=NOW)
    say(workspace, "The harbour is open", key="dream:1")

    assert search("harbuor", workspace).corrected == {}
    found = answer(Scope((workspace.pk,), own_sessions=True), Question("harbuor"), now=NOW)
    assert found["corrected"] == {"harbuor": "harbour"}


def test_a_search_of_no_workspace_corrects_nothing(workspace):
    say(workspace, "The harbour is closed")

    assert answer(Scope(()), Question("harbuor"), now=NOW)["results"] == []


def test_newer_rows_that_the_filters_exclude_hide_no_word(workspace):
    say(workspace, "The harbour is closed", role="assistant")
    say(workspace, *["The harbour is open"] * correcting.ROWS, key="cli:open")
    say(workspace, *[f"filler {number}" for number in range(correcting.ROWS)], key="cli:filler", role="assistant")

    assert search("harbuor role:assistant", workspace).corrected == {"harbuor": "harbour"}


def test_no_word_of_a_secret_is_suggested(workspace):
    say(workspace, "postgres://admin:harbourmaster@db.example.org/x")

    assert search("harbourmatser", workspace).corrected == {}


def test_time_that_is_up_corrects_nothing(workspace, monkeypatch):
    say(workspace, "The harbour is closed")
    monkeypatch.setattr(correcting, "MILLISECONDS", 0)

    assert search("harbuor", workspace).corrected == {}


def test_the_page_shows_both_and_counts_what_it_shows(workspace, viewer_client):
    say(workspace, "The harbour is closed", "The harbour is open")
    url = reverse("search", args=[workspace.slug])

    page = viewer_client.get(url, {"q": "harbuor role:user"})
    html = page.content.decode()
    assert 'Showing results for <strong dir="auto">harbour role:user</strong>.' in html
    assert "Search instead for <bdi>harbuor role:user</bdi>" in html
    assert "instead of harbuor, counts half" in html
    assert "<strong>2</strong> matches" in viewer_client.get(page.context["count_url"]).content.decode()
    assert viewer_client.get(page.context["facets_url"]).context["facets"]

    literal = viewer_client.get(page.context["typed_url"])
    assert literal.context["results"].rows == []
    assert "Showing results" not in literal.content.decode()


@pytest.mark.parametrize(("typed", "used"), [("old-harbuor", "old-harbour"), ("(Harbuor's)", "(Harbour's)")])
def test_a_corrected_part_of_a_token_is_shown_and_counted(workspace, viewer_client, typed, used):
    say(workspace, "The old harbour is closed")

    page = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": typed})

    assert page.context["used"] == used
    assert "<strong>1</strong> match" in viewer_client.get(page.context["count_url"]).content.decode()


def test_words_within_identifiers_are_not_replaced():
    assert with_words('v1.harbuor harbuor "harbuor" -harbuor', {"harbuor": "harbour"}) == (
        'v1.harbuor harbour "harbuor" -harbuor'
    )


def test_corrections_keep_capital_letters():
    words = {"harbuor": "harbour", "dcok": "dock"}
    assert with_words("Harbuor HARBUOR harbuor Anna DCOK", words) == "Harbour HARBOUR harbour Anna DOCK"


def test_a_recall_corrects_a_word_alike_for_all_kinds_and_says_so(workspace, command, viewer_client):
    know(workspace, "The harbour is closed")
    observe(workspace, "harbors are busy")
    observe(workspace, "The harbour is busy", category="lesson")
    note = "No row contains “harbuor”: “harbour” was searched instead."
    api = caller(token_for(workspace))

    for told in (api("GET", "/recall?query=harbuor").json(), command("recall", "atlas", "harbuor")):
        assert told["corrected"] == {"harbuor": "harbour"}
        assert (told["findings"], told["lessons"]) == ([], ["The harbour is busy"])
        assert [one["text"] for one in told["memories"]] == ["The harbour is closed"]
    page = viewer_client.get(reverse("recall", args=[workspace.slug]), {"q": "harbuor"})
    assert note in page.content.decode()
    assert recall(as_agent(workspace), "harbour", now=NOW).document["corrected"] == {}


def test_every_interface_says_what_was_corrected(workspace, command):
    say(workspace, "The harbour is closed")
    note = "No row contains “harbuor”: “harbour” was searched instead."
    api = caller(token_for(workspace))

    for told in (api("GET", "/search?query=harbuor").json(), command("search", "harbuor", "--workspace", "atlas")):
        assert told["corrected"] == {"harbuor": "harbour"}
        assert told["notes"] == [note]
        assert told["read"] == ["contains harbour"]
        assert len(told["results"]) == 1
    for told in (
        api("GET", "/search?query=harbuor&as_typed=true").json(),
        command("search", "harbuor", "--workspace", "atlas", "--as-typed"),
    ):
        assert (told["corrected"], told["notes"], told["results"]) == ({}, [], [])

import hashlib
import json
from datetime import timedelta

import pytest
from django.urls import reverse

from knowledge_app.models import CachedResponse
from knowledge_app.services.rows.cached_responses import cache_key, figures, keep, look_up
from knowledge_app.services.rows.exporting import cache_file
from knowledge_app.services.rows.importing import import_cached_responses
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import CachedResponseRecord
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=30)


def url(name, *args):
    return reverse(f"knowledge:{name}", args=["atlas", *args])


def test_the_key_is_grips():
    assert cache_key("  Who OWNS it? ", "m") == hashlib.sha256(b"who owns it?||m").hexdigest()


def test_a_kept_response_is_found_again_and_counted(workspace):
    keep(workspace, "Who owns it?", "m", "Jonas", now=NOW)

    assert look_up(workspace, " who owns IT?", "m", now=LATER) == "Jonas"
    assert look_up(workspace, "Who owns it?", "other", now=LATER) is None
    row = CachedResponse.objects.get()
    assert (row.hit_count, row.accessed_at, row.preview) == (1, LATER, "Who owns it?")
    workspace.refresh_from_db()
    found = figures(workspace, LATER)
    assert (found.hits, found.misses, found.hit_rate, found.count, found.expired) == (1, 1, 0.5, 1, 0)


@pytest.mark.parametrize(("seconds", "answer"), [(3599, "Jonas"), (3600, None)])
def test_a_response_as_old_as_it_may_be_is_used_no_more(workspace, seconds, answer):
    keep(workspace, "q", "m", "Jonas", now=NOW)

    assert look_up(workspace, "q", "m", now=NOW + timedelta(seconds=seconds)) == answer
    assert CachedResponse.objects.exists() is (answer is not None)


def test_the_least_recently_used_go_first(workspace):
    Workspace.objects.update(cache_max_entries=2)
    workspace.refresh_from_db()
    keep(workspace, "a", "m", "A", now=NOW)
    keep(workspace, "b", "m", "B", now=NOW + timedelta(seconds=1))
    look_up(workspace, "a", "m", now=NOW + timedelta(seconds=2))

    keep(workspace, "c", "m", "C", now=NOW + timedelta(seconds=3))

    assert set(CachedResponse.objects.values_list("response", flat=True)) == {"A", "C"}


def test_a_cache_that_is_off_keeps_and_finds_nothing(workspace):
    keep(workspace, "q", "m", "Jonas", now=NOW)
    workspace.cache_enabled = False

    assert look_up(workspace, "q", "m", now=NOW) is None
    assert keep(workspace, "r", "m", "x", now=NOW) is None


def test_a_used_response_leaves_with_the_time_of_its_use(workspace):
    row = keep(workspace, "q", "m", "Jonas", now=NOW)
    row.extra = {"accessed_at": 1.5, "further": True}
    row.save()
    look_up(workspace, "q", "m", now=LATER)

    (written,) = json.loads(cache_file(workspace)).values()

    assert (written["accessed_at"], written["further"]) == (LATER.timestamp(), True)


def test_one_a_models_or_all_are_invalidated_and_come_back(workspace, editor):
    for number in range(3):
        keep(workspace, f"q{number}", "small" if number else "large", "x", now=NOW)
    first = CachedResponse.objects.order_by("id")[0]

    editor.post(url("invalidate"), {"row": first.pk})
    assert CachedResponse.objects.count() == 2
    editor.post(reverse("undo-run", args=["atlas", Run.objects.get().pk]))
    assert CachedResponse.objects.get(pk=first.pk).response == "x"
    editor.post(url("invalidate") + "?model=small", {"all": 1, "expected": 2})
    assert [row.pk for row in CachedResponse.objects.all()] == [first.pk]
    assert 'data-level="problem"' in editor.post(url("invalidate"), {}, follow=True).content.decode()


def test_the_page_shows_how_the_cache_does(workspace, viewer_client, time_machine):
    time_machine.move_to(LATER)
    keep(workspace, "Who owns it?", "m", "Jonas", now=NOW)
    look_up(workspace, "Who owns it?", "m", now=LATER)

    html = viewer_client.get(url("cached-responses")).content.decode()

    assert "100%" in html
    assert "1 hit" in html
    assert 'name="row"' not in html
    assert "No matches" in viewer_client.get(url("cached-responses") + "?state=expired").content.decode()
    assert "Who owns it?" in viewer_client.get(url("cached-responses") + "?q=jonas").content.decode()
    assert viewer_client.post(url("invalidate"), {"row": 1}).status_code == 404
    assert b"Jonas" in viewer_client.get(url("download-cache")).content


def test_the_command_does_what_grips_cache_does(workspace, command):
    assert command("cache", "get", "atlas", "q", "--model", "m") == {"hit": False, "response": None}
    command("cache", "put", "atlas", "Q", "answer", "--model", "m")
    assert command("cache", "get", "atlas", "q ", "--model", "m")["response"] == "answer"
    stats = command("cache", "stats", "atlas")
    assert (stats["count"], stats["hit_rate"]) == (1, 0.5)
    assert command("cache", "invalidate", "atlas", status=1)["error"]["code"] == "nothing_chosen"
    assert command("cache", "invalidate", "atlas", "--model", "m")["run"]["changed"] == 1
    assert command("cache", "export", "atlas")["text"] == "{}"


def read(workspace: Workspace, response: str, created_at=NOW) -> ImportCounts:
    """Import a response from an agent's file."""
    record = CachedResponseRecord(cache_key("q", "m"), "m", response, "q", created_at=created_at)
    return import_cached_responses(workspace, [record], path="semantic_cache.json", now=LATER, dry_run=False)


def remove(workspace: Workspace) -> Run:
    pks = list(CachedResponse.objects.values_list("pk", flat=True))
    return edit_rows(workspace, "cached", "remove", pks, by=By(PERSON, LATER))


def responses() -> list[str]:
    return list(CachedResponse.objects.values_list("response", flat=True))


@pytest.mark.parametrize("created_at", [NOW, None, LATER + timedelta(days=9)])
def test_what_a_person_invalidated_does_not_return_from_the_same_file(workspace, created_at):
    read(workspace, "Jonas", created_at)
    run = remove(workspace)

    tally = read(workspace, "Jonas", created_at)

    assert responses() == []
    assert (+tally.unchanged, tally.problems) == ({"cached_responses": 1}, [])
    undo_edit(run, by=By(PERSON, LATER))
    assert read(workspace, "Jonas", created_at).problems == []
    assert responses() == ["Jonas"]


def test_an_earlier_response_than_the_invalidated_one_does_not_return_either(workspace):
    read(workspace, "Jonas")
    remove(workspace)

    read(workspace, "Ana", NOW - timedelta(days=1))

    assert responses() == []


@pytest.mark.parametrize("response", ["Jonas", "Ana"])
def test_a_new_response_is_taken_and_an_old_file_does_not_replace_it(workspace, response):
    read(workspace, "Jonas")
    remove(workspace)

    read(workspace, response, LATER + timedelta(seconds=1))
    read(workspace, "Jonas")

    assert responses() == [response]

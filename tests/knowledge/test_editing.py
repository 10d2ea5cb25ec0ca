"""Edit knowledge entries on their pages."""

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows import undoable_edits
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from memoryhub.models import AccessRecord
from memoryhub.runs.executing import execute
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db


def add(workspace, content="likes tea", category="learned_fact", **values) -> KnowledgeEntry:
    return add_knowledge(workspace, content, category=category, by=By(PERSON, NOW), **values).entry


def url(name, *args):
    return reverse(f"knowledge:{name}", args=["atlas", *args])


def test_an_entry_is_added_on_its_page(workspace, editor):
    values = {"content": "likes tea", "category": "user_preference", "tags": "drinks, home", "source": "cli"}

    response = editor.post(url("new-knowledge"), values)

    entry = KnowledgeEntry.objects.get()
    assert response["Location"] == url("knowledge-entry", entry.pk)
    assert (entry.category, entry.tags, entry.source) == ("user_preference", ["drinks", "home"], "cli")


def test_an_empty_entry_is_refused(workspace, editor):
    response = editor.post(url("new-knowledge"), {"content": " ", "category": "learned_fact"})

    assert response.status_code == 422
    assert not KnowledgeEntry.objects.exists()


def test_selected_rows_move_and_undo_moves_them_back(workspace, editor):
    chosen, other = add(workspace), add(workspace, "likes cats")

    response = editor.post(
        url("edit-knowledge") + "?q=likes", {"row": [chosen.pk], "action": "move:error_pattern"}, follow=True
    )

    html = response.content.decode()
    assert response.redirect_chain[0][0] == url("knowledge") + "?q=likes"
    assert "1 knowledge entry changed." in html
    assert set(KnowledgeEntry.objects.values_list("pk", "category")) == {
        (chosen.pk, "error_pattern"),
        (other.pk, "learned_fact"),
    }
    run = Run.objects.get()
    address = reverse("undo-run", args=["atlas", run.pk])
    assert f'action="{address}"' in html
    back = editor.post(address, {"next": url("knowledge")})
    assert back["Location"] == url("knowledge")
    assert set(KnowledgeEntry.objects.values_list("category", flat=True)) == {"learned_fact"}


def test_undo_never_redirects_to_another_site(workspace, editor):
    add(workspace)
    editor.post(url("edit-knowledge"), {"all": 1, "expected": 1, "action": "verify"})
    run = Run.objects.get()

    response = editor.post(reverse("undo-run", args=["atlas", run.pk]), {"next": "//evil.example/"})

    assert response["Location"] == reverse("run", args=["atlas", run.pk])


def test_all_matching_rows_are_changed_if_their_number_is_unchanged(workspace, editor):
    for number in range(3):
        add(workspace, f"likes tea {number}")
    add(workspace, "hates rain")

    refused = editor.post(
        url("edit-knowledge") + "?q=tea", {"all": 1, "expected": 2, "action": "tag", "text": "drinks"}, follow=True
    )
    assert "3 rows match now instead of 2" in refused.content.decode()
    editor.post(url("edit-knowledge") + "?q=tea", {"all": 1, "expected": 3, "action": "tag", "text": "drinks, hot"})

    assert [entry.tags for entry in KnowledgeEntry.objects.order_by("id")] == [["drinks", "hot"]] * 3 + [[]]


def test_a_tag_beyond_the_limit_is_refused_on_pages(workspace, editor):
    entry = add(workspace, tags=[f"{number} {'x' * 95}" for number in range(50)])

    html = editor.post(
        url("edit-knowledge"), {"row": [entry.pk], "action": "tag", "text": "new"}, follow=True
    ).content.decode()
    assert "at most 50 tags" in html
    assert "No changes" not in html

    form = {"content": "likes tea", "category": "learned_fact", "tags": ", ".join(entry.tags), "source": ""}
    kept = editor.post(url("knowledge-entry", entry.pk), form | {"source": "cli"})
    assert kept.status_code == 302
    refused = editor.post(url("knowledge-entry", entry.pk), form | {"tags": form["tags"] + ", new"})
    assert refused.status_code == 422


def test_a_large_edit_shows_its_progress(workspace, editor, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 1)
    rows = [add(workspace), add(workspace, "likes cats")]

    response = editor.post(url("edit-knowledge"), {"row": [row.pk for row in rows], "action": "verify"})

    run = Run.objects.get()
    assert response["Location"] == reverse("run", args=["atlas", run.pk])
    assert "every 1s" in editor.get(response["Location"]).content.decode()
    execute(run.pk, now=timezone.now)
    html = editor.get(response["Location"]).content.decode()
    assert "knowledge entries" in html
    assert "Undo…" in html


@pytest.mark.parametrize(
    "values",
    [{"action": "verify"}, {"row": ["x"], "action": "verify"}, {"row": [1], "action": "explode"}, {"row": [1]}],
)
def test_an_invalid_selection_changes_nothing(workspace, editor, values):
    add(workspace)

    response = editor.post(url("edit-knowledge"), values, follow=True)

    assert 'data-level="problem"' in response.content.decode()
    assert not Run.objects.exists()


def test_an_entry_is_edited_withdrawn_and_restored_on_its_page(workspace, editor):
    entry = add(workspace)
    page = url("knowledge-entry", entry.pk)

    editor.post(page, {"content": "likes green tea", "category": "learned_fact", "tags": "", "source": ""})
    editor.post(url("edit-knowledge-entry", entry.pk), {"action": "review", "review_by": "2026-12-24"})
    editor.post(url("edit-knowledge-entry", entry.pk), {"action": "withdraw", "text": "not true"})
    html = editor.get(page).content.decode()
    assert "not true" in html
    assert "likes green tea" in html

    first = entry.history.order_by("history_id")[0]
    editor.post(url("edit-knowledge-entry", entry.pk), {"state": first.history_id, "known": first.history_id})
    entry.refresh_from_db()
    assert entry.content == "likes green tea"
    editor.post(url("edit-knowledge-entry", entry.pk), {"state": first.history_id})
    entry.refresh_from_db()
    assert (entry.content, entry.withdrawn_at, str(entry.review_by)) == ("likes tea", None, "2026-12-24")


def as_page_sends(form, **changes):
    """Return what a browser sends of a form: its values, and what they were when the page was made."""
    values = {name: form[name].value() for name in form.fields}
    before = {form[name].html_initial_name: value for name, value in values.items()}
    return before | values | changes


def test_a_form_saves_only_changed_fields(workspace, editor):
    entry = add(workspace, "likes tea\nand cake", tags=["a,b"])
    sent = as_page_sends(editor.get(url("knowledge-entry", entry.pk)).context["form"])
    save_entry(entry, {"category": "error_pattern"}, by=By(PERSON, NOW))

    lines = {"content": "likes tea\r\nand cake", "initial-content": "likes tea\r\nand cake"}
    editor.post(url("knowledge-entry", entry.pk), sent | lines | {"source": "chat"})

    entry.refresh_from_db()
    assert (entry.source, entry.category, entry.tags) == ("chat", "error_pattern", ["a,b"])
    assert (entry.content, set(entry.corrected)) == ("likes tea\nand cake", {"category", "source"})


def test_a_field_that_someone_changed_meanwhile_is_shown_as_it_is_now(workspace, editor):
    entry = add(workspace, "likes tea")
    sent = as_page_sends(editor.get(url("knowledge-entry", entry.pk)).context["form"], content="likes coffee")
    save_entry(entry, {"content": "likes water"}, by=By(PERSON, NOW))

    response = editor.post(url("knowledge-entry", entry.pk), sent)

    assert response.status_code == 422
    assert "Current value: likes water" in response.content.decode()
    entry.refresh_from_db()
    assert entry.content == "likes water"


def test_a_duplicate_is_reported(workspace, editor):
    twin, entry = add(workspace), add(workspace, "likes cats")

    response = editor.post(
        url("knowledge-entry", entry.pk),
        {"content": "LIKES TEA", "category": "learned_fact", "tags": "", "source": ""},
    )

    assert response.status_code == 422
    assert url("knowledge-entry", twin.pk) in response.content.decode()


def test_duplicates_are_merged_group_by_group_or_all(workspace, editor):
    for word in ("invoices", "reports"):
        add(workspace, f"The team sends {word} on Friday")
        add(workspace, f"the team sends {word} on friday!")
    page = editor.get(url("merge-knowledge"))
    keeps = [group.keep.pk for group in page.context["groups"]]
    assert len(keeps) == 2

    editor.post(url("merge-knowledge"), {"group": keeps[:1]})
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 3
    editor.post(url("merge-knowledge"), {"all": 1})
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 2
    assert "No duplicates" in editor.get(url("merge-knowledge")).content.decode()


def test_many_entries_are_compared_after_the_page_has_opened(workspace, editor, monkeypatch):
    monkeypatch.setattr("memoryhub.knowledge.views.knowledge.COMPARED_AT_ONCE", 1)
    add(workspace, "The team sends invoices on Friday")
    add(workspace, "the team sends invoices on friday!")

    page = editor.get(url("merge-knowledge")).content.decode()
    assert "Comparing the entries…" in page
    assert f'hx-get="{url("merge-knowledge")}?threshold=0.7"' in page

    asked = {"threshold": "0.7"}
    part = editor.get(url("merge-knowledge"), asked, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<form class="stack" method="post">')
    assert AccessRecord.objects.filter(action="knowledge.read").count() == 1
    assert 'id="merge-groups" hx-get' not in page  # a part that refreshes itself isn't logged
    assert "1 group, 1 entry to be withdrawn." in part
    assert "<h1>" in editor.get(url("merge-knowledge"), asked).content.decode()


def test_a_viewer_reads_and_changes_nothing(workspace, viewer_client):
    entry = add(workspace)
    html = viewer_client.get(url("knowledge")).content.decode()

    assert "likes tea" in html
    assert 'name="row"' not in html
    assert viewer_client.get(url("knowledge-entry", entry.pk)).status_code == 200
    for name, *args in (("edit-knowledge",), ("knowledge-entry", entry.pk), ("edit-knowledge-entry", entry.pk)):
        assert viewer_client.post(url(name, *args), {"row": [entry.pk], "action": "verify"}).status_code == 404


def test_an_entry_of_another_workspace_is_not_found(workspace, editor):
    foreign = add(Workspace.objects.create(slug="other", name="Other"))

    assert editor.get(url("knowledge-entry", foreign.pk)).status_code == 404
    assert editor.post(url("edit-knowledge-entry", foreign.pk), {"action": "verify"}).status_code == 404


def test_the_prompt_and_the_file_can_be_downloaded(workspace, viewer_client):
    add(workspace, "<b>tea</b>")

    assert "[learned_fact] &lt;b&gt;tea" in viewer_client.get(url("knowledge-context")).content.decode()
    assert (
        "Nothing within this budget" in viewer_client.get(url("knowledge-context") + "?max_chars=3").content.decode()
    )
    file = viewer_client.get(url("download-knowledge"))
    assert json.loads(file.content)["entries"][0]["content"] == "<b>tea</b>"
    assert file["Content-Disposition"] == 'attachment; filename="knowledge.json"'


def test_the_command_does_what_the_pages_do(workspace, command):
    one = command("knowledge", "add", "atlas", "--content", "likes tea", "--category", "hunch")
    assert (one["added"], one["entries"][0]["category"]) == (True, "learned_fact")
    assert "hunch" in one["note"]
    pk = str(one["entries"][0]["id"])

    assert command("knowledge", "move", "atlas", pk, "--category", "user_preference")["run"]["changed"] == 1
    tagged = command("knowledge", "tag", "atlas", pk, "--tag", "a", "--tag", "b")
    command("knowledge", "tag", "atlas", pk, "--untag", "a")
    command("knowledge", "edit", "atlas", pk, "--content", "likes green tea")
    command("knowledge", "review", "atlas", pk, "--by", "2026-12-24")
    (shown,) = command("knowledge", "show", "atlas", pk)["entries"]
    assert (shown["category"], shown["tags"], shown["content"]) == ("user_preference", ["b"], "likes green tea")
    assert command("knowledge", "context", "atlas")["text"] == "[user_preference] likes green tea"
    assert command("runs", "undo", str(tagged["run"]["id"]))
    command("knowledge", "withdraw", "atlas", pk, "--reason", "no")
    assert command("knowledge", "list", "atlas")["entries"] == []
    assert command("knowledge", "show", "atlas", "999", status=1)["error"]["code"] == "not_found"
    assert (
        command("knowledge", "move", "atlas", pk, "--category", "hunch", status=1)["error"]["code"] == "bad_knowledge"
    )


def test_the_command_merges_and_exports(workspace, command, tmp_path):
    add(workspace, "The team sends invoices on Friday")
    add(workspace, "the team sends invoices on friday!")

    assert command("knowledge", "merge", "atlas")["run"] is None
    merged = command("knowledge", "merge", "atlas", "--apply")
    assert merged["run"]["changed"] == 1
    file = tmp_path / "knowledge.json"
    command("knowledge", "export", "atlas", "--output", str(file))
    assert len(json.loads(file.read_text())["entries"]) == 1
    assert json.loads(command("knowledge", "export", "atlas")["text"])["version"] == 1


def test_the_page_of_an_edit_shows_its_rows_and_masks_exact_values(workspace, viewer_client):
    entry = add(workspace, tags=["old"])
    save_entry(entry, {"content": "likes <b>green</b> tea", "tags": ["new"]}, by=By(PERSON, NOW))
    for value in ("acme-hunter", "acme-farmer"):
        write_value(workspace, "db_password", value, by=By(PERSON, NOW))
    pages = [viewer_client.get(reverse("run", args=["atlas", run.pk])) for run in Run.objects.order_by("pk")]
    words, values = [page.content.decode() for page in pages]

    assert "likes &lt;b&gt;green&lt;/b&gt; tea" in words
    assert "<del>old</del> → <ins>new</ins>" in words
    assert "db_password" in values
    assert "hunter" not in values
    assert "farmer" not in values


def test_the_page_of_a_removal_lists_the_removed_rows(workspace, editor):
    row = keep(workspace, "Who owns it?", "m", "Jonas", now=NOW)
    editor.post(url("invalidate"), {"row": row.pk})

    assert "Who owns it?" in editor.get(reverse("run", args=["atlas", Run.objects.get().pk])).content.decode()


def test_edits_are_listed_with_what_they_did_and_undone_there(workspace, editor):
    entry = add(workspace)
    save_entry(entry, {"content": "likes green tea"}, by=By(PERSON, NOW))
    address = reverse("runs", args=["atlas"]) + "?state=edits"
    html = editor.get(address).content.decode()

    assert "1 knowledge entry changed" in html
    assert "olga" in html
    back = editor.post(reverse("undo-run", args=["atlas", Run.objects.get().pk]), {"next": address})
    assert back["Location"] == address
    entry.refresh_from_db()
    assert entry.content == "likes tea"


def test_an_undo_without_effect_says_so(workspace, editor):
    entry = add(workspace)
    for content in ("likes green tea", "likes black tea"):
        save_entry(entry, {"content": content}, by=By(PERSON, NOW))
    first = Run.objects.order_by("pk")[0]

    page = editor.post(reverse("undo-run", args=["atlas", first.pk]), {"next": url("knowledge")}, follow=True)

    assert "Nothing was undone" in page.content.decode()
    entry.refresh_from_db()
    assert entry.content == "likes black tea"


def test_a_list_with_only_withdrawn_entries_links_to_them(workspace, editor):
    entry = add(workspace)
    editor.post(url("edit-knowledge"), {"row": entry.pk, "action": "withdraw"})

    html = editor.get(url("knowledge")).content.decode()

    assert "No entries in use" in html
    assert "?state=withdrawn" in html

import csv
import io
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from knowledge_app.models import Fact, KeyValue
from knowledge_app.services.rows.importing import import_key_values
from memoryhub.lib.layouts.records import KeyValueRecord
from sessions_app.models import Run, Workspace
from tests.hub import NOW
from tests.search.test_pages import fill
from tests.searches import know, log, observe, say

pytestmark = pytest.mark.django_db


def box(kind: str, row) -> str:
    return f"{kind}:{row.pk}"


def act(client: Client, workspace: Workspace, rows=(), *, q: str = "heron", expect: int = 200, **values) -> str:
    """Send an action on results and return the resulting page."""
    url = f"{reverse('edit-matches', args=[workspace.slug])}?q={q}"
    response = client.post(url, {"row": rows, **values}, follow=True)
    assert response.status_code == expect
    return response.content.decode()


def export(client: Client, workspace: Workspace | None, rows=(), *, wanted: str = "jsonl", **values) -> str:
    url = reverse("export-matches", args=[workspace.slug]) if workspace else reverse("hub-export-matches")
    response = client.post(f"{url}?q=heron", {"row": rows, "format": wanted, **values})
    assert response.status_code == 200
    assert response["Content-Disposition"].startswith("attachment")
    return response.content.decode()


def test_results_are_withdrawn_with_a_reason_and_restored(workspace, editor):
    entry, finding = know(workspace, "heron"), observe(workspace, "heron")

    html = act(
        editor,
        workspace,
        [box("knowledge", entry), box("observation", finding)],
        action="withdraw",
        text="flew off",
    )

    assert "1 knowledge entry withdrawn." in html
    assert "1 observation withdrawn." in html
    for row in (entry, finding):
        row.refresh_from_db()
        assert row.withdrawn_reason == "flew off"
    for run in Run.objects.filter(kind=Run.Kind.EDIT):
        editor.post(reverse("undo-run", args=[workspace.slug, run.pk]))
    for row in (entry, finding):
        row.refresh_from_db()
        assert row.withdrawn_at is None


def test_an_action_names_the_kinds_it_does_not_apply_to(workspace, editor):
    entry, message = know(workspace, "heron"), say(workspace, "heron")[0]

    html = act(editor, workspace, [box("knowledge", entry), box("entry", message)], action="tag", text="bird, grey")

    entry.refresh_from_db()
    assert entry.tags == ["bird", "grey"]
    assert "1 knowledge entry tagged." in html
    assert "doesn&#x27;t apply: 1 message." in html


def test_a_category_must_belong_to_the_kind(workspace, editor):
    entry, finding = know(workspace, "heron"), observe(workspace, "heron")
    rows = [box("knowledge", entry), box("observation", finding)]

    act(editor, workspace, rows, action="move:lesson")
    act(editor, workspace, rows, action="move:error_pattern")

    entry.refresh_from_db()
    finding.refresh_from_db()
    assert (entry.category, finding.category) == ("error_pattern", "lesson")
    refusal = "Knowledge entries and observations can&#x27;t be moved to this category."
    assert refusal in act(editor, workspace, rows, action="move:nonsense")


def button(html: str, action: str) -> str:
    """Return the start tag of an action's button."""
    return next(tag for tag in html.split("<") if tag.startswith("button") and f'value="{action}"' in tag)


def test_actions_that_no_listed_row_allows_are_disabled(workspace, editor):
    say(workspace, "heron")
    url = f"{reverse('search', args=[workspace.slug])}?q=heron"

    only_messages = editor.get(url).content.decode()
    know(workspace, "heron")
    mixed = editor.get(url).content.decode()

    for action in ("pin", "verify", "review", "tag", "withdraw", "archive", "move:lesson", "move:learned_fact"):
        assert " disabled" in button(only_messages, action)
    assert 'title="Only for memory lines"' in button(only_messages, "pin")
    assert only_messages.count('aria-disabled="true"') == 5
    assert " disabled" not in button(only_messages, "export:csv")
    for action in ("verify", "review", "tag", "withdraw", "move:learned_fact"):
        assert " disabled" not in button(mixed, action)
    assert " disabled" in button(mixed, "pin")
    assert " disabled" in button(mixed, "move:lesson")
    assert 'data-kinds="memory knowledge observation"' in button(mixed, "verify")


def test_actions_that_some_of_all_matches_allow_are_enabled(workspace, editor):
    entries = say(workspace, *[f"heron {number}" for number in range(21)])
    know(workspace, "heron", created_at=None)
    url = f"{reverse('search', args=[workspace.slug])}?q=heron&sort=newest&facets=1"

    html = editor.get(url).content.decode()

    assert len(entries) == 21
    assert "hit-knowledge" not in html
    assert " disabled" not in button(html, "tag")
    assert 'data-counts="{&quot;entry&quot;: 21, &quot;knowledge&quot;: 1}"' in html


def test_a_refusal_names_what_is_possible(workspace, editor):
    message, entry = say(workspace, "heron")[0], log(workspace, "heron")
    rows = [box("entry", message), box("history", entry)]

    html = act(editor, workspace, rows, action="pin")

    assert (
        "Messages and history entries can&#x27;t be pinned. "
        "Available for this selection: Archive (1 of 2) and Export." in html
    )


def test_a_refused_action_keeps_the_selection_of_its_page_once(workspace, editor):
    messages = say(workspace, *[f"heron {number}" for number in range(25)])
    url = f"{reverse('search', args=[workspace.slug])}?q=heron&sort=newest"
    [cursor] = parse_qs(urlsplit(editor.get(url).context["next_url"]).query)["after"]
    last_page = editor.get(url, {"q": "heron", "sort": "newest", "after": cursor}).context["results"]
    rows = [row.key for row in last_page.rows]
    edit = url.replace("/search/", "/search/edit/")

    refused = editor.post(edit, {"row": rows[:2], "kept": "entry:1", "action": "pin", "after": cursor}, follow=True)
    html, again = refused.content.decode(), editor.get(refused.redirect_chain[-1][0]).content.decode()

    assert len(messages) == 25
    assert len(rows) == 5
    for number, row in enumerate(rows):
        assert (f'value="{row}" checked' in html) is (number < 2)
        assert f'value="{row}" aria-labelledby' in again
    assert 'name="kept" value="entry:1"' in html
    assert "data-keep-selection" in html
    assert "data-keep-selection" not in again


@pytest.mark.parametrize("name", ["edit-matches", "export-matches"])
def test_a_refused_action_on_all_matches_keeps_them_selected(name, workspace, editor):
    know(workspace, "heron")
    url = f"{reverse(name, args=[workspace.slug])}?q=hero&part=1"

    html = editor.post(url, {"all": "1", "expected": "2", "action": "verify"}, follow=True).content.decode()

    assert "1 row matches now instead of 2" in html
    assert 'data-counts="{&quot;knowledge&quot;: 1}" checked' in html


@pytest.mark.slow
@pytest.mark.postgres
def test_memory_facts_are_pinned_and_verified(workspace, editor):
    fill(workspace, count=2)
    rows = [box("memory", fact) for fact in Fact.objects.all()]

    assert "2 facts pinned." in act(editor, workspace, rows, action="pin")
    assert Fact.objects.filter(pinned=True).count() == 2
    assert "2 facts marked as verified." in act(editor, workspace, rows, action="verify")
    assert not Fact.objects.filter(last_verified_at=None).exists()
    act(editor, workspace, rows[:1], action="unpin")
    assert Fact.objects.filter(pinned=True).count() == 1


def test_all_matches_are_changed_if_their_number_is_as_shown(workspace, editor):
    entries = [know(workspace, f"heron {number}") for number in range(25)]
    know(workspace, "egret")

    html = act(editor, workspace, action="verify", all="1", expected="25")

    assert "25 knowledge entries marked as verified." in html
    assert {entry.last_verified_at is None for entry in entries} == {True}  # unchanged
    assert workspace.knowledge_entries.filter(last_verified_at=None).count() == 1


def test_a_selection_that_has_changed_is_refused(workspace, editor):
    know(workspace, "heron")
    know(workspace, "another heron")

    html = act(editor, workspace, action="withdraw", all="1", expected="1")

    assert "2 rows match now instead of 1" in html
    assert not workspace.knowledge_entries.filter(withdrawn_at__isnull=False).exists()


def test_all_matches_cannot_be_selected_beyond_the_counting_limit(workspace, editor, monkeypatch):
    monkeypatch.setattr("memoryhub.search.listing.WINDOW", 1)
    know(workspace, "heron")
    know(workspace, "another heron")

    assert "Narrow the search" in act(editor, workspace, action="withdraw", all="1", expected="2")


@pytest.mark.parametrize(
    ("rows", "values", "said"),
    [
        ([], {"action": "verify"}, "Select at least one row."),
        (["knowledge:0"], {"action": "explode"}, "Choose an action"),
        (["nonsense", "knowledge:x", "plant:1"], {"action": "verify"}, "Select at least one row."),
    ],
)
def test_a_form_without_a_selection_or_action_is_reported(rows, values, said, workspace, editor):
    know(workspace, "heron")

    assert said in act(editor, workspace, rows, **values)


def test_tagging_requires_a_tag(workspace, editor):
    entry = know(workspace, "heron")

    assert "Name at least one tag." in act(editor, workspace, [box("knowledge", entry)], action="tag", text=" , ")


@pytest.mark.slow
@pytest.mark.postgres
def test_rows_of_another_workspace_are_ignored(workspace, editor):
    other = Workspace.objects.create(slug="other", name="Other")
    fill(other)
    entry, fact = other.knowledge_entries.get(), Fact.objects.get()
    rows = [box("knowledge", entry), box("memory", fact), box("observation", other.observations.get())]

    for action in ("withdraw", "verify", "pin", "tag", "move:lesson"):
        assert "Select at least one row." in act(editor, workspace, rows, action=action, text="x")
    for place in (workspace, None):
        url = reverse("export-matches", args=[workspace.slug]) if place else reverse("hub-export-matches")
        html = editor.post(url, {"row": rows, "format": "csv"}, follow=True).content.decode()
        assert "Select at least one row." in html
    entry.refresh_from_db()
    fact.refresh_from_db()
    assert (entry.withdrawn_at, entry.last_verified_at, fact.pinned, fact.last_verified_at) == (
        None,
        None,
        False,
        None,
    )


def test_viewers_cannot_change_results_but_may_export_them(workspace, viewer_client):
    entry = know(workspace, "heron")

    act(viewer_client, workspace, [box("knowledge", entry)], action="withdraw", expect=404)

    assert json.loads(export(viewer_client, workspace, [box("knowledge", entry)]))["text"] == "heron"
    html = viewer_client.get(f"{reverse('search', args=[workspace.slug])}?q=heron").content.decode()
    assert 'value="withdraw"' not in html
    assert "JSON Lines" in html


def test_actions_require_post(workspace, editor):
    for name in ("edit-matches", "export-matches"):
        assert editor.get(reverse(name, args=[workspace.slug])).status_code == 405


def test_the_json_export_has_a_document_for_each_result(workspace, editor):
    fill(workspace)
    count = len(export(editor, workspace, all="1", expected="9").splitlines())

    found = [json.loads(line) for line in export(editor, workspace, all="1", expected="9").splitlines()]

    assert count == 9
    assert {one["kind"] for one in found} >= {"entry", "knowledge", "observation", "history", "memory", "document"}
    assert {one["workspace"] for one in found} == {"atlas"}


def test_the_csv_export_contains_no_formulas(workspace, editor):
    entry = know(workspace, "=HYPERLINK(1) heron", tags=["@x", "b"], source="+1")

    rows = list(csv.DictReader(io.StringIO(export(editor, workspace, [box("knowledge", entry)], wanted="csv"))))

    assert rows[0]["text"] == "'=HYPERLINK(1) heron"
    assert rows[0]["tags"] == "'@x, b"
    assert rows[0]["source"] == "'+1"


def test_a_masked_value_stays_masked_in_exports(workspace, editor):
    import_key_values(workspace, [KeyValueRecord("heron_token", "s3cret-value")], path="file", now=NOW, dry_run=False)

    text = export(editor, workspace, [box("key_value", KeyValue.objects.get())])

    assert "heron_token" in text
    assert "s3cret" not in text


def test_an_unknown_export_format_is_not_found(workspace, editor):
    entry = know(workspace, "heron")
    url = reverse("export-matches", args=[workspace.slug])

    assert editor.post(url, {"row": [box("knowledge", entry)], "format": "exe"}).status_code == 404


def test_the_selection_extends_beyond_the_page(workspace, editor):
    for number in range(25):
        know(workspace, f"heron {number}")

    assert len(export(editor, workspace, all="1", expected="25").splitlines()) == 25


def test_actions_match_half_typed_words_too(workspace, editor):
    know(workspace, "heron")
    url = f"{reverse('edit-matches', args=[workspace.slug])}?q=hero&part=1"

    html = editor.post(url, {"all": "1", "expected": "1", "action": "verify"}, follow=True).content.decode()

    assert "1 knowledge entry marked as verified." in html

"""The time travel pages: snapshots, comparison, permalinks and restoring rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.editing import save_text, start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.time_travel.parsing import url_time
from memoryhub.time_travel.views.snapshot import PAGE_ROWS
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, open_at, talk
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
HOSTILE = "</title><script>window.__xss=1</script>"
PARTS = [
    ("knowledge", "knowledge", "content"),
    ("observations", "observations", "content"),
    ("key_values", "key-values", "value"),
]
Row = KnowledgeEntry | Observation | KeyValue
AT = url_time(NOW + timedelta(minutes=30))
LATER = url_time(NOW + timedelta(hours=2))


@pytest.fixture
def atlas(workspace) -> Workspace:
    """A workspace whose memory changed between noon and one o'clock."""
    Workspace.objects.update(created_at=NOW)
    for hour, word in enumerate((f"first {HOSTILE}", "second")):
        by = By(PERSON, NOW + timedelta(hours=hour))
        document = start_document(workspace, "MEMORY.md")
        save_text(document, f"# About\n\n- {word} fact\n", base_number=hour, reason="edited", by=by)
        if hour:
            save_entry(workspace.knowledge_entries.get(), {"content": f"{word} entry"}, by=by)
        else:
            add_knowledge(workspace, f"{word} entry", category="learned_fact", by=by)
        store(workspace, [NewObservation("finding", f"{word} observation of {hour} kinds")], by=by)
        write_value(workspace, "colour", f"{word} value", by=by)
        write_value(workspace, "db_password", f"{word} hunter2", by=by)
        add_note(workspace, f"{word} note", by=by)
    talk(open_at(workspace), 2)
    return workspace


def get(client, name: str = "past", **query: str):
    return client.get(reverse(name, args=["atlas"]), query)


@pytest.mark.parametrize("part", ["memory", "knowledge", "observations", "key-values", "history"])
def test_each_part_shows_its_past_state_with_markup_escaped(atlas, viewer_client, part):
    page = get(viewer_client, at=AT, part=part).content.decode()

    assert "first" in page
    assert "second" not in page
    assert "hunter2" not in page
    assert live_markup(page) == []


@pytest.mark.parametrize("part", ["memory", "knowledge", "observations", "key-values", "history", "sessions"])
def test_each_part_compares_with_markup_escaped(atlas, viewer_client, part):
    query = {"from": AT, "to": LATER, "part": part}
    page = get(viewer_client, "compare-past", **query).content.decode()

    assert ("second" if part != "sessions" else "No changes") in page
    assert "hunter2" not in page
    assert live_markup(page) == []


def test_sessions_show_their_past_figures(atlas, viewer_client):
    page = get(viewer_client, at=url_time(NOW), part="sessions").context

    (session,) = page["sessions"]
    assert (session.key, session.entry_count) == ("cli:main", 4)


def test_a_time_without_a_zone_uses_the_readers_zone(atlas, viewer_client):
    viewer_client.cookies["zone"] = "Europe/Berlin"

    response = get(viewer_client, at="2026-04-01T14:30:00", part="history")

    assert response.status_code == 302
    assert "at=2026-04-01T12:30:00Z&part=history" in unquote(response["Location"])


@pytest.mark.parametrize("text", ["soon", "2999-01-01"])
@pytest.mark.parametrize(("name", "field"), [("past", "at"), ("compare-past", "from")])
def test_an_invalid_moment_is_explained(atlas, viewer_client, name, field, text):
    response = get(viewer_client, name, **{field: text})

    assert response.status_code == 422
    assert "Choose one in the past" in response.text or "Enter a time such as" in response.text


def test_a_moment_before_the_workspace_is_explained(atlas, viewer_client):
    page = get(viewer_client, at="2020-01-01T00:00:00Z").text

    assert "1 Apr 2026" in page
    assert "workspace didn't exist yet" in page


def test_two_moments_are_sorted(atlas, viewer_client):
    query = {"from": LATER, "to": AT}
    response = get(viewer_client, "compare-past", **query)

    assert f"from={AT}&to={LATER}" in unquote(response["Location"])


def test_a_run_links_to_the_moment_before_it_started(atlas, viewer_client):
    began = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)
    run = Run.objects.create(workspace=atlas, kind="edit", status="done", created_at=began, finished_at=began)

    response = get(viewer_client, before_run=str(run.pk))

    assert "at=2026-04-01T12:29:59.999999Z" in unquote(response["Location"])
    assert get(viewer_client, before_run="999999").status_code == 404


def test_an_editor_restores_a_past_text_and_a_viewer_cannot(atlas, editor, viewer_client):
    document = MemoryDocument.objects.get()
    restore = reverse("documents:restore-revision", args=["atlas", document.pk, 1])
    assert restore in get(editor, at=AT, part="memory").text
    assert restore not in get(viewer_client, at=AT, part="memory").text

    editor.post(restore)

    document.refresh_from_db()
    assert "first" in document.head.content


def form_of(client, row: Row, part: str) -> tuple[str, dict[str, int]]:
    """Return the action and data of the page's form for a row."""
    response = get(client, at=AT, part=part)
    address = reverse("restore-row", args=["atlas", part, row.pk])
    assert address in response.text
    [since] = [shown.since for shown in response.context["rows"] if shown.row.pk == row.pk]
    return f"{address}?at={AT}&part={part}", {"state": since.state, "known": since.known}


@pytest.mark.parametrize(("table", "part", "field"), PARTS)
def test_a_row_is_restored_and_that_can_be_undone(atlas, editor, table, part, field):
    row = TABLES[table].model._default_manager.order_by("pk")[0]
    text = row.history.earliest("history_id").__dict__[field]
    by = By(PERSON, NOW + timedelta(hours=1))
    edit_rows(atlas, table, "assign", [row.pk], values={field: "third"}, by=by)
    edit_rows(atlas, table, "withdraw", [row.pk], values={"reason": "old"}, by=by)
    address, fields = form_of(editor, row, part)

    response = editor.post(address, fields, follow=True)

    assert unquote(response.redirect_chain[0][0]).endswith(f"?at={AT}&part={part}")
    row.refresh_from_db()
    assert (getattr(row, field), row.withdrawn_at, row.withdrawn_reason) == (text, None, "")
    assert AuditRecord.objects.latest("pk").actor_name == "edda"
    undo_edit(Run.objects.latest("pk"), by=by)
    row.refresh_from_db()
    assert (getattr(row, field), row.withdrawn_reason) == ("third", "old")


def test_a_row_that_changed_since_the_page_was_loaded_is_not_restored(atlas, editor):
    entry = atlas.knowledge_entries.get()
    address, fields = form_of(editor, entry, "knowledge")
    save_entry(entry, {"tags": ["new"]}, by=By(PERSON, NOW + timedelta(hours=2)))

    page = editor.post(address, fields, follow=True).text

    assert "Someone has changed this in the meantime" in page
    entry.refresh_from_db()
    assert (entry.content, entry.tags) == ("second entry", ["new"])


def test_a_duplicate_entry_stays_withdrawn(atlas, editor):
    entry = atlas.knowledge_entries.get()
    by = By(PERSON, NOW + timedelta(hours=2))
    edit_rows(atlas, "knowledge", "withdraw", [entry.pk], by=by)
    add_knowledge(atlas, f"first {HOSTILE} entry", category="learned_fact", by=by)

    page = editor.post(*form_of(editor, entry, "knowledge"), follow=True).text

    assert "has the same content" in page
    entry.refresh_from_db()
    assert entry.withdrawn_at


def test_unchanged_rows_and_viewers_get_no_restore_button(atlas, editor, viewer_client):
    still, changed = Observation.objects.earliest("pk"), atlas.knowledge_entries.get()

    assert f"/{still.pk}/restore/" not in get(editor, at=AT, part="observations").text
    viewed = get(viewer_client, at=AT, part="knowledge").text
    assert "changed later" in viewed
    assert f"/{changed.pk}/restore/" not in viewed


def test_another_row_s_state_restores_nothing(atlas, editor):
    one, other = (write_value(atlas, key, "x", by=By(PERSON, NOW)) for key in ("one", "other"))
    sent = {"state": other.history.get().history_id, "known": one.history.get().history_id}

    page = editor.post(reverse("restore-row", args=["atlas", "key-values", one.pk]), sent, follow=True).text

    assert "no longer stored" in page
    assert editor.post(reverse("restore-row", args=["atlas", "sessions", one.pk])).status_code == 404


def test_rows_are_paged_by_key(atlas, viewer_client):
    for number in range(PAGE_ROWS):
        add_knowledge(atlas, f"thing {number}", category="learned_fact", by=By(PERSON, NOW))

    first = get(viewer_client, at=AT, part="knowledge")
    second = viewer_client.get(reverse("past", args=["atlas"]) + first.context["page"].next_url)

    assert [len(response.context["rows"]) for response in (first, second)] == [PAGE_ROWS, 1]


def test_without_a_moment_suggestions_are_shown(atlas, viewer_client):
    Run.objects.create(workspace=atlas, kind="consolidation", status="done", finished_at=timezone.now())

    page = get(viewer_client).text

    assert "Before the last consolidation" in page
    assert "The hub has data since" in page

"""The page of a person erases and exports what it shows, after a tick."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse
from django.urls import reverse

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.models import Job
from sessions_app.models import Entry, Session, Workspace
from tests.forgetting.test_forgetting import BY
from tests.hub import add, open_at, run_jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Workspace:
    return Workspace.objects.create(slug="other", name="Other")


def confirmed(page: HttpResponse) -> dict[str, Any]:
    """Return what the page of a person sends if one ticks the box and erases."""
    context = page.context
    return {
        "words": context["words"],
        "session": list(context["chosen"]),
        "shown": context["shown"],
        "understood": "on",
    }


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(
    "change",
    [
        {"session": ["slack:D02GRETE"]},
        {"words": "Grete\nBoris"},
        {"words": "Boris"},
        {"alias": ["Boris"]},
        {"shown": "x"},
    ],
)
def test_what_was_changed_since_the_preview_is_shown_before_it_is_erased(workspace, admin_client, change):
    add(open_at(workspace, "cli:a"), [{"role": "user", "content": "Grete likes tea"}])
    add(open_at(workspace, "cli:b"), [{"role": "user", "content": "Boris likes rum"}])
    add(open_at(workspace, "slack:D02GRETE"), [{"role": "user", "content": "my own words"}])
    page = admin_client.post(reverse("person-data"), {"words": "Grete"})
    assert 'form="person"' in page.content.decode()

    again = admin_client.post(reverse("erase-person"), confirmed(page) | change)

    assert again.status_code == 422
    assert not Job.objects.exists()
    assert "Nothing has been erased" in again.content.decode()
    assert 'name="understood" form="person">' in again.content.decode()  # not ticked
    assert admin_client.post(reverse("erase-person"), confirmed(again)).status_code == 302
    run_jobs()
    if "session" in change:
        assert not Session.objects.filter(key="slack:D02GRETE").exists()
    if "words" in change or "alias" in change:
        assert not Entry.objects.filter(content__contains="Boris").exists()


def test_rows_added_since_the_preview_are_shown_before_they_are_erased(workspace, admin_client):
    write_value(workspace, "k", "Anna Weber", by=BY)
    page = admin_client.post(reverse("person-data"), {"words": "Anna Weber"})
    write_value(workspace, "l", "Anna Weber", by=BY)

    again = admin_client.post(reverse("erase-person"), confirmed(page))

    assert again.status_code == 422
    assert not Job.objects.exists()
    assert again.context["plan"].total == page.context["plan"].total + 2


def test_nothing_is_erased_without_the_tick(workspace, admin_client):
    write_value(workspace, "k", "Anna Weber", by=BY)
    page = admin_client.post(reverse("person-data"), {"words": "Anna Weber"})

    again = admin_client.post(reverse("erase-person"), confirmed(page) | {"understood": ""})

    assert again.status_code == 422
    assert "Tick the box" in again.content.decode()
    assert not Job.objects.exists()


def test_the_export_contains_a_session_ticked_and_a_name_added_since_the_preview(workspace, admin_client):
    add(open_at(workspace, "slack:D02GRETE"), [{"role": "user", "content": "my own words"}])
    add(open_at(workspace, "cli:b"), [{"role": "user", "content": "Boris likes rum"}])
    page = admin_client.post(reverse("person-data"), {"words": "Grete\nBoris", "session": ["slack:D02GRETE"]})

    html = page.content.decode()
    response = admin_client.post(
        reverse("export-person-data"), {"words": "Grete", "alias": ["Boris"], "session": ["slack:D02GRETE"]}
    )

    text = b"".join(response.streaming_content).decode()
    assert "my own words" in text
    assert "Boris likes rum" in text
    assert f'formaction="{reverse("export-person-data")}"' in html
    assert 'type="hidden" name="session"' not in html


def test_the_preview_shows_the_first_lines_of_each_workspace_with_links(workspace, other, admin_client):
    session = open_at(workspace, "cli:a")
    add(session, [{"role": "user", "content": f"tea\nGrete said {number}\nrum"} for number in range(5)])
    add_knowledge(other, "Grete lives in Rome", category="learned_fact", by=BY)
    write_value(other, "k", "Grete: s3cret", by=BY)
    own = open_at(other, "slack:D02GRETE")
    entries = Entry.objects.order_by("id")

    page = admin_client.post(reverse("person-data"), {"words": "Grete", "session": ["slack:D02GRETE"]})

    html = page.content.decode()
    lines = {
        place.workspace.slug: {line.text: line.url for line in place.lines} for place in page.context["plan"].places
    }
    said = {f"Grete said {n}": reverse("sessions:entry", args=["atlas", entry.pk]) for n, entry in enumerate(entries)}
    assert len(lines["atlas"]) == 3
    assert lines["atlas"].items() <= said.items()
    assert list(lines["other"]) == ["Grete lives in Rome"]
    assert all(f'<a href="{url}" dir="auto">{text}</a>' in html for text, url in lines["atlas"].items())
    assert f'href="{reverse("knowledge:knowledge-entry", args=["other", KnowledgeEntry.objects.get().pk])}"' in html
    assert f'href="{reverse("sessions:detail", args=["other", own.pk])}"' in html
    assert "s3cret" not in html


@pytest.mark.parametrize("name", ["erase-person", "export-person-data"])
def test_addresses_of_buttons_lead_to_the_page_if_they_are_opened(admin_client, name):
    assert admin_client.get(reverse(name)).headers["Location"] == "/person-data/"

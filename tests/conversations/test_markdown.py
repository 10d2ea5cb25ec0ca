from __future__ import annotations

import itertools
import re

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.knowledge.views import knowledge
from memoryhub.lib.http import downloads
from memoryhub.lib.text import as_markdown
from memoryhub.models import AccessRecord
from sessions_app.models import AuditRecord, Entry, Membership, Session, Summary
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, compress, open_at, talk

pytestmark = pytest.mark.django_db
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def session(workspace) -> Session:
    session = open_at(workspace)
    talk(session, 2)
    return session


def url(name: str, session: Session, query: str = "") -> str:
    return reverse(name, args=[session.workspace.slug, session.pk]) + query


def test_a_transcript_is_a_markdown_file(session, viewer_client):
    response = viewer_client.get(url("session-markdown", session))

    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="cli_main.md"'
    assert (
        response.getvalue()
        .decode()
        .startswith("# cli:main\n\nSession `cli:main`, 8 entries.\n\n## #0 · User · 2026-04-01")
    )


def test_copied_markdown_is_served_as_plain_text(session, viewer_client):
    add(session, [{"role": "user", "content": "<script>alert(1)</script>"}])

    response = viewer_client.get(url("session-markdown", session, "?copy=1"))

    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Security-Policy"] == "sandbox"
    assert "Content-Disposition" not in response


def test_summarised_turns_are_included_on_request(session, viewer_client):
    compress(session, keep=2, minimum=1)

    folded = viewer_client.get(url("session-markdown", session)).getvalue().decode()
    whole = viewer_client.get(url("session-markdown", session, "?originals=1")).getvalue().decode()

    assert "Folded into a summary" in folded
    assert ("request 0" in folded, "## #0 · User" in folded, "## #0 · User" in whole) == (
        "request 0" in Summary.objects.get().content,
        False,
        True,
    )


def test_single_summary_can_be_copied(session, viewer_client):
    compress(session, keep=2, minimum=1)
    summary = Summary.objects.get()

    text = viewer_client.get(url("session-markdown", session, f"?copy=1&summary={summary.pk}")).content.decode()

    assert text.startswith(f"## #0 to #{summary.last_position} · Folded into a summary\n\n")
    assert viewer_client.get(url("session-markdown", session, "?summary=999999")).status_code == 404


def test_copying_is_recorded_in_the_access_log(session, viewer_client):
    viewer_client.get(url("session-markdown", session))

    assert AccessRecord.objects.get().action == "session.exported"


@pytest.mark.slow
@pytest.mark.parametrize(("query", "count", "at_once"), [("", 10_001, 200), ("?originals=1", 1_001, 20)])
def test_a_conversation_of_any_length_is_streamed(session, viewer_client, query, count, at_once, monkeypatch):
    monkeypatch.setattr(as_markdown, "READ_AT_ONCE", at_once)
    same = {"workspace": session.workspace, "session": session, "kind": "message", "role": "user", "token_count": 2}
    made = [Entry(position=at, content=f"plain {at}", source_hash=f"{at:064}", **same) for at in range(8, count)]
    Entry.objects.bulk_create(made, batch_size=500)

    response = viewer_client.get(url("session-markdown", session, query))
    with CaptureQueriesContext(connection) as queries:
        text = response.getvalue().decode()

    assert f"Session `cli:main`, {count:,} entries." in text
    headings = re.findall(r"^## #([0-9,]+) · ", text, re.MULTILINE)
    results = re.findall(r"^Result \(#([0-9,]+)\):", text, re.MULTILINE)
    assert sorted(map(int, headings + results)) == list(range(count))
    assert len(queries) > count / at_once  # none reads all
    assert AccessRecord.objects.get().action == "session.exported"


def test_secrets_of_late_entries_are_masked_for_viewers_and_recorded_for_editors(session, viewer_client):
    add(session, [{"role": "user", "content": f"plain {number}"} for number in range(as_markdown.READ_AT_ONCE)])
    add(session, [{"role": "user", "content": f"the key is {SECRET}"}])
    address = url("session-markdown", session)

    assert SECRET not in viewer_client.get(address).getvalue().decode()
    assert not AuditRecord.objects.filter(action="secrets.revealed").exists()
    Membership.objects.update(role=Membership.Role.EDITOR)
    assert SECRET in viewer_client.get(address).getvalue().decode()
    assert AuditRecord.objects.filter(action="secrets.revealed").count() == 1


def test_entries_added_while_a_conversation_is_sent_are_left_out(session, viewer_client):
    response = viewer_client.get(url("session-markdown", session))
    add(session, [{"role": "user", "content": "too late"}])

    text = response.getvalue().decode()

    assert "8 entries" in text
    assert "too late" not in text


def test_text_that_is_too_long_to_copy_is_offered_as_a_download(session, viewer_client, monkeypatch):
    monkeypatch.setattr(downloads, "MOST_COPIED", 100)

    page = viewer_client.get(url("session-markdown", session, "?epoch=0&copy=1"))

    assert page.status_code == 422
    assert "This text is too long to copy: it has more than 100 characters." in page.content.decode()
    assert f'href="{url("session-markdown", session, "?epoch=0")}" download' in page.content.decode()
    assert not AccessRecord.objects.exists()
    assert len(viewer_client.get(url("session-markdown", session, "?epoch=0")).getvalue()) > 100


def test_context_markdown_shows_what_the_model_gets(session, viewer_client):
    text = viewer_client.get(url("context-markdown", session, "?max_messages=2&copy=1")).content.decode()

    assert text.startswith("# Context of cli:main\n\n")
    assert "request 0" not in text


def test_document_is_copied_unchanged(workspace, viewer_client):
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, "# a\n\n- tea  \n", base=None, reason="r", by=By(PERSON, NOW))
    revise_document(document, "# b\n", base=first, reason="r", by=By(PERSON, NOW))
    address = reverse("document-markdown", args=[workspace.slug, document.pk])

    assert viewer_client.get(address).content == b"# b\n"
    assert viewer_client.get(f"{address}?revision=1").content == b"# a\n\n- tea  \n"
    assert viewer_client.get(f"{address}?revision=7").status_code == 404


def test_search_results_have_absolute_urls(session, viewer_client):
    address = reverse("search-markdown", args=[session.workspace.slug])

    text = viewer_client.get(f"{address}?q=request").content.decode()

    entry = session.entries.order_by("position").first()
    assert "# Search: request" in text
    assert f"](<http://testserver/w/atlas/entries/{entry.pk}/>)" in text


def test_knowledge_markdown_respects_the_filters(workspace, viewer_client):
    add_knowledge(workspace, "Prefers tea", category="user_preference", tags=["drinks"], by=By(PERSON, NOW))
    add_knowledge(workspace, "Boils at 100 °C", category="learned_fact", by=By(PERSON, NOW))

    address = reverse("knowledge:knowledge-markdown", args=[workspace.slug])

    assert "- Prefers tea (drinks)" in viewer_client.get(address).getvalue().decode()
    assert "tea" not in viewer_client.get(f"{address}?category=learned_fact").getvalue().decode()


def test_knowledge_of_any_length_is_streamed(workspace, viewer_client, monkeypatch):
    monkeypatch.setattr(knowledge, "READ_AT_ONCE", 20)
    made = [
        KnowledgeEntry(workspace=workspace, content_id=f"{number:08x}", category=category, content=f"Fact {number}")
        for number, category in zip(range(1_001), itertools.cycle(KnowledgeEntry.Category.values), strict=False)
    ]
    KnowledgeEntry.objects.bulk_create(made, batch_size=500)

    response = viewer_client.get(reverse("knowledge:knowledge-markdown", args=[workspace.slug]))

    facts = re.findall(r"^- (Fact \d+)$", response.getvalue().decode(), re.MULTILINE)
    assert len(facts) == len(set(facts)) == 1_001
    assert AccessRecord.objects.get().action == "knowledge.exported"


def test_pages_offer_to_copy_as_markdown(session, viewer_client):
    page = viewer_client.get(url("sessions:detail", session)).content.decode()

    assert f'{url("session-markdown", session)}?epoch=0&amp;copy=1" data-copy-from data-said="Copied"' in page
    assert 'class="copy-said" role="status"' in page


def test_the_command_writes_a_session(session, capsys, tmp_path):
    call_command("session", "markdown", "atlas", "cli:main")
    printed = capsys.readouterr().out
    call_command("session", "markdown", "atlas", "cli:main", "--output", str(tmp_path / "it.md"))

    assert printed.startswith("# cli:main\n")
    assert (tmp_path / "it.md").read_text() == printed

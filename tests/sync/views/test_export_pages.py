from __future__ import annotations

import io
from zipfile import ZipFile

import pytest
from django.test import Client

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.rows.knowledge import add_knowledge
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, open_at, talk

pytestmark = pytest.mark.django_db
PAGE = "/w/atlas/export/"
DOWNLOAD = "/w/atlas/export/download/"


def secret(workspace):
    return KeyValue.objects.create(workspace=workspace, key="api_key", value="hunter2", is_secret=True)


def test_the_plan_is_shown_before_anything_is_written(editor: Client, workspace):
    talk(open_at(workspace), 1)
    secret(workspace)
    page = editor.get(PAGE, {"layout": "grip"}).content.decode()
    assert "Download for Grip" in page
    assert "Key-values" in page
    assert "Grip doesn&#x27;t support them" in page
    assert not AuditRecord.objects.filter(action="workspace.exported").exists()


def test_the_plan_calls_things_as_other_pages_do(editor: Client, workspace):
    talk(open_at(workspace), 1)
    open_at(workspace, "cli:other")
    add_knowledge(workspace, "tea", category="learned_fact", by=By(PERSON, NOW))
    KnowledgeEntry.objects.update(withdrawn_at=NOW)

    page = editor.get(PAGE, {"layout": "nanobot"}).content.decode()

    assert "<dt>Messages</dt>" in page
    assert "withdrawn items stay in this hub" in page
    assert "ntries" not in page[page.index('id="export-plan"') : page.index("</main>")]


def test_htmx_gets_the_plan_fragment(editor: Client, workspace):
    talk(open_at(workspace), 1)
    part = editor.get(PAGE, {"layout": "agterm"}, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div id="export-plan"')
    assert "<h1>" not in part


@pytest.mark.parametrize("layout", ["claude-code", "server-memory"])
def test_memory_of_a_program_whose_layout_is_only_read_is_exported_for_a_hub(editor: Client, workspace, layout):
    Workspace.objects.update(layout=layout)
    talk(open_at(workspace), 1)

    assert "Download for MemoryHub" in editor.get(PAGE).content.decode()
    archive = editor.post(DOWNLOAD, {"layout": ""})
    assert archive["Content-Disposition"].endswith('atlas-hub.zip"')
    assert archive.getvalue()


class TestALargeWorkspace:
    """Counting its messages takes seconds, so the page doesn't wait for that."""

    @pytest.fixture
    def workspace(self, workspace, monkeypatch):
        monkeypatch.setattr("memoryhub.sync.views.export.LARGE_ENTRIES", 2)
        talk(open_at(workspace), 3)
        return workspace

    def test_the_page_opens_before_it_is_counted(self, editor: Client, workspace):
        page = editor.get(PAGE).content.decode()

        assert "Counting what is exported…" in page
        assert f'hx-get="{PAGE}?layout=hub"' in page
        assert "Create archive" not in page

    def test_then_it_asks_for_the_plan(self, editor: Client, workspace):
        part = editor.get(PAGE, {"layout": "hub"}, headers={"HX-Request": "true"}).content.decode()

        assert part.lstrip().startswith('<div id="export-plan"')
        assert "Create archive for MemoryHub" in part

    def test_without_javascript_a_link_leads_to_the_plan(self, editor: Client, workspace):
        assert f'<noscript><div class="actions"><a class="button" href="{PAGE}?layout=hub">' in (
            editor.get(PAGE).content.decode()
        )
        assert "Create archive for MemoryHub" in editor.get(PAGE, {"layout": "hub"}).content.decode()


def test_a_layout_that_holds_nothing_has_no_download(editor: Client, workspace):
    talk(open_at(workspace), 1)
    page = editor.get(PAGE, {"layout": "grid"}).content.decode()
    assert "Nothing to export" in page
    assert "Download for" not in page
    assert editor.post(DOWNLOAD, {"layout": "grid"}).status_code == 302


def test_an_editor_downloads_the_archive(editor: Client, workspace):
    talk(open_at(workspace), 1)
    secret(workspace)
    response = editor.post(DOWNLOAD, {"layout": "hub"})
    archive = ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    assert response["Content-Disposition"] == 'attachment; filename="atlas-hub.zip"'
    assert response["Content-Security-Policy"] == "sandbox"
    assert b"hunter2" in archive.read("key-values.jsonl")
    assert AuditRecord.objects.get(action="workspace.exported").actor_name == "edda"


def test_a_viewer_sees_the_plan_but_no_download(viewer_client: Client, workspace):
    talk(open_at(workspace), 1)
    page = viewer_client.get(PAGE).content.decode()
    assert "Only editors can download it" in page
    assert "Download for" not in page
    assert viewer_client.post(DOWNLOAD, {"layout": "hub"}).status_code == 404


def test_a_stranger_gets_not_found(stranger_client: Client, workspace):
    assert stranger_client.get(PAGE).status_code == 404
    assert stranger_client.post(DOWNLOAD).status_code == 404


def test_get_does_not_export(editor: Client, workspace):
    assert editor.get(DOWNLOAD).status_code == 405

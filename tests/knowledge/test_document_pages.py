"""Pages of documents and held changes."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import start_document
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.documents.revisions import revise_document
from memoryhub.lib.layouts.records import DocumentRecord
from sessions_app.models import Membership
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON
from tests.knowledge.test_pages import FILE, text

pytestmark = pytest.mark.django_db
FACTS = "# Team\n" + "\n".join(f"- fact {i} of the team" for i in range(20))


def hold(workspace) -> HeldChange:
    for content in (FACTS, "\n".join(FACTS.split("\n")[:11])):
        import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", content), **FILE)
    return HeldChange.objects.get()


def test_a_foreign_held_change_is_not_found(workspace, viewer, viewer_client):
    other = type(workspace).objects.create(slug="other", name="Other")
    change = hold(other)
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)

    assert viewer_client.get(reverse("held-change", args=[workspace.slug, change.pk])).status_code == 404
    for name in ("approve-held-change", "reject-held-change"):
        for slug in (workspace.slug, other.slug):
            assert viewer_client.post(reverse(name, args=[slug, change.pk])).status_code == 404
    assert HeldChange.objects.get().status == HeldChange.Status.PENDING


def test_a_held_change_is_shown_as_a_diff_and_decided_by_editors_only(workspace, viewer, viewer_client):
    change = hold(workspace)
    approve = reverse("approve-held-change", args=[workspace.slug, change.pk])

    assert "<del>- fact 15 of the team</del>" in text(viewer_client, "held-change", workspace.slug, change.pk)
    assert "held for review" in text(viewer_client, "memory", workspace.slug)
    assert viewer_client.post(approve).status_code == 404
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    assert viewer_client.get(approve).status_code == 405
    assert viewer_client.post(approve).status_code == 302
    assert "fact 15" not in MemoryDocument.objects.get().head.content
    assert "decided already" in viewer_client.post(approve, follow=True).content.decode()


def test_rejecting_keeps_the_text(workspace, viewer, viewer_client):
    change = hold(workspace)
    reject = reverse("reject-held-change", args=[workspace.slug, change.pk])

    assert viewer_client.post(reject).status_code == 404
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    assert viewer_client.post(reject).status_code == 302

    assert MemoryDocument.objects.get().head.content == FACTS
    assert HeldChange.objects.get().decided_by == User.objects.get(username="vera")


def test_a_document_shows_sections_revisions_and_what_is_gone(workspace, viewer_client):
    for content in (FACTS, FACTS.replace("- fact 7 of the team\n", "")):
        import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", content), **FILE)
    pk = MemoryDocument.objects.get().pk

    html = text(viewer_client, "documents:document", workspace.slug, pk)
    earlier = text(viewer_client, "documents:document", workspace.slug, pk, revision=1)
    difference = text(viewer_client, "documents:document", workspace.slug, pk, revision=2, diff=1)

    assert "Removed facts" in text(viewer_client, "documents:revisions", workspace.slug, pk)
    assert "fact 7 of the team" not in html
    assert "An earlier revision" in earlier
    assert "<del>- fact 7 of the team</del>" in difference
    assert (
        viewer_client.get(reverse("documents:document", args=[workspace.slug, pk]), {"revision": "9"}).status_code
        == 404
    )


@pytest.mark.parametrize("mark", [chr(code) for code in (0x200B, 0x202E, 0x061C, 0x2066, 0xE0041, 0xE0100)])
def test_invisible_characters_are_shown(mark, workspace, viewer_client):
    """In the text, in what a revision changed, and in facts that are gone."""
    document = start_document(workspace, "MEMORY.md")
    for content in (f"- a{mark}b\n- c", "- other words altogether\n- c", f"- c\n- a{mark}b"):
        revise_document(document, content, base=document.head, by=By(PERSON, NOW), reason="")
    pk = document.pk

    latest = text(viewer_client, "documents:document", workspace.slug, pk)
    changed = text(viewer_client, "documents:document", workspace.slug, pk, revision="2", diff="1")

    for html in (latest, changed):
        assert f"⟦U+{ord(mark):04X}⟧" in html
        assert mark not in html


def test_a_section_names_the_categories_of_its_facts(workspace, viewer_client):
    content = "# Team\n- [user_preference] short answers"
    import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", content), **FILE)

    html = text(viewer_client, "documents:document", workspace.slug, MemoryDocument.objects.get().pk)

    assert '<span class="badge">User preference</span>' in html


@pytest.mark.slow
def test_a_large_document_is_plain_text(workspace, viewer_client):
    content = "# Team\n" + "- **bold** words\n" * 20_000
    import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", content), **FILE)

    html = text(viewer_client, "documents:document", workspace.slug, MemoryDocument.objects.get().pk)

    assert "memory-section" not in html
    assert "- **bold** words" in html


def test_facts_of_the_reading_view_lead_to_their_pages(workspace, viewer_client):
    document = start_document(workspace, "MEMORY.md")
    by = By(PERSON, NOW)
    first = revise_document(document, "# Team\n\n- tea\n\n## Pool\n\n- milk\n", base=None, reason="r", by=by)
    revise_document(document, "# Team\n\n- tea\n\n## Pool\n\n- rum\n", base=first, reason="r", by=by)
    tea, rum = (
        reverse("documents:fact", args=[workspace.slug, document.facts.get(text=one).pk]) for one in ("tea", "rum")
    )

    page = text(viewer_client, "documents:document", workspace.slug, document.pk)

    assert page.index(f'tea&nbsp;<a class="line-link" href="{tea}"') < page.index(
        f'rum&nbsp;<a class="line-link" href="{rum}"'
    )
    earlier = viewer_client.get(reverse("documents:document", args=[workspace.slug, document.pk]), {"revision": 1})
    assert "line-link" not in earlier.content.decode()


def test_a_revision_is_restored_from_the_history_unless_the_text_has_changed(workspace, viewer, viewer_client):
    document = start_document(workspace, "MEMORY.md")
    by = By(PERSON, NOW)
    first = revise_document(document, "- tea\n", base=None, reason="r", by=by)
    second = revise_document(document, "- milk\n", base=first, reason="r", by=by)
    restore = reverse("documents:restore-revision", args=[workspace.slug, document.pk, 1])
    assert restore not in text(viewer_client, "documents:revisions", workspace.slug, document.pk)
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)

    page = text(viewer_client, "documents:revisions", workspace.slug, document.pk)
    assert page.count(restore) == 1
    assert '<input type="hidden" name="base" value="2">' in page
    revise_document(document, "- rum\n", base=second, reason="r", by=by)
    refused = viewer_client.post(restore, {"base": "2"}, follow=True)

    assert "has changed in the meantime" in refused.content.decode()
    assert MemoryDocument.objects.get().head.content == "- rum\n"
    viewer_client.post(restore, {"base": "3"})
    assert MemoryDocument.objects.get().head.content == "- tea\n"

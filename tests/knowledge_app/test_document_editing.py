import re
from datetime import date
from html import unescape

import pytest
from django.urls import reverse

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents.editing import (
    EditConflict,
    bring_back,
    curate_facts,
    edit_fact,
    remove_facts,
    restore_revision,
    save_text,
    start_document,
)
from knowledge_app.services.documents.origins import line_origins
from memoryhub.integrity import check_memory
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db
TEXT = "# Team\n\n- likes tea\n- [project_decision] pool limit 40\n\n# Tools\n\n- uses ruff\n"


@pytest.fixture
def document(workspace) -> MemoryDocument:
    document = start_document(workspace, "MEMORY.md")
    save(document, TEXT, 0)
    return document


def save(document: MemoryDocument, text: str, base: int):
    saved = save_text(document, text, base_number=base, by=By(PERSON, NOW), reason="by hand")
    document.refresh_from_db()
    return saved


def text_of(document: MemoryDocument) -> str:
    return MemoryDocument.objects.select_related("head").get(pk=document.pk).head.content


def test_a_save_on_the_head_is_a_revision(document):
    saved = save(document, TEXT + "- new\n", 1)

    assert (saved.revision.number, saved.is_merged) == (2, False)
    assert text_of(document) == TEXT + "- new\n"
    assert not check_memory().broken


def test_a_save_on_an_older_base_is_merged(document):
    save(document, TEXT.replace("tea", "green tea"), 1)

    saved = save(document, TEXT.replace("ruff", "ruff and mypy"), 1)

    assert saved.is_merged
    assert "green tea" in text_of(document)
    assert "ruff and mypy" in text_of(document)


def test_a_save_on_changed_lines_is_a_conflict_and_changes_nothing(document):
    save(document, TEXT.replace("tea", "coffee"), 1)

    with pytest.raises(EditConflict) as raised:
        save(document, TEXT.replace("tea", "water"), 1)

    assert raised.value.head.number == 2
    assert "coffee" in text_of(document)


def test_the_same_text_is_no_revision(document):
    assert save(document, TEXT.replace("\n", "\r\n"), 1).revision is None


def test_an_earlier_revision_is_restored_as_a_new_one(document):
    save(document, "# Empty\n", 1)

    restored = restore_revision(document, 1, by=By(PERSON, NOW))

    assert (restored.number, text_of(document)) == (3, TEXT)
    assert restore_revision(document, 1, by=By(PERSON, NOW)) is None


def test_facts_are_curated_with_a_record(document):
    facts = list(Fact.objects.order_by("line").values_list("pk", flat=True))

    count = curate_facts(
        document, facts[:2], by=By(PERSON, NOW), pinned=True, verified=True, review_by=date(2026, 5, 1)
    )

    fact = Fact.objects.get(pk=facts[0])
    assert count == 2
    assert (fact.pinned, fact.last_verified_at, fact.review_by) == (True, NOW, date(2026, 5, 1))
    assert "2 facts pinned and verified" in AuditRecord.objects.get(action="facts.curated").text


def test_pins_survive_later_revisions(document):
    Fact.objects.filter(text="likes tea").update(pinned=True)

    save(document, "# New\n\n- x\n" + TEXT, 1)

    assert Fact.objects.get(text="likes tea", died=None).pinned


def test_a_removed_fact_is_findable_and_comes_back_in_its_section(document):
    fact = Fact.objects.get(text="pool limit 40")
    assert remove_facts(document, [fact.pk], by=By(PERSON, NOW)) == 1
    assert "pool limit" not in text_of(document)

    fact.refresh_from_db()
    bring_back(fact, by=By(PERSON, NOW))

    assert text_of(document) == TEXT
    assert not check_memory().broken


def test_a_fact_that_two_people_restore_returns_once(document):
    fact = Fact.objects.get(text="pool limit 40")
    remove_facts(document, [fact.pk], by=By(PERSON, NOW))
    fact.refresh_from_db()
    bring_back(fact, by=By(PERSON, NOW))

    with raises_code("already_decided"):
        bring_back(fact, by=By(PERSON, NOW))

    assert text_of(document) == TEXT


@pytest.mark.parametrize("is_together", [True, False])
def test_each_of_two_equal_facts_can_be_restored_once(document, is_together):
    save(document, TEXT + "\n# Limits\n- pool limit 40\n", 1)
    both = list(Fact.objects.filter(text="pool limit 40"))
    for removed in [both] if is_together else [both[:1], both[1:]]:
        remove_facts(document, [fact.pk for fact in removed], by=By(PERSON, NOW))

    for fact in both:
        fact.refresh_from_db()
        bring_back(fact, by=By(PERSON, NOW))

    assert text_of(document).count("pool limit 40\n") == 2
    with raises_code("already_decided"):
        bring_back(both[0], by=By(PERSON, NOW))


def curate(document, text):
    """Pin, verify and date a fact; return its values."""
    fact = Fact.objects.get(text=text, died=None)
    day = date(2026, 5, 1)
    curate_facts(document, [fact.pk], by=By(PERSON, NOW), pinned=True, verified=True, review_by=day)
    return True, NOW, day


def curation(text):
    fact = Fact.objects.get(text=text, died=None)
    return fact.pinned, fact.last_verified_at, fact.review_by


@pytest.mark.parametrize("heading", ["# Team", "# People"])
def test_a_fact_that_is_brought_back_keeps_its_pin_and_dates(document, heading):
    kept = curate(document, "pool limit 40")
    fact = Fact.objects.get(text="pool limit 40")
    remove_facts(document, [fact.pk], by=By(PERSON, NOW))
    save(document, text_of(document).replace("# Team", heading), 2)

    bring_back(fact, by=By(PERSON, NOW))

    assert curation("pool limit 40") == kept


def test_a_fact_that_returns_with_an_earlier_revision_keeps_its_pin_and_dates(document):
    kept = curate(document, "pool limit 40")
    remove_facts(document, [Fact.objects.get(text="pool limit 40").pk], by=By(PERSON, NOW))

    restore_revision(document, 1, by=By(PERSON, NOW))

    assert curation("pool limit 40") == kept


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"text": "likes green tea", "category": "", "section": "Team"}, "- likes green tea"),
        ({"text": "likes tea", "category": "user_preference", "section": "Team"}, "- [user_preference] likes tea"),
        ({"text": "quite another thing", "category": "", "section": "Tools"}, "- uses ruff\n- quite another thing\n"),
    ],
)
def test_a_fact_is_reworded_categorised_and_moved_with_its_pin(document, values, line):
    fact = Fact.objects.get(text="likes tea")
    Fact.objects.filter(pk=fact.pk).update(pinned=True)

    edited = edit_fact(fact, **values, by=By(PERSON, NOW))

    assert line in text_of(document)
    assert text_of(document).count("tea") == line.count("tea")
    assert (edited.pinned, edited.died) == (True, None)
    assert not check_memory().broken


def test_a_fact_that_went_meanwhile_is_not_edited(document):
    fact = Fact.objects.get(text="likes tea")
    remove_facts(document, [fact.pk], by=By(PERSON, NOW))

    with raises_code("no_such_fact"):
        edit_fact(fact, text="x", category="", section="Team", by=By(PERSON, NOW))


def test_a_fact_is_edited_on_its_page(document, editor):
    fact = Fact.objects.get(text="likes tea")
    assert editor.get(url("edit-fact", fact.pk)).status_code == 200

    editor.post(url("edit-fact", fact.pk), {"text": "likes tea a lot", "category": "", "section": "Tools"})

    assert text_of(document).endswith("- uses ruff\n- likes tea a lot\n")
    fact = Fact.objects.get(text="likes tea a lot", died=None)
    wrong = editor.post(url("edit-fact", fact.pk), {"text": "", "category": "two words", "section": "Nowhere"})
    assert wrong.status_code == 422


def undo_of(page) -> str:
    """Return the address of a notice's Undo or Redo."""
    found = re.search(r'id="messages".*?<form method="post" action="([^"]+)"', page.content.decode(), re.DOTALL)
    assert found
    return unescape(found[1])


@pytest.mark.parametrize("text", ["likes black tea", "Ben has a boat in the harbour"])
def test_a_correction_is_undone_and_redone_on_the_page_of_the_fact(document, editor, text):
    before = text_of(document)
    fact = Fact.objects.get(text="likes tea")
    saved = editor.post(url("edit-fact", fact.pk), {"text": text, "category": "", "section": "Team"}, follow=True)

    undone = editor.post(undo_of(saved), follow=True)

    assert text_of(document) == before
    assert undone.context["fact"].text == "likes tea"
    assert "Undone." in undone.content.decode()
    redone = editor.post(undo_of(undone), follow=True)
    assert text in text_of(document)
    assert "Redone." in redone.content.decode()
    assert ">Undo</button>" in redone.content.decode()


def test_a_fact_is_withdrawn_on_its_page_with_undo(document, editor):
    before = text_of(document)
    fact = Fact.objects.get(text="likes tea")
    Fact.objects.filter(pk=fact.pk).update(pinned=True)
    assert 'value="withdraw"' in editor.get(url("fact", fact.pk)).content.decode()

    withdrawn = editor.post(url("curate-fact", fact.pk), {"action": "withdraw"}, follow=True)

    assert "likes tea" not in text_of(document)
    assert "1 fact withdrawn." in withdrawn.content.decode()
    assert withdrawn.context["fact"].pk == fact.pk
    assert 'value="withdraw"' not in withdrawn.content.decode()
    undone = editor.post(undo_of(withdrawn), follow=True)
    assert text_of(document) == before
    back = undone.context["fact"]
    assert (back.text, back.died, back.pinned) == ("likes tea", None, True)
    again = editor.post(url("curate-fact", fact.pk), {"action": "withdraw"}, follow=True)
    assert "No changes." in again.content.decode()


def test_a_correction_that_somebody_else_has_overtaken_is_shown_first(document, editor):
    fact = Fact.objects.get(text="likes tea")
    based_on = editor.get(url("edit-fact", fact.pk)).context["based_on"]
    edit_fact(fact, text="likes green tea", category="", section="Team", by=By(PERSON, NOW))
    mine = {"text": "likes black tea", "category": "", "section": "Team"}

    refused = editor.post(url("edit-fact", fact.pk), mine | {"based_on": based_on})

    assert refused.status_code == 422
    page = refused.content.decode()
    assert "It now reads: “likes green tea”." in page
    assert "likes black tea" in page
    assert "likes green tea" in text_of(document)

    saved = editor.post(url("edit-fact", fact.pk), mine | {"based_on": refused.context["based_on"]})

    assert saved.url == f"{url('fact', fact.pk)}?saved=1"
    assert "likes black tea" in text_of(document)


def test_each_line_leads_to_its_revision(document):
    save(document, TEXT + "- new\n", 1)

    origins = line_origins(document)

    assert [line.revision.number for line in origins if line.text == "- new"] == [2]
    assert {line.revision.number for line in origins if line.text == "- likes tea"} == {1}
    assert {line.source for line in origins} == {"person"}


def url(name: str, *args: object) -> str:
    return reverse(f"documents:{name}", args=["atlas", *args])


@pytest.mark.parametrize("name", ["document", "compare", "blame", "facts", "edit-document"])
def test_the_pages_of_a_document_open(document, editor, name):
    save(document, TEXT + "- <script>alert(1)</script>\n", 1)

    response = editor.get(url(name, document.pk))

    assert response.status_code == 200
    assert "<script>alert" not in response.content.decode()


def test_a_page_saves_and_shows_a_conflict_with_both_texts(document, editor):
    address = url("edit-document", document.pk)
    editor.post(address, {"base": 1, "text": TEXT.replace("tea", "coffee")})
    assert "coffee" in text_of(document)

    response = editor.post(address, {"base": 1, "text": TEXT.replace("tea", "water")})

    page = response.content.decode()
    assert response.status_code == 422
    assert "changed the same lines meanwhile" in page
    assert "<mark>coffee</mark>" in page
    assert "likes water" in page
    assert 'name="base" value="2"' in page
    assert "coffee" in text_of(document)


def test_the_preview_is_rendered_and_inert(document, editor):
    response = editor.post(
        url("preview-document", document.pk),
        {"text": "# Hi\n<script>alert(1)</script>"},
        headers={"HX-Request": "true"},
    )

    page = response.content.decode()
    assert "<h2" in page
    assert "<script>alert" not in page
    assert "<html" not in page


def test_facts_are_curated_many_at_once_from_their_page(document, editor):
    facts = list(Fact.objects.order_by("line").values_list("pk", flat=True))

    editor.post(url("curate-facts", document.pk), {"fact": facts, "action": "pin"})
    editor.post(url("curate-facts", document.pk), {"fact": facts[:1], "action": "remove"})

    assert list(Fact.objects.filter(died=None).values_list("pinned", flat=True)) == [True, True]
    assert "tea" not in text_of(document)
    editor.post(url("return-fact", facts[0]))
    assert "tea" in text_of(document)


def test_a_revision_is_restored_from_its_page(document, editor):
    save(document, "# Empty\n", 1)

    editor.post(url("restore-revision", document.pk, 1))

    assert text_of(document) == TEXT


@pytest.mark.parametrize("name", ["edit-document", "curate-facts"])
def test_a_viewer_edits_nothing(document, viewer_client, name):
    response = viewer_client.post(url(name, document.pk), {"base": 1, "text": "x", "action": "remove", "fact": [1]})

    assert response.status_code == 404
    assert text_of(document) == TEXT


def test_a_document_can_be_started_by_hand(workspace, editor):
    editor.post(reverse("documents:start-document", args=["atlas"]), {"name": "MEMORY.md"})
    document = MemoryDocument.objects.get()
    editor.post(url("edit-document", document.pk), {"base": 0, "text": "- first\n"})

    assert text_of(document) == "- first\n"


def test_the_edit_link_of_a_replaced_fact_leads_to_the_current_facts(document, editor):
    fact = Fact.objects.get(text="likes tea")
    remove_facts(document, [fact.pk], by=By(PERSON, NOW))

    response = editor.get(url("edit-fact", fact.pk), follow=True)

    assert response.redirect_chain == [(url("facts", document.pk), 302)]
    assert "This fact has changed or was removed." in response.content.decode()


def test_a_text_that_has_changed_since_is_not_replaced_by_an_earlier_one(document):
    save(document, "# Empty\n", 1)
    save(document, "# Newer\n", 2)

    with raises_code("edit_conflict"):
        restore_revision(document, 1, by=By(PERSON, NOW), base_number=2)

    assert text_of(document) == "# Newer\n"
    assert restore_revision(document, 1, by=By(PERSON, NOW), base_number=3).number == 4

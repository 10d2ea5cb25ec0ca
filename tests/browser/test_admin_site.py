"""The admin site in a real browser, without violations of the content security policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from knowledge_app.models import KnowledgeEntry
from memoryhub.lib.layouts.grip import content_id
from sessions_app.models import Membership, Workspace

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
LIST = "/admin/knowledge_app/knowledgeentry/"


@pytest.fixture
def rows(transactional_db: None) -> list[KnowledgeEntry]:
    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    return [
        KnowledgeEntry.objects.create(
            workspace=workspace,
            content_id=f"c{number}",
            identity=content_id("learned_fact", f"fact {number // 2}"),
            category="learned_fact",
            content=f"fact {number // 2}",
        )
        for number in range(120)
    ]


def choose_all(page: Page, action: str) -> None:
    page.goto(LIST)
    page.check("#action-toggle")
    page.click("text=Select all")
    page.click(f"button[name=index]:has-text('{action}')")


def test_all_rows_of_all_pages_are_recategorised_and_undone(page: Page, rows: list[KnowledgeEntry]):
    choose_all(page, "Re-categorise")
    expect(page.locator("#content")).to_contain_text("Selected: 120 in Atlas")
    page.fill("[name=reason]", "they are faults")
    page.click("button[value=error_pattern]")
    expect(page.locator(".messagelist")).to_contain_text("Atlas: 120 knowledge entries re-categorised")
    assert KnowledgeEntry.objects.filter(category="error_pattern").count() == 120

    page.click("text=View or undo")
    page.click("button[data-dialog=undo]")
    page.click("dialog[open] button[type=submit]")
    expect(page.locator("main")).to_contain_text("Undone.")
    assert KnowledgeEntry.objects.filter(category="learned_fact").count() == 120


def test_rows_are_recategorised_with_five_clicks_from_home(page: Page, rows: list[KnowledgeEntry]):
    page.goto("/")
    page.click("main >> text=Administration")
    page.click("#content-main >> text=Knowledge entries")
    page.check("#action-toggle")
    page.click("button[name=index]:has-text('Re-categorise')")
    page.click("button[value=error_pattern]")

    expect(page.locator(".messagelist")).to_contain_text("50 knowledge entries re-categorised")


def test_duplicates_are_shown_before_they_are_merged(page: Page, rows: list[KnowledgeEntry]):
    choose_all(page, "Merge duplicates")
    expect(page.locator("#content h2")).to_have_count(50)
    page.click("input[type=submit]")

    expect(page.locator(".messagelist")).to_contain_text("60 knowledge entries merged")
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 60


def test_a_table_is_exported_changed_and_imported(page: Page, rows: list[KnowledgeEntry], tmp_path: Path):
    page.goto(LIST)
    page.click("text=Export")
    page.select_option("select[name=format]", label="CSV")
    with page.expect_download() as download:
        page.click("input[type=submit]")
    file = tmp_path / "rows.csv"
    file.write_text(Path(download.value.path()).read_text().replace("fact 7", "=fact 7"))

    page.goto(f"{LIST}import/")
    page.set_input_files("[name=import_file]", file)
    expect(page.locator("select[name=format]")).to_have_value("0")  # detected from the file's name
    page.click("input[type=submit]")
    expect(page.locator("#content")).to_contain_text("120 rows: 0 new, 2 changed, 118 unchanged")
    page.click("input[name=confirm]")

    expect(page.locator(".messagelist")).to_contain_text("Imported: 0 new, 2 changed, 118 unchanged.")
    assert KnowledgeEntry.objects.filter(content="=fact 7").count() == 2


def test_a_person_is_found_by_autocomplete(page: Page, rows: list[KnowledgeEntry]):
    User.objects.create_user("vera")
    page.goto("/admin/sessions_app/membership/add/")
    for field, text in (("workspace", "Atlas"), ("user", "vera")):
        page.click(f".field-{field} .select2-selection")
        page.fill(".select2-search__field", text[:3])
        page.click(f".select2-results__option:has-text('{text}')")
    page.select_option("[name=role]", "editor")
    page.click("[name=_save]")

    expect(page.locator(".messagelist")).to_contain_text("was added successfully")
    assert Membership.objects.get().role == "editor"


def test_lists_filters_and_rows_open_without_errors(page: Page, rows: list[KnowledgeEntry]):
    page.goto("/admin/")
    for model in ("sessions_app/workspace", "sessions_app/run", "knowledge_app/keyvalue", "auth/user"):
        page.goto(f"/admin/{model}/")
        expect(page.locator("#changelist")).to_be_visible()
    page.goto(f"{LIST}?category=learned_fact&q=fact")
    page.goto(f"{LIST}{rows[0].pk}/change/")
    expect(page.locator("#content")).to_contain_text("fact 0")

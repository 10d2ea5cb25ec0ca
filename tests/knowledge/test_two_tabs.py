"""Edits of the same row in two tabs: the second save shows what the first one wrote."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from memoryhub.knowledge.views import rows
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON
from tests.races import at_once, meet_after

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
CHANGED = "Someone changed this meanwhile."


def url(name: str, pk: int) -> str:
    return reverse(f"knowledge:{name}", args=["atlas", pk])


def known_on(client, row: KeyValue) -> str:
    page = client.get(url("key-value", row.pk)).content.decode()
    form = page[page.index("<textarea") - 400 : page.index("<textarea")]
    return re.findall(r'name="known" value="(\d+)"', form)[0]


@pytest.mark.parametrize("by", [BY, By(AGENT, NOW)])
def test_a_value_that_changed_since_the_page_is_shown_instead_of_replaced(workspace, editor, by):
    row = write_value(workspace, "port", "80", by=BY)
    known = known_on(editor, row)
    write_value(workspace, "port", "8080", by=by)

    answer = editor.post(url("edit-key-value", row.pk), {"value": "443", "known": known})

    row.refresh_from_db()
    html = answer.content.decode()
    assert (answer.status_code, row.value) == (422, "8080")
    assert CHANGED in html
    assert re.search(r"<textarea[^>]*>443</textarea>", html)
    assert ">8080</pre>" in html

    again = re.findall(r'name="known" value="(\d+)"', html)[0]
    editor.post(url("edit-key-value", row.pk), {"value": "443", "known": again})
    row.refresh_from_db()
    assert row.value == "443"


def test_a_masked_value_that_changed_stays_masked(workspace, editor):
    row = write_value(workspace, "api_token", "s3cr3t-of-the-first-tab", by=BY)
    known = known_on(editor, row)
    write_value(workspace, "api_token", "s3cr3t-of-the-second-tab", by=BY)

    html = editor.post(url("edit-key-value", row.pk), {"value": "mine", "known": known}).content.decode()

    assert CHANGED in html
    assert "second-tab" not in html
    assert KeyValue.objects.get().value == "s3cr3t-of-the-second-tab"


@pytest.mark.django_db(transaction=True)
def test_two_saves_of_an_entry_at_once_are_not_both_made(workspace, editor, monkeypatch):
    entry = add_knowledge(workspace, "likes tea", category="learned_fact", by=BY).entry
    page = url("knowledge-entry", entry.pk)
    values = {"category": "learned_fact", "initial-category": "learned_fact", "tags": "", "source": ""}
    values |= {"initial-tags": "", "initial-source": "", "initial-content": "likes tea"}
    meet_after(monkeypatch, rows, "changed_values")
    cookies = editor.cookies

    def save(text: str) -> int:
        client = Client()
        client.cookies = cookies.copy()
        return client.post(page, values | {"content": text}).status_code

    codes = at_once(lambda: save("likes green tea"), lambda: save("likes black tea"))

    assert sorted(codes) == [302, 422]
    assert KnowledgeEntry.objects.get().history.count() == 2


def test_a_second_save_of_an_entry_replaces_what_it_was_shown(workspace, editor):
    entry = add_knowledge(workspace, "likes tea", category="learned_fact", by=BY).entry
    page = url("knowledge-entry", entry.pk)
    save_entry(entry, {"content": "likes black tea"}, by=BY)
    values = {"category": "learned_fact", "initial-category": "learned_fact", "tags": "", "source": ""}
    values |= {"initial-content": "likes tea", "content": "likes green tea"}

    first = editor.post(page, values)
    html = first.content.decode()
    shown = re.findall(r'name="initial-content" value="([^"]*)"', html)[0]
    second = editor.post(page, values | {"initial-content": shown})

    entry.refresh_from_db()
    assert (first.status_code, second.status_code) == (422, 302)
    assert "likes black tea" in html
    assert entry.content == "likes green tea"

"""The secrets of a context, which its page masks."""

from __future__ import annotations

import pytest
from django.urls import reverse

from sessions_app.models import AuditRecord
from tests.hub import add, open_at
from tests.hygiene.test_scanning import TOKEN

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(workspace) -> str:
    session = open_at(workspace)
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": f'{{"key": "{TOKEN}"}}'}}
    add(
        session,
        [
            {"role": "user", "content": f"use {TOKEN} for it"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "shell", "content": "done"},
        ],
    )
    return reverse("session-context", args=["atlas", session.pk])


def records() -> list[str]:
    return list(AuditRecord.objects.filter(action="secrets.revealed").values_list("text", flat=True))


@pytest.mark.parametrize("form", ["", "?form=text"])
def test_editors_reveal_secrets_of_a_context_and_it_is_recorded(editor, address, form):
    masked = editor.get(address + form).content.decode()
    shown = editor.post(f"{address}reveal/{form}").content.decode()

    assert f"{address}reveal/{form}" in masked
    assert TOKEN not in masked
    assert shown.count(TOKEN) >= 2
    assert "The audit log records that you viewed them." in shown
    assert len(records()) == 1
    assert "the context of cli:main" in records()[0]


def test_viewers_and_reloaded_pages_reveal_nothing(editor, viewer_client, address):
    page = viewer_client.get(address).content.decode()

    assert "reveal/" not in page
    assert viewer_client.post(f"{address}reveal/").status_code == 404
    assert editor.get(f"{address}reveal/")["Location"] == address
    assert records() == []

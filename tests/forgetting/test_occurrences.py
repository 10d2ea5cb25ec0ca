"""The preview of an erasure shows as what the words occur, before anything is erased."""

from __future__ import annotations

import pytest
from django.urls import reverse

from knowledge_app.services.documents.history import add_note
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.matching import phrase_of
from memoryhub.forgetting.occurrences import Occurrences
from tests.forgetting.test_forgetting import BY


def groups(phrase: str, *rows: str) -> dict[str, dict[str, int]]:
    found = Occurrences([phrase_of(phrase)])
    for row in rows:
        found.add([row])
    return {group: {one.text: one.rows for one in listed} for group, listed, _ in found.groups}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann called, and ANN's dog", {"alone": {"Ann": 1}}),
        ("the Annual report of Joanna", {"kept": {"Annual": 1, "Joanna": 1}}),
        ("Ann-Marie wrote", {"part": {"Ann-Marie": 1}}),
        ("mail ann@example.org.", {"part": {"ann@example.org": 1}}),
        ("open /home/ann/notes.md", {"part": {"home/ann/notes.md": 1}}),
        ("Annual, by Ann", {"alone": {"Ann": 1}, "kept": {"Annual": 1}}),
        ("nobody", {}),
    ],
)
def test_words_are_grouped_by_what_they_are_part_of(text, expected):
    assert groups("Ann", text) == expected


def test_each_row_counts_once_and_the_most_frequent_comes_first():
    found = groups("Ann", "Ann and Ann", "ann-marie", "Ann-Lee, Ann-Lee", "Ann-Lee")

    assert found == {"alone": {"Ann": 1}, "part": {"Ann-Lee": 2, "ann-marie": 1}}
    assert list(found["part"]) == ["Ann-Lee", "ann-marie"]


@pytest.mark.django_db
def test_the_pages_show_the_groups_before_the_erasure(workspace, admin_client):
    for text in ("Ann called.", "Ann-Marie wrote.", "The Annual report is late."):
        add_note(workspace, text, by=BY)

    for kind in ("phrase", "person"):
        page = admin_client.post(reverse("forget", args=["atlas"]), {"kind": kind, "words": "Ann"}).content.decode()
        for words in ("Ann-Marie", "As part of", "Not affected", "Annual"):
            assert words in page
    page = admin_client.post(reverse("person-data"), {"words": "Ann"}).content.decode()
    assert "Lines with these are removed, too." in page
    assert "Annual" in page
    assert plan_forget(workspace, ErasureRequest("source", ("x",))).occurrences == []

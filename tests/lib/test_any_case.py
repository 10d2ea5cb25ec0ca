from __future__ import annotations

import pytest
from django.urls import reverse

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.knowledge import add_knowledge, with_text
from memoryhub.lib.any_case import any_case
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at

pytestmark = pytest.mark.django_db
TEXTS = [
    "Über Ähren",
    "ÜBER ähren",
    "uber ahren",
    "ЖУРНАЛ (новый)",
    "журнал (НОВЫЙ)",
    "100 % ÉTÉ_a",
    "été",
    "a.b",
    "AxB",
    "Çay\n",
]


@pytest.fixture
def rows(workspace) -> None:
    for text in TEXTS:
        KnowledgeEntry.objects.create(
            workspace=workspace, content=text, content_id=text, source=text.strip(), category="learned_fact"
        )


@pytest.mark.parametrize(
    ("lookup", "text", "found"),
    [
        ("icontains", "ÜBER", ["Über Ähren", "ÜBER ähren"]),
        ("icontains", "über ä", ["Über Ähren", "ÜBER ähren"]),
        ("icontains", "uber", ["uber ahren"]),
        ("icontains", "журнал (", ["ЖУРНАЛ (новый)", "журнал (НОВЫЙ)"]),
        ("icontains", "% é", ["100 % ÉTÉ_a"]),
        ("icontains", "a.B", ["a.b"]),
        ("icontains", "été_", ["100 % ÉTÉ_a"]),
        ("iexact", "ÉTÉ", ["été"]),
        ("iexact", "çAY", []),
        ("iexact", "axb", ["AxB"]),
        ("istartswith", "ü", ["Über Ähren", "ÜBER ähren"]),
        ("iendswith", "ÄHREN", ["Über Ähren", "ÜBER ähren"]),
        ("iendswith", "ÇAY", []),
    ],
)
def test_both_databases_find_the_same(rows, lookup, text, found):
    where = any_case(f"content__{lookup}", text)

    assert list(KnowledgeEntry.objects.filter(where).order_by("id").values_list("content", flat=True)) == found


def test_tags_and_sources_are_found(workspace):
    add_knowledge(workspace, "tea", category="learned_fact", tags=["Größe"], source="Ärzte", by=By(PERSON, NOW))

    for text in ("GRÖSSE", "gRÖße", "ärzte"):
        assert with_text(KnowledgeEntry.objects.all(), text).exists() == (text != "GRÖSSE")


def test_filters_of_pages_and_searches_ignore_case(workspace, admin_client):
    add(open_at(workspace, "cli:Übung"), [{"role": "user", "content": "Die Ähren sind reif"}])

    listed = admin_client.get(reverse("sessions:list", args=["atlas"]), {"q": "ÜBUNG"}).content.decode()
    found = admin_client.get(reverse("search", args=["atlas"]), {"q": "reif session:CLI:übung"}).content.decode()

    assert "cli:Übung" in listed
    assert "sind" in found

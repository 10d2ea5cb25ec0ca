from __future__ import annotations

import re

import pytest
from django.db import connection
from django.urls import reverse

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.knowledge import add_knowledge, with_text
from memoryhub.lib.database.any_case import any_case
from sessions_app.models import Session
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
        ("iexact", "A.B", ["a.b"]),
        ("iexact", "журнал (новый)", ["ЖУРНАЛ (новый)", "журнал (НОВЫЙ)"]),
        ("istartswith", "ü", ["Über Ähren", "ÜBER ähren"]),
        ("iendswith", "ÄHREN", ["Über Ähren", "ÜBER ähren"]),
        ("iendswith", "ÇAY", []),
    ],
)
def test_both_databases_find_the_same(rows, lookup, text, found):
    where = any_case(f"content__{lookup}", text)

    assert list(KnowledgeEntry.objects.filter(where).order_by("id").values_list("content", flat=True)) == found


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no such estimates")
def test_postgresql_knows_how_many_rows_equal_a_common_text(workspace):
    """Else it joins all messages of a channel first, and then looks which of them have the words."""
    for number in range(100):
        open_at(workspace, f"chat:{number}")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_session")

    plan = Session.objects.filter(any_case("channel__iexact", "CHAT")).explain()

    assert int(re.search(r"rows=(\d+)", plan)[1]) == 100, plan


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

from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from knowledge_app.models import CachedResponse, KeyValue, Term
from knowledge_app.services.documents.history import import_history
from knowledge_app.services.documents.outside_edits import import_document
from knowledge_app.services.rows.importing import (
    import_cached_responses,
    import_key_values,
    import_knowledge,
    import_observations,
)
from memoryhub.graph.neighbours import import_graph
from memoryhub.lib.layouts.records import (
    CachedResponseRecord,
    DocumentRecord,
    GraphRecord,
    HistoryLog,
    HistoryRecord,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    TermRecord,
)
from sessions_app.models import AuditRecord, Membership
from tests.markup import live_markup

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
FILE = {"path": "file", "now": NOW, "dry_run": False}
LISTS = [
    "memory",
    "documents:history",
    "knowledge:knowledge",
    "knowledge:observations",
    "knowledge:key-values",
    "terms",
    "knowledge:cached-responses",
]
DETAILS = ["documents:document", "knowledge:key-value", "term", "knowledge:cached-response"]
HOSTILE = "</title><script>window.__xss=1</script><img src=x onerror=alert(1)>"


def fill(workspace, count: int, text: str = "word") -> None:
    names = [f"{text} {number}" for number in range(count)]
    entries = [
        HistoryRecord(name, "", NOW - timedelta(days=place), "[x]", file="HISTORY.md")
        for place, name in enumerate(names)
    ]
    import_history(workspace=workspace, log=HistoryLog(entries), **FILE)
    import_knowledge(
        workspace,
        [KnowledgeRecord(name, "learned_fact", name, name, [name], extra={name: name}) for name in names],
        **FILE,
    )
    import_observations(
        workspace,
        [ObservationRecord(f"{n:08}-{text}", "finding", name, name) for n, name in enumerate(names)],
        **FILE,
    )
    import_key_values(workspace, [KeyValueRecord(name, name) for name in names], **FILE)
    for name in names:  # an import would skip what the content check flags
        values = {"model": name, "response": name, "preview": name, "created_at": NOW, "accessed_at": NOW}
        CachedResponse.objects.update_or_create(workspace=workspace, key=name, defaults=values)
    terms = [TermRecord(name, [1.0, 0.5], names[:1]) for name in names]
    import_graph(workspace=workspace, graph=GraphRecord("p", "m", "", 2, None, "", terms), **FILE)
    facts = "\n".join(f"- {name}" for name in names)
    import_document(workspace=workspace, record=DocumentRecord("MEMORY.md", f"# {text}\n{facts}"), **FILE)


def first(name: str):
    models = {
        "document": "documents",
        "key-value": "key_values",
        "term": "terms",
        "cached-response": "cached_responses",
    }
    return models[name.split(":")[-1]]


def urls(workspace) -> list[str]:
    found = [reverse(name, args=[workspace.slug]) for name in LISTS]
    found += [reverse(name, args=[workspace.slug, getattr(workspace, first(name)).first().pk]) for name in DETAILS]
    return found


def text(client: Client, name: str, *args, **query) -> str:
    response = client.get(reverse(name, args=args), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_explains_what_it_is_for(name, workspace, viewer_client):
    assert 'class="empty"' in text(viewer_client, name, workspace.slug)


@pytest.mark.parametrize("name", LISTS)
def test_another_persons_list_is_not_found(name, workspace, stranger_client):
    assert stranger_client.get(reverse(name, args=[workspace.slug])).status_code == 404


@pytest.mark.parametrize("name", DETAILS)
def test_a_foreign_id_answers_like_a_missing_one(name, workspace, viewer_client):
    other = type(workspace).objects.create(slug="other", name="Other")
    fill(other, 1)
    pk = getattr(other, first(name)).first().pk

    for number in (pk, 10_000_000):
        assert viewer_client.get(reverse(name, args=[workspace.slug, number])).status_code == 404
    assert viewer_client.get(reverse(name, args=["other", pk])).status_code == 404


def count_queries(client: Client, url: str) -> int:
    cache.clear()  # the same reading within a minute isn't written down again
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


@pytest.mark.slow
@pytest.mark.postgres
def test_pages_make_the_same_queries_for_few_rows_and_many(workspace, viewer_client):
    fill(workspace, 2)
    fill(workspace, 3)  # the document has an earlier revision now, which its page looks for
    few = {url: count_queries(viewer_client, url) for url in urls(workspace)}
    memory = reverse("memory", args=[workspace.slug])
    with_all_kinds = few.pop(memory)

    fill(workspace, 60)

    assert {url: count_queries(viewer_client, url) for url in few} == few
    assert count_queries(viewer_client, memory) <= with_all_kinds  # fewer kinds are on its first page


@pytest.mark.slow
@pytest.mark.postgres
def test_stored_markup_is_text_everywhere(workspace, viewer_client):
    fill(workspace, 2, HOSTILE)

    for url in urls(workspace):
        assert live_markup(viewer_client.get(url).content.decode()) == [], url


@pytest.mark.parametrize("name", LISTS)
def test_htmx_gets_the_list_alone(name, workspace, viewer_client):
    fill(workspace, 1)

    html = viewer_client.get(reverse(name, args=[workspace.slug]), headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in html
    assert "word 0" in html


def test_history_is_grouped_by_day_and_pages(workspace, viewer_client):
    fill(workspace, 60)

    html = text(viewer_client, "documents:history", workspace.slug)

    assert "word 59" in html
    assert "word 9<" not in html
    assert "1 Feb 2026" in html
    assert "word 7<" in text(viewer_client, "documents:history", workspace.slug, page="last")
    assert "No matching entries" in text(viewer_client, "documents:history", workspace.slug, q="absent")


@pytest.mark.slow
@pytest.mark.postgres
def test_one_category_of_knowledge_pages_by_key(workspace, viewer_client):
    fill(workspace, 60)

    html = text(viewer_client, "knowledge:knowledge", workspace.slug)
    chosen = text(viewer_client, "knowledge:knowledge", workspace.slug, category="learned_fact")

    assert "Show all 60" in html
    assert 'rel="next"' in chosen


def test_a_further_field_may_have_any_name(workspace, viewer_client):
    """A template that asks a dict for its items gets the field of that name instead."""
    extra = {"items": [1, 2, 3], "keys": "k"}
    import_knowledge(workspace, [KnowledgeRecord("i", "learned_fact", "body", extra=extra)], **FILE)
    import_observations(workspace, [ObservationRecord("uid", "finding", "body", extra=extra)], **FILE)
    import_cached_responses(workspace, [CachedResponseRecord("key", "m", "body", extra=extra)], **FILE)
    import_history(workspace=workspace, log=HistoryLog([HistoryRecord("body", "", extra=extra)]), **FILE)
    term = TermRecord("word", [], [], extra=extra)
    import_graph(workspace=workspace, graph=GraphRecord("", "", "", 0, None, "", [term]), **FILE)
    cached, found = workspace.cached_responses.get().pk, workspace.terms.get().pk

    for page in (
        text(viewer_client, "knowledge:knowledge", workspace.slug),
        text(viewer_client, "knowledge:knowledge", workspace.slug, category="learned_fact"),
        text(viewer_client, "knowledge:observations", workspace.slug),
        text(viewer_client, "knowledge:observations", workspace.slug, category="finding"),
        text(viewer_client, "documents:history", workspace.slug),
        text(viewer_client, "knowledge:cached-response", workspace.slug, cached),
        text(viewer_client, "term", workspace.slug, found),
    ):
        assert "[1, 2, 3]" in page


def test_history_says_where_an_entry_stood_and_what_its_time_was(workspace, viewer_client):
    record = HistoryRecord("body", "", NOW, "[2026-04-01 12:00]", file="memory/HISTORY.md")
    import_history(workspace=workspace, log=HistoryLog([record]), **FILE)

    html = text(viewer_client, "documents:history", workspace.slug)

    assert ">memory/HISTORY.md<" in html
    assert 'title="[2026-04-01 12:00]"' in html


def test_the_day_of_an_entry_is_that_of_the_zone_shown(workspace, viewer_client):
    at = datetime(2026, 4, 1, 20, tzinfo=UTC)
    import_history(workspace=workspace, log=HistoryLog([HistoryRecord("body", "", at, "")]), **FILE)

    viewer_client.cookies["zone"] = "Pacific/Auckland"
    html = text(viewer_client, "documents:history", workspace.slug)

    assert "2 Apr 2026" in html
    assert ">09:00<" in html


def test_withdrawn_observations_are_shown_when_asked_for(workspace, viewer_client):
    import_observations(workspace, [ObservationRecord("uid", "finding", "taken back")], **FILE)
    workspace.observations.update(withdrawn_at=NOW, withdrawn_reason="another service")

    assert "taken back" not in text(viewer_client, "knowledge:observations", workspace.slug)
    assert "another service" in text(viewer_client, "knowledge:observations", workspace.slug, withdrawn="1")
    chosen = text(viewer_client, "knowledge:observations", workspace.slug, withdrawn="1", category="finding")
    assert "taken back" in chosen


def test_knowledge_says_when_it_was_last_used(workspace, viewer_client):
    record = KnowledgeRecord(
        "i", "learned_fact", "body", access_count=3, accessed_at=datetime(2020, 5, 6, tzinfo=UTC)
    )
    import_knowledge(workspace, [record], **FILE)

    assert "6 May 2020" in text(viewer_client, "knowledge:knowledge", workspace.slug)


def test_a_tag_is_found_by_part(workspace, viewer_client):
    import_knowledge(workspace, [KnowledgeRecord("i", "learned_fact", "body", tags=["rate-limit"])], **FILE)

    assert "body" in text(viewer_client, "knowledge:knowledge", workspace.slug, q="rate")


def test_a_secret_is_masked_until_an_editor_reveals_it(workspace, viewer, viewer_client):
    import_key_values(workspace, [KeyValueRecord("github_token", "s3cret-value")], **FILE)
    pk = KeyValue.objects.get().pk
    reveal = reverse("knowledge:reveal-key-value", args=[workspace.slug, pk])

    assert "s3cret-value" not in text(viewer_client, "knowledge:key-values", workspace.slug)
    assert "s3cret-value" not in text(viewer_client, "knowledge:key-value", workspace.slug, pk)
    assert viewer_client.post(reveal).status_code == 404
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    assert viewer_client.get(reveal)["Location"] == reveal.removesuffix("reveal/")
    assert "s3cret-value" in viewer_client.post(reveal).content.decode()
    assert AuditRecord.objects.get(action="key_value.revealed").actor_name == "vera"


def test_nobody_can_guess_a_masked_value_by_filtering(workspace, viewer, viewer_client):
    import_key_values(workspace, [KeyValueRecord("github_token", "s3cret-value")], **FILE)

    assert "No matches" in text(viewer_client, "knowledge:key-values", workspace.slug, q="s3c")
    assert "github_token" in text(viewer_client, "knowledge:key-values", workspace.slug, q="hub_tok")
    Membership.objects.filter(user=viewer).update(role=Membership.Role.EDITOR)
    assert "No matches" in text(viewer_client, "knowledge:key-values", workspace.slug, q="s3c")


@pytest.mark.parametrize(
    ("value", "is_indented"),
    [
        ('{"a":{"b":[1,2]}}', True),
        ('{"a": 1}', True),
        ('{"a":1,"a":2}', False),
        ('{"a":1.10}', False),
        ("3", False),
        ('{"a":"' + "x" * 20_000 + '"}', False),
        ("[" * 5_000 + "]" * 5_000, False),
    ],
)
def test_json_is_set_out_only_where_that_changes_nothing(value, is_indented, workspace, viewer_client):
    import_key_values(workspace, [KeyValueRecord("limits", value, is_json=True)], **FILE)

    html = text(viewer_client, "knowledge:key-value", workspace.slug, KeyValue.objects.get().pk)

    assert ("<summary>Raw</summary>" in html) is is_indented
    assert escape(value) in html


@pytest.mark.parametrize("key", ["", "../x", "<i>", "a/b?c=d#e"])
def test_each_odd_key_has_a_page(key, workspace, viewer_client):
    import_key_values(workspace, [KeyValueRecord(key, "value here")], **FILE)

    assert "value here" in text(viewer_client, "knowledge:key-value", workspace.slug, KeyValue.objects.get().pk)


def test_a_term_shows_how_near_its_neighbours_are(workspace, viewer_client):
    terms = [TermRecord("fast", [1.0, 0.0], ["quick"]), TermRecord("quick", [0.8, 0.6], [])]
    import_graph(workspace=workspace, graph=GraphRecord("p", "m", "", 2, None, "", terms), **FILE)

    assert "0.80" in text(viewer_client, "term", workspace.slug, Term.objects.get(text="fast").pk)
    assert "Also a neighbour of" in text(viewer_client, "term", workspace.slug, Term.objects.get(text="quick").pk)

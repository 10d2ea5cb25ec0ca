import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Exists, OuterRef
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import HistoryEntry
from memoryhub.agents.api_tokens import issue_token
from memoryhub.lib.database.prepared import PreparedRows, among, insert_row, update_row
from memoryhub.models import ApiToken, OAuthClient, OAuthConnection
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at, turn

pytestmark = pytest.mark.django_db
BY_KEY = PreparedRows(
    2,
    lambda workspace, key: Session.objects.select_related("workspace").filter(
        workspace=workspace, channel="cli", key=key
    ),
)


def values_of(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_rows_are_those_of_the_queryset(workspace):
    session = open_at(workspace, "cli:main")
    add(session, turn(0))
    open_at(workspace, "cli:other")

    for key in ("cli:main", "cli:other", "cli:main"):
        found = BY_KEY.first(workspace.pk, key)
        expected = Session.objects.select_related("workspace").get(key=key)
        assert values_of(found) == values_of(expected)
        with CaptureQueriesContext(connection) as queries:
            assert values_of(found.workspace) == values_of(expected.workspace)
        assert not queries.captured_queries
    assert BY_KEY.first(workspace.pk, "cli:missing") is None
    assert BY_KEY.first(workspace.pk, "' OR 1=1 --") is None


def test_constants_of_the_queryset_are_kept(workspace):
    open_at(workspace, "web:main")

    assert BY_KEY.all(workspace.pk, "web:main") == []


def test_missing_joined_rows_and_annotations_are_those_of_the_queryset(workspace):
    plain, connected = (
        issue_token(workspace, name, ["read"], by=By(PERSON, NOW))[0] for name in ("plain", "connected")
    )
    user = User.objects.create_user("olga")
    client = OAuthClient.objects.create(client_id="desk", name="Desk")
    OAuthConnection.objects.create(token=connected, client=client, user=user, code_expires_at=NOW)
    tokens = PreparedRows(
        1,
        lambda name: (
            ApiToken.objects.select_related("connection__user")
            .annotate(is_first=Exists(Workspace.objects.filter(pk=OuterRef("workspace"))))
            .filter(name=name)
        ),
    )

    with CaptureQueriesContext(connection) as queries:
        rows = [tokens.first("plain"), tokens.first("connected")]
        assert rows == [plain, connected]
        assert [row.is_first for row in rows] == [True, True]
        assert getattr(rows[0], "connection", None) is None
        assert rows[1].connection.user == user
    assert len(queries.captured_queries) == 2


def test_values_and_a_limit_are_those_of_the_queryset(workspace):
    for key in ("cli:a", "cli:b", "cli:c"):
        open_at(workspace, key)
    keys = PreparedRows(
        1,
        lambda workspace: Session.objects.filter(workspace=workspace).values_list("key", "epoch").order_by("key"),
        is_limited=True,
    )

    assert keys.all(workspace.pk, 2) == [("cli:a", 0), ("cli:b", 0)]
    assert keys.all(workspace.pk, 0) == []


def test_related_rows_may_be_missing_or_related_themselves(workspace):
    session = open_at(workspace, "cli:main")
    alone = HistoryEntry.objects.create(workspace=workspace, position=1, content="alone")
    said = HistoryEntry.objects.create(workspace=workspace, position=2, content="said", session=session)

    related = HistoryEntry.objects.select_related("session", "session__workspace")
    rows = related.only("content", "session__key", "session__workspace__slug")
    found = PreparedRows(1, lambda keys: rows.filter(pk__in=among(keys)).order_by("pk")).all([said.pk, alone.pk])

    with CaptureQueriesContext(connection) as queries:
        assert [(row.content, row.session and row.session.key) for row in found] == [
            ("alone", None),
            ("said", "cli:main"),
        ]
    assert not queries.captured_queries
    assert found[1].get_deferred_fields() == rows.get(pk=said.pk).get_deferred_fields()


def test_a_list_of_texts_may_be_empty_and_contains_any_signs(workspace):
    open_at(workspace, "cli:main")
    named = PreparedRows(1, lambda keys: Session.objects.filter(key__in=among(keys, "text")))

    assert [row.key for row in named.all(["cli:main", "\" ' } \\", "ı"])] == ["cli:main"]
    assert named.all([]) == []


def test_an_inserted_row_is_the_one_that_is_read(workspace):
    session = open_at(workspace)
    made = Entry(workspace=workspace, session=session, epoch=0, position=7, kind="message", role="user")
    made.content, made.extra, made.occurred_at, made.recorded_at = "100 % 'tea'", {"a": [1]}, NOW, NOW
    made.token_count, made.source_hash = 3, "0" * 64

    insert_row(made)

    assert values_of(Entry.objects.get(pk=made.pk)) == values_of(made)
    made.is_rewound = True
    made.save()
    assert Entry.objects.count() == 1


def test_only_the_named_fields_of_one_row_are_stored(workspace):
    session, other = open_at(workspace, "cli:main"), open_at(workspace, "cli:other")
    session.title, session.epoch, session.updated_at = "new", 5, NOW.replace(year=2031)

    update_row(session, ["updated_at", "epoch"])

    kept = Session.objects.get(pk=session.pk)
    assert (kept.epoch, kept.updated_at, kept.title) == (5, NOW.replace(year=2031), "")
    assert values_of(Session.objects.get(pk=other.pk)) == values_of(other)


@pytest.mark.django_db(transaction=True)
def test_each_thread_has_its_own_connection(workspace):
    open_at(workspace, "cli:main")
    found = []

    def read():
        found.append(BY_KEY.first(workspace.pk, "cli:main"))
        connection.close()

    BY_KEY.first(workspace.pk, "cli:main")
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [row.key for row in found] == ["cli:main"] * 2

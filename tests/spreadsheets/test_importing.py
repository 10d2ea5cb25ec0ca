from datetime import UTC, date

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import KeyValue, KnowledgeEntry, Observation
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.tables import Table, TableTooLarge
from memoryhub.lib.tables.files import FORMATS
from memoryhub.spreadsheets.exporting import EXPORTS, export_table
from memoryhub.spreadsheets.importing import import_rows
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, open_at, raises_code, talk
from tests.rows import make

pytestmark = pytest.mark.django_db
TEXTS = [
    "likes tea",
    '=2+5+HYPERLINK("x")',
    "'=1",
    "  ＝1",
    "a\r\nb\tc",
    "\rx",
    'quote " and ; and ,',
    "ends with _x0041_",
    "-",
]


def knowledge(workspace, content="likes tea", category="learned_fact", **values):
    values = {"content_id": content_id(category, content), "identity": content_id(category, content)} | values
    return KnowledgeEntry.objects.create(workspace=workspace, category=category, content=content, **values)


def take(rows, table="knowledge", *, dry_run=False, source="rows.csv", **options):
    made = Table(list(dict.fromkeys(name for row in rows for name in row)), rows)
    return import_rows(table, made, source=source, zone=UTC, by=By(PERSON, NOW), dry_run=dry_run, **options)


def errors(judged):
    return {row.number: row.errors for row in judged.rows if row.errors}


def all_rows():
    return [list(model.objects.order_by("id").values()) for model in (KnowledgeEntry, Observation, KeyValue)]


@pytest.mark.parametrize("name", FORMATS)
def test_importing_an_export_changes_nothing(workspace, name):
    for number, text in enumerate(TEXTS):
        knowledge(workspace, text, source=text, tags=[text, "b,c"], created_at=NOW, review_by=date(2026, 5, 1))
        Observation.objects.create(
            workspace=workspace, uid=f"{text}{number}", category="insight", content=text, occurred_at=NOW
        )
        KeyValue.objects.create(workspace=workspace, key=text, value=text, withdrawn_reason=text)
    KeyValue.objects.create(workspace=workspace, key="json", value='{"a": [1]}', is_json=True)
    KeyValue.objects.create(workspace=workspace, key="password", value="s3cret", is_secret=True)
    before = all_rows()

    for table in ("knowledge", "observations", "key_values"):
        raw = FORMATS[name].write(export_table(table, by=By(PERSON, NOW)))
        assert b"s3cret" not in raw
        judged = import_rows(table, FORMATS[name].read(raw), source="", zone=UTC, by=By(PERSON, NOW), dry_run=False)
        assert (errors(judged), set(judged.counts)) == ({}, {"unchanged"})
    assert all_rows() == before
    assert not AuditRecord.objects.filter(action="rows.imported").exists()


@pytest.mark.parametrize("table", EXPORTS)
def test_every_table_is_exported_with_a_constant_number_of_queries(table):
    counts = []
    for _ in range(2):
        for _ in range(10):
            make(EXPORTS[table].model)
        with CaptureQueriesContext(connection) as captured:
            made = export_table(table, EXPORTS[table].model.objects.all(), by=By(PERSON, NOW))
        told = len([query for query in captured if "auditrecord" in query["sql"] or "SAVEPOINT" in query["sql"]])
        counts.append(len(captured) - told)
    assert counts[0] == counts[1]
    assert len(made) == 20
    assert made.headers[:2] == ["id", "workspace"]


def test_entries_are_exported_unchanged(workspace):
    talk(open_at(workspace), 1)

    rows = export_table("entries", by=By(PERSON, NOW)).rows

    assert [(row["session"], row["position"], row["kind"]) for row in rows[:2]] == [
        ("cli:main", 0, "message"),
        ("cli:main", 1, "tool_call"),
    ]
    assert AuditRecord.objects.get(action="rows.exported").workspace == workspace


def test_changed_rows_are_written_with_history_author_and_one_audit_record(workspace):
    row, same = knowledge(workspace), knowledge(workspace, "likes cats")

    judged = take(
        [
            {"id": str(row.pk), "workspace": "atlas", "category": "user_preference", "tags": "a, b"},
            {"id": str(same.pk), "workspace": "atlas", "category": "learned_fact", "tags": ""},
            {"id": "", "workspace": "atlas", "category": "error_pattern", "content": "disk full", "tags": '["x,y"]'},
        ]
    )

    row.refresh_from_db()
    new = KnowledgeEntry.objects.get(content="disk full")
    assert judged.counts == {"changed": 1, "unchanged": 1, "new": 1}
    assert (row.category, row.tags, row.identity) == (
        "user_preference",
        ["a", "b"],
        content_id("user_preference", "likes tea"),
    )
    assert row.corrected == {"category": "learned_fact", "tags": []}
    assert (new.content_id, new.identity, new.tags) == (*[content_id("error_pattern", "disk full")] * 2, ["x,y"])
    assert {one.history.order_by("-history_id")[0].history_change_reason for one in (row, new)} == {"olga: rows.csv"}
    assert not same.history.filter(history_change_reason="olga: rows.csv").exists()
    told = AuditRecord.objects.get(action="rows.imported")
    assert (told.actor_name, told.text) == ("olga", "2 knowledge entries imported from a table: 1 new, 1 changed")


def test_a_dry_run_says_the_same_and_writes_nothing(workspace):
    row = knowledge(workspace)
    before = all_rows()

    judged = take(
        [{"id": row.pk, "workspace": "atlas", "content": "likes coffee"}, {"workspace": "atlas", "content": "x"}],
        dry_run=True,
    )

    assert judged.counts == {"changed": 1, "new": 1}
    assert judged.rows[0].changes == [("content", "likes tea", "likes coffee")]
    assert all_rows() == before
    assert not AuditRecord.objects.exists()


def test_one_wrong_row_stops_the_import(workspace):
    row = knowledge(workspace)
    before = all_rows()

    judged = take(
        [
            {"id": row.pk, "workspace": "atlas", "content": "likes coffee", "created_at": ""},
            {"id": "", "workspace": "atlas", "content": "y", "created_at": "yesterday"},
        ]
    )

    assert errors(judged) == {2: ["created_at: yesterday is not a time such as 2026-04-01T12:00:00+00:00"]}
    assert all_rows() == before


WRONG = [
    ("knowledge", {"content": "x", "workspace": ""}, "it has no workspace"),
    ("knowledge", {"content": "x", "workspace": "nowhere"}, "there is no workspace nowhere"),
    ("knowledge", {"content": "  "}, "it has no content"),
    ("knowledge", {"content": "x", "id": "12x"}, "id: 12x is not a number"),
    ("knowledge", {"content": "x", "id": "999"}, "atlas has no knowledge entry 999"),
    ("knowledge", {"content": "x", "access_count": "-1"}, "access_count: -1 is not a count"),
    ("knowledge", {"content": "x", "access_count": "9999999999"}, "access_count: 9999999999 is not a count"),
    ("knowledge", {"content": "x", "review_by": "soon"}, "review_by: soon is not a date"),
    ("knowledge", {"content": "x", "tags": "[1]"}, "tags: "),
    ("knowledge", {"content": ["x"]}, 'content: ["x"] is not text'),
    ("knowledge", {"content": "x", "content_id": "i" * 513}, "content_id: longer than 512"),
    (
        "observations",
        {"content": "x", "category": "rumour"},
        "the category rumour isn't one of finding, insight, lesson",
    ),
    ("observations", {"content": "x"}, "the category (none) isn't one of"),
    ("key_values", {"value": "x"}, "it has neither an id nor a key"),
    ("key_values", {"key": "a", "value": "{", "is_json": "true"}, "its value isn't JSON"),
    ("key_values", {"key": "a", "value": "1", "is_json": "maybe"}, "is_json: maybe is neither true nor false"),
    ("knowledge", {"content": "x" * 20_001}, "content: longer than 20,000 characters"),
    ("knowledge", {"content": "x", "source": "x" * 2_001}, "source: longer than 2,000 characters"),
    ("knowledge", {"content": "x", "withdrawn_reason": "x" * 501}, "withdrawn_reason: longer than 500 characters"),
    ("knowledge", {"content": "x", "tags": ",".join(map(str, range(51)))}, "At most 50 tags"),
    ("knowledge", {"content": "x", "tags": "x" * 101}, "At most 50 tags of 100 characters"),
    ("observations", {"content": "x" * 4_001, "category": "insight"}, "content: longer than 4,000 characters"),
    ("key_values", {"key": "a", "value": "x" * 200_001}, "value: longer than 200,000 characters"),
    ("key_values", {"key": " ", "value": "x"}, "Enter a key."),
    ("key_values", {"key": "a", "value": "", "is_secret": "true"}, "a secret, which exports leave out"),
]


@pytest.mark.parametrize(("table", "row", "what"), WRONG)
def test_a_wrong_row_says_why(workspace, table, row, what):
    judged = take([{"workspace": "atlas", **row}], table)

    assert what in "; ".join(errors(judged)[1])
    assert all_rows() == [[], [], []]


def test_what_is_too_long_already_stays_and_does_not_grow(workspace):
    row = knowledge(workspace, "x" * 20_001, tags=[str(number) for number in range(51)])
    cells = {"id": row.pk, "workspace": "atlas", "content": row.content, "tags": row.tags, "source": "the agent"}

    assert not errors(take([cells]))
    assert "content: longer" in errors(take([cells | {"content": f"{row.content}x"}]))[1][0]
    assert "At most 50 tags" in errors(take([cells | {"tags": [*row.tags, "51"]}]))[1][0]


@pytest.mark.parametrize("name", ["csv", "json"])
def test_rows_over_the_limits_are_copied_into_another_workspace(workspace, name):
    other = Workspace.objects.create(slug="other", name="Other")
    tags = [str(number) for number in range(51)]
    knowledge(workspace, "x" * 20_001, source="s" * 2_001, tags=tags, withdrawn_reason="r" * 501)
    knowledge(workspace, "likes cats", tags=["t" * 101])
    Observation.objects.create(workspace=workspace, uid="u", category="insight", content="o" * 4_001)
    KeyValue.objects.create(workspace=workspace, key="k", value="v" * 200_001)

    for table, (model, names) in {
        "knowledge": (KnowledgeEntry, ("category", "content", "source", "tags", "withdrawn_reason")),
        "observations": (Observation, ("uid", "category", "content")),
        "key_values": (KeyValue, ("key", "value")),
    }.items():
        exported = FORMATS[name].read(FORMATS[name].write(export_table(table, by=By(PERSON, NOW))))
        rows = [row | {"id": "", "workspace": "other"} for row in exported.rows]
        judged = take(rows, table)
        assert (errors(judged), set(judged.counts)) == ({}, {"new"})
        copies = model.objects.order_by("id").values(*names)
        assert list(copies.filter(workspace=other)) == list(copies.filter(workspace=workspace))
    grown = [{"workspace": "other", "content": "x" * 20_001 + "x"}, {"workspace": "other", "content": "y" * 20_001}]
    assert set(errors(take(grown))) == {1, 2}


@pytest.mark.parametrize("slug", ["atlas", "borea"])
def test_a_row_can_not_be_moved_or_changed_from_another_workspace(workspace, slug):
    """The answer is the same for a row of another workspace and for one that isn't there."""
    borea = Workspace.objects.create(slug="borea", name="Borea")
    row = knowledge(borea if slug == "atlas" else workspace, "theirs")
    before = all_rows()

    told = [errors(take([{"id": pk, "workspace": slug, "content": "mine"}]))[1][0] for pk in (row.pk, row.pk + 1)]

    assert told[0] == f"{slug} has no knowledge entry {row.pk}; to add it as a new row, clear its id"
    assert told[1] == told[0].replace(str(row.pk), str(row.pk + 1))
    assert all_rows() == before


@pytest.mark.parametrize(
    ("table", "make_row", "own"),
    [
        ("knowledge", {"content": "x", "category": "learned_fact"}, "content_id"),
        ("key_values", {"value": "1"}, "key"),
    ],
)
def test_the_agents_own_id_of_a_row_can_not_change(workspace, table, make_row, own):
    row = EXPORTS[table].model.objects.create(workspace=workspace, **make_row, **{own: "first"})

    judged = take([{"id": row.pk, "workspace": "atlas", own: "second"}], table)

    assert errors(judged)[1] == [
        f"{own}: {'knowledge entry' if own == 'content_id' else 'key-value'} {row.pk} has first, which can't change"
    ]


def test_rows_without_an_id_are_matched_by_the_agents_id_and_content(workspace):
    named, says = knowledge(workspace, content_id="a1"), knowledge(workspace, "likes cats")

    judged = take(
        [
            {"workspace": "atlas", "content_id": "a1", "category": "learned_fact", "content": "likes green tea"},
            {"workspace": "atlas", "content_id": "", "category": "learned_fact", "content": "Likes cats "},
        ]
    )

    assert judged.counts["new"] == 0
    named.refresh_from_db()
    assert named.content == "likes green tea"
    assert KnowledgeEntry.objects.count() == 2
    assert KnowledgeEntry.objects.get(pk=says.pk).content == "Likes cats "


def test_the_same_row_twice_is_wrong(workspace):
    row = knowledge(workspace)

    judged = take(
        [
            {"id": row.pk, "workspace": "atlas", "content": "a", "category": "learned_fact"},
            {"id": row.pk, "workspace": "atlas", "content": "b", "category": "learned_fact"},
            {"id": "", "workspace": "atlas", "content": "c", "category": "learned_fact"},
            {"id": "", "workspace": "atlas", "content": " C", "category": "learned_fact"},
        ]
    )

    assert errors(judged) == {2: ["it is the same as row 1"], 4: ["it is the same as row 3"]}


def test_an_unknown_category_becomes_learned_fact_with_a_note(workspace):
    row = knowledge(workspace, category="error_pattern")

    judged = take(
        [
            {"id": row.pk, "workspace": "atlas", "category": "", "content": "kept"},
            {"id": "", "workspace": "atlas", "category": "mood", "content": "new"},
        ]
    )

    assert [row.notes for row in judged.rows] == [[], ["the category mood is unknown; learned_fact is used"]]
    assert list(KnowledgeEntry.objects.order_by("id").values_list("category", flat=True)) == [
        "error_pattern",
        "learned_fact",
    ]


def test_missing_columns_and_counters_do_not_change(workspace):
    row = knowledge(workspace, source="chat", tags=["a"], access_count=7)

    take([{"id": row.pk, "workspace": "atlas", "content": "likes coffee", "access_count": "3"}])

    row.refresh_from_db()
    assert (row.content, row.source, row.tags, row.access_count) == ("likes coffee", "chat", ["a"], 7)


def test_an_empty_cell_keeps_a_secret_which_no_preview_shows(workspace):
    row = KeyValue.objects.create(workspace=workspace, key="password", value="s3cret", is_secret=True)

    assert take([{"workspace": "atlas", "key": "password", "value": ""}], "key_values").counts == {"unchanged": 1}
    judged = take([{"workspace": "atlas", "key": "password", "value": "n3w"}], "key_values")

    row.refresh_from_db()
    assert row.value == "n3w"
    assert judged.rows[0].changes == [("value", "(hidden)", "(hidden)")]


def test_a_value_that_looks_secret_by_now_is_masked_in_its_preview(workspace):
    judged = take([{"workspace": "atlas", "key": "api_key", "value": "sk-" + "a" * 20}], "key_values")

    assert KeyValue.objects.get().is_secret
    assert judged.rows[0].changes == [("value", None, "(hidden)")]


@pytest.mark.parametrize(
    ("headers", "what"), [(["workspace", "colour"], "no column colour"), (["content"], "column workspace is missing")]
)
def test_unknown_columns_are_refused(workspace, headers, what):
    with raises_code("unfit_table", match=what):
        take([dict.fromkeys(headers, "x")])


def test_more_rows_than_a_table_may_have_are_refused(workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.lib.tables.MAX_ROWS", 1)
    rows = [knowledge(workspace), knowledge(workspace, "likes cats")]

    with pytest.raises(TableTooLarge):
        take([{"id": row.pk, "workspace": "atlas"} for row in rows])
    with pytest.raises(TableTooLarge):
        export_table("knowledge", by=By(PERSON, NOW))


def test_more_text_than_a_table_may_have_is_refused(workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.lib.tables.MAX_BYTES", 1000)
    knowledge(workspace, "x" * 1000)

    with pytest.raises(TableTooLarge, match="MB"):
        export_table("knowledge", by=By(PERSON, NOW))


@pytest.mark.parametrize("table", ["history", "facts", "sessions", "entries"])
def test_append_only_tables_can_not_be_imported(table):
    with pytest.raises(KeyError):
        take([{"workspace": "atlas"}], table)


def test_forgotten_content_is_not_imported(workspace):
    knowledge(workspace, "Anna Weber likes tea")
    wish = ErasureRequest("phrase", ("Anna Weber",))
    expected = plan_forget(workspace, wish).total
    apply_forget(workspace, wish, expected=expected, reason="", by=By(PERSON, NOW))
    rows = [{"workspace": "atlas", "content": text} for text in ("anna weber was here", "tea is hot")]

    judged = take(rows)

    assert list(errors(judged)) == [1]
    assert "forgotten" in errors(judged)[1][0]
    assert KnowledgeEntry.objects.count() == 1


def test_rows_from_a_forgotten_source_are_not_imported(workspace):
    knowledge(workspace, "Anna Weber likes tea", source="interview")
    wish = ErasureRequest("source", ("interview",))
    expected = plan_forget(workspace, wish).total
    apply_forget(workspace, wish, expected=expected, reason="", by=By(PERSON, NOW))

    judged = take([{"workspace": "atlas", "content": "She likes tea", "source": "interview "}])

    assert "forgotten" in errors(judged)[1][0]
    assert not KnowledgeEntry.objects.exists()

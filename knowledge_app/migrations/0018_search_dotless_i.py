from django.db import migrations

from memoryhub.lib.search.operations import RebuildSearchIndex, ReplaceSearchFunctions


class Migration(migrations.Migration):
    """Index ı as i, in the tables of both apps, and on PostgreSQL new rows sooner."""

    dependencies = [
        ("knowledge_app", "0017_accepted_proposals"),
        ("sessions_app", "0016_digests_of_deleted_sessions"),
    ]

    operations = [
        ReplaceSearchFunctions(),
        RebuildSearchIndex(
            "sessions_app_entry",
            content=["content", "tool_calls"],
            json=["tool_calls"],
            meta=["name"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
            kind="kind",
            hidden_if=["is_injected", "is_rewound"],
        ),
        RebuildSearchIndex(
            "sessions_app_summary",
            content=["content"],
            time="ends_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        RebuildSearchIndex(
            "sessions_app_session",
            content=["title", "key", "summary_text", "note"],
            scope={"w": "workspace_id", "s": "id"},
        ),
        RebuildSearchIndex("knowledge_app_fact", content=["text"], meta=["section", "category"]),
        RebuildSearchIndex("knowledge_app_memoryrevision", content=["content"], scope={"d": "document_id"}),
        RebuildSearchIndex(
            "knowledge_app_historyentry",
            content=["content"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        RebuildSearchIndex(
            "knowledge_app_knowledgeentry",
            content=["content"],
            meta=["category", "source", "tags"],
            json=["tags"],
            time="created_at",
        ),
        RebuildSearchIndex(
            "knowledge_app_observation", content=["content"], meta=["category", "source"], time="occurred_at"
        ),
        RebuildSearchIndex("knowledge_app_keyvalue", content=["key", "value"], hidden_by={"value": "is_secret"}),
        RebuildSearchIndex("knowledge_app_cachedresponse", content=["preview", "response"], meta=["model"]),
    ]

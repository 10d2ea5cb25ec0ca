from django.db import migrations

from memoryhub.lib.search.operations import RebuildSearchIndex


class Migration(migrations.Migration):
    """Index ß as ss, emoji as words, and text without invisible characters."""

    dependencies = [("knowledge_app", "0008_receipts_of_the_hub"), ("sessions_app", "0009_search_folding")]

    operations = [
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

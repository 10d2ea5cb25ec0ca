from django.db import migrations

from memoryhub.lib.search.indexes import is_installed
from memoryhub.lib.search.operations import CreateSearchIndex


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0001_initial"), ("sessions_app", "0002_search")]

    operations = [
        CreateSearchIndex("knowledge_app_fact", content=["text"], meta=["section", "category"]),
        CreateSearchIndex("knowledge_app_memoryrevision", content=["content"], scope={"d": "document_id"}),
        CreateSearchIndex(
            "knowledge_app_historyentry",
            content=["content"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        CreateSearchIndex(
            "knowledge_app_knowledgeentry",
            content=["content"],
            meta=["category", "source", "tags"],
            json=["tags"],
            time="created_at",
        ),
        CreateSearchIndex(
            "knowledge_app_observation", content=["content"], meta=["category", "source"], time="occurred_at"
        ),
        CreateSearchIndex("knowledge_app_keyvalue", content=["key", "value"], hidden_by={"value": "is_secret"}),
        CreateSearchIndex("knowledge_app_cachedresponse", content=["preview", "response"], meta=["model"]),
    ]

    def apply(self, project_state, schema_editor, collect_sql=False):
        """Do nothing in a database of commit 827a92b, whose 0005_search has created these indexes."""
        if is_installed(schema_editor.connection, "knowledge_app_fact"):
            return project_state
        return super().apply(project_state, schema_editor, collect_sql)

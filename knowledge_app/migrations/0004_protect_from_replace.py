from django.db import migrations

from memoryhub.lib.database.append_only import Protect


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0003_history_versions"), ("sessions_app", "0006_audit_chain")]

    operations = [
        Protect("knowledge_app_memoryrevision"),
        Protect("knowledge_app_historyentry", free=("session_id", "run_id", "withdrawn_at", "is_archived")),
    ]

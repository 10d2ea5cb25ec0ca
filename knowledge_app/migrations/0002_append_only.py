from django.db import migrations

from memoryhub.lib.append_only import Protect


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0001_initial"), ("sessions_app", "0002_append_only")]

    operations = [
        Protect("knowledge_app_memoryrevision"),
        Protect("knowledge_app_historyentry", free=("session_id", "run_id", "withdrawn_at", "is_archived")),
    ]

from django.db import migrations

from memoryhub.lib.database.add_column import AddColumn
from memoryhub.lib.database.fields import JSONTextField


class Migration(migrations.Migration):

    dependencies = [("knowledge_app", "0015_decided_parts")]

    operations = [
        AddColumn("forgotten", "files", JSONTextField(blank=True, db_default={}, default=dict)),
    ]

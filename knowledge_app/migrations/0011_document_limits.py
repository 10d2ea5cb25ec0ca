from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn
from memoryhub.lib.render_once import RenderOnce


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0010_graph_layout")]

    operations = [
        RenderOnce(
            [
                AddColumn(
                    "memorydocument", "separator", models.CharField(max_length=16, blank=True, default="", db_default="")
                ),
                AddColumn("memorydocument", "char_limit", models.PositiveIntegerField(null=True, blank=True)),
                AddColumn("memorydocument", "byte_limit", models.PositiveIntegerField(null=True, blank=True)),
                AddColumn("memorydocument", "line_limit", models.PositiveIntegerField(null=True, blank=True)),
                AddColumn("memorydocument", "is_instructions", models.BooleanField(default=False, db_default=False)),
            ]
        ),
    ]

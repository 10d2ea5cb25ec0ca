import django.db.models.deletion
from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ("knowledge_app", "0012_corrected_facts"),
        ('sessions_app', '0013_source_folders'),
    ]

    operations = [
        AddColumn(
            model_name='memorydocument',
            name='folder',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='documents', to='sessions_app.sourcefolder'),
        ),
    ]

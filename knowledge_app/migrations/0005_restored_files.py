from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0004_protect_from_replace")]

    operations = [
        migrations.AddField("heldchange", "file_restored_at", models.DateTimeField(null=True, blank=True)),
    ]

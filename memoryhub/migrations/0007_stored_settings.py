import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0006_dismissed_jobs")]

    operations = [
        migrations.CreateModel(
            name="StoredSetting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64, unique=True)),
                ("value", models.TextField()),
                ("updated_by", models.CharField(max_length=200)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AlterField("job", "kind", models.CharField(max_length=16, choices=[("export", "Export"), ("compression", "Compression"), ("rebuild", "Rebuild"), ("import", "Import"), ("sync", "Sync"), ("backup", "Backup"), ("backup_check", "Check of a backup"), ("webhook", "Webhook delivery"), ("sweep", "Sweep"), ("pruning", "Pruning"), ("erasure", "Erasure"), ("demo", "Demo")])),
    ]

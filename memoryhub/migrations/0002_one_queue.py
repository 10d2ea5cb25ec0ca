import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Process",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=300, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("web", "Web"), ("worker", "Worker"), ("command", "Command")], max_length=16
                    ),
                ),
                ("host", models.CharField(max_length=200)),
                ("pid", models.PositiveIntegerField()),
                ("home", models.CharField(blank=True, max_length=300)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seen_at", models.DateTimeField()),
            ],
            options={"verbose_name_plural": "processes"},
        ),
        migrations.RemoveField(model_name="job", name="heartbeat_at"),
        migrations.AddField("job", "attempt_count", models.PositiveIntegerField(default=0)),
        migrations.AddField("job", "fencing_number", models.PositiveIntegerField(default=0)),
        migrations.AddField("job", "home", models.CharField(blank=True, max_length=300)),
        migrations.AddField("job", "lease_owner", models.CharField(blank=True, max_length=300)),
        migrations.AddField("job", "not_before", models.DateTimeField(default=django.utils.timezone.now)),
        migrations.AddField("job", "takeover_count", models.PositiveIntegerField(default=0)),
        migrations.AddField("job", "unique_key", models.CharField(blank=True, max_length=200)),
        migrations.AlterField(
            "job",
            "kind",
            models.CharField(
                choices=[
                    ("export", "Export"),
                    ("compression", "Compression"),
                    ("rebuild", "Rebuild"),
                    ("import", "Import"),
                    ("sync", "Sync"),
                    ("backup", "Backup"),
                    ("backup_check", "Check of a backup"),
                    ("webhook", "Webhook delivery"),
                    ("sweep", "Sweep"),
                    ("pruning", "Pruning"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddIndex(
            "job", models.Index(condition=models.Q(("status", "queued")), fields=["not_before"], name="job_due")
        ),
        migrations.AddConstraint(
            "job",
            models.UniqueConstraint(
                condition=models.Q(
                    ("cancel_asked_at", None),
                    ("status__in", ("queued", "running")),
                    models.Q(("unique_key", ""), _negated=True),
                ),
                fields=("unique_key",),
                name="live_job_once",
            ),
        ),
    ]

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
    ]

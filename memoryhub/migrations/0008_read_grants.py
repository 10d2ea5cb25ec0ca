import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0007_stored_settings"), ("sessions_app", "0012_projects")]

    operations = [
        migrations.CreateModel(
            name="ReadGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("token", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="read_grants", to="memoryhub.apitoken")),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="read_grants", to="sessions_app.workspace")),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("token", "workspace"), name="read_grant_once")]},
        ),
    ]

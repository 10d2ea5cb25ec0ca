from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0005_erasure_jobs")]

    operations = [
        migrations.AddField("job", "dismissed_at", models.DateTimeField(null=True, blank=True)),
    ]

from django.db import migrations


class Migration(migrations.Migration):
    """Change nothing, but be the latest migration of this app also where a squash of another app replaces the others."""

    dependencies = [("memoryhub", "0013_ended_identities")]

    operations = []

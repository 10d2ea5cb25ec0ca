from django.db import migrations

from memoryhub.lib.append_only import Protect


class Migration(migrations.Migration):
    """Audit records name sessions and keys: forgetting redacts those, behind the guard, and says so in a record."""

    dependencies = [("sessions_app", "0005_curation")]

    operations = [Protect("sessions_app_auditrecord")]

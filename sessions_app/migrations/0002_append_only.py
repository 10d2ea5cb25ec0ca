from django.db import migrations

from memoryhub.lib.append_only import Protect


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_initial")]

    operations = [
        Protect("sessions_app_entry", free=("summary_id",)),
        Protect("sessions_app_auditrecord", guarded=False),
    ]

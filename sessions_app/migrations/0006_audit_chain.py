import django.db.models.deletion
import django.utils.timezone
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from memoryhub.lib.database.append_only import Protect
from sessions_app.services.audit_chain import audit_mac

BATCH_ROWS = 1_000


def add_macs(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Compute the MACs of existing audit records, which from now on can't be changed unnoticed."""
    records = apps.get_model("sessions_app", "AuditRecord")._default_manager.using(schema_editor.connection.alias)
    last = 0
    while batch := list(records.filter(pk__gt=last).order_by("pk")[:BATCH_ROWS]):
        for record in batch:
            record.mac = audit_mac(record)
        records.bulk_update(batch, ["mac"], batch_size=200)
        last = batch[-1].pk


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0005_knowledge_in_context")]

    operations = [
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("record_count", models.PositiveIntegerField()),
                ("mac", models.CharField(max_length=64)),
                ("key_check", models.CharField(max_length=8)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField("auditrecord", "mac", models.CharField(blank=True, default="", max_length=64)),
        migrations.AddField(
            "auditrecord",
            "seal",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="records",
                to="sessions_app.auditseal",
            ),
        ),
        migrations.RunPython(add_macs, migrations.RunPython.noop, elidable=True),
        migrations.AlterField("auditrecord", "mac", models.CharField(blank=True, max_length=64, unique=True)),
        migrations.AddIndex("auditrecord", models.Index(fields=["seal", "id"], name="audit_of_seal")),
        Protect("sessions_app_entry", free=("summary_id",)),
        Protect("sessions_app_auditrecord", free=("seal_id",)),
        Protect("sessions_app_auditseal", guarded=False),
    ]

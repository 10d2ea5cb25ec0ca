from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def enable_for_grip(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Grip sends its knowledge with each prompt."""
    apps.get_model("sessions_app", "Workspace").objects.filter(layout="grip").update(knowledge_in_context=True)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0004_remove_pending_state")]

    operations = [
        migrations.AddField("workspace", "knowledge_in_context", models.BooleanField(default=False)),
        migrations.RunPython(enable_for_grip, migrations.RunPython.noop),
    ]

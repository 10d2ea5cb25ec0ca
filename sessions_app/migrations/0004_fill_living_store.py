from django.db import migrations
from django.db.models import Count, F, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce


def fill(apps, schema_editor):
    """Give each session the length of its current epoch, and mark the entries that their agent counted."""
    Session = apps.get_model("sessions_app", "Session")
    Entry = apps.get_model("sessions_app", "Entry")
    current = Entry.objects.filter(session=OuterRef("pk"), epoch=OuterRef("epoch")).order_by().values("session")
    length = Subquery(current.annotate(n=Count("id")).values("n"), output_field=IntegerField())
    Session.objects.update(next_position=Coalesce(length, 0))
    MutationGuard = apps.get_model("sessions_app", "MutationGuard")
    guard = MutationGuard.objects.create(reason="token_method of entries that their agent counted")
    Entry.objects.filter(source_fields__contains="tokenCount").update(token_method="source")
    guard.delete()
    # Agents whose folders were imported fold for themselves; until now the setting had no effect.
    apps.get_model("sessions_app", "Workspace").objects.exclude(path="").update(auto_compress=False)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0003_living_store")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]

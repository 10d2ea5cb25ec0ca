from typing import Any

from django.conf import settings
from django.db import migrations, models


def keep_disconnected(apps: Any, schema_editor: Any) -> None:
    """Write a row for people who disconnected earlier, when theirs was deleted. Its subject isn't known any more."""
    issuer = settings.MEMORYHUB_OIDC_ISSUER
    if not issuer:
        return
    identities = apps.get_model("memoryhub", "Identity").objects
    people = apps.get_model(*settings.AUTH_USER_MODEL.split(".")).objects
    records = apps.get_model("sessions_app", "AuditRecord").objects.filter(action="account.identity_removed")
    for pk, at in dict(records.order_by("at").values_list("object_id", "at")).items():
        person = people.filter(pk=pk).first()
        if person and not identities.filter(user=person, issuer__in=[issuer, f"{issuer}/"]).exists():
            identities.create(user=person, issuer=issuer, subject="", created_at=at, ended_at=at)


class Migration(migrations.Migration):
    dependencies = [
        ("memoryhub", "0012_passkeys"),
        ("sessions_app", "0015_indexes_for_every_page"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="identity", name="identity_once"),
        migrations.RemoveConstraint(model_name="identity", name="identity_of_user_once"),
        migrations.AddField(
            model_name="identity",
            name="ended_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)), fields=("issuer", "subject"), name="living_identity_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)), fields=("user", "issuer"), name="living_identity_of_user_once"
            ),
        ),
        migrations.RunPython(keep_disconnected, migrations.RunPython.noop),
    ]

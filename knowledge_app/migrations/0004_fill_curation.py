from django.db import migrations

from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.secrets import looks_secret

BATCH = 500


def fill(apps, _schema_editor):
    entries = apps.get_model("knowledge_app", "KnowledgeEntry")
    rows = []
    for row in entries.objects.filter(identity="").iterator(chunk_size=BATCH):
        row.identity = content_id(row.category, row.content)
        rows.append(row)
    entries.objects.bulk_update(rows, ["identity"], batch_size=BATCH)
    key_values = apps.get_model("knowledge_app", "KeyValue")
    secret = [
        pk for pk, key, value in key_values.objects.values_list("pk", "key", "value").iterator()
        if looks_secret(key, value)
    ]
    for start in range(0, len(secret), BATCH):
        key_values.objects.filter(pk__in=secret[start : start + BATCH]).update(is_secret=True)


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0003_curation")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

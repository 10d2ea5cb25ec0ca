"""Which revision corrected a fact; for present facts, the latest one by a person that first had its words."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn


def find_corrections(apps: Any, editor: Any) -> None:
    revisions = apps.get_model("knowledge_app", "MemoryRevision").objects.using(editor.connection.alias)
    facts = apps.get_model("knowledge_app", "Fact").objects.using(editor.connection.alias)
    by_people = revisions.filter(author_kind__in=("person", "command"), number__gt=1).order_by("document", "number")
    for revision in by_people.iterator(chunk_size=4):
        earlier = revisions.filter(document=revision.document_id, number__lt=revision.number).order_by("-number")
        before = earlier.values_list("content", flat=True).first() or ""
        older = facts.filter(document=revision.document_id, died=None, born__number__lt=revision.number)
        words = older.values_list("pk", "text").iterator()
        new = [pk for pk, text in words if text in revision.content and text not in before]
        for start in range(0, len(new), 500):
            facts.filter(pk__in=new[start : start + 500]).update(corrected=revision)


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0011_document_limits")]

    operations = [
        AddColumn(
            model_name="fact",
            name="corrected",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="facts_corrected",
                to="knowledge_app.memoryrevision",
            ),
        ),
        migrations.RunPython(find_corrections, migrations.RunPython.noop),
    ]

"""Which held change a revision accepts, and which facts have words that a person accepted from a proposal."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn
from memoryhub.lib.database.append_only import Protect
from memoryhub.lib.text.facts import fact_lines

PEOPLE = ("person", "command")


def find_acceptances(apps: Any, editor: Any) -> None:
    alias = editor.connection.alias
    changes = apps.get_model("knowledge_app", "HeldChange").objects.using(alias)
    revisions = apps.get_model("knowledge_app", "MemoryRevision").objects.using(alias)
    facts = apps.get_model("knowledge_app", "Fact").objects.using(alias)
    accepted = changes.filter(status="approved").exclude(author_kind__in=PEOPLE).select_related("document")
    for change in accepted.order_by("pk").iterator(chunk_size=4):
        made = revisions.filter(document=change.document_id, created_at=change.decided_at, proposal=None)
        made = made.filter(author_kind__in=PEOPLE, reason="approved a held change").order_by("number")
        pk = made.values_list("pk", flat=True).first()
        if pk is None:
            continue
        revisions.filter(pk=pk).update(proposal=change.pk)
        words = {line.text for line in fact_lines(change.proposed, change.document.separator)}
        for place in ("born", "corrected"):
            rows = facts.filter(**{place: pk}).values_list("pk", "text")
            own = [fact for fact, text in rows.iterator() if text in words]
            for start in range(0, len(own), 500):
                facts.filter(pk__in=own[start : start + 500], **{place: pk}).update(accepted=pk, corrected=None)


class Migration(migrations.Migration):
    dependencies = [("knowledge_app", "0016_forgotten_files")]

    operations = [
        AddColumn(
            model_name="memoryrevision",
            name="proposal",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="revisions",
                to="knowledge_app.heldchange",
            ),
        ),
        AddColumn(
            model_name="fact",
            name="accepted",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="facts_accepted",
                to="knowledge_app.memoryrevision",
            ),
        ),
        migrations.RunPython(find_acceptances, migrations.RunPython.noop),
        Protect("knowledge_app_memoryrevision", free=("proposal_id",)),
    ]

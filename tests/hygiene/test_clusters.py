from __future__ import annotations

import pytest
from django.urls import reverse

from knowledge_app.models import Concern, Fact, KnowledgeEntry
from memoryhub.hygiene.resolution import keep_one, undo_resolution
from memoryhub.inbox.queue import QueueScope, count_by_kind
from sessions_app.models import Workspace
from tests.hygiene.test_pages import SAME, act, page, pks
from tests.hygiene.test_scanning import BY, facts, knowledge, scan

pytestmark = pytest.mark.django_db


def duplicates() -> int:
    return count_by_kind(QueueScope(Workspace.objects.all()))["duplicate"]


def test_copies_are_one_cluster(workspace, editor, url):
    for mark in ("", "!", "."):
        knowledge(workspace, f"{SAME}{mark}")
    knowledge(workspace, "The courier comes on Friday"), knowledge(workspace, "The courier comes on Friday!")
    scan(workspace)

    html = page(editor, url, kind="duplicate")

    assert Concern.objects.count() == 3
    assert duplicates() == 2
    assert html.count('id="concern-') == 2
    assert "3 copies" in html
    assert html.count("Keep this, withdraw the other 2") == 3
    assert 'Duplicates <span class="count">2</span>' in html


def test_a_copy_is_kept_and_the_others_withdrawn(workspace, editor):
    rows = [knowledge(workspace, f"{SAME}{mark}") for mark in ("", "!", ".")]
    scan(workspace)
    address = f"{reverse('keep-one', args=[workspace.slug])}?stays=knowledge-{rows[1].pk}"

    answer = editor.post(address, {"only": pks()[0]}, follow=True).content.decode()

    assert "2 rows withdrawn." in answer
    assert KnowledgeEntry.objects.get(withdrawn_at=None) == rows[1]
    assert pks() == []


def test_dismissing_a_cluster_dismisses_all_its_pairs(workspace, editor):
    for mark in ("", "!", "."):
        knowledge(workspace, f"{SAME}{mark}")
    scan(workspace)

    act(editor, workspace, "dismiss-concerns", pks()[0])

    assert set(Concern.objects.values_list("status", flat=True)) == {"dismissed"}


@pytest.mark.parametrize("is_fact", [True, False])
def test_the_merged_text_is_stored_and_undone(workspace, is_fact):
    texts = [f"{SAME}{mark}" for mark in ("", "!", ".")]
    if is_fact:
        facts(workspace, *texts)
    else:
        for text in texts:
            knowledge(workspace, text)
    scan(workspace)
    concern = Concern.objects.order_by("id").first()
    stays = (concern.table, concern.object_id)

    run = keep_one(workspace, concern, stays=stays, text=f"{SAME}, next to the harbour", by=BY)

    living = Fact.objects.filter(died=None) if is_fact else KnowledgeEntry.objects.filter(withdrawn_at=None)
    assert [getattr(row, "text", "") or row.content for row in living] == [f"{SAME}, next to the harbour"]
    undo_resolution(run, by=BY)
    assert sorted(getattr(row, "text", "") or row.content for row in living.all()) == sorted(texts)
    assert not is_fact or not living.filter(corrected__isnull=False).exists()


def test_the_mirror_of_a_grip_agent_is_no_duplicate(workspace):
    Workspace.objects.filter(pk=workspace.pk).update(layout="grip")
    facts(workspace, SAME)
    knowledge(workspace, SAME)
    scan(Workspace.objects.get(pk=workspace.pk))
    assert pks(kind="duplicate") == []

    knowledge(workspace, f"{SAME}!")
    scan(Workspace.objects.get(pk=workspace.pk))

    [concern] = Concern.objects.filter(kind="duplicate")
    assert (concern.table, concern.other_table) == ("knowledge", "knowledge")


def test_rows_with_erased_text_are_not_compared(workspace):
    knowledge(workspace, "[forgotten] runs the pool with 4 pumps")
    knowledge(workspace, "[forgotten] runs the pool with 5 pumps")
    knowledge(workspace, "Bo runs the pool with 4 pumps")
    knowledge(workspace, "Bo runs the pool with 5 pumps")

    scan(workspace)

    [found] = Concern.objects.filter(kind__in=("contradiction", "duplicate"))
    texts = KnowledgeEntry.objects.filter(pk__in=[found.object_id, found.other_id])
    assert all(row.content.startswith("Bo") for row in texts)

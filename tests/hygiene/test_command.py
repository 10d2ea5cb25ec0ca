"""The hygiene command, which never shows the secrets it found."""

import json

import pytest
from django.core.management import call_command
from django.utils import timezone

from knowledge_app.models import Concern, KnowledgeEntry
from tests.hygiene.test_pages import SAME, pks, plant
from tests.hygiene.test_scanning import OLD, TOKEN, knowledge

pytestmark = pytest.mark.django_db


def test_no_command_shows_a_planted_secret(workspace, command, capsys):
    plant(workspace)

    document = command("hygiene", workspace.slug)
    call_command("hygiene", workspace.slug, "list")
    printed = json.dumps(document, ensure_ascii=False) + capsys.readouterr().out

    assert len(document["concerns"]) == Concern.objects.count()
    assert "•••" in printed
    assert TOKEN not in printed
    assert "opensesame" not in printed


def test_the_command_scans_lists_resolves_and_undoes(workspace, command):
    knowledge(workspace, f"use {TOKEN}")
    rows = [knowledge(workspace, SAME), knowledge(workspace, f"{SAME}!")]

    scanned = command("hygiene", workspace.slug, "scan")
    assert scanned["status"] == "done"
    assert scanned["open"] | {"secret": 1, "duplicate": 1} == scanned["open"]
    assert scanned["now"] == scanned["scores"][0]["score"]
    (secret,) = command("hygiene", workspace.slug, "list", "--kind", "secret")["concerns"]
    assert (secret["what"], secret["rows"][0]["text"]) == ("holds a GitHub token", "use •••")

    done = command("hygiene", workspace.slug, "dismiss", str(secret["id"]))
    assert done["done"] == "1 finding dismissed"
    assert command("hygiene", workspace.slug, "score")["open"]["secret"] == 0
    command("hygiene", workspace.slug, "undo", str(done["run"]))
    assert command("hygiene", workspace.slug, "score")["open"]["secret"] == 1

    (pair,) = command("hygiene", workspace.slug, "list", "--kind", "duplicate")["concerns"]
    assert [row["id"] for row in pair["rows"]] == [row.pk for row in rows]
    command("hygiene", workspace.slug, "keep-other", str(pair["id"]))
    assert list(KnowledgeEntry.objects.exclude(withdrawn_at=None).values_list("pk", flat=True)) == [rows[0].pk]


def test_the_command_reviews_verifies_withdraws_and_reopens(workspace, command):
    for text in ("Ines likes tea", "Bo plays chess", "Cy sails"):
        knowledge(workspace, text, created_at=OLD)
    command("hygiene", workspace.slug, "scan")
    first, second, third = map(str, pks())

    assert command("hygiene", workspace.slug, "review", first, status=1)["error"]["code"] == "wrong_day"
    command("hygiene", workspace.slug, "review", first, "--by", "2999-01-01")
    command("hygiene", workspace.slug, "verify", second)
    command("hygiene", workspace.slug, "dismiss", third)
    command("hygiene", workspace.slug, "reopen", third)
    command("hygiene", workspace.slug, "withdraw", third)

    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 2
    assert pks() == []
    assert command("hygiene", workspace.slug, "withdraw", third, status=1)["error"]["code"] == "nothing_chosen"
    assert command("hygiene", workspace.slug, "undo", "999999", status=1)["error"]["code"] == "not_found"
    assert command("hygiene", "nobody", status=1)["error"]["code"] == "not_found"


def test_the_command_prints_text(workspace, capsys):
    knowledge(workspace, "ana@example.com\x1b[2J", created_at=timezone.now())

    call_command("hygiene", workspace.slug, "score")
    call_command("hygiene", workspace.slug, "scan")
    call_command("hygiene", workspace.slug, "list")
    call_command("hygiene", workspace.slug, "dismiss", pks()[0])

    printed = capsys.readouterr().out
    assert "never scanned; open: nothing" in printed
    assert "50 of 100; open: 1 personal" in printed
    assert "holds an e-mail address" in printed
    assert "1 finding dismissed; undo with: undo" in printed
    assert "\x1b" not in printed

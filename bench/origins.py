"""Measure how often the true message of a fact is shown first, and among the first three.

Facts of the samples in ../shared/fixtures are compared with the messages named below. LoCoMo's facts (its
"observations", each with the id of its turn) are compared with the turns of ../shared/bench/locomo_dev.json. That
file has no facts: pass a file with ``--facts``, one ``CONVERSATION|TURN|FACT`` per line. What isn't there is left
out. Facts without a message in their workspace, and LoCoMo's facts in other conversations, show how often a wrong
message is shown.

    python bench/origins.py [--facts FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SHARED = ROOT.parent / "shared"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
Place = tuple[str, int]  # a session's key and a position
TELEGRAM, FEISHU = "telegram:482913377", "feishu:ou_3f9c2b71a8d64e0fb2c1"
TEAM: dict[str, list[Place]] = {  # by the beginning of a fact: the messages that state it, none if there is none
    "Maya Okafor: ": [(TELEGRAM, 0), (TELEGRAM, 4)],
    "Jonas Weber": [(TELEGRAM, 0), (TELEGRAM, 19)],
    "Li Jing": [(TELEGRAM, 0), (FEISHU, 0)],
    "Priya Nair": [(TELEGRAM, 4)],
    "Tomás Silva": [(TELEGRAM, 0)],
    "2026-02-17": [(TELEGRAM, 31)],
    "2026-02-12": [(TELEGRAM, 19)],
    "Label service config": [(TELEGRAM, 11), (TELEGRAM, 12)],
    "Carriers": [("whatsapp:447700900123@s.whatsapp.net", 3)],
    "Tracking DB pool": [(TELEGRAM, 45)],
    "Retro": [(TELEGRAM, 36)],
    "时间一律": [(FEISHU, 6)],
    "标签预览": [(FEISHU, 8)],
    "Paging policy": [],
}
GOLD: dict[str, dict[str, list[Place]]] = {
    "nanobot-0.1": TEAM,
    "nanobot-current": TEAM
    | {
        "2026-08-27": [("slack:C09ABTESTS:1787300412.118300", 4)],
        "2026-08-26": [(TELEGRAM, 13)],
        "Maya Okafor, ": [(TELEGRAM, 0)],
        "Short answers": [(TELEGRAM, 4)],
        "On-call": [(TELEGRAM, 4)],
    },
    "grip": {
        "Maya prefers": [],
        "PostgreSQL 16": [],
        "Grafana": [],
        "Image tags": [],
        "Q1 2026": [(TELEGRAM, 1), (TELEGRAM, 2), (TELEGRAM, 3)],
        "PostNL pilot": [(TELEGRAM, 4), (TELEGRAM, 5)],
        "Never use": [(TELEGRAM, 6)],
        "Carrier client": [],
        "Nightly backup": [],
        "pg_restore": [],
        "东京": [],
    },
}


class Score:
    """Counts of facts with a true message, by the rank at which it is shown, and of wrong messages for others."""

    def __init__(self) -> None:
        self.facts = self.first = self.among_three = self.without = self.wrong = 0

    def add(self, shown: Sequence[Any], gold: Sequence[Any]) -> None:
        if not gold:
            self.without += 1
            self.wrong += bool(shown)
            return
        self.facts += 1
        self.first += bool(shown) and shown[0] in gold
        self.among_three += any(one in gold for one in shown[:3])

    def report(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "first": _share(self.first, self.facts),
            "among_three": _share(self.among_three, self.facts),
            "facts_without_message": self.without,
            "wrong_message_shown": _share(self.wrong, self.without),
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def measure_sample(name: str) -> Score:
    """Import a sample, and compare the probable messages of its facts with GOLD."""
    from knowledge_app.models import Fact, FactSource
    from memoryhub.sync.importing import import_workspace
    from sessions_app.services.audit import Actor, By

    workspace = import_workspace(SHARED / "fixtures" / name, by=By(Actor("command", "bench"), NOW)).workspace
    score = Score()
    for fact in Fact.objects.filter(workspace=workspace, died=None).order_by("id"):
        gold = next(places for start, places in GOLD[name].items() if fact.text.startswith(start))
        sources = fact.sources.filter(kind=FactSource.Kind.PROBABLY_FROM).select_related("entry__session")
        shown = [
            (source.entry.session.key, source.entry.position) for source in sources.order_by("id") if source.entry
        ]
        score.add(shown, gold)
    return score


def measure_locomo(path: Path) -> dict[str, Score]:
    """Return the scores of LoCoMo's facts in their own conversation, and in the others (which lack them)."""
    from bench.search.quality import load
    from memoryhub.origins.inference import probable_messages

    data = json.loads((SHARED / "bench" / "locomo_dev.json").read_text())
    loaded = {one["id"]: (one["authors"], *load(one)) for one in data["conversations"]}
    own, others = Score(), Score()
    for line in path.read_text().splitlines():
        conversation, turn, text = line.split("|", 2)
        for name, (authors, workspace, names) in loaded.items():
            said = text
            if name != conversation:  # the same fact about people of this conversation
                for mine, theirs in zip(loaded[conversation][0], authors, strict=True):
                    said = said.replace(mine, theirs)
            shown = [names[entry.pk] for entry, _ in probable_messages(workspace, said, until=NOW, now=NOW)]
            (own if name == conversation else others).add(shown, [turn] if name == conversation else [])
    return {"own conversation": own, "other conversations": others}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how often the true message of a fact is shown.")
    parser.add_argument("--facts", type=Path, help="LoCoMo's facts: CONVERSATION|TURN|FACT per line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"MEMORYHUB_HOME": home, "MEMORYHUB_QUIET_SECONDS": "0", "DATABASE_URL": ""}
        os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        report = {name: measure_sample(name).report() for name in GOLD if (SHARED / "fixtures" / name).exists()}
        if options.facts and (SHARED / "bench" / "locomo_dev.json").exists():
            report |= {f"LoCoMo, {name}": score.report() for name, score in measure_locomo(options.facts).items()}
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()

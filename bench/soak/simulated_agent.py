"""A simulated agent that edits a memory file: one random line of its own every 50 ms.

    python bench/soak/simulated_agent.py FILE LEDGER EDITS [--rename-only]

Half of the writes truncate the file, half rename a new one into place. Like a real agent, it writes what it read a
moment before, and rests after every 20 edits, which gives the hub a chance to write.

Each edit puts a new token into one line. The ledger counts a token as ``replaced`` if the agent itself saw it in the
file and overwrote it. All others are ``owed``: at the end each must be in the file, a revision or a held change.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

PAUSE_SECONDS = 0.05
REST_EDITS, REST_SECONDS = 20, 0.3
HALF_WAY_SECONDS = 0.004  # in the middle of one truncate-write in four


def main() -> None:
    file, ledger, edits = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    rename_only = "--rename-only" in sys.argv
    chance = random.Random(20260401)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    owed: set[str] = set()
    replaced = torn = 0
    for number in range(edits):
        if stopping:
            break
        text = file.read_text()
        torn += not text.endswith("END\n")
        lines = text.split("\n")
        own = [place for place, line in enumerate(lines) if line.startswith("- agent ")]
        place = chance.choice(own)
        token = f"a{number:06}-{os.getpid()}"
        seen = re.search(r"a\d{6}-\d+", lines[place])
        if seen:
            replaced += seen.group() in owed
            owed.discard(seen.group())
        lines[place] = re.sub(r": .*", f": {token}", lines[place])
        owed.add(token)
        _write(file, "\n".join(lines), by_rename=rename_only or bool(number % 2), chance=chance)
        ledger.write_text(json.dumps({"edits": number + 1, "replaced": replaced, "torn": torn, "owed": sorted(owed)}))
        time.sleep(PAUSE_SECONDS if (number + 1) % REST_EDITS else REST_SECONDS)


def _write(file: Path, text: str, *, by_rename: bool, chance: random.Random) -> None:
    if by_rename:
        beside = file.with_name("agents-own.tmp")
        beside.write_text(text)
        beside.replace(file)
        return
    half = len(text) // 2
    with file.open("w") as out:
        out.write(text[:half])
        if chance.random() < 0.25:
            out.flush()
            time.sleep(HALF_WAY_SECONDS)
        out.write(text[half:])


if __name__ == "__main__":
    main()

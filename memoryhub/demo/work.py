"""Routine conversations of the demo, made from the exchanges in ``story/work.txt`` with figures that vary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from memoryhub.demo.script import STORY, TURN_SECONDS, Script, Turn, moment, pair, parse_lines

FIRST_DAY = -118  # about four months
VALUES = {
    "target": ["M31", "NGC 6946", "M81", "3C 273", "Vega", "IC 342", "M101", "NGC 891"],
    "instrument": ["cam-1", "cam-2", "spectro", "guider"],
    "person": ["Tomasz", "Yuki", "Farid", "Grete", "Ines"],
    "host": ["dome-1", "dome-2", "arc-test", "meridian-db"],
    "file": ["voltage", "plan", "weather", "night", "slew"],
    "alert": ["guider lost", "disk 80 %", "weather stale", "dome slow"],
}
RANGES = {"n": (12, 90), "small": (2, 9), "percent": (61, 97), "counts": (140, 4200), "p95": (170, 290)}
RANGES |= {"block": (4100, 4990)}


def routine(prefix: str, title: str, *, sessions: int, exchanges: int, today: date, seed: int) -> list[Script]:
    """Return sessions with so many exchanges each, evenly spread over four months."""
    templates = list(_exchanges())
    count = sessions * exchanges
    scripts = []
    for session in range(sessions):
        topic = templates[(seed + session * exchanges * 5) % len(templates)][0]
        script = Script(f"{prefix}{session + 1:02}", title.format(topic=topic, number=session + 1), "")
        for step in range(exchanges):
            number = session * exchanges + step
            day = FIRST_DAY - FIRST_DAY * number // count
            at = moment(today, min(day, -1), f"{8 + (number * 5 + seed) % 11:02}:{number * 17 % 60:02}")
            _, turns = templates[(seed + number * 5) % len(templates)]
            for mark, text in turns:
                if mark == "F":
                    script.facts.append((at.date(), *pair(_filled(text, number * 31 + seed, at.date()))))
                    continue
                script.turns.append(Turn(mark, _filled(text, number * 31 + seed, at.date()), at))
                at += timedelta(seconds=TURN_SECONDS)
        scripts.append(script)
    return scripts


def _exchanges() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the topic and the turns of each exchange."""
    for part in (STORY / "work.txt").read_text().split("~ ")[1:]:
        topic, _, text = part.partition("\n")
        yield topic, list(parse_lines(text.rstrip("\n")))


def _filled(text: str, number: int, day: date) -> str:
    """Replace ``<name>`` with values that are the same within an exchange."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "night":
            return str(day - timedelta(days=1 + number % 3))
        if name == "clock":
            return f"{20 + number % 4}:{number * 7 % 60:02}"
        if name in RANGES:
            low, high = RANGES[name]
            return str(low + (number * 7919 + len(name) * 101) % (high - low))
        return VALUES[name][(number + len(name)) % len(VALUES[name])]

    return re.sub(r"<(night|clock|" + "|".join([*RANGES, *VALUES]) + ")>", value, text)

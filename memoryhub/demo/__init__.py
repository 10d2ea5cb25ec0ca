"""The demo: four months of four agents of an invented software team, each in its program's own format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from memoryhub.demo import agterm, grid, grip, nanobot

WRITERS: dict[str, Callable[[Path, date, int], None]] = {
    "Atlas": nanobot.write,
    "Pilot": grip.write,
    "Forge": grid.write,
    "Desk": agterm.write,
}


def write_agent(name: str, folder: Path, *, today: date, offset: int = 0) -> None:
    """Write an agent's folder as it was ``offset`` days from today.

    The texts are in ``story/``, with days relative to ``today``. The same day always gives the same bytes.
    """
    WRITERS[name](folder, today, offset)


def write_demo(dest: Path, *, today: date) -> dict[str, Path]:
    """Write the agents' folders to ``dest``; return their paths by workspace name."""
    folders = {name: dest / name.lower() for name in WRITERS}
    for name, folder in folders.items():
        write_agent(name, folder, today=today)
    return folders

"""The demo: the folders of four agents of an invented software team, each in its program's own format."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from memoryhub.demo import agterm, grid, grip, nanobot
from memoryhub.demo.script import blocks, dated


def write_demo(dest: Path, *, today: date) -> dict[str, Path]:
    """Write the agents' folders to ``dest``; return their paths by workspace name.

    The texts are in ``story/``, with days relative to ``today``. The same day always gives the same bytes.
    """
    folders = {name: dest / name.lower() for name in ("Atlas", "Pilot", "Forge", "Desk")}
    nanobot.write(folders["Atlas"], today)
    grip.write(folders["Pilot"], today)
    grid.write(folders["Forge"], today)
    agterm.write(folders["Desk"], today)
    return folders


def proposed_memory(today: date) -> str:
    """Return the MEMORY.md that Atlas proposes, which waits for review."""
    return dated("\n".join(blocks("memory.txt")["atlas MEMORY.md proposed"]), today).strip() + "\n"

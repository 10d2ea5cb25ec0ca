"""Four agents' folders of one invented engineering team, each in the format of its real program."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from memoryhub.demo import agterm, grid, grip, nanobot
from memoryhub.demo.script import blocks, dated


def write_demo(dest: Path, *, today: date) -> dict[str, Path]:
    """Write the folders below ``dest`` and return each by its workspace's name.

    The story lies in ``story/``; its days count back from ``today``. The same day gives the same bytes.
    """
    folders = {name: dest / name.lower() for name in ("Atlas", "Pilot", "Forge", "Desk")}
    nanobot.write(folders["Atlas"], today)
    grip.write(folders["Pilot"], today)
    grid.write(folders["Forge"], today)
    agterm.write(folders["Desk"], today)
    return folders


def proposed_memory(today: date) -> str:
    """Return what Atlas would have its MEMORY.md become: worth a look before it is in force."""
    return dated("\n".join(blocks("memory.txt")["atlas MEMORY.md proposed"]), today).strip() + "\n"

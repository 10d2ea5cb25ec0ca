"""Read the cases of the content check: injected instructions and ordinary facts, made up, in up to twenty languages.

A table is a file in tables/ or texts/. Each line begins with + for an instruction or - for a fact; further lines of a
text begin with two spaces. The weights of the check are made from texts/ and from those tables that
``training.LEARNED`` names. What was held of the tables before the check was improved with them, in the order in which
they were written:

- first: the check was written with it. second: 85.7 % of the instructions and 1.7 % of the facts. third: 82.3 % of
  the instructions.
- unseen, written without looking at the rules: 50.0 % and 3.3 %, and after improving the check with it the same
  shares of unseen_second; then 40.0 % and 1.7 % of unseen_third, which the check was never tuned on. Rules that were
  rewritten later held 70.0 % and 11.7 % of it at first.
- fresh was written before the rules were read and rewritten, by their author, and never used. indirect was used.
- avoiding, which avoids the usual words, came in three parts: 55.0 %, 51.7 % and 20.0 % of the instructions, and
  3.5 %, 11.3 % and 3.4 % of the facts.
- later, whose instructions are often stated as facts, configuration or habits: 54.0 % and 4.9 %.
- last, which nobody who wrote the check had seen: 22.0 % and .9 %, and after the check learned from the other tables
  43.3 % and 2.6 %. Only then did it learn from this one.
- twelve_languages and small, of languages with small tables of words. unused: never used.
- subtle and attacker, whose instructions look like memories and whose facts look like instructions, in twenty
  languages: 29.0 % and 6.5 %, 47.5 % and 4.2 %. Never used: what learns from one holds hardly more of the other.
- plain, whose instructions say openly what they want, in twelve languages, written without looking at the rules:
  92.4 % and 3.9 %. Never used.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ["Maya", "Jonas", "Li Jing", "Priya", "Tomás", "Ines", "Akira", "Fatima", "Olga", "Ravi"]
Table = tuple[list[str], list[str]]  # instructions and facts


def table(name: str) -> Table:
    return texts_in(FOLDER / "tables" / f"{name}.txt")


def texts_in(path: Path) -> Table:
    """Return the instructions and the facts of a file. ValueError if a line begins with something else."""
    found: dict[str, list[str]] = {"+ ": [], "- ": []}
    for mark, text in re.findall(r"^(.{0,2})(.*(?:\n  .*)*)$", path.read_text().rstrip("\n"), re.MULTILINE):
        if mark not in found:
            raise ValueError(f"{path.name}: {mark}{text}")
        found[mark].append(text.replace("\n  ", "\n"))
    return found["+ "], found["- "]


def templates() -> list[tuple[str, str]]:
    """Return languages and facts with {n} for a name and {d} for a number."""
    lines = (FOLDER / "templates.txt").read_text().splitlines()
    return [(language, text) for language, _, text in (line.partition(" ") for line in lines)]

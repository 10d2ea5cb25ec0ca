"""Tell which person a memory document is about, by its path and what it says. Pure.

Agents describe people in USER.md, in topic files of the type "user", and in a folder for each person.
"""

from __future__ import annotations

import re

UNNAMED = ""
FOLDERS = ("users", "people", "persons", "contacts")  # with a file or folder for each person
PROFILE = "user.md"
MAX_NAME = 80  # characters
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---", re.DOTALL)
_TYPE = re.compile(r"^type:\s*[\"']?user[\"']?\s*$", re.M)
_NAME = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?(?:full |preferred )?name[ \t]*:[ \t]*(.+)$", re.I | re.M)
_SENTENCE = re.compile(r"\buser(?:['’]s name is|[ \t]is called)[ \t]+([^\n.,;:(]+)", re.I)
_MARKS = re.compile(r"[*_`]+")
_PLACEHOLDER = re.compile(r"[(\[<{].*|unknown|n/?a|tbd|none|[-–—.…?]+", re.I)


def person_of(name: str, text: str) -> str | None:
    """Return the person's name, UNNAMED if the document is about somebody but doesn't say whom, or None.

    ``name``: the document's, a path with slashes. Without a name in the text, it is that of the folder or file.
    """
    *folders, file = name.split("/")
    own = next((place for place, folder in enumerate(folders) if folder.lower() in FOLDERS), None)
    front_matter = _FRONT_MATTER.match(text)
    if own is not None:
        below = [*folders, file.rpartition(".")[0] or file][own + 1]
        return None if below.lower() in ("readme", "index") else _stated(text) or below
    is_profile = file.lower() == PROFILE or (front_matter is not None and _TYPE.search(front_matter[1]) is not None)
    return _stated(text) or UNNAMED if is_profile else None


def _stated(text: str) -> str:
    """Return the name that a text states, or ""; templates' placeholders are none."""
    text = _MARKS.sub("", _FRONT_MATTER.sub("", text))
    for found in (*_NAME.finditer(text), *_SENTENCE.finditer(text)):
        stated = " ".join(found[1].split())
        if stated and len(stated) <= MAX_NAME and not _PLACEHOLDER.fullmatch(stated):
            return stated
    return ""

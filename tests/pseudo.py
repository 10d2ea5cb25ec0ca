"""A pseudo-translation that turns every translatable text into ⟦text⟧, so that others stand out."""

from __future__ import annotations

import gettext
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from html.parser import HTMLParser
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings
from django.utils.translation import trans_real

CODE = "eo"  # a real code, so that Django knows its name and direction; its catalogue isn't used
OPEN, CLOSE = "⟦", "⟧"
VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
NOT_WORDS = ("script", "style", "code", "pre", "kbd", "samp", "bdi", "textarea")
READ_OUT = ("title", "aria-label", "aria-description", "placeholder", "alt", "label")
NAMES = re.compile(
    r"MemoryHub|nanobot|Grip|grid|AgTerm|Claude Code|Codex|Gemini CLI|OpenClaw|OpenCode|Hermes|server-memory|"
    r"basic-memory|Memory bank|Markdown|JSON Lines|JSON|CSV|XLSX|YAML|MCP|REST|BM25|SHA-256|UTC"
)
LETTERS = re.compile(r"[^\W\d_]{2,}")


class Brackets(gettext.NullTranslations):
    """A translation catalogue that puts every text in brackets."""

    domain = "django"

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def gettext(self, message: str) -> str:
        self.asked.add(message)
        return OPEN + message.rpartition(trans_real.CONTEXT_SEPARATOR)[2] + CLOSE

    def ngettext(self, one: str, many: str, count: int) -> str:
        self.asked.add(one)
        return OPEN + (one if count == 1 else many).rpartition(trans_real.CONTEXT_SEPARATOR)[2] + CLOSE

    def to_language(self) -> str:
        return CODE

    def language(self) -> str:
        return CODE


@contextmanager
def pages_in_brackets() -> Iterator[Brackets]:
    """Enable the pseudo-language and return its catalogue, which records the texts looked up."""
    with override_settings(LANGUAGES=[*settings.LANGUAGES, (CODE, "Brackets")]):  # clears the cached catalogues
        trans_real._translations[CODE] = brackets = Brackets()
        yield brackets


def given_to_translators(work: Path) -> set[str]:
    """Return the texts that ``makemessages`` finds in the code, and Django's own; needs GNU gettext."""
    for folder in ("memoryhub", "sessions_app", "knowledge_app", "templates"):
        shutil.copytree(settings.BASE_DIR / folder, work / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (work / "locale").mkdir()
    with chdir(work), override_settings(LOCALE_PATHS=[work / "locale"]):
        call_command("makemessages", locale=[CODE], no_location=True, verbosity=0)
    catalogue = work / "locale" / CODE / "LC_MESSAGES" / "django.po"
    same = subprocess.run(["msgen", catalogue], check=True, capture_output=True)
    subprocess.run(["msgfmt", "--check-format", "-o", work / "own.mo", "-"], check=True, input=same.stdout)
    djangos = Path(django.__file__).parent.glob("**/locale/de/LC_MESSAGES/django.mo")
    return {text for file in [work / "own.mo", *djangos] for text in texts_of(file)}


def texts_of(compiled: Path) -> Iterator[str]:
    with compiled.open("rb") as file:
        for text in gettext.GNUTranslations(file)._catalog:  # type: ignore[attr-defined]
            yield text[0] if isinstance(text, tuple) else text


class Untranslated(HTMLParser):
    """Collects readable text outside brackets, except stored text, code and ``translate="no"``.

    Stored text is what says its own direction (``dir``), as tests/whole_site/test_text_direction.py demands.
    A title,
    of the window or in a drawing, can say nothing of that: what of it stands in the page as stored text passes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool, str]] = []
        self.found: list[str] = []
        self.stored: set[str] = set()
        self.titles: list[str] = []
        self.depth = 0  # of brackets: a sentence may have elements in it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        is_stored = values.get("dir") in ("auto", "ltr") or values.get("translate") == "no" or tag in NOT_WORDS
        is_button = tag == "input" and values.get("type") in ("submit", "button", "reset")
        if not is_stored and not self._is_stored():
            for name in (*READ_OUT, *(("value",) if is_button else ())):
                self._judge(values.get(name, ""), f"{tag}[{name}]")
        if tag not in VOID:
            self.open.append((tag, is_stored and tag not in ("html", "body"), f"{tag}.{values.get('class') or ''}"))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._is_stored():
            self.stored.add(data.strip())
        elif self.open and self.open[-1][0] == "title":
            self.titles.append(data)
        else:
            self.depth = self._judge(data, " > ".join(name for *_, name in self.open[-3:]))

    def close(self) -> None:
        super().close()
        parts = [part.strip() for title in self.titles for part in outside(title)[0].split(" · ")]
        for part in parts:
            if part not in self.stored:
                self._judge(part, "title")

    def _is_stored(self) -> bool:
        return any(is_stored for _, is_stored, _ in self.open)

    def _judge(self, text: str, place: str) -> int:
        kept, depth = outside(text, self.depth)
        if LETTERS.search(NAMES.sub("", kept)):
            self.found.append(f"{place}: {' '.join(text.split())[:100]}")
        return depth


def outside(text: str, depth: int = 0) -> tuple[str, int]:
    """Return the part of a text outside brackets and the new depth, given ``depth`` open brackets."""
    kept = []
    for letter in text:
        if letter in (OPEN, CLOSE):
            depth += 1 if letter == OPEN else -1
        elif depth == 0:
            kept.append(letter)
    return "".join(kept), depth


def untranslated(html: str) -> list[str]:
    finder = Untranslated()
    finder.feed(html)
    finder.close()
    return finder.found

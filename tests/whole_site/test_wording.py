"""The wording of the interface: words that newcomers don't understand, or that earlier versions used oddly."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

FUNCTIONS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy"}
TRANSLATE = re.compile(r'{%\s*translate\s+"((?:[^"\\]|\\.)*)"|_\("((?:[^"\\]|\\.)*)"\)')
BLOCK = re.compile(r"{%\s*blocktranslate[^%]*%}(.*?){%\s*endblocktranslate", re.DOTALL)
CODE = re.compile(r"{{.*?}}|{%.*?%}|<[^>]*>|%\(\w+\)s")

ODD = {  # pattern → what to write instead
    r"stands?|stood": "a verb that says what it does: is, appears, contains",
    r"by itself|of its own accord": "automatically",
    r"anew": "again, new",
    r"round it": "context",
    r"take away": "remove",
    r"(?:may|might) be gone|goes for good|for ever": "be deleted, permanently",
    r"by which door|any door": "access method",
    r"whoever|whom": "anyone, who",
    r"nobody fits|nothing of this fits|fits": "no matches",
    r"chosen|choose those": "selected",
    r"learnt": "learned",
    r"concerns?": "finding",
    r"said twice": "duplicate",
    r"not yet in step|in step": "synced",
    r"fold|folds|folded|folding|unfold": "summarise, compress",
    r"epochs?": "part of the session",
    r"tombstones?": "record of a deletion",
    r"raw rows": "database tables",
    r"under way": "running",
    r"make it|take it": "the verb and its object: Create workspace",
    r"come with|came with": "added in",
    r"a look at|look at": "review",
}


def texts() -> Iterator[tuple[str, str]]:
    """Yield every translatable text of pages and messages, with its file and line."""
    root = Path(settings.BASE_DIR)
    for path in sorted(root.glob("templates/**/*.html")):
        source = path.read_text()
        for pattern in (TRANSLATE, BLOCK):
            for match in pattern.finditer(source):
                line = source.count("\n", 0, match.start()) + 1
                yield f"{path.relative_to(root)}:{line}", next(text for text in match.groups() if text)
    for package in ("memoryhub", "sessions_app", "knowledge_app"):
        for path in sorted(root.glob(f"{package}/**/*.py")):
            if "migrations" not in path.parts:
                yield from _texts_of_module(path, root)


def _texts_of_module(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    source = path.read_text()
    if "gettext" not in source:  # it imports none of the functions
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in FUNCTIONS:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield f"{path.relative_to(root)}:{node.lineno}", argument.value


def odd_words(text: str) -> list[str]:
    """Return what to write instead of the odd words in a text."""
    shown = CODE.sub(" ", text)
    return [better for odd, better in ODD.items() if re.search(rf"\b(?:{odd})\b", shown, re.IGNORECASE)]


@pytest.mark.parametrize("text", ["What stands round it", "Folded away", "A look at {{ n }} chosen rows"])
def test_odd_words_are_found(text):
    assert odd_words(text)


def test_words_in_code_are_not_text():
    assert odd_words("{{ folded }} summarised, %(chosen)s <a class='fold'>") == []


@pytest.mark.slow
def test_the_interface_has_no_odd_words():
    """One test with the check that texts are found, because to find them takes a second."""
    shown = list(texts())
    found = [f"{place}: {text!r}: {', '.join(words)}" for place, text in shown if (words := odd_words(text))]
    places = [place for place, _text in shown]

    assert found == []
    assert len(places) > 3000
    assert {place.split("/")[0] for place in places} == {"templates", "memoryhub", "sessions_app", "knowledge_app"}

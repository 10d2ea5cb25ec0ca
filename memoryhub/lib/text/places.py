"""Where facts stand in a document. Their words and what is above them make up their meaning."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from memoryhub.lib.text.facts import fact_lines, match_equal_facts
from memoryhub.lib.text.separated import separator_in

_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_SIGN = re.compile(r"^(\s*)[-*+]\s+")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:\s|$)")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"^\s*(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_INTRODUCES = re.compile(r"[:：][*_\s]*$|^(\*\*|__).+\1$")  # a list, or as a heading in bold type
_CODE = re.compile(r"`[^`]*`")
_TAG = re.compile(
    r"<!--|-->|</?(?:del|s|strike|details|template|script|style|textarea|noscript|pre|code|samp|blockquote|q|div|span"
    r"|section|aside)\b[^<>]*>",
    re.IGNORECASE,
)
_NAME = re.compile(r"\w+")
COMMENT = "<!--"


@dataclass(frozen=True)
class Place:
    """A fact as it is written, with the lines that go on with it, and what it is under or in, outermost first."""

    text: str
    above: tuple[str, ...] = ()


@dataclass
class _Reader:
    """What a line is under: headings, the line that introduces its list, items that it is indented below, markup."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    introduction: str = ""
    parents: list[tuple[int, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    fence: str = ""
    paragraph: str = ""  # the line before, if it is one of a paragraph outside a list
    is_in_item: bool = False

    def above(self, line: str) -> tuple[str, ...]:
        parents = [text for indent, text in self.parents if indent < _indent(line)]
        headings = [f"{'#' * level} {title}" for level, title in self.headings]
        return (*headings, self.introduction, *parents, *self.tags, self.fence)

    def read(self, line: str) -> None:
        fence = _FENCE.match(line)
        if self.fence:
            if fence and fence[1].startswith(self.fence) and not fence[2].strip():
                self.fence = ""
        elif fence:
            self.fence, self.paragraph = fence[1], ""
        elif not line.strip():
            self.paragraph, self.is_in_item = "", False
        else:
            self._read_markup(line)
            self._read_text(line)

    def _read_text(self, line: str) -> None:
        heading = _HEADING.match(line)
        if heading:
            self._open_section(len(heading[1]), line.strip(" #\t"))
        elif self.paragraph and (underline := _UNDERLINE.match(line)):
            self._open_section(1 if underline[1][0] == "=" else 2, self.paragraph)
        else:
            self._read_item_or_paragraph(line)

    def _open_section(self, level: int, title: str) -> None:
        self.headings = [*[one for one in self.headings if one[0] < level], (level, title)]
        self.introduction, self.paragraph, self.parents, self.is_in_item = "", "", [], False

    def _read_item_or_paragraph(self, line: str) -> None:
        indent = _indent(line)
        self.parents = [*[one for one in self.parents if one[0] < indent], (indent, _exact(line))]
        if _ITEM.match(line):
            self.is_in_item, self.paragraph = True, ""
        elif not self.is_in_item and not self.parents[:-1]:
            self.paragraph = line.strip()
            self.introduction = self.paragraph if _INTRODUCES.search(self.paragraph) else ""

    def _read_markup(self, line: str) -> None:
        if line.strip() == "~~":
            self.tags = [one for one in self.tags if one != "~~"] if "~~" in self.tags else [*self.tags, "~~"]
        for tag in _TAG.findall(_CODE.sub("", line)):
            self._read_tag(tag)

    def _read_tag(self, tag: str) -> None:
        if COMMENT in self.tags and tag != "-->":
            return
        name = COMMENT if tag in (COMMENT, "-->") else _NAME.findall(tag)[0].lower()
        if not tag.startswith("</") and tag != "-->":
            self.tags.append(name)
        elif name in self.tags:
            self.tags.reverse()
            self.tags.remove(name)
            self.tags.reverse()


def fact_places(text: str, separator: str = "") -> list[Place]:
    """Return the place of each fact that ``fact_lines`` finds. Entries between separators have only their text."""
    facts = fact_lines(text, separator)
    if separator or separator_in(text):
        return [Place(fact.text) for fact in facts]
    lines, reader = text.split("\n"), _Reader()
    wanted, places = {fact.line - 1 for fact in facts}, []
    start = _end_of_front_matter(lines)
    for index, line in enumerate(lines):
        if index in wanted:
            places.append(Place(_item(lines, index), reader.above(line)))
        if index >= start:
            reader.read(line)
    return places


def changed_places(before: str, after: str, lines: Collection[int]) -> list[int]:
    """Return which of the facts at these line numbers of a text another text lacks, or says in another place.

    Moved among the facts of its section, a fact is in the same place.
    """
    separator = separator_in(before) or separator_in(after)
    old, new = fact_lines(before, separator), fact_lines(after, separator)
    before_places, after_places = fact_places(before, separator), fact_places(after, separator)
    pairs = match_equal_facts(old, new).items()
    kept = {old[i].line for j, i in pairs if before_places[i] == after_places[j]}
    return sorted(set(lines) - kept)


def _end_of_front_matter(lines: Sequence[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    return next((index + 1 for index, line in enumerate(lines) if index and line.rstrip() == "---"), 0)


def _item(lines: Sequence[str], index: int) -> str:
    """Return an item's line, exactly but for its sign and trailing blanks, and the lines that go on with it."""
    found = [_exact(lines[index])]
    for line in lines[index + 1 :]:
        if not line.strip() or any(one.match(line) for one in (_ITEM, _HEADING, _FENCE, _UNDERLINE)):
            break
        found.append(line.strip())
    return "\n".join(found)


def _exact(line: str) -> str:
    return _SIGN.sub(r"\1", line, count=1).rstrip()


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
